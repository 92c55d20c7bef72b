//! The records of one lease as they come in: only what was leased, in order, and all of it.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use study::batch::{Batch, DecodeError};
use study::plan::Detail;
use study::tally::Tally;
use study::{CellId, Digest};

use crate::store::{self, Draft, Sum};

/// What a lease asks for.
#[derive(Clone, Debug)]
pub(super) struct Terms {
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
    #[error("a part without records came")]
    Empty,
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

/// Why a part is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// What has come of a lease so far, on whichever stream. Dropped before its end, it is forgotten in the store too.
pub(super) struct Inflow {
    terms: Terms,
    draft: Draft,
    sequence: u64,
    records: u64,
    last: Option<(u64, u32)>,
    /// Of two kilobytes, and most leases that are held wait for their first part.
    digest: Option<Box<Digest>>,
}

/// All records of a lease, to be committed.
pub(super) struct Received {
    pub(super) draft: Draft,
    pub(super) sum: Sum,
}

/// What a worker says at the end of a lease.
pub(super) struct Claimed {
    /// The digest over all its records.
    pub(super) digest: [u8; 32],
    /// The digest over the records sent, where these are not all.
    pub(super) sent_digest: Option<[u8; 32]>,
    pub(super) records: u64,
    pub(super) trials: u64,
}

impl Inflow {
    pub(super) fn new(terms: Terms, draft: Draft) -> Self {
        Self { terms, draft, sequence: 0, records: 0, last: None, digest: None }
    }

    /// Takes in one part and stores it. Waits while the disk is behind.
    pub(super) async fn part(&mut self, sequence: u64, batch: Bytes) -> Result<(), Refused> {
        self.admit(sequence, &batch)?;
        let sum = self.sum();
        Ok(self.draft.append(batch, sum).await?)
    }

    fn sum(&self) -> Sum {
        match &self.digest {
            Some(digest) => Sum { records: self.records, digest: digest.finish() },
            None => Sum::default(),
        }
    }

    /// Checks that a part is in order.
    fn admit(&mut self, sequence: u64, bytes: &[u8]) -> Result<(), Mismatch> {
        if self.terms.check {
            return Err(Mismatch::Check);
        }
        if sequence != self.sequence {
            return Err(Mismatch::Sequence { expected: self.sequence, found: sequence });
        }
        let batch = Batch::decode(bytes)?;
        if batch.is_empty() {
            // Each would take a frame and a place: as many as a worker likes.
            return Err(Mismatch::Empty);
        }
        if batch.cell() != self.terms.cell {
            return Err(Mismatch::Cell(batch.cell()));
        }
        for (&replicate, &t) in batch.replicates().iter().zip(batch.checkpoints()) {
            if !self.is_due(replicate, t) {
                return Err(Mismatch::Record { replicate, t });
            }
            self.last = Some((replicate, t));
        }
        batch.feed(self.digest.get_or_insert_with(|| Box::new(Digest::new())));
        self.sequence += 1;
        self.records += batch.len() as u64;
        Ok(())
    }

    /// Whether a record may follow the last one. With summaries trials are left out, never records
    /// of a trial.
    fn is_due(&self, replicate: u64, t: u32) -> bool {
        let checkpoints = &self.terms.checkpoints;
        let first = checkpoints[0];
        match self.last {
            Some((current, at)) if Some(&at) != checkpoints.last() => {
                let next = checkpoints.iter().find(|&&checkpoint| checkpoint > at);
                replicate == current && Some(&t) == next
            }
            last => {
                let due = last.map_or(self.terms.range.start, |(current, _)| current + 1);
                let skips = self.terms.detail == Detail::Summary && replicate > due;
                t == first && replicate < self.terms.range.end && (replicate == due || skips)
            }
        }
    }

    /// All of it, if all of it came, and as it was sent.
    pub(super) fn finish(self, claimed: &Claimed, tally: &Tally) -> Result<Received, Mismatch> {
        self.require(claimed, tally)?;
        let sum = self.sum();
        Ok(Received { draft: self.draft, sum })
    }

    fn require(&self, claimed: &Claimed, tally: &Tally) -> Result<(), Mismatch> {
        let Terms { range, checkpoints, rows, .. } = &self.terms;
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
        if self.terms.check {
            return Ok(());
        }
        if self.terms.detail != Detail::Summary || !whole_trial {
            count("records", trials * checkpoints.len() as u64, self.records)?;
        }
        // A summary's own digest is over all its trials, those left out included.
        let sent = match self.terms.detail {
            Detail::Summary => claimed.sent_digest.ok_or(Mismatch::Digest)?,
            _ => claimed.digest,
        };
        if self.sum().digest == sent { Ok(()) } else { Err(Mismatch::Digest) }
    }
}
