//! One registration: from joining to losing the connection or leaving.
//!
//! The loop never waits for a thread that computes and never for more than one thing: every call runs
//! as a task of its own, so that heartbeats go out whatever else is slow. Whatever ends the session
//! cancels its leases; a shard that was not acknowledged is computed again by whoever leases it next.

use std::sync::Arc;
use std::time::Duration;

use proto::convert::{Beat, Handed, Heartbeat, Lease, Leases, Registered, Reply, Request};
use proto::v1;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use super::backoff::Backoff;
use super::catalogue::{Catalogue, Trouble, late};
use super::connect::Client;
use super::held::{Held, Ticket};
use super::library::Known;
use super::pack::{TARGET_BYTES, rows_within};
use super::pool::{End, How, Job, Pool};
use super::{Config, Summary};

/// The longest wait for an answer with leases: the coordinator takes its time when it has none.
const LONG_POLL: Duration = Duration::from_secs(60);

/// The longest wait for the answer to a farewell.
const FAREWELL: Duration = Duration::from_secs(5);

/// What lives longer than a session.
pub(super) struct Around<'a> {
    pub(super) config: &'a Config,
    pub(super) pool: &'a Pool,
    pub(super) catalogue: &'a Catalogue,
    pub(super) shutdown: &'a CancellationToken,
}

/// How a session ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The worker left.
    Left,
    /// The connection did not hold.
    Lost(String),
}

/// A call that was answered.
enum Done {
    Leases(Result<Leases, Status>),
    Beat(Result<Beat, Status>),
    Known(Lease, Arc<Ticket>, Result<Arc<Known>, Trouble>),
    Sent,
}

/// Whether and how the worker is on its way out.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Leaving {
    No,
    /// When all that is leased is done.
    Done,
    /// When all that runs is done, and no later than this.
    By(Instant),
}

struct Session<'a> {
    around: &'a Around<'a>,
    client: Client,
    registered: Registered,
    held: Held,
    tasks: JoinSet<Done>,
    out: mpsc::Sender<v1::RecordStream>,
    ends: mpsc::Sender<End>,
    /// A request for leases is under way.
    asking: bool,
    /// A heartbeat is under way.
    beating: bool,
    ask_at: Instant,
    failures: Backoff,
    leaving: Leaving,
    summary: &'a mut Summary,
}

/// Works until the connection is lost or the worker leaves.
pub(super) async fn run(
    around: &Around<'_>,
    mut client: Client,
    registered: Registered,
    summary: &mut Summary,
) -> Ended {
    let slots = around.config.slots as usize;
    // A part for every slot is as much as is computed ahead of the network.
    let (out, outgoing) = mpsc::channel(slots + 1);
    let open = Handed::Open { worker_id: registered.worker_id };
    out.try_send(open.into()).expect("a new channel has room");
    let stream = tokio::select! {
        biased;
        () = around.shutdown.cancelled() => Err(Status::cancelled("the worker is shutting down")),
        // No heartbeats are sent yet: after a lease without an answer the coordinator has forgotten this worker.
        stream = timeout(registered.lease, client.stream(ReceiverStream::new(outgoing))) => {
            stream.unwrap_or_else(|_| Err(late("Stream")))
        }
    };
    let mut replies = match stream {
        Ok(answer) => answer.into_inner(),
        Err(status) => return Ended::Lost(describe(&status)),
    };
    let (ends, mut ended) = mpsc::channel(4 * slots);
    let mut session = Session {
        around,
        client,
        registered,
        held: Held::new(slots),
        tasks: JoinSet::new(),
        out,
        ends,
        asking: false,
        beating: false,
        ask_at: Instant::now(),
        failures: Backoff::new(&around.config.name),
        leaving: Leaving::No,
        summary,
    };
    match session.work(&mut replies, &mut ended).await {
        Ok(()) => {
            session.drain().await;
            Ended::Left
        }
        Err(status) => Ended::Lost(describe(&status)),
    }
}

fn describe(status: &Status) -> String {
    format!("{:?}: {}", status.code(), proto::convert::reason(status.message()))
}

impl Session<'_> {
    /// Until there is a reason to leave, or an error.
    async fn work(
        &mut self,
        replies: &mut Streaming<v1::RecordReply>,
        ended: &mut mpsc::Receiver<End>,
    ) -> Result<(), Status> {
        let mut beats = interval(self.registered.heartbeat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let shutdown = self.around.shutdown.clone();
        while !self.may_leave() {
            let waits = self.ask();
            let deadline = match self.leaving {
                Leaving::By(deadline) => Some(deadline),
                Leaving::No | Leaving::Done => None,
            };
            tokio::select! {
                biased;
                () = shutdown.cancelled(), if deadline.is_none() => self.leave(),
                _ = beats.tick() => self.beat(),
                Some(end) = ended.recv() => self.end(end),
                Some(done) = self.tasks.join_next() => self.done(done)?,
                reply = replies.message() => match reply? {
                    Some(reply) => self.reply(reply.try_into()?),
                    None => return Err(Status::unavailable("the coordinator closed the stream")),
                },
                () = sleep_until(self.ask_at), if waits => {}
                () = sleep_until(deadline.unwrap_or(self.ask_at)), if deadline.is_some() => {}
            }
        }
        Ok(())
    }

    fn may_leave(&self) -> bool {
        match self.leaving {
            Leaving::No => false,
            Leaving::Done => self.held.is_empty(),
            Leaving::By(deadline) => self.held.is_empty() || Instant::now() >= deadline,
        }
    }

    /// Asks for leases where some are wanted; whether that has to wait.
    fn ask(&mut self) -> bool {
        let wanted = self.held.wanted();
        if self.asking || self.leaving != Leaving::No || wanted == 0 {
            return false;
        }
        if Instant::now() < self.ask_at {
            return true;
        }
        self.asking = true;
        let request = Request { worker_id: self.registered.worker_id, wanted: wanted as u32 };
        let mut client = self.client.clone();
        self.tasks.spawn(async move {
            let answer = timeout(LONG_POLL, client.lease(v1::LeaseRequest::from(request))).await;
            let answer = answer.unwrap_or_else(|_| Err(late("Lease")));
            Done::Leases(answer.and_then(|leases| Ok(leases.into_inner().try_into()?)))
        });
        false
    }

    fn beat(&mut self) {
        if std::mem::replace(&mut self.beating, true) {
            return;
        }
        let worker_id = self.registered.worker_id;
        let beat = Heartbeat { worker_id, leases: self.held.progress() };
        let (mut client, patience) = (self.client.clone(), self.registered.lease);
        self.tasks.spawn(async move {
            let answer =
                timeout(patience, client.heartbeat(v1::HeartbeatRequest::from(beat))).await;
            let answer = answer.unwrap_or_else(|_| Err(late("Heartbeat")));
            Done::Beat(answer.and_then(|beat| Ok(beat.into_inner().try_into()?)))
        });
    }

    fn done(&mut self, done: Result<Done, tokio::task::JoinError>) -> Result<(), Status> {
        let done = done.map_err(|error| Status::internal(error.to_string()))?;
        match done {
            Done::Leases(leases) => {
                self.asking = false;
                let Leases { leases, wait, draining } = leases?;
                self.ask_at = self.ask_at.max(Instant::now() + wait);
                leases.into_iter().for_each(|lease| self.take(lease));
                self.note_draining(draining);
            }
            Done::Beat(beat) => {
                self.beating = false;
                let Beat { revoked, draining } = beat?;
                for revocation in revoked {
                    if self.held.drop_lease(revocation.lease) {
                        let (lease, reason) = (revocation.lease, revocation.reason);
                        tracing::info!(lease, reason, "the coordinator took a lease back");
                    }
                }
                self.note_draining(draining);
            }
            Done::Known(lease, ticket, known) => match known {
                Ok(known) => self.enqueue(lease, ticket, known),
                Err(Trouble::Study(reason)) => {
                    self.held.drop_lease(lease.epoch);
                    self.abandon(lease.epoch, &reason);
                    self.fail(lease.epoch, &reason);
                }
                Err(Trouble::Session(status)) => return Err(status),
            },
            Done::Sent => {}
        }
        Ok(())
    }

    /// Takes a lease in hand and gets what it needs.
    fn take(&mut self, lease: Lease) {
        if self.leaving != Leaving::No {
            self.abandon(lease.epoch, "the worker is leaving");
            return;
        }
        let Some(ticket) = self.held.take(&lease) else { return };
        tracing::debug!(
            lease = lease.epoch,
            study = %lease.study,
            cell = %lease.cell,
            replicates = ?lease.replicates,
            check = lease.check,
            "leased"
        );
        let (mut client, catalogue) = (self.client.clone(), self.around.catalogue.clone());
        let worker_id = self.registered.worker_id;
        self.tasks.spawn(async move {
            let known = catalogue.known(&mut client, worker_id, &lease).await;
            Done::Known(lease, ticket, known)
        });
    }

    fn enqueue(&mut self, lease: Lease, ticket: Arc<Ticket>, known: Arc<Known>) {
        if ticket.is_cancelled() {
            return;
        }
        let epoch = lease.epoch;
        let rows = rows_within(self.registered.max_batch_bytes.min(TARGET_BYTES));
        let (out, ends) = (self.out.clone(), self.ends.clone());
        if !self.around.pool.add(Job { lease, known, ticket, rows, out, ends }) {
            self.held.drop_lease(epoch);
            self.abandon(epoch, "the worker has more leases than it can hold");
        }
    }

    fn end(&mut self, End { lease, how }: End) {
        match how {
            How::Finished => {
                self.failures.reset();
                self.held.finished(lease);
            }
            How::Cancelled => {}
            How::Failed(reason) => {
                self.held.drop_lease(lease);
                self.fail(lease, &reason);
            }
        }
    }

    fn reply(&mut self, reply: Reply) {
        match reply {
            Reply::Accepted { .. } => {}
            Reply::Committed { lease } => {
                if let Some(done) = self.held.committed(lease) {
                    tracing::debug!(lease, trials = done.trials, "committed");
                    self.summary.shards += 1;
                    self.summary.trials += done.trials;
                    self.summary.records += done.records;
                }
            }
            Reply::Rejected { lease, reason } => {
                if self.held.drop_lease(lease) {
                    // The coordinator warns of what is wrong; that another worker was faster is not.
                    tracing::info!(lease, reason, "the coordinator ended a lease");
                    self.summary.rejected += 1;
                }
            }
        }
    }

    /// A lease cannot be computed here: the next one is asked for after a while, because it will
    /// often be the same again.
    fn fail(&mut self, lease: u64, reason: &str) {
        tracing::error!(lease, reason, "cannot compute a lease");
        self.summary.failed += 1;
        self.ask_at = self.ask_at.max(Instant::now() + self.failures.next());
    }

    fn abandon(&mut self, lease: u64, reason: &str) {
        let abandon = Handed::Abandon { lease, reason: reason.to_owned() };
        let out = self.out.clone();
        self.tasks.spawn(async move {
            // A session that has ended has no leases to give back.
            _ = out.send(abandon.into()).await;
            Done::Sent
        });
    }

    fn note_draining(&mut self, draining: bool) {
        if draining && self.leaving == Leaving::No {
            tracing::info!(leases = self.held.len(), "the coordinator asks to leave");
            self.leaving = Leaving::Done;
        }
    }

    /// Someone asks the worker to stop.
    fn leave(&mut self) {
        let waiting = self.held.drop_waiting();
        tracing::info!(running = self.held.len(), given_back = waiting.len(), "shuts down");
        waiting.into_iter().for_each(|lease| self.abandon(lease, "the worker is shutting down"));
        self.leaving = Leaving::By(Instant::now() + self.around.config.grace);
    }

    /// Says farewell; leases that are still held are free from then on.
    async fn drain(&mut self) {
        let worker_id = self.registered.worker_id;
        let drain = self.client.drain(v1::DrainRequest { worker_id });
        if !matches!(timeout(FAREWELL, drain).await, Ok(Ok(_))) {
            tracing::warn!("the coordinator did not take the farewell; leases will expire");
        }
    }
}
