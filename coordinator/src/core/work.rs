//! What a study asks for, and what the ledger already holds of it.

use std::ops::Range;

use bytes::Bytes;
use study::plan::Replicates;
use study::{CellId, StudyId};

use crate::stopping::Rule;

/// A study to be run.
#[derive(Clone, Debug)]
pub struct StudyWork {
    /// The study.
    pub study: StudyId,
    /// Decides, with the range, which shards are recomputed.
    pub seed_for_checks: u64,
    /// Its cells, in any order, each once.
    pub cells: Vec<CellWork>,
}

/// A cell to be run.
#[derive(Clone, Debug)]
pub struct CellWork {
    /// The cell.
    pub cell: CellId,
    /// How many replicates, in which batches.
    pub replicates: Replicates,
    /// The digest of the checkpoints. Shards with others are another result, not this cell's.
    pub checkpoints: [u8; 32],
    /// Records that a trial gives, at least 1.
    pub records_per_trial: u32,
    /// Verdict rows, which every tally of the cell has.
    pub rows: usize,
    /// When the cell may stop before its maximum; over the same rows.
    pub rule: Option<Rule>,
    /// Shards that are durable. Each lies within a batch, and no two overlap.
    pub done: Vec<DoneShard>,
    /// Ranges whose workers died.
    pub deaths: Vec<Deaths>,
}

/// A durable shard.
#[derive(Clone, Debug)]
pub struct DoneShard {
    /// Its replicates.
    pub range: Range<u64>,
    /// The digest of its records.
    pub digest: [u8; 32],
    /// What it says about the cell's rows, encoded: there may be a million of them. One that cannot
    /// be read counts as not done.
    pub tally: Bytes,
    /// The name of the worker that computed it.
    pub worker: String,
    /// Whether it was recomputed and agreed.
    pub checked: bool,
}

/// A range that was leased when its worker died, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deaths {
    /// The range, with the bounds that were leased.
    pub range: Range<u64>,
    /// Deaths so far.
    pub count: u32,
    /// The reason of the last one.
    pub reason: String,
}
