//! A batch as bytes: one byte of version, the cell, the number of rows, then replicates, checkpoints,
//! statuses and every measured column of the schema: a byte that says whether no, every or some row has a
//! value, a bitmap in the last case, and the values that exist, little-endian.

use super::{Batch, Values};
use crate::cell::CellId;
use crate::record::{COLUMNS, Column, Kind};

/// The encoding that this version writes and reads.
const VERSION: u8 = 2;

/// Rows that an encoded batch may have, so that a batch fits in a message and in memory.
pub const MAX_ROWS: usize = 1 << 13;

const NONE: u8 = 0;
const EVERY: u8 = 1;
const SOME: u8 = 2;

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
        let decode = |column: &Column| {
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
