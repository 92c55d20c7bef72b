//! The way into the store: batches, then a commit that returns once all of it is durable.
//!
//! What is queued is bounded in bytes: when the disk falls behind, `append` waits.

use std::sync::Arc;

use bytes::Bytes;
use study::{CellId, StudyId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::error::Error;
use super::frame::MAX_PAYLOAD;
use super::row::{Committed, SealedCell, ShardRow, State};

/// Bytes that may wait for the disk.
const ROOM: usize = 64 << 20;

/// What a queued message costs beside its bytes.
const OVERHEAD: usize = 1024;

/// A handle to the writer of a store.
#[derive(Clone, Debug)]
pub struct Writer {
    queue: mpsc::UnboundedSender<Message>,
    room: Arc<Semaphore>,
}

pub(super) type Reply<T> = oneshot::Sender<Result<T, Error>>;

#[derive(Debug)]
pub(super) enum Message {
    Append { token: u64, payload: Bytes, room: OwnedSemaphorePermit },
    Commit { token: u64, row: ShardRow, room: OwnedSemaphorePermit, reply: Reply<Committed> },
    Discard { token: u64 },
    Change { study: StudyId, change: Change, reply: Reply<()> },
    Prune { reply: Reply<()> },
    Close,
}

/// What can become of a study.
#[derive(Debug)]
pub(super) enum Change {
    Put {
        file_name: String,
        text: String,
        files: Vec<(String, [u8; 32])>,
        /// `None` keeps what is known.
        earlier: Option<String>,
    },
    State {
        state: State,
        reason: String,
    },
    Seal {
        dataset: [u8; 32],
        cells: Vec<SealedCell>,
    },
    Forget {
        cell: CellId,
    },
}

impl Writer {
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<Message>) {
        let (queue, messages) = mpsc::unbounded_channel();
        (Self { queue, room: Arc::new(Semaphore::new(ROOM)) }, messages)
    }

    /// Queues a batch of the shard that is computed under `token`; waits while the queue is full.
    /// Batches of a token keep their order. A failure to write shows at the commit.
    pub async fn append(&self, token: u64, payload: Bytes) -> Result<(), Error> {
        if payload.len() > MAX_PAYLOAD {
            return Err(Error::TooLarge { bytes: payload.len(), limit: MAX_PAYLOAD });
        }
        let room = self.room(payload.len()).await?;
        self.send(Message::Append { token, payload, room })
    }

    /// Commits the batches of `token` as a shard; returns once that is durable. After an error
    /// the batches are gone, and the shard must be computed anew.
    pub async fn commit(&self, token: u64, mut row: ShardRow) -> Result<Committed, Error> {
        // SQL knows neither NaN nor -0.0.
        row.seconds = if row.seconds > 0.0 { row.seconds } else { 0.0 };
        let bytes = row.tally.len() + row.worker.len();
        if bytes > MAX_PAYLOAD / 2 {
            self.discard(token);
            return Err(Error::TooLarge { bytes, limit: MAX_PAYLOAD / 2 });
        }
        let room = self.room(bytes).await?;
        self.ask(|reply| Message::Commit { token, row, room, reply }).await
    }

    /// Forgets the batches of a token that will not be committed.
    pub fn discard(&self, token: u64) {
        // A writer that has ended has forgotten them already.
        let _ = self.send(Message::Discard { token });
    }

    pub(super) async fn change(&self, study: StudyId, change: Change) -> Result<(), Error> {
        self.ask(|reply| Message::Change { study, change, reply }).await
    }

    pub(super) async fn prune(&self) -> Result<(), Error> {
        self.ask(|reply| Message::Prune { reply }).await
    }

    /// Ends the writer after what is queued.
    pub(super) fn close(&self) {
        // It may have ended already.
        let _ = self.send(Message::Close);
    }

    async fn room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Error> {
        let bytes = (bytes + OVERHEAD).min(ROOM) as u32;
        Arc::clone(&self.room).acquire_many_owned(bytes).await.map_err(|_| Error::Closed)
    }

    async fn ask<T>(&self, message: impl FnOnce(Reply<T>) -> Message) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.send(message(reply))?;
        answer.await.unwrap_or(Err(Error::Closed))
    }

    fn send(&self, message: Message) -> Result<(), Error> {
        self.queue.send(message).map_err(|_| Error::Closed)
    }
}
