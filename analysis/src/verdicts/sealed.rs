//! The sealed counts, row by row of the plan.

use study::rows::{Row, rows};
use study::tally::RowCounts;

use super::{Error, Sealed};
use crate::counts::Count;
use crate::dataset::{DataCell, Dataset};

/// Sorts counts into the rows of the plan, which they must be of.
pub(crate) fn sort<E>(
    dataset: &Dataset,
    counts: impl Iterator<Item = Result<Count, E>>,
) -> Result<Result<Sealed, Error>, E> {
    let size = dataset.study.replicates.batch_size();
    let mut counts = counts.peekable();
    let mut sealed = Vec::with_capacity(dataset.cells.len());
    for cell in &dataset.cells {
        let planned = rows(&dataset.study, &cell.cell);
        let mut batches: Vec<Vec<RowCounts>> = vec![];
        while let Some(count) =
            counts.next_if(|count| count.as_ref().map_or(true, |count| count.cell == cell.id))
        {
            let count = count?;
            if batches.last().is_none_or(|batch| batch.len() == planned.len()) {
                batches.push(Vec::with_capacity(planned.len()));
            }
            if count.batch + 1 != batches.len() as u64 {
                return Ok(Err(Error::Misplaced { cell: cell.id, batch: count.batch }));
            }
            let batch = batches.last_mut().expect("a batch was entered");
            if !planned.get(batch.len()).is_some_and(|row| is_of(&count, row)) {
                return Ok(Err(other_rows(cell)));
            }
            batch.push(RowCounts {
                trials: count.trials,
                refuting: count.refuting,
                confirming: count.confirming,
                failures: count.failures,
            });
        }
        if !batches.iter().all(|batch| batch.len() == planned.len()) {
            return Ok(Err(other_rows(cell)));
        }
        let found = batches.len() as u64;
        let expected = if planned.is_empty() { 0 } else { cell.replicates.div_ceil(size) };
        if found != expected {
            let (cell, batch) = (cell.id, found.min(expected));
            return Ok(Err(Error::Batches { cell, batch, found, expected }));
        }
        sealed.push(batches);
    }
    match counts.next().transpose()? {
        None => Ok(Ok(sealed)),
        Some(Count { cell, batch, .. }) => Ok(Err(Error::Misplaced { cell, batch })),
    }
}

fn other_rows(cell: &DataCell) -> Error {
    Error::OtherRows { cell: cell.id }
}

fn is_of(count: &Count, row: &Row) -> bool {
    count.claim == row.claim.id
        && count.constants.as_deref() == row.form.map(theory::Form::name)
        && count.at.as_deref().map(str::to_owned) == row.at.map(|at| at.to_string())
        && (count.t, count.delta.to_bits()) == (row.t, row.delta.get().to_bits())
        && count.budget.to_bits() == row.budget.to_bits()
}
