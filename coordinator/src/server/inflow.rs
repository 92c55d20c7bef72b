//! The records of one lease as they come in: only what was leased, in order, and all of it.

use std::ops::Range;
use std::sync::Arc;

use study::batch::{Batch, DecodeError};
use study::plan::Detail;
use study::tally::Tally;
use study::{CellId, Digest};

use crate::core::{LeaseEpoch, WorkerId};

/// A lease that is held, as the runtime knows it.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) epoch: LeaseEpoch,
    pub(super) worker: WorkerId,
    pub(super) cell: CellId,
    pub(super) range: Range<u64>,
    /// Compared, not stored.
    pub(super) check: bool,
    pub(super) checkpoints: Arc<[u32]>,
    /// Verdict rows of the cell.
    pub(super) rows: usize,
    pub(super) detail: Detail,
}

/// What a worker sent is not what it leased.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(super) enum Mismatch {
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error("part {found} came where part {expected} was due")]
    Sequence { expected: u64, found: u64 },
    #[error("records of cell {0} came under a lease of another")]
    Cell(CellId),
    #[error("a check sends no records")]
    Check,
    #[error("the record of replicate {replicate} at t = {t} is not due")]
    Record { replicate: u64, t: u32 },
    #[error("{found} {what} came, and {expected} are due")]
    Count { what: &'static str, expected: u64, found: u64 },
    #[error("the tally counts more than the trials")]
    Tally,
    #[error("the records do not have the digest that was sent with them")]
    Digest,
}

/// The state of a lease's stream.
pub(super) struct Inflow {
    held: Arc<Held>,
    sequence: u64,
    records: u64,
    last: Option<(u64, u32)>,
    digest: Digest,
}

/// What a worker says at the end of a lease.
pub(super) struct Claimed {
    pub(super) digest: [u8; 32],
    pub(super) records: u64,
    pub(super) trials: u64,
}

impl Inflow {
    pub(super) fn new(held: Arc<Held>) -> Self {
        Self { held, sequence: 0, records: 0, last: None, digest: Digest::new() }
    }

    /// Takes in one part; its bytes may be stored if it is in order.
    pub(super) fn part(&mut self, sequence: u64, bytes: &[u8]) -> Result<(), Mismatch> {
        if self.held.check {
            return Err(Mismatch::Check);
        }
        if sequence != self.sequence {
            return Err(Mismatch::Sequence { expected: self.sequence, found: sequence });
        }
        let batch = Batch::decode(bytes)?;
        if batch.cell() != self.held.cell {
            return Err(Mismatch::Cell(batch.cell()));
        }
        for (&replicate, &t) in batch.replicates().iter().zip(batch.checkpoints()) {
            if !self.is_due(replicate, t) {
                return Err(Mismatch::Record { replicate, t });
            }
            self.last = Some((replicate, t));
        }
        batch.feed(&mut self.digest);
        self.sequence += 1;
        self.records += batch.len() as u64;
        Ok(())
    }

    /// Whether a record may follow the last one. With summaries trials are left out, never records
    /// of a trial.
    fn is_due(&self, replicate: u64, t: u32) -> bool {
        let checkpoints = &self.held.checkpoints;
        let first = checkpoints[0];
        match self.last {
            Some((current, at)) if Some(&at) != checkpoints.last() => {
                let next = checkpoints.iter().find(|&&checkpoint| checkpoint > at);
                replicate == current && Some(&t) == next
            }
            last => {
                let due = last.map_or(self.held.range.start, |(current, _)| current + 1);
                let skips = self.held.detail == Detail::Summary && replicate > due;
                t == first && replicate < self.held.range.end && (replicate == due || skips)
            }
        }
    }

    /// Checks that all of it came, and as it was sent.
    pub(super) fn finish(&self, claimed: &Claimed, tally: &Tally) -> Result<(), Mismatch> {
        let Held { range, checkpoints, rows, .. } = &*self.held;
        let trials = range.end - range.start;
        let count = |what, expected, found| {
            if expected == found { Ok(()) } else { Err(Mismatch::Count { what, expected, found }) }
        };
        count("trials", trials, claimed.trials)?;
        count("verdict rows", *rows as u64, tally.0.len() as u64)?;
        if !tally.is_of(*rows, trials) {
            return Err(Mismatch::Tally);
        }
        count("records", self.records, claimed.records)?;
        let whole_trial = self.last.is_none_or(|(_, t)| Some(&t) == checkpoints.last());
        if self.held.check {
            return Ok(());
        }
        if self.held.detail != Detail::Summary || !whole_trial {
            count("records", trials * checkpoints.len() as u64, self.records)?;
        }
        // A summary's digest is over all its trials, those left out included.
        if self.held.detail != Detail::Summary && self.digest.finish() != claimed.digest {
            return Err(Mismatch::Digest);
        }
        Ok(())
    }
}
