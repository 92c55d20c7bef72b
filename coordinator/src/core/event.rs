//! What the core is told.

use study::StudyId;
use study::tally::Tally;

use super::{LeaseEpoch, StudyWork, WorkerId};

/// Something that happened outside.
#[derive(Clone, Debug)]
pub enum Event {
    /// A study is to be run. One that is there already is replaced by what it has grown to, or
    /// taken up again where it was cancelled or stopped by an alarm. What of it is being written may
    /// or may not be among what the ledger holds; but where a cell's rows changed, nothing of it may
    /// be on its way.
    Submit(StudyWork),
    /// A worker joined, or came back under the id that it had.
    Register {
        /// Its id.
        worker: WorkerId,
        /// Its name, for people.
        name: String,
        /// Shards that it computes at once.
        slots: u32,
    },
    /// A worker asks for shards.
    Request {
        /// The worker.
        worker: WorkerId,
        /// Shards at most.
        wanted: u32,
    },
    /// A worker lives, and works on these leases.
    Heartbeat {
        /// The worker.
        worker: WorkerId,
        /// All leases that it holds.
        leases: Vec<LeaseEpoch>,
    },
    /// A worker has sent all records of a lease, and they were received.
    Finished {
        /// The worker.
        worker: WorkerId,
        /// The lease.
        epoch: LeaseEpoch,
        /// The digest of its records.
        digest: [u8; 32],
        /// What they say about the cell's rows.
        tally: Tally,
        /// Trials that were run.
        trials: u64,
        /// Seconds that they took.
        seconds: f64,
    },
    /// The shard of a [`Commit`](super::Command::Commit) is durable.
    Committed {
        /// Its lease.
        epoch: LeaseEpoch,
    },
    /// The shard of a [`Commit`](super::Command::Commit) could not be made durable.
    CommitFailed {
        /// Its lease.
        epoch: LeaseEpoch,
        /// Why.
        reason: String,
    },
    /// A worker gives a lease back.
    Abandoned {
        /// The worker.
        worker: WorkerId,
        /// The lease.
        epoch: LeaseEpoch,
        /// Why.
        reason: String,
    },
    /// A worker came back under another id, and has dropped what it held.
    Replaced {
        /// The id that it had.
        worker: WorkerId,
    },
    /// A worker is known to be gone. A connection that broke is not enough: workers reconnect.
    Disconnected {
        /// The worker.
        worker: WorkerId,
    },
    /// A worker finishes what it holds and takes nothing more.
    Drain {
        /// The worker.
        worker: WorkerId,
    },
    /// A study is to be stopped; what is durable stays.
    Cancel {
        /// The study.
        study: StudyId,
    },
    /// A study that is not active is deleted.
    Forget {
        /// The study.
        study: StudyId,
    },
    /// Time has passed; about once a second.
    Tick,
}
