//! The way into the store: a draft takes batches, then a commit that returns once all of it is durable.
//!
//! What is queued is bounded in bytes: when the disk falls behind, `append` waits. Whoever has the draft is the only
//! one who can add to it, commit it or drop it, so that none of these overtakes another while it waits.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use study::{CellId, StudyId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::error::Error;
use super::frame::MAX_PAYLOAD;
use super::row::{Committed, SealedCell, ShardRow, State, Sum};

/// Bytes that may wait for the disk.
pub(super) const ROOM: usize = 64 << 20;

/// What a queued message costs beside its bytes.
const OVERHEAD: usize = 1024;

/// A shard that is being received. Dropped without a commit, its batches are forgotten.
#[derive(Debug)]
pub struct Draft {
    writer: Writer,
    token: u64,
    is_open: bool,
}

impl Draft {
    /// Queues a batch; waits while the queue is full. `sum` is over all batches so far, this one included. A
    /// failure to write shows at the commit.
    pub async fn append(&mut self, payload: Bytes, sum: Sum) -> Result<(), Error> {
        if payload.len() > MAX_PAYLOAD {
            return Err(Error::TooLarge { bytes: payload.len(), limit: MAX_PAYLOAD });
        }
        let room = self.writer.room(payload.len()).await?;
        self.writer.send(Message::Append { token: self.token, payload, sum, room })
    }

    /// Commits the batches as a shard; returns once that is durable. Refused where they do not add up to `sum`, and `sum`
    /// to the row's number of records. After an error the batches are gone, and the shard must be computed anew.
    pub async fn commit(mut self, mut row: ShardRow, sum: Sum) -> Result<Committed, Error> {
        // SQL knows neither NaN nor -0.0.
        row.seconds = if row.seconds > 0.0 { row.seconds } else { 0.0 };
        let bytes = row.tally.len() + row.worker.len();
        if bytes > MAX_PAYLOAD / 2 {
            return Err(Error::TooLarge { bytes, limit: MAX_PAYLOAD / 2 });
        }
        let room = self.writer.room(bytes).await?;
        // From here on the batches are the writer's.
        self.is_open = false;
        let token = self.token;
        self.writer.ask(|reply| Message::Commit { token, row, sum, room, reply }).await
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.is_open {
            // A writer that has ended has forgotten them already.
            let _ = self.writer.send(Message::Discard { token: self.token });
        }
    }
}

/// A handle to the writer of a store.
#[derive(Clone, Debug)]
pub struct Writer {
    queue: mpsc::UnboundedSender<Message>,
    room: Arc<Semaphore>,
    /// All of the room: what is larger waits until the queue is empty.
    most: usize,
}

pub(super) type Reply<T> = oneshot::Sender<Result<T, Error>>;

#[derive(Debug)]
pub(super) enum Message {
    Append {
        token: u64,
        payload: Bytes,
        sum: Sum,
        room: OwnedSemaphorePermit,
    },
    Commit {
        token: u64,
        row: ShardRow,
        sum: Sum,
        room: OwnedSemaphorePermit,
        reply: Reply<Committed>,
    },
    Discard {
        token: u64,
    },
    Change {
        study: StudyId,
        change: Change,
        reply: Reply<()>,
    },
    Prune {
        reply: Reply<()>,
    },
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
    GiveUp {
        shards: Vec<(CellId, Range<u64>)>,
    },
    Delete,
}

impl Writer {
    pub(super) fn new(room: usize) -> (Self, mpsc::UnboundedReceiver<Message>) {
        let (queue, messages) = mpsc::unbounded_channel();
        (Self { queue, most: room, room: Arc::new(Semaphore::new(room)) }, messages)
    }

    /// Opens the shard that is computed under `token`. A token is opened once.
    pub fn draft(&self, token: u64) -> Draft {
        Draft { writer: self.clone(), token, is_open: true }
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
        let bytes = (bytes + OVERHEAD).min(self.most) as u32;
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
