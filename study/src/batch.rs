//! Records by column: what workers stream, segments hold and sealing reads.
//!
//! A batch holds records of one cell in ascending order of (replicate, t). Its encoding is one byte of
//! version, the cell, the number of rows, then replicates, checkpoints, statuses and every measured
//! column of the schema: a byte that says whether no, every or some row has a value, a bitmap in the
//! last case, and the values that exist, little-endian. Decoding checks all of it, so that whatever
//! holds a `Batch` holds records that could have been measured.

use std::ops::Range;

use crate::cell::CellId;
use crate::digest::Digest;
use crate::record::{COLUMNS, Failure, Kind, Record, Value};

/// The encoding that this version writes and reads.
const VERSION: u8 = 1;

/// Rows that an encoded batch may have, so that a batch fits in a message and in memory.
pub const MAX_ROWS: usize = 1 << 13;

const NONE: u8 = 0;
const EVERY: u8 = 1;
const SOME: u8 = 2;

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

/// Bytes that are not a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Fewer bytes than the rows announced need.
    #[error("the batch ends early")]
    Short,
    /// More bytes than the rows announced need.
    #[error("{0} bytes follow the batch")]
    Long(usize),
    /// More rows than a batch may have.
    #[error("the batch has {0} rows, and {MAX_ROWS} are allowed")]
    Rows(usize),
    /// Written by another version.
    #[error("the batch has encoding {0}, and this version reads encoding {VERSION}")]
    Version(u8),
    /// Rows out of order, or one twice.
    #[error("row {0} does not follow the row before it")]
    Order(usize),
    /// A status, a flag or a mark that does not exist, a NaN, or a measurement of a failed trial.
    #[error("row {row} of {column} holds no valid value")]
    Value {
        /// From 0.
        row: usize,
        /// The column's name.
        column: &'static str,
    },
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

    /// The batch as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let rows = self.len();
        let mut bytes = Vec::with_capacity(16 + rows * (13 + 8 * COLUMNS.len()));
        bytes.push(VERSION);
        bytes.extend(self.cell.0.to_le_bytes());
        bytes.extend((rows as u32).to_le_bytes());
        self.replicates.iter().for_each(|r| bytes.extend_from_slice(&r.to_le_bytes()));
        self.checkpoints.iter().for_each(|t| bytes.extend_from_slice(&t.to_le_bytes()));
        bytes.extend_from_slice(&self.statuses);
        for (values, column) in self.columns.iter().zip(COLUMNS) {
            values.encode(column.kind, &mut bytes);
        }
        bytes
    }

    /// The batch that these bytes are, if they are one.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut input = Input(bytes);
        let [version] = input.array()?;
        if version != VERSION {
            return Err(DecodeError::Version(version));
        }
        let cell = CellId(u64::from_le_bytes(input.array()?));
        let rows = u32::from_le_bytes(input.array()?) as usize;
        if rows > MAX_ROWS {
            return Err(DecodeError::Rows(rows));
        }
        let words = input.take(rows * 8)?;
        let replicates = words.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)).collect();
        let words = input.take(rows * 4)?;
        let checkpoints =
            words.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word)).collect();
        let statuses = input.take(rows)?.to_vec();
        let decode = |column: &crate::record::Column| {
            Values::decode(column.kind, rows, &mut input)
                .map_err(|error| error.in_column(column.name))
        };
        let columns = COLUMNS.iter().map(decode).collect::<Result<_, _>>()?;
        if !input.0.is_empty() {
            return Err(DecodeError::Long(input.0.len()));
        }
        let batch = Self { cell, replicates, checkpoints, statuses, columns };
        batch.check()?;
        Ok(batch)
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

impl DecodeError {
    /// Names the column that could not be decoded.
    fn in_column(self, name: &'static str) -> Self {
        match self {
            Self::Value { row, .. } => Self::Value { row, column: name },
            other => other,
        }
    }
}

impl Values {
    fn encode(&self, kind: Kind, bytes: &mut Vec<u8>) {
        let count = self.present.iter().filter(|&&present| present).count();
        if count == 0 {
            bytes.push(NONE);
            return;
        }
        if count == self.present.len() {
            bytes.push(EVERY);
        } else {
            bytes.push(SOME);
            for flags in self.present.chunks(8) {
                let bit = |byte, (place, &flag): (usize, &bool)| byte | u8::from(flag) << place;
                bytes.push(flags.iter().enumerate().fold(0, bit));
            }
        }
        let values = self.bits.iter().zip(&self.present).filter(|&(_, &present)| present);
        for (bits, _) in values {
            match kind {
                Kind::Bool => bytes.push(*bits as u8),
                Kind::Integer | Kind::Float => bytes.extend_from_slice(&bits.to_le_bytes()),
            }
        }
    }

    fn decode(kind: Kind, rows: usize, input: &mut Input<'_>) -> Result<Self, DecodeError> {
        let [mark] = input.array()?;
        let present: Vec<bool> = match mark {
            NONE => vec![false; rows],
            EVERY => vec![true; rows],
            SOME => {
                let flags = input.take(rows.div_ceil(8))?;
                (0..rows).map(|row| flags[row / 8] >> (row % 8) & 1 == 1).collect()
            }
            _ => return Err(DecodeError::Value { row: 0, column: "" }),
        };
        if mark == EVERY && kind != Kind::Bool {
            let words = input.take(rows * 8)?.as_chunks().0;
            let bits = words.iter().map(|&word| u64::from_le_bytes(word)).collect();
            return Ok(Self { bits, present });
        }
        let mut bits = Vec::with_capacity(rows);
        for &present in &present {
            bits.push(match kind {
                _ if !present => 0,
                Kind::Bool => u64::from(input.array::<1>()?[0]),
                Kind::Integer | Kind::Float => u64::from_le_bytes(input.array()?),
            });
        }
        Ok(Self { bits, present })
    }
}

/// What is left of the bytes.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (head, tail) = self.0.split_at_checked(length).ok_or(DecodeError::Short)?;
        self.0 = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (head, tail) = self.0.split_first_chunk().ok_or(DecodeError::Short)?;
        self.0 = tail;
        Ok(*head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use theory::Measurement;
    use theory::measurement::{AtTau, Deviation};

    fn batch(rows: &[(u64, u32)], failed: &[usize]) -> (Batch, Vec<Record>) {
        let record = |(row, &(replicate, t)): (usize, &(u64, u32))| Record {
            cell: CellId(77),
            replicate,
            t,
            outcome: if failed.contains(&row) {
                Err(Failure::ZeroPivot { step: 3 })
            } else {
                Ok(measurement(row as f64))
            },
        };
        let records: Vec<Record> = rows.iter().enumerate().map(record).collect();
        let mut batch = Batch::new(CellId(77));
        records.iter().for_each(|record| batch.push(record));
        (batch, records)
    }

    fn measurement(seed: f64) -> Measurement {
        let deviation = Some(Deviation::new(seed, 1.0, 2.0));
        let at_tau = AtTau {
            tau: 1,
            mean_star: 0.5,
            variance_star: 1.0,
            mean_tau: 0.0,
            variance_tau: 0.25,
            f_tau: -0.5,
            zeta: None,
            estimated: None,
            compact: None,
            star_seen: false,
        };
        Measurement {
            t: 1,
            x: 3,
            y: seed * 0.1 - 1.0,
            f: 0.25,
            f_star: 2.0,
            x_star: 5,
            f_range: 4.0,
            zeta: (seed % 3.0 == 0.0).then_some(seed),
            target: None,
            best_sample_regret: 1.75,
            simple_regret: 1.75,
            cumulative_regret: 1.75,
            probe: deviation,
            star: deviation.filter(|_| seed > 1.0),
            next: None,
            observed: deviation,
            k_xy: 0.75,
            star_seen: seed > 1.0,
            at_tau,
            y_max: 1.0,
            f_at_y_max: 0.25,
            f_max: 0.25,
            y_at_f_max: 1.0,
            information: Some(0.125),
            information_determinant: None,
        }
    }

    #[test]
    fn a_batch_survives_its_encoding() {
        let (batch, _) = batch(&[(0, 1), (0, 5), (1, 1), (1, 5), (9, 1)], &[3]);
        assert_eq!(Batch::decode(&batch.encode()), Ok(batch.clone()));
        assert_eq!(batch.failures(), 1);
        assert_eq!(batch.statuses().nth(3), Some("zero-pivot"));
        let mut joined = batch.slice(0..2);
        joined.append(batch.slice(2..5));
        assert_eq!(joined, batch);
        let empty = Batch::new(CellId(3));
        assert_eq!(Batch::decode(&empty.encode()), Ok(empty));
    }

    #[test]
    fn a_batch_feeds_what_its_records_feed() {
        let (batch, records) = batch(&[(4, 1), (4, 2), (5, 1)], &[1]);
        let (mut by_row, mut by_column) = (Digest::new(), Digest::new());
        records.iter().for_each(|record| record.feed(&mut by_row));
        batch.feed(&mut by_column);
        assert_eq!(by_row.hex(), by_column.hex());
    }

    #[test]
    fn what_could_not_have_been_measured_is_refused() {
        let (batch, _) = batch(&[(0, 1), (0, 5)], &[1]);
        let bytes = batch.encode();
        assert_eq!(Batch::decode(&bytes[..bytes.len() - 1]), Err(DecodeError::Short));
        assert_eq!(Batch::decode(&[bytes.as_slice(), &[0]].concat()), Err(DecodeError::Long(1)));
        let with = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            Batch::decode(&bytes)
        };
        assert_eq!(with(0, 9), Err(DecodeError::Version(9)));
        let second_replicate = 13 + 8;
        let t_of_second = 13 + 16 + 4;
        assert!(with(second_replicate, 1).is_ok());
        assert_eq!(with(t_of_second, 1), Err(DecodeError::Order(1)));
        let status = 13 + 16 + 8;
        assert_eq!(with(status, 4), Err(DecodeError::Value { row: 0, column: "status" }));
        assert_eq!(with(status, 1), Err(DecodeError::Value { row: 0, column: "x" }));
    }

    proptest! {
        #[test]
        fn no_bytes_make_decoding_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            _ = Batch::decode(&bytes);
        }

        #[test]
        fn a_damaged_batch_is_refused_or_another_batch(
            at in 0_usize..10_000, byte in any::<u8>(), cut in any::<bool>(),
        ) {
            let (batch, _) = batch(&[(0, 1), (0, 5), (1, 1)], &[2]);
            let mut bytes = batch.encode();
            let at = at % bytes.len();
            bytes[at] = byte;
            if cut {
                bytes.truncate(at);
            }
            if let Ok(other) = Batch::decode(&bytes) {
                prop_assert_eq!(Batch::decode(&other.encode()), Ok(other));
            }
        }
    }
}
