//! The task that owns the scheduling core: calls become events, commands become actions.
//!
//! Everything that decides happens here, one call at a time; what takes time (the disk) happens in
//! futures that report back. A shard is acknowledged only after its commit has returned.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use proto::convert::{self, Reply};
use rand::TryRng;
use rand::rngs::SysRng;
use study::{CellId, StudyId};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::call::{Call, LeaseAnswer, Replies};
use super::catalog::Entry;
use super::inflow::Held;
use super::leases::Leases;
use super::metrics::Metrics;
use super::outcome::Outcome;
use crate::core::{Command, Core, Event, Grant, LeaseEpoch, ShardCommit, StudyPhase, WorkerId};
use crate::store::{self, Check, Death, ShardRow, Store, Writer};

/// How often the core hears of time passing.
const TICK: Duration = Duration::from_millis(250);

/// What a session with a worker keeps.
#[derive(Default)]
struct Session {
    replies: Option<Replies>,
    revoked: Vec<(LeaseEpoch, String)>,
}

/// The end of something that took time.
enum Done {
    Committed { epoch: LeaseEpoch, records: u64, trials: u64, result: Result<(), store::Error> },
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
    /// Whether the folder is of one study.
    pub(super) single: bool,
    leases: Leases,
    sessions: HashMap<WorkerId, Session>,
    pending: Pending,
    /// Records that a finished lease has, until its commit.
    records: HashMap<LeaseEpoch, u64>,
    outcomes: watch::Sender<BTreeMap<StudyId, Outcome>>,
    pub(super) metrics: Arc<Metrics>,
    started: Instant,
    quiescing: Vec<oneshot::Sender<()>>,
    draining: bool,
    /// Answers to the lease request that is being handled.
    grants: Vec<(Grant, [u8; 32])>,
    unknown: bool,
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
            single,
            leases,
            sessions: HashMap::new(),
            pending: Pending::new(),
            records: HashMap::new(),
            outcomes,
            metrics,
            started: Instant::now(),
            quiescing: Vec::new(),
            draining: false,
            grants: Vec::new(),
            unknown: false,
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

    /// The same where nothing comes of it: nobody works yet, and the outcome is known.
    pub(super) fn tell_silently(&mut self, event: Event) {
        self.core.handle(self.started.elapsed(), event);
    }

    async fn call(&mut self, call: Call) {
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
                        self.abandon(worker, grant.epoch, reason);
                    }
                }
            }
            Call::Heartbeat { worker, leases, reply } => {
                _ = reply.send(self.heartbeat(worker, leases));
            }
            Call::Open { worker, replies, reply } => {
                let session = self.sessions.get_mut(&worker);
                let known = session.map(|session| session.replies = Some(replies)).is_some();
                _ = reply.send(known);
            }
            Call::Finish { worker, epoch, digest, tally, trials, records, seconds } => {
                self.records.insert(epoch, records);
                self.tell(Event::Finished { worker, epoch, digest, tally, trials, seconds });
            }
            Call::Abandon { worker, epoch, reason } => {
                self.abandon(worker, epoch, reason);
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
        if let Some(previous) = previous.filter(|previous| self.sessions.contains_key(previous)) {
            for epoch in self.leases.of_worker(previous) {
                self.abandon(previous, epoch, "its worker had to reconnect".to_owned());
            }
            self.tell(Event::Disconnected { worker: previous });
            self.sessions.remove(&previous);
        }
        // Random, so that no worker can speak for another; never twice, over restarts too.
        let worker = WorkerId(random_id());
        self.sessions.insert(worker, Session::default());
        tracing::info!(%worker, name, slots, "a worker registered");
        self.tell(Event::Register { worker, name, slots });
        worker
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
        Some(std::mem::take(&mut session.revoked))
    }

    /// A worker gives a lease back; one that it does not hold stays with whoever holds it.
    fn abandon(&mut self, worker: WorkerId, epoch: LeaseEpoch, reason: String) {
        if self.leases.of(worker, epoch).is_none() {
            return;
        }
        self.end(epoch);
        self.tell(Event::Abandoned { worker, epoch, reason });
    }

    /// Forgets a lease and the records that came under it. A copy that was revoked and then expires
    /// ends once.
    fn end(&mut self, epoch: LeaseEpoch) {
        self.records.remove(&epoch);
        if self.leases.remove(epoch).is_some() {
            self.metrics.retries.add(1);
            self.writer.discard(epoch.0);
        }
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            Command::Grant { worker, grant } => self.grant(worker, grant),
            Command::NothingNow { .. } => {}
            Command::UnknownWorker { worker } => {
                self.unknown = true;
                self.sessions.remove(&worker);
            }
            Command::Commit { epoch, shard } => self.commit(epoch, shard),
            Command::Acknowledge { worker, epoch } => {
                self.leases.remove(epoch);
                self.reply(worker, Reply::Committed { lease: epoch.0 });
            }
            Command::Reject { worker, epoch, reason } => {
                tracing::warn!(%worker, lease = %epoch, %reason, "a shard was refused");
                self.retire(worker, epoch, &reason.to_string());
            }
            Command::Revoke { worker, epoch, reason } => {
                tracing::debug!(%worker, lease = %epoch, %reason, "a lease was revoked");
                self.retire(worker, epoch, &reason.to_string());
            }
            Command::RecordDeath { study, cell, range, deaths, worker, reason } => {
                self.metrics.deaths.add(1);
                let reason = format!("{worker}: {reason}");
                tracing::warn!(%study, %cell, ?range, deaths, reason, "a worker was lost");
                let death = Death { cell, range, deaths, reason };
                let store = Arc::clone(&self.store);
                self.note(async move { store.record_death(study, &death).await });
            }
            Command::RecordCheck { study, cell, range, digest, agreed, worker } => {
                self.metrics.checks.add(1);
                let check = Check { cell, range, digest, agreed, worker: worker.to_string() };
                let store = Arc::clone(&self.store);
                self.note(async move { store.record_check(study, &check).await });
            }
            Command::Quarantined { study, cell, range, deaths, reason } => {
                tracing::error!(%study, %cell, ?range, deaths, reason, "trials were given up");
            }
            Command::Alarm(alarm) => {
                self.metrics.alarms.add(1);
                let outcome = Outcome::alarmed(&alarm);
                tracing::error!("{outcome}");
                self.conclude(alarm.study, outcome, store::State::Alarmed);
            }
            Command::CellClosed { study, cell, replicates } => {
                if let Some(entry) = self.studies.get_mut(&study) {
                    entry.closed.insert(cell, replicates);
                }
            }
            Command::StudyDone { study } => {
                let quarantined =
                    self.core.study(study).map_or_else(Vec::new, |view| view.quarantined);
                let outcome = Outcome::ended(&quarantined);
                let state = match outcome {
                    Outcome::Complete => store::State::Done,
                    _ => store::State::Active,
                };
                self.conclude(study, outcome, state);
            }
        }
    }

    fn grant(&mut self, worker: WorkerId, grant: Grant) {
        let Some(entry) = self.studies.get(&grant.study) else { return };
        let Some((cell, contents)) = entry.cell(grant.cell) else { return };
        let revision = entry.revision;
        self.leases.put(Held {
            epoch: grant.epoch,
            worker,
            cell: grant.cell,
            range: grant.range.clone(),
            check: grant.check,
            checkpoints: Arc::clone(&cell.checkpoints),
            rows: contents.rows,
            detail: entry.plan.study.detail,
        });
        self.metrics.leases.add(1);
        self.grants.push((grant, revision));
    }

    /// Makes a shard durable; the core hears of it when it is.
    fn commit(&mut self, epoch: LeaseEpoch, shard: ShardCommit) {
        let ShardCommit { study, cell, range, digest, tally, worker, seconds } = shard;
        let records = self.records.remove(&epoch).unwrap_or(0);
        let Some(checkpoints) = self.checkpoints(study, cell) else { return };
        let trials = trials(&range);
        let row = ShardRow {
            study,
            cell,
            range,
            checkpoints,
            digest,
            tally: tally.encode().into(),
            records,
            worker: worker.to_string(),
            seconds,
        };
        let writer = self.writer.clone();
        self.pending.spawn(async move {
            let result = writer.commit(epoch.0, row).await.map(|_| ());
            Done::Committed { epoch, records, trials, result }
        });
    }

    fn checkpoints(&self, study: StudyId, cell: CellId) -> Option<[u8; 32]> {
        let (_, contents) = self.studies.get(&study)?.cell(cell)?;
        Some(contents.digest)
    }

    /// Waits for all that is being written.
    pub(super) async fn settle(&mut self) {
        while let Some(done) = self.pending.join_next().await {
            self.joined(done);
        }
    }

    /// Writes something down on the side; a failure is logged, and made good by recomputing.
    pub(super) fn note(
        &mut self,
        write: impl Future<Output = Result<(), store::Error>> + Send + 'static,
    ) {
        self.pending.spawn(async move { Done::Noted(write.await) });
    }

    fn joined(&mut self, done: Result<Done, JoinError>) {
        match done.map_err(JoinError::try_into_panic) {
            Ok(done) => self.done(done),
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // The runtime ends, and so does everything.
            Err(Err(_)) => {}
        }
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Committed { epoch, records, trials, result: Ok(()) } => {
                self.metrics.shards.add(1);
                self.metrics.trials.add(trials);
                self.metrics.records.add(records);
                self.tell(Event::Committed { epoch });
            }
            Done::Committed { epoch, result: Err(error), .. } => {
                self.metrics.commit_failures.add(1);
                tracing::error!(lease = %epoch, %error, "a shard could not be made durable");
                let fatal = error.needs_attention().then(|| error.to_string());
                self.tell(Event::CommitFailed { epoch, reason: error.to_string() });
                if let Some(reason) = fatal.filter(|_| self.single) {
                    self.stall(&reason);
                }
            }
            Done::Noted(Ok(())) => {}
            Done::Noted(Err(error)) => tracing::error!(%error, "the ledger could not be written"),
        }
    }

    /// The disk refuses: whoever waits for the folder's study is told why. Running it again resumes
    /// it; a coordinator of many studies goes on trying instead.
    fn stall(&mut self, reason: &str) {
        let studies: Vec<StudyId> = self.studies.keys().copied().collect();
        for study in studies {
            self.outcomes.send_modify(|outcomes| {
                let outcome = outcomes.entry(study).or_insert(Outcome::Running);
                if *outcome == Outcome::Running {
                    *outcome = Outcome::Failed(reason.to_owned());
                }
            });
        }
    }

    /// A lease is over without its shard: drop what came, and tell the worker.
    fn retire(&mut self, worker: WorkerId, epoch: LeaseEpoch, reason: &str) {
        self.end(epoch);
        if let Some(session) = self.sessions.get_mut(&worker) {
            session.revoked.push((epoch, reason.to_owned()));
        }
        self.reply(worker, Reply::Rejected { lease: epoch.0, reason: convert::reason(reason) });
    }

    /// Sends a worker what has become of a shard. One that does not listen hears of it by losing
    /// the lease.
    fn reply(&mut self, worker: WorkerId, reply: Reply) {
        if let Some(Session { replies: Some(replies), .. }) = self.sessions.get(&worker)
            && replies.send(reply.into()).is_err()
        {
            tracing::debug!(%worker, "a worker is gone before its reply");
        }
    }

    /// A study has come to an end, for now.
    fn conclude(&mut self, study: StudyId, outcome: Outcome, state: store::State) {
        let reason = outcome.to_string();
        let store = Arc::clone(&self.store);
        self.note(async move { store.set_state(study, state, &reason).await });
        self.announce(study, outcome);
    }

    /// Lets waiting callers know.
    pub(super) fn announce(&mut self, study: StudyId, outcome: Outcome) {
        self.outcomes.send_modify(|outcomes| _ = outcomes.insert(study, outcome));
    }

    /// What has become of a study.
    pub(super) fn outcome(&self, study: StudyId) -> Option<Outcome> {
        self.outcomes.borrow().get(&study).cloned()
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

fn trials(range: &Range<u64>) -> u64 {
    range.end - range.start
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Settings;
    use crate::server::Definition;
    use crate::store::Options;

    const STUDY: &str = r#"[study]
name = "engine"
seed = 7
replicates = 10
[prior]
domain = { kind = "grid", points = 10, dimension = 1 }
kernel = { kind = "squared-exponential", lengthscale = 0.2 }
noise_variance = 0.05
[grid]
N = 40
T = 2
delta = 0.5
"#;

    /// What is noted holds the ledger while it is written, and a submission waits for the ledger.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_call_that_waits_for_the_store_does_not_wait_for_what_waits_for_the_engine() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { numerics: "numerics", version: "0.0.0" };
        let (store, _) = Store::open(dir.path(), options).await.unwrap();
        let (store, id) = (Arc::new(store), StudyId([7; 32]));
        store.put_study(id, "a.toml", "", &[]).await.unwrap();
        let core = Core::new(Settings::default(), LeaseEpoch(1 << 32));
        let (outcomes, _watched) = watch::channel(BTreeMap::new());
        let metrics = Arc::new(Metrics::default());
        let leases = Leases::default();
        let mut engine = Engine::new(core, Arc::clone(&store), false, leases, outcomes, metrics);
        for first in 0..50 {
            let (cell, range) = (CellId(1), first..first + 1);
            let check = Check { cell, range, digest: [4; 32], agreed: true, worker: "w".into() };
            let store = Arc::clone(&store);
            engine.note(async move { store.record_check(id, &check).await });
        }
        let (calls, requests) = mpsc::channel(8);
        let (reply, answer) = oneshot::channel();
        let definition =
            Definition { file_name: "engine.toml".into(), text: STUDY.into(), files: vec![] };
        assert!(calls.send(Call::Submit { definition, reply }).await.is_ok());
        let running = tokio::spawn(engine.run(requests));
        let answer = tokio::time::timeout(Duration::from_secs(60), answer).await;
        answer.expect("the engine and the store wait for each other").unwrap().unwrap();
        drop(calls);
        running.await.unwrap();
        assert_eq!(store.checks(id).await.unwrap().len(), 50);
    }
}
