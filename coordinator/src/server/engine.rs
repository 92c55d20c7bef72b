//! The task that owns the scheduling core: calls become events, commands become actions.
//!
//! Everything that decides happens here, one call at a time; what takes time (the disk) happens in
//! futures that report back. A shard is acknowledged only after its commit has returned.

mod actions;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use rand::TryRng;
use rand::rngs::SysRng;
use study::StudyId;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::call::{Call, LeaseAnswer, RecordStream};
use super::catalog::Entry;
use super::failed::Failed;
use super::inflow::Received;
use super::leases::Leases;
use super::metrics::Metrics;
use super::outcome::Outcome;
use crate::core::{Core, Event, Grant, LeaseEpoch, StudyPhase, WorkerId};
use crate::store::{self, Store, Writer};

/// How often the core hears of time passing.
const TICK: Duration = Duration::from_millis(250);

/// What a worker hears of a lease that it names and does not hold.
pub(super) const NOT_HELD: &str = "this worker does not hold this lease";

/// What a session with a worker keeps.
#[derive(Default)]
struct Session {
    stream: Option<RecordStream>,
    /// Leases that are over, until the worker's next heartbeat.
    revoked: Vec<(LeaseEpoch, String)>,
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(stream) = &self.stream {
            stream.end.cancel();
        }
    }
}

/// The end of something that took time.
enum Done {
    Committed { epoch: LeaseEpoch, records: u64, trials: u64, result: Result<(), store::Error> },
    NotWanted { epoch: LeaseEpoch, reason: String },
    Noted(Result<(), store::Error>),
}

/// Tasks of their own: the engine does not look after them while a call waits for the store, and one of them may
/// hold what that call waits for.
type Pending = JoinSet<Done>;

pub(super) struct Engine {
    pub(super) core: Core,
    pub(super) store: Arc<Store>,
    writer: Writer,
    pub(super) studies: BTreeMap<StudyId, Entry>,
    /// Studies of the ledger that could not be taken up; why is their outcome.
    pub(super) failed: BTreeMap<StudyId, Failed>,
    /// Studies that are being deleted.
    pub(super) deleting: HashSet<StudyId>,
    /// What people should know of a study beside how far it is.
    pub(super) notes: BTreeMap<StudyId, Vec<String>>,
    /// Whether the folder is of one study.
    pub(super) single: bool,
    leases: Leases,
    sessions: HashMap<WorkerId, Session>,
    pending: Pending,
    /// What came of the lease that is being finished.
    received: Option<Received>,
    outcomes: watch::Sender<BTreeMap<StudyId, Outcome>>,
    pub(super) metrics: Arc<Metrics>,
    started: Instant,
    quiescing: Vec<oneshot::Sender<()>>,
    draining: bool,
    /// Answers to the lease request that is being handled.
    grants: Vec<(Grant, [u8; 32])>,
    /// Leases that the call that is being handled named without holding them.
    not_held: Vec<LeaseEpoch>,
    unknown: bool,
    /// Workers that do not read what they are told.
    deaf: Vec<WorkerId>,
}

impl Engine {
    pub(super) fn new(
        core: Core,
        store: Arc<Store>,
        single: bool,
        leases: Leases,
        outcomes: watch::Sender<BTreeMap<StudyId, Outcome>>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let writer = store.writer();
        Self {
            core,
            store,
            writer,
            studies: BTreeMap::new(),
            failed: BTreeMap::new(),
            deleting: HashSet::new(),
            notes: BTreeMap::new(),
            single,
            leases,
            sessions: HashMap::new(),
            pending: Pending::new(),
            received: None,
            outcomes,
            metrics,
            started: Instant::now(),
            quiescing: Vec::new(),
            draining: false,
            grants: Vec::new(),
            not_held: Vec::new(),
            unknown: false,
            deaf: Vec::new(),
        }
    }

    /// Serves calls until all callers are gone.
    pub(super) async fn run(mut self, mut calls: mpsc::Receiver<Call>) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                Some(done) = self.pending.join_next(), if !self.pending.is_empty() => self.joined(done),
                call = calls.recv() => match call {
                    Some(call) => self.call(call).await,
                    None => break,
                },
                _ = ticks.tick() => {
                    self.tell(Event::Tick);
                    self.forget_sessions();
                }
            }
            self.dismiss_deaf();
            self.metrics.calls.set(calls.len() as u64);
            self.measure();
            self.answer_quiescing();
        }
        self.settle().await;
    }

    /// Hands an event to the core and carries out what it answers.
    pub(super) fn tell(&mut self, event: Event) {
        for command in self.core.handle(self.started.elapsed(), event) {
            self.carry_out(command);
        }
    }

    /// The same at the start, where nothing comes of it: nobody works yet, and the outcome is known.
    pub(super) fn tell_silently(&mut self, event: Event) {
        self.core.handle(self.started.elapsed(), event);
    }

    async fn call(&mut self, call: Call) {
        self.not_held.clear();
        match call {
            Call::Register { name, slots, previous, reply } => {
                let worker = self.register(name, slots, previous);
                _ = reply.send(worker);
            }
            Call::Lease { worker, wanted, reply } => {
                let answer = self.lease(worker, wanted);
                if let Err(LeaseAnswer::Granted { grants, .. }) = reply.send(answer) {
                    for (grant, _) in grants {
                        let reason = "its worker did not wait for it".to_owned();
                        self.tell(Event::Abandoned { worker, epoch: grant.epoch, reason });
                    }
                }
            }
            Call::Heartbeat { worker, leases, reply } => {
                _ = reply.send(self.heartbeat(worker, leases));
            }
            Call::Knows { worker, reply } => {
                _ = reply.send(self.sessions.contains_key(&worker));
            }
            Call::Open { worker, stream, reply } => _ = reply.send(self.open(worker, stream)),
            Call::Finish { worker, epoch, digest, tally, trials, seconds, received } => {
                self.received = Some(received);
                self.tell(Event::Finished { worker, epoch, digest, tally, trials, seconds });
                // What was not committed is forgotten.
                self.received = None;
            }
            Call::Abandon { worker, epoch, reason } => {
                self.tell(Event::Abandoned { worker, epoch, reason });
            }
            Call::Drain { worker } => self.tell(Event::Drain { worker }),
            Call::Quiesce { reply } => {
                self.draining = true;
                self.quiescing.push(reply);
            }
            other => self.studies(other).await,
        }
    }

    /// Registers a worker. One that lost its connection has dropped what it held: that goes back,
    /// and is not counted as a death.
    fn register(&mut self, name: String, slots: u32, previous: Option<WorkerId>) -> WorkerId {
        if let Some(previous) = previous {
            self.replace(previous);
        }
        // Random, so that no worker can speak for another; never twice, over restarts too.
        let worker = WorkerId(random_id());
        self.sessions.insert(worker, Session::default());
        tracing::info!(%worker, name, slots, "a worker registered");
        self.tell(Event::Register { worker, name, slots });
        worker
    }

    /// A worker starts over, whether it knows it yet or not.
    fn replace(&mut self, worker: WorkerId) {
        if self.sessions.remove(&worker).is_some() {
            self.tell(Event::Replaced { worker });
        }
    }

    /// A worker has one stream: what it sends on an earlier one is not read any more.
    fn open(&mut self, worker: WorkerId, stream: RecordStream) -> bool {
        let Some(session) = self.sessions.get_mut(&worker) else { return false };
        if let Some(before) = session.stream.replace(stream) {
            before.end.cancel();
        }
        true
    }

    /// Who does not read is not waited for, and what it should hear does not pile up.
    fn dismiss_deaf(&mut self) {
        for worker in std::mem::take(&mut self.deaf) {
            tracing::warn!(%worker, "a worker does not read its replies, and has to register again");
            self.replace(worker);
        }
    }

    fn lease(&mut self, worker: WorkerId, wanted: u32) -> LeaseAnswer {
        if !self.sessions.contains_key(&worker) {
            return LeaseAnswer::Unknown;
        }
        (self.grants, self.unknown) = (Vec::new(), false);
        if !self.draining {
            self.tell(Event::Request { worker, wanted });
        }
        if self.unknown {
            self.sessions.remove(&worker);
            return LeaseAnswer::Unknown;
        }
        let grants = std::mem::take(&mut self.grants);
        LeaseAnswer::Granted { grants, idle: !self.core.has_work() }
    }

    fn heartbeat(
        &mut self,
        worker: WorkerId,
        leases: Vec<LeaseEpoch>,
    ) -> Option<Vec<(LeaseEpoch, String)>> {
        self.unknown = false;
        self.tell(Event::Heartbeat { worker, leases });
        let session = self.sessions.get_mut(&worker)?;
        if self.unknown {
            self.sessions.remove(&worker);
            return None;
        }
        let mut ended = std::mem::take(&mut session.revoked);
        let not_held = std::mem::take(&mut self.not_held).into_iter();
        ended.extend(not_held.map(|epoch| (epoch, NOT_HELD.to_owned())));
        Some(ended)
    }

    /// Waits for all that is being written.
    pub(super) async fn settle(&mut self) {
        while let Some(done) = self.pending.join_next().await {
            self.joined(done);
        }
    }

    /// What has become of a study.
    pub(super) fn outcome(&self, study: StudyId) -> Option<Outcome> {
        self.outcomes.borrow().get(&study).cloned()
    }

    /// Lets waiting callers know that a study is gone.
    pub(super) fn withdraw(&mut self, study: StudyId) {
        self.outcomes.send_modify(|outcomes| _ = outcomes.remove(&study));
    }

    /// Whether nothing new is taken in.
    pub(super) fn is_draining(&self) -> bool {
        self.draining
    }

    /// Workers that the core has given up have no session: theirs would never end otherwise.
    fn forget_sessions(&mut self) {
        let known: HashSet<WorkerId> = self.core.workers().map(|worker| worker.worker).collect();
        self.sessions.retain(|worker, _| known.contains(worker));
    }

    fn measure(&self) {
        self.metrics.leases_held.set(self.leases.len() as u64);
        self.metrics.workers.set(self.sessions.len() as u64);
        let active = self.core.studies().filter(|(_, phase)| *phase == StudyPhase::Active);
        self.metrics.studies.set(active.count() as u64);
        self.metrics.commits.set(self.pending.len() as u64);
    }

    fn answer_quiescing(&mut self) {
        if self.draining && self.core.leases() == 0 && self.pending.is_empty() {
            self.quiescing.drain(..).for_each(|reply| _ = reply.send(()));
        }
    }
}

/// From the system, which gives or blocks; where it cannot, nothing secret could be had either.
fn random_id() -> u64 {
    SysRng.try_next_u64().expect("the system has random numbers")
}
