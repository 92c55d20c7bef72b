//! Records into parts that fit in messages.

use proto::convert::Part;
use study::batch::MAX_ROWS;
use study::record::COLUMNS;
use study::{Batch, Record};

/// Bytes of a part that is sent without waiting for more.
pub(super) const TARGET_BYTES: usize = 1 << 20;

/// The most bytes of a row: replicate, checkpoint, status and a value in every column.
const ROW_BYTES: usize = 13 + 8 * COLUMNS.len();

/// The most bytes around the rows: version, cell and count, and a mark for every column.
const FRAME_BYTES: usize = 13 + COLUMNS.len();

/// A bitmap's bit for every row and column.
const BITMAP_BYTES: usize = COLUMNS.len().div_ceil(8) + 1;

/// Rows of a part that cannot exceed these bytes.
pub(super) fn rows_within(bytes: usize) -> usize {
    (bytes.saturating_sub(FRAME_BYTES) / (ROW_BYTES + BITMAP_BYTES)).clamp(1, MAX_ROWS)
}

/// The parts of a lease, one after the other.
#[derive(Debug)]
pub(super) struct Packer {
    lease: u64,
    rows: usize,
    batch: Batch,
    sequence: u64,
    records: u64,
}

impl Packer {
    /// For a lease, in parts of so many rows.
    pub(super) fn new(lease: u64, empty: Batch, rows: usize) -> Self {
        Self { lease, rows, batch: empty, sequence: 0, records: 0 }
    }

    /// Adds a record; the part that it completes.
    pub(super) fn push(&mut self, record: &Record) -> Option<Part> {
        self.batch.push(record);
        self.records += 1;
        (self.batch.len() >= self.rows).then(|| self.part())
    }

    /// The part of what is left.
    pub(super) fn rest(&mut self) -> Option<Part> {
        (!self.batch.is_empty()).then(|| self.part())
    }

    /// Records so far.
    pub(super) fn records(&self) -> u64 {
        self.records
    }

    fn part(&mut self) -> Part {
        let empty = Batch::new(self.batch.cell());
        let batch = std::mem::replace(&mut self.batch, empty).encode().into();
        let sequence = self.sequence;
        self.sequence += 1;
        Part { lease: self.lease, sequence, batch }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use study::{CellId, Failure};

    #[test]
    fn every_record_is_in_one_part_and_parts_are_in_order() {
        let mut packer = Packer::new(9, Batch::new(CellId(1)), 3);
        let mut parts = Vec::new();
        for replicate in 0..8 {
            let outcome = Err(Failure::Panicked);
            parts.extend(packer.push(&Record { cell: CellId(1), replicate, t: 1, outcome }));
        }
        parts.extend(packer.rest());
        assert!(packer.rest().is_none());
        let sequences: Vec<u64> = parts.iter().map(|part| part.sequence).collect();
        assert_eq!((sequences.as_slice(), packer.records()), ([0, 1, 2].as_slice(), 8));
        let batches = parts.iter().map(|part| Batch::decode(&part.batch).unwrap());
        let replicates: Vec<u64> = batches.flat_map(|batch| batch.replicates().to_vec()).collect();
        assert_eq!(replicates, (0..8).collect::<Vec<_>>());
        assert!(parts.iter().all(|part| part.lease == 9));
    }

    #[test]
    fn a_full_part_is_within_its_bytes() {
        assert_eq!(rows_within(0), 1);
        assert_eq!(rows_within(usize::MAX), MAX_ROWS);
        let rows = rows_within(TARGET_BYTES);
        let most = FRAME_BYTES + rows * ROW_BYTES + COLUMNS.len() * rows.div_ceil(8);
        assert!(most <= TARGET_BYTES && most > TARGET_BYTES * 9 / 10, "{rows} rows, {most} bytes");
    }
}
