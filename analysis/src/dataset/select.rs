//! The part of a base that a grown study keeps.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use study::{Batch, CellId};

/// The cells to keep, and which of their replicates. A cell that is not here is dropped.
pub type Selection = BTreeMap<CellId, Vec<Range<u64>>>;

/// The records of the selected cells and replicates.
pub fn select<E>(
    batches: impl IntoIterator<Item = Result<Batch, E>>,
    selection: Selection,
) -> impl Iterator<Item = Result<Batch, E>> {
    batches.into_iter().flat_map(move |batch| match batch {
        Ok(batch) => kept(batch, &selection).into_iter().map(Ok).collect(),
        Err(error) => VecDeque::from([Err(error)]),
    })
}

/// The runs of rows that are selected.
fn kept(batch: Batch, selection: &Selection) -> Vec<Batch> {
    let Some(ranges) = selection.get(&batch.cell()) else { return vec![] };
    let chosen = |row: usize| {
        let replicate = batch.replicates()[row];
        ranges.iter().any(|range| range.contains(&replicate))
    };
    let mut parts = Vec::new();
    let mut row = 0;
    while row < batch.len() {
        let keep = chosen(row);
        let length = (row..batch.len()).take_while(|&row| chosen(row) == keep).count();
        if keep {
            parts.push(row..row + length);
        }
        row += length;
    }
    let whole = 0..batch.len();
    if parts.len() == 1 && parts[0] == whole {
        return vec![batch];
    }
    parts.into_iter().map(|rows| batch.slice(rows)).collect()
}
