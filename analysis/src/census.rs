//! What a sequence of records amounts to: their digest and their numbers.
//!
//! The digest is BLAKE3 over "dataset v1", every record in the order of (cell, replicate, t), and
//! every count where a study has them. Records out of order, or one twice, are refused.

use study::{Batch, CellId, Digest};

use crate::counts::Count;

/// Records that do not follow those before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Disorder {
    /// A record that is there already.
    #[error("cell {cell}, replicate {replicate}, t = {t} is there twice")]
    Twice {
        /// The cell.
        cell: CellId,
        /// The trial.
        replicate: u64,
        /// The checkpoint.
        t: u32,
    },
    /// A record that belongs before one that was already seen.
    #[error("cell {cell}, replicate {replicate}, t = {t} comes too late to be in order")]
    Late {
        /// The cell.
        cell: CellId,
        /// The trial.
        replicate: u64,
        /// The checkpoint.
        t: u32,
    },
}

/// The numbers of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellCensus {
    /// The cell.
    pub cell: CellId,
    /// Trials with records.
    pub replicates: u64,
    /// Records.
    pub records: u64,
}

/// Numbers and digest of all records so far.
#[derive(Clone, Debug)]
pub struct Census {
    digest: Digest,
    cells: Vec<CellCensus>,
    failures: u64,
    last: Option<(u64, u32)>,
    /// Whether the trial of the last record has a failed record.
    failed: bool,
}

impl Default for Census {
    fn default() -> Self {
        let mut digest = Digest::new();
        digest.tag("dataset v1");
        Self { digest, cells: vec![], failures: 0, last: None, failed: false }
    }
}

impl Census {
    /// Adds records that follow those already there.
    pub fn add(&mut self, batch: &Batch) -> Result<(), Disorder> {
        let first = batch.replicates().first().zip(batch.checkpoints().first());
        let Some((&replicate, &t)) = first else { return Ok(()) };
        let cell = batch.cell();
        let key = (cell, replicate, t);
        let last = self.cells.last().zip(self.last).map(|(of, (r, t))| (of.cell, r, t));
        match last {
            Some(last) if last == key => return Err(Disorder::Twice { cell, replicate, t }),
            Some(last) if last > key => return Err(Disorder::Late { cell, replicate, t }),
            _ => {}
        }
        if self.cells.last().is_none_or(|last| last.cell != cell) {
            self.cells.push(CellCensus { cell, replicates: 0, records: 0 });
            self.last = None;
        }
        self.count(batch);
        batch.feed(&mut self.digest);
        Ok(())
    }

    fn count(&mut self, batch: &Batch) {
        let cell = self.cells.last_mut().expect("the batch's cell was entered");
        let mut trial = self.last.map(|(replicate, _)| replicate);
        for (&replicate, status) in batch.replicates().iter().zip(batch.statuses()) {
            if trial != Some(replicate) {
                trial = Some(replicate);
                self.failed = false;
                cell.replicates += 1;
            }
            if status != "ok" && !self.failed {
                self.failed = true;
                self.failures += 1;
            }
        }
        cell.records += batch.len() as u64;
        self.last = batch.last();
    }

    /// Adds a count; all records come first.
    pub fn add_count(&mut self, count: &Count) {
        count.feed(&mut self.digest);
    }

    /// The digest in hexadecimal.
    pub fn digest(&self) -> String {
        self.digest.hex()
    }

    /// Cell by cell, ascending.
    pub fn cells(&self) -> &[CellCensus] {
        &self.cells
    }

    /// All trials with records.
    pub fn trials(&self) -> u64 {
        self.cells.iter().map(|cell| cell.replicates).sum()
    }

    /// All records.
    pub fn records(&self) -> u64 {
        self.cells.iter().map(|cell| cell.records).sum()
    }

    /// Trials with a failed record.
    pub fn failures(&self) -> u64 {
        self.failures
    }
}
