//! What the services ask of the engine, and what it answers.

use proto::v1;
use study::StudyId;
use study::tally::Tally;
use tokio::sync::{mpsc, oneshot};

use super::catalog::{Entry, SubmitError};
use super::intake::Holds;
use super::results::Results;
use crate::core::{Grant, LeaseEpoch, WorkerId};
use crate::store;

/// Where a worker's stream hears what has become of its shards: at most one reply per lease, so that
/// leases bound it.
pub(super) type Replies = mpsc::UnboundedSender<v1::RecordReply>;

/// A request to the engine.
pub(super) enum Call {
    Register {
        name: String,
        slots: u32,
        /// The registration that a worker had before its connection broke.
        previous: Option<WorkerId>,
        reply: oneshot::Sender<WorkerId>,
    },
    Lease {
        worker: WorkerId,
        wanted: u32,
        reply: oneshot::Sender<LeaseAnswer>,
    },
    Heartbeat {
        worker: WorkerId,
        leases: Vec<LeaseEpoch>,
        reply: oneshot::Sender<Option<Vec<(LeaseEpoch, String)>>>,
    },
    /// A worker's record stream is open.
    Open {
        worker: WorkerId,
        replies: Replies,
        reply: oneshot::Sender<bool>,
    },
    Finish {
        worker: WorkerId,
        epoch: LeaseEpoch,
        digest: [u8; 32],
        tally: Tally,
        trials: u64,
        records: u64,
        seconds: f64,
    },
    Abandon {
        worker: WorkerId,
        epoch: LeaseEpoch,
        reason: String,
    },
    Drain {
        worker: WorkerId,
    },
    Definition {
        study: StudyId,
        reply: oneshot::Sender<Option<v1::StudyDefinition>>,
    },
    /// What a study that comes in has to fit to; `None` where nothing is taken in any more.
    Holds {
        study: StudyId,
        reply: oneshot::Sender<Option<Holds>>,
    },
    /// A study that is durable is to be run.
    Activate {
        entry: Box<Entry>,
        reply: oneshot::Sender<Result<(), SubmitError>>,
    },
    Cancel {
        study: StudyId,
        reply: oneshot::Sender<bool>,
    },
    List {
        reply: oneshot::Sender<Vec<v1::StudySummary>>,
    },
    Status {
        study: StudyId,
        reply: oneshot::Sender<Option<v1::StudyStatus>>,
    },
    Results {
        study: StudyId,
        reply: oneshot::Sender<Result<Option<Results>, store::Error>>,
    },
    /// The dataset of a study's plan is in place.
    Sealed {
        study: StudyId,
        revision: [u8; 32],
        digest: [u8; 32],
        reply: oneshot::Sender<Result<(), store::Error>>,
    },
    /// Grant nothing more; answer once nothing is held.
    Quiesce {
        reply: oneshot::Sender<()>,
    },
}

/// Leases for a worker, or when to ask again.
pub(super) enum LeaseAnswer {
    /// The worker has to register again.
    Unknown,
    Granted {
        /// Each with the revision of its study's plan.
        grants: Vec<(Grant, [u8; 32])>,
        /// Nothing is left to be leased.
        idle: bool,
    },
}
