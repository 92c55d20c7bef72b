//! Shards without a coordinator: the same computation, handed to the caller.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use proto::convert::{Handed, Lease};
use study::prior::Files;
use study::{CellId, Plan};

use super::library::{Known, Library};
use super::pack::{TARGET_BYTES, rows_within};
use super::shard::Shard;
use crate::prior::MemoryLimit;
use crate::simd::Cpu;

/// A study whose shards are computed on the caller's threads.
#[derive(Debug)]
pub struct Alone {
    library: Library,
    known: Arc<Known>,
}

/// A shard that was computed.
#[derive(Clone, Debug)]
pub struct Computed {
    /// Encoded batches of records, in order.
    pub batches: Vec<Bytes>,
    /// The digest of all records, sent or not.
    pub digest: [u8; 32],
    /// The encoded tally.
    pub tally: Bytes,
    /// Seconds that its trials took.
    pub seconds: f64,
}

impl Alone {
    /// For a plan and the files that its priors name.
    pub fn new(plan: Plan, files: Files, memory: MemoryLimit, cpu: Cpu) -> Self {
        Self { library: Library::new(memory, cpu), known: Arc::new(Known::new(plan, files)) }
    }

    /// Computes some trials of a cell; `None` where it was told to stop before the end.
    ///
    /// # Errors
    /// Why the trials cannot be run here.
    pub fn compute(
        &self,
        cell: CellId,
        replicates: Range<u64>,
        stop: &AtomicBool,
    ) -> Result<Option<Computed>, String> {
        let known = &self.known;
        let lease = Lease {
            epoch: 0,
            study: known.plan.id,
            cell,
            replicates,
            check: false,
            revision: known.revision,
        };
        let setup = self.library.setup(known, &lease)?;
        let mut shard = Shard::new(setup, lease, rows_within(TARGET_BYTES));
        let mut out = Vec::new();
        while shard.step(&mut out) {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
        }
        Ok(collect(out))
    }
}

/// What a shard handed out, as one value.
fn collect(out: Vec<Handed>) -> Option<Computed> {
    let mut batches = Vec::new();
    for handed in out {
        match handed {
            Handed::Part(part) => batches.push(part.batch),
            Handed::Finish(end) => {
                let (digest, tally, seconds) = (end.digest, end.tally, end.seconds);
                return Some(Computed { batches, digest, tally, seconds });
            }
            _ => {}
        }
    }
    None
}
