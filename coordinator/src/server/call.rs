//! What the services ask of the engine, and what it answers.

use std::time::Duration;

use proto::v1;
use study::StudyId;
use study::tally::Tally;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::catalog::{Entry, SubmitError};
use super::failed::Refused;
use super::inflow::Received;
use super::intake::Holds;
use super::results::{Results, Unsound};
use super::status::Look;
use crate::core::{Grant, LeaseEpoch, WorkerId};
use crate::store::{self, DamagedShard};

/// A worker's record stream, as the engine sees it.
pub(super) struct RecordStream {
    /// What has become of the worker's shards. Bounded: who does not read has to register again.
    pub(super) replies: mpsc::Sender<v1::RecordReply>,
    /// Ends it.
    pub(super) end: CancellationToken,
}

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
    /// Whether a worker is registered.
    Knows {
        worker: WorkerId,
        reply: oneshot::Sender<bool>,
    },
    /// A worker's record stream is open; the one before it ends.
    Open {
        worker: WorkerId,
        stream: RecordStream,
        reply: oneshot::Sender<bool>,
    },
    Finish {
        worker: WorkerId,
        epoch: LeaseEpoch,
        digest: [u8; 32],
        tally: Tally,
        trials: u64,
        seconds: f64,
        received: Received,
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
        reply: oneshot::Sender<Result<Holds, SubmitError>>,
    },
    /// A study that is durable is to be run.
    Activate {
        entry: Box<Entry>,
        /// Shards that did not survive, of a study that had failed.
        damaged: Vec<DamagedShard>,
        reply: oneshot::Sender<Result<(), SubmitError>>,
    },
    Cancel {
        study: StudyId,
        reply: oneshot::Sender<Result<(), Refused>>,
    },
    /// A study is about to be deleted: until that has ended nobody may submit it.
    Delete {
        study: StudyId,
        reply: oneshot::Sender<Result<(), Refused>>,
    },
    /// That has ended.
    Deleted {
        study: StudyId,
        done: bool,
        reply: oneshot::Sender<()>,
    },
    /// All studies, and how long it took to look at them.
    List {
        reply: oneshot::Sender<(Vec<v1::StudySummary>, Duration)>,
    },
    /// A study, and how long it took to look at it.
    Look {
        study: StudyId,
        reply: oneshot::Sender<(Option<Look>, Duration)>,
    },
    Results {
        study: StudyId,
        reply: oneshot::Sender<Result<Option<Results>, store::Error>>,
    },
    /// Records of a study's plan are lost.
    Recompute {
        study: StudyId,
        revision: [u8; 32],
        lost: Vec<Unsound>,
        reply: oneshot::Sender<Result<(), SubmitError>>,
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
