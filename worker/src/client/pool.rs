//! The threads that compute.
//!
//! Every slot is a thread of its own that takes a job, computes it chunk by chunk and puts what is to
//! be sent into the session's bounded channel: where the coordinator is slow the channel is full, and
//! the thread waits. The network is never waited for otherwise, and the asynchronous runtime never
//! runs a trial, unless the pool is made for a simulation.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::{io, thread};

use proto::convert::{Handed, Lease};
use proto::limits::MAX_LEASES;
use proto::v1;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, mpsc};

use super::held::Ticket;
use super::library::{Known, Library};
use super::shard::Shard;

/// A lease that can be computed.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) lease: Lease,
    pub(super) known: Arc<Known>,
    pub(super) ticket: Arc<Ticket>,
    /// Rows of a part.
    pub(super) rows: usize,
    /// To the coordinator.
    pub(super) out: mpsc::Sender<v1::RecordStream>,
    /// To the session.
    pub(super) ends: mpsc::Sender<End>,
}

/// A job that ended.
#[derive(Debug)]
pub(super) struct End {
    pub(super) lease: u64,
    pub(super) how: How,
}

/// How a job ended.
#[derive(Debug)]
pub(super) enum How {
    /// All of it is on its way to the coordinator.
    Finished,
    /// Nobody wants it any more.
    Cancelled,
    /// It cannot be computed here; the coordinator has been told.
    Failed(String),
}

/// Where trials are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compute {
    /// On a thread per slot.
    Threads,
    /// Within the asynchronous runtime: for simulations, whose seeds then replay.
    Inline,
}

/// The threads.
#[derive(Debug)]
pub(super) struct Pool {
    jobs: mpsc::Sender<Job>,
}

impl Pool {
    /// Starts so many; they end when the pool is dropped, after the chunk at hand.
    pub(super) fn start(slots: usize, library: Library, compute: Compute) -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel(MAX_LEASES);
        let (queue, library) = (Arc::new(Mutex::new(queue)), Arc::new(library));
        for slot in 0..slots {
            let work = work(Arc::clone(&queue), Arc::clone(&library));
            match compute {
                Compute::Inline => drop(tokio::spawn(work)),
                Compute::Threads => {
                    let runtime = Handle::current();
                    let builder = thread::Builder::new().name(format!("trials-{slot}"));
                    drop(builder.spawn(move || runtime.block_on(work))?);
                }
            }
        }
        Ok(Self { jobs })
    }

    /// Adds a job; whether there was room, as there is unless leases of many registrations pile up.
    pub(super) fn add(&self, job: Job) -> bool {
        self.jobs.try_send(job).is_ok()
    }
}

/// One slot.
async fn work(queue: Arc<Mutex<mpsc::Receiver<Job>>>, library: Arc<Library>) {
    loop {
        let job = queue.lock().await.recv().await;
        let Some(job) = job else { return };
        let how = if job.ticket.start() { compute(&job, &library).await } else { How::Cancelled };
        // Nobody listens after the session has ended, and nobody has to.
        _ = job.ends.send(End { lease: job.lease.epoch, how }).await;
    }
}

async fn compute(job: &Job, library: &Library) -> How {
    match guarded(|| library.setup(&job.known, &job.lease)) {
        Ok(Ok(setup)) => run(Shard::new(setup, job.lease.clone(), job.rows), job).await,
        Ok(Err(reason)) | Err(reason) => fail(job, reason).await,
    }
}

async fn run(mut shard: Shard, job: &Job) -> How {
    let mut out = Vec::new();
    loop {
        if job.ticket.is_cancelled() {
            return How::Cancelled;
        }
        let more = match guarded(|| shard.step(&mut out)) {
            Ok(more) => more,
            Err(reason) => return fail(job, reason).await,
        };
        job.ticket.progress(shard.done(), shard.records());
        for handed in out.drain(..) {
            if job.out.send(handed.into()).await.is_err() {
                return How::Cancelled;
            }
        }
        if !more {
            return How::Finished;
        }
        // Lets a simulation's other tasks run; a thread has none.
        tokio::task::yield_now().await;
    }
}

async fn fail(job: &Job, reason: String) -> How {
    let abandon = Handed::Abandon { lease: job.lease.epoch, reason: reason.clone() };
    _ = job.out.send(abandon.into()).await;
    How::Failed(reason)
}

/// What a function returns, or what it said when it panicked.
pub(super) fn guarded<T>(function: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(function)).map_err(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        format!("the worker panicked: {}", text.unwrap_or("no message"))
    })
}
