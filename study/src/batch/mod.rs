//! Records by column: what workers stream, segments hold and sealing reads.
//!
//! A batch holds records of one cell in ascending order of (replicate, t). Whatever holds a `Batch` holds
//! records that could have been measured: those that come from elsewhere are checked.

mod encoding;

pub use encoding::{DecodeError, MAX_ROWS};

use std::ops::Range;

use crate::cell::CellId;
use crate::digest::Digest;
use crate::record::{COLUMNS, Failure, Kind, Record, Value};

/// Records of one cell, by column.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    cell: CellId,
    replicates: Vec<u64>,
    checkpoints: Vec<u32>,
    statuses: Vec<u8>,
    columns: Vec<Values>,
}

/// One measured column: the bits of each row's value, and whether there is one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    bits: Vec<u64>,
    present: Vec<bool>,
}

impl Values {
    /// Flags; `None` where a row has no value.
    pub fn bools(&self) -> impl ExactSizeIterator<Item = Option<bool>> {
        self.rows(|bits| bits != 0)
    }

    /// Counts and indices.
    pub fn integers(&self) -> impl ExactSizeIterator<Item = Option<i64>> {
        self.rows(u64::cast_signed)
    }

    /// Numbers.
    pub fn floats(&self) -> impl ExactSizeIterator<Item = Option<f64>> {
        self.rows(f64::from_bits)
    }

    fn rows<T>(&self, value: fn(u64) -> T) -> impl ExactSizeIterator<Item = Option<T>> {
        self.bits
            .iter()
            .zip(&self.present)
            .map(move |(&bits, &present)| present.then(|| value(bits)))
    }

    fn push(&mut self, value: Value) {
        let bits = match value {
            Value::Null => None,
            Value::Bool(flag) => Some(u64::from(flag)),
            Value::Integer(value) => Some(value.cast_unsigned()),
            Value::Float(value) => Some(value.to_bits()),
            Value::Text(_) => unreachable!("no measured column holds text"),
        };
        self.push_bits(bits);
    }

    fn push_bits(&mut self, bits: Option<u64>) {
        self.bits.push(bits.unwrap_or(0));
        self.present.push(bits.is_some());
    }
}

impl Batch {
    /// No records yet.
    pub fn new(cell: CellId) -> Self {
        let columns = vec![Values::default(); COLUMNS.len()];
        Self { cell, replicates: vec![], checkpoints: vec![], statuses: vec![], columns }
    }

    /// Adds a record of the batch's cell that follows those already there.
    ///
    /// # Panics
    /// Where it does not.
    pub fn push(&mut self, record: &Record) {
        assert_eq!(record.cell, self.cell, "a batch is of one cell");
        if let Some((replicate, t)) = self.last() {
            let follows = (replicate, t) < (record.replicate, record.t);
            assert!(follows, "records come in order of replicate and checkpoint");
        }
        self.replicates.push(record.replicate);
        self.checkpoints.push(record.t);
        match &record.outcome {
            Ok(measurement) => {
                self.statuses.push(0);
                for (values, column) in self.columns.iter_mut().zip(COLUMNS) {
                    values.push((column.value)(measurement));
                }
            }
            Err(failure) => {
                let place = Failure::NAMES.iter().position(|&name| name == failure.name());
                let code = 1 + place.expect("every failure has its name in the list");
                self.statuses.push(code as u8);
                self.columns.iter_mut().for_each(|values| values.push_bits(None));
            }
        }
    }

    /// Moves the rows of a batch of the same cell to the end of this one.
    ///
    /// # Panics
    /// Where they do not follow.
    pub fn append(&mut self, mut other: Self) {
        assert_eq!(other.cell, self.cell, "a batch is of one cell");
        let first = other.replicates.first().copied().zip(other.checkpoints.first().copied());
        let follows = self.last().zip(first).is_none_or(|(last, first)| last < first);
        assert!(follows, "records come in order of replicate and checkpoint");
        self.replicates.append(&mut other.replicates);
        self.checkpoints.append(&mut other.checkpoints);
        self.statuses.append(&mut other.statuses);
        for (values, more) in self.columns.iter_mut().zip(&mut other.columns) {
            values.bits.append(&mut more.bits);
            values.present.append(&mut more.present);
        }
    }

    /// From columns that were stored elsewhere: values of each measured column of the schema as bits.
    pub fn from_columns(
        cell: CellId,
        replicates: Vec<u64>,
        checkpoints: Vec<u32>,
        statuses: &[&str],
        columns: Vec<Vec<Option<u64>>>,
    ) -> Result<Self, DecodeError> {
        let code = |(row, status): (usize, &&str)| {
            let names = ["ok"].into_iter().chain(Failure::NAMES);
            let place = names.into_iter().position(|name| name == *status);
            place.map(|code| code as u8).ok_or(DecodeError::Value { row, column: "status" })
        };
        let statuses = statuses.iter().enumerate().map(code).collect::<Result<_, _>>()?;
        let values = columns.into_iter().map(|column| {
            let mut values = Values::default();
            column.into_iter().for_each(|bits| values.push_bits(bits));
            values
        });
        let batch = Self { cell, replicates, checkpoints, statuses, columns: values.collect() };
        let rows = batch.len();
        let lengths = [batch.checkpoints.len(), batch.statuses.len()];
        let columns = batch.columns.iter().map(|values| values.bits.len());
        if batch.columns.len() != COLUMNS.len()
            || lengths.into_iter().chain(columns).any(|length| length != rows)
        {
            return Err(DecodeError::Short);
        }
        batch.check()?;
        Ok(batch)
    }

    /// The cell.
    pub fn cell(&self) -> CellId {
        self.cell
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.replicates.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.replicates.is_empty()
    }

    /// The replicate of every row.
    pub fn replicates(&self) -> &[u64] {
        &self.replicates
    }

    /// The checkpoint of every row.
    pub fn checkpoints(&self) -> &[u32] {
        &self.checkpoints
    }

    /// The status of every row: "ok", or the failure's name.
    pub fn statuses(&self) -> impl ExactSizeIterator<Item = &'static str> {
        self.statuses.iter().map(|&code| status(code))
    }

    /// Rows that failed.
    pub fn failures(&self) -> usize {
        self.statuses.iter().filter(|&&code| code > 0).count()
    }

    /// The measured columns, in the order of [`COLUMNS`].
    pub fn columns(&self) -> &[Values] {
        &self.columns
    }

    /// Replicate and checkpoint of the last row.
    pub fn last(&self) -> Option<(u64, u32)> {
        Some((*self.replicates.last()?, *self.checkpoints.last()?))
    }

    /// The rows of a range, as a batch of their own.
    ///
    /// # Panics
    /// Where the range is not within the batch.
    #[must_use]
    pub fn slice(&self, rows: Range<usize>) -> Self {
        Self {
            cell: self.cell,
            replicates: self.replicates[rows.clone()].to_vec(),
            checkpoints: self.checkpoints[rows.clone()].to_vec(),
            statuses: self.statuses[rows.clone()].to_vec(),
            columns: self
                .columns
                .iter()
                .map(|values| Values {
                    bits: values.bits[rows.clone()].to_vec(),
                    present: values.present[rows.clone()].to_vec(),
                })
                .collect(),
        }
    }

    /// Feeds every record as [`Record::feed`] does.
    pub fn feed(&self, digest: &mut Digest) {
        for row in 0..self.len() {
            digest.u64(self.cell.0).u64(self.replicates[row]).u64(self.checkpoints[row].into());
            digest.text(status(self.statuses[row]));
            if self.statuses[row] > 0 {
                continue;
            }
            for (values, column) in self.columns.iter().zip(COLUMNS) {
                if values.present[row] {
                    let kind = match column.kind {
                        Kind::Bool => 1,
                        Kind::Integer => 2,
                        Kind::Float => 3,
                    };
                    digest.pair(kind, values.bits[row]);
                } else {
                    digest.u64(0);
                }
            }
        }
    }

    /// Order, statuses, and that only measured rows have values, none of them NaN.
    fn check(&self) -> Result<(), DecodeError> {
        for row in 0..self.len() {
            let key = |row: usize| (self.replicates[row], self.checkpoints[row]);
            if row > 0 && key(row - 1) >= key(row) {
                return Err(DecodeError::Order(row));
            }
            if usize::from(self.statuses[row]) > Failure::NAMES.len() {
                return Err(DecodeError::Value { row, column: "status" });
            }
        }
        for (values, column) in self.columns.iter().zip(COLUMNS) {
            for (row, (&bits, &present)) in values.bits.iter().zip(&values.present).enumerate() {
                let measured = self.statuses[row] == 0;
                let valid = match column.kind {
                    Kind::Bool => bits <= 1,
                    Kind::Integer => true,
                    Kind::Float => !f64::from_bits(bits).is_nan(),
                };
                if present && !(measured && valid) {
                    return Err(DecodeError::Value { row, column: column.name });
                }
            }
        }
        Ok(())
    }
}

fn status(code: u8) -> &'static str {
    code.checked_sub(1).map_or("ok", |failure| Failure::NAMES[usize::from(failure)])
}

#[cfg(test)]
mod tests;
