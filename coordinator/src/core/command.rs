//! What the core wants done.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use study::tally::Tally;
use study::{CellId, StudyId};

use super::{LeaseEpoch, WorkerId};

/// Something for the runtime to do. Commands of one event are carried out in their order.
///
/// A lease ends with exactly one of `Acknowledge`, `Reject`, `Revoke` and `Forget`, and one whose shard is being
/// written only after `Committed` or `CommitFailed`. Only a lease that was superseded may see a `Reject`,
/// a `Forget` or further `Revoke`s after its first `Revoke`.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Lease a shard to a worker that asked.
    Grant {
        /// The worker.
        worker: WorkerId,
        /// The lease.
        grant: Grant,
    },
    /// Tell a worker that asked that there is nothing for it at the moment.
    NothingNow {
        /// The worker.
        worker: WorkerId,
    },
    /// Tell a sender that it is not registered, or no longer.
    UnknownWorker {
        /// The sender.
        worker: WorkerId,
    },
    /// Tell a sender that it does not hold a lease that it named. Whoever does hold it is not concerned.
    NotHeld {
        /// The sender.
        worker: WorkerId,
        /// What it named.
        epoch: LeaseEpoch,
    },
    /// Make a shard durable, then report `Committed` or `CommitFailed`.
    Commit {
        /// Its lease.
        epoch: LeaseEpoch,
        /// What to write.
        shard: ShardCommit,
    },
    /// Tell a worker that its shard is durable (or its check compared): it may forget it.
    Acknowledge {
        /// The worker.
        worker: WorkerId,
        /// The lease.
        epoch: LeaseEpoch,
    },
    /// Tell a worker that what it finished is not taken; drop what was received.
    Reject {
        /// The worker.
        worker: WorkerId,
        /// The lease.
        epoch: LeaseEpoch,
        /// Why.
        reason: Refusal,
    },
    /// Tell a worker to stop working on a lease; drop what was received.
    Revoke {
        /// The worker.
        worker: WorkerId,
        /// The lease.
        epoch: LeaseEpoch,
        /// Why.
        reason: Refusal,
    },
    /// A lease was given back by its worker: drop what was received.
    Forget {
        /// The lease.
        epoch: LeaseEpoch,
    },
    /// Write down that a worker died with this range.
    RecordDeath {
        /// The study.
        study: StudyId,
        /// The cell.
        cell: CellId,
        /// The range that was leased.
        range: Range<u64>,
        /// Deaths so far, this one included.
        deaths: u32,
        /// The worker's name.
        worker: Arc<str>,
        /// What happened.
        reason: String,
    },
    /// Write down the outcome of recomputing a shard.
    RecordCheck {
        /// The study.
        study: StudyId,
        /// The cell.
        cell: CellId,
        /// The shard's replicates.
        range: Range<u64>,
        /// The digest of the recomputed records.
        digest: [u8; 32],
        /// Whether it is the shard's.
        agreed: bool,
        /// The name of the worker that recomputed.
        worker: Arc<str>,
    },
    /// A range is given up.
    Quarantined {
        /// The study.
        study: StudyId,
        /// The cell.
        cell: CellId,
        /// The range.
        range: Range<u64>,
        /// Deaths that it caused.
        deaths: u32,
        /// The reason of the last one.
        reason: String,
    },
    /// Two workers disagree about a shard: the study is stopped.
    Alarm(Alarm),
    /// A cell has all the trials that it needs: replicates below `replicates`. Shards beyond are
    /// not part of the study's results. Repeated after every `Submit`.
    CellClosed {
        /// The study.
        study: StudyId,
        /// The cell.
        cell: CellId,
        /// Its number of replicates.
        replicates: u64,
    },
    /// All cells are closed, nothing is being written and all checks are done.
    StudyDone {
        /// The study.
        study: StudyId,
    },
}

/// A shard leased to a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The lease.
    pub epoch: LeaseEpoch,
    /// The study.
    pub study: StudyId,
    /// The cell.
    pub cell: CellId,
    /// Its replicates.
    pub range: Range<u64>,
    /// Whether it is only compared, not stored.
    pub check: bool,
}

/// A shard to be made durable.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardCommit {
    /// The study.
    pub study: StudyId,
    /// The cell.
    pub cell: CellId,
    /// Its replicates.
    pub range: Range<u64>,
    /// The digest of its records.
    pub digest: [u8; 32],
    /// What they say about the cell's rows.
    pub tally: Tally,
    /// The name of the worker that computed it.
    pub worker: Arc<str>,
    /// Seconds that it took.
    pub seconds: f64,
}

/// Two digests of the same trials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// The study.
    pub study: StudyId,
    /// The cell.
    pub cell: CellId,
    /// The trials.
    pub range: Range<u64>,
    /// Who computed them first, and what came out.
    pub first: (Arc<str>, [u8; 32]),
    /// Who computed them again, and what came out.
    pub second: (Arc<str>, [u8; 32]),
}

/// Why a lease is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No heartbeat named it for as long as a lease lasts.
    Expired,
    /// The worker is gone.
    Disconnected,
    /// Another worker was faster.
    Superseded,
    /// The cell stopped before this batch.
    CellClosed,
    /// The study was cancelled.
    Cancelled,
    /// The study was stopped by an alarm.
    Alarm,
    /// The study was submitted anew.
    Resubmitted,
    /// What came is not what was leased.
    Malformed(String),
    /// It could not be made durable.
    CommitFailed(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => f.write_str("the lease expired"),
            Self::Disconnected => f.write_str("the worker is gone"),
            Self::Superseded => f.write_str("another worker was faster"),
            Self::CellClosed => f.write_str("the cell has stopped"),
            Self::Cancelled => f.write_str("the study was cancelled"),
            Self::Alarm => f.write_str("the study was stopped by an alarm"),
            Self::Resubmitted => f.write_str("the study was submitted anew"),
            Self::Malformed(what) => write!(f, "not what was leased: {what}"),
            Self::CommitFailed(why) => write!(f, "could not be made durable: {why}"),
        }
    }
}
