//! Row groups of exactly a fixed number of rows (the last may have fewer) from batches of any size.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use polars::prelude::DataFrame;
use study::record::{COLUMNS, Kind, Value, cell_columns};
use study::{Batch, CellId};

use super::{Error, Sealing, hex};
use crate::census::Census;
use crate::dataset::Source;
use crate::description::{CellDescription, Scalar};
use crate::parquet::{Datum, FileError, Table};
use crate::schema::{
    self, CELL, CELL_COLUMN, FIRST_OF_CELL, FIRST_SWEPT, REPLICATE_COLUMN, STATUS_COLUMN,
    STUDY_COLUMN, T_COLUMN, Type,
};

/// Frames of a row group each.
pub(super) struct Groups<'a, I> {
    batches: I,
    census: &'a mut Census,
    columns: Vec<(String, Type)>,
    study: Datum,
    cells: BTreeMap<CellId, Constants<'a>>,
    rows: usize,
    /// The batch that is being split, and its first row that no group has yet.
    current: Option<(Batch, usize)>,
}

/// What every row of a cell has.
struct Constants<'a> {
    /// In the order of [`study::record::cell_columns`].
    cell: Vec<Datum>,
    /// In the order of the swept keys.
    swept: Vec<Datum>,
    checkpoints: &'a [u32],
}

impl<'a, I: Iterator<Item = Result<Batch, Source>>> Groups<'a, I> {
    pub(super) fn new(
        sealing: &Sealing<'a>,
        swept: &[(String, Type)],
        batches: I,
        census: &'a mut Census,
    ) -> Self {
        let columns = schema::columns(swept).into_iter();
        let cells = sealing.cells.iter().map(|cell| (cell.id, Constants::new(cell, swept)));
        Self {
            batches,
            census,
            columns: columns.map(|column| (column.name, column.kind)).collect(),
            study: Datum::Text(hex(sealing.study)[..12].into()),
            cells: cells.collect(),
            rows: sealing.shape.rows,
            current: None,
        }
    }

    /// Checks a batch and enters it in the census.
    fn admit(&mut self, batch: &Batch) -> Result<(), Error> {
        self.census.add(batch)?;
        let cell = batch.cell();
        self.cells.get(&cell).ok_or(Error::UnknownCell { cell })?.check(batch)
    }

    fn group(&mut self) -> Result<Option<DataFrame>, Error> {
        let mut table = Table::new(&self.columns, self.rows);
        let mut filled = 0;
        while filled < self.rows {
            let Some((batch, next)) = self.current.take() else {
                let Some(batch) = self.batches.next().transpose().map_err(Error::Source)? else {
                    break;
                };
                self.admit(&batch)?;
                self.current = Some((batch, 0));
                continue;
            };
            let end = batch.len().min(next + self.rows - filled);
            filled += end - next;
            let constants = &self.cells[&batch.cell()];
            push(&mut table, &self.study, constants, &batch, next..end);
            self.current = (end < batch.len()).then_some((batch, end));
        }
        let refused = FileError::parquet("write", Path::new("records"));
        if filled == 0 { Ok(None) } else { Ok(Some(table.finish().map_err(refused)?)) }
    }
}

impl<I: Iterator<Item = Result<Batch, Source>>> Iterator for Groups<'_, I> {
    type Item = Result<DataFrame, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.group().transpose()
    }
}

impl<'a> Constants<'a> {
    fn new(description: &'a CellDescription, swept: &[(String, Type)]) -> Self {
        let of_cell = |(_, value): (_, Value)| match value {
            Value::Null => Datum::Null,
            Value::Integer(value) => Datum::Integer(value),
            Value::Float(value) => Datum::Float(value),
            Value::Text(value) => Datum::Text(value.into()),
            Value::Bool(_) => unreachable!("no column of a cell is a flag"),
        };
        let of_key = |(key, _): &(String, Type)| {
            let value = description.swept.iter().find(|(name, _)| name == key);
            match value {
                None => Datum::Null,
                Some((_, Scalar::Integer(value))) => Datum::Integer(*value),
                Some((_, Scalar::Float(value))) => Datum::Float(*value),
                Some((_, Scalar::Text(value))) => Datum::Text(value.clone()),
            }
        };
        Self {
            cell: cell_columns(&description.cell).into_iter().map(of_cell).collect(),
            swept: swept.iter().map(of_key).collect(),
            checkpoints: &description.checkpoints,
        }
    }

    /// That the rows are at checkpoints of the cell, and their numbers fit.
    fn check(&self, batch: &Batch) -> Result<(), Error> {
        let cell = batch.cell();
        for (&replicate, &t) in batch.replicates().iter().zip(batch.checkpoints()) {
            if self.checkpoints.binary_search(&t).is_err() {
                return Err(Error::Checkpoint { cell, replicate, t });
            }
            if i64::try_from(replicate).is_err() {
                return Err(Error::Replicate { cell, replicate });
            }
        }
        Ok(())
    }
}

/// Adds rows of a batch.
fn push(
    table: &mut Table,
    study: &Datum,
    constants: &Constants<'_>,
    batch: &Batch,
    rows: Range<usize>,
) {
    let (start, count) = (rows.start, rows.len());
    table.repeat(STUDY_COLUMN, study, count);
    table.repeat(CELL_COLUMN, &Datum::Text(batch.cell().to_string()), count);
    let replicates = batch.replicates()[rows.clone()].iter();
    table.integers(REPLICATE_COLUMN, replicates.map(|&replicate| Some(replicate.cast_signed())));
    table.texts(STATUS_COLUMN, batch.statuses().skip(start).take(count).map(Some));
    for (at, value) in constants.cell.iter().enumerate() {
        table.repeat(FIRST_OF_CELL + at, value, count);
    }
    debug_assert_eq!(constants.cell.len(), CELL);
    table.integers(T_COLUMN, batch.checkpoints()[rows].iter().map(|&t| Some(t.into())));
    for (at, value) in constants.swept.iter().enumerate() {
        table.repeat(FIRST_SWEPT + at, value, count);
    }
    let first = FIRST_SWEPT + constants.swept.len();
    for (at, (values, column)) in batch.columns().iter().zip(COLUMNS).enumerate() {
        match column.kind {
            Kind::Bool => table.bools(first + at, values.bools().skip(start).take(count)),
            Kind::Integer => table.integers(first + at, values.integers().skip(start).take(count)),
            Kind::Float => table.floats(first + at, values.floats().skip(start).take(count)),
        }
    }
}
