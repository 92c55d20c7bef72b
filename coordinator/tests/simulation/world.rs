//! A core, its ledger, workers and an operator, in simulated time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use coordinator::core::{
    Alarm, Command, Core, Deaths, Event, LeaseEpoch, Refusal, ShardCommit, WorkerId,
};
use study::{CellId, StudyId};

use crate::ledger::{Ledger, Status};
use crate::rng::Rng;
use crate::scenario::{CellPlan, Millis, Operation, Scenario};
use crate::truth;
use crate::worker::{Job, Reply, Worker};

/// What happens next.
#[derive(Clone)]
enum Action {
    Tick { life: u64 },
    Operate { study: usize, operation: Operation },
    Join { worker: usize },
    Hear { worker: usize, event: Event },
    Reply { worker: usize, life: u32, reply: Reply },
    Step { worker: usize, life: u32 },
    Beat { worker: usize, life: u32 },
    Computed { worker: usize, life: u32, epoch: LeaseEpoch },
    StartWorker { worker: usize },
    CrashWorker,
    Stall,
    DrainWorker,
    Durable { life: u64, epoch: LeaseEpoch },
    Written { life: u64, epoch: LeaseEpoch, durable: bool },
    CrashCoordinator,
    StartCoordinator,
    Jump,
}

/// How often what happened, so that a simulation that tests nothing is noticed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) events: u64,
    pub(crate) crashes: u64,
    pub(crate) expired: u64,
    pub(crate) fenced: u64,
    pub(crate) superseded: u64,
    pub(crate) deaths: u64,
    pub(crate) quarantined: u64,
    /// Of these, without a trial that kills; not that they must occur.
    pub(crate) innocent: u64,
    pub(crate) checks: u64,
    pub(crate) alarms: u64,
    pub(crate) early_stops: u64,
    pub(crate) beyond: u64,
    pub(crate) done: u64,
    pub(crate) seconds: u64,
}

impl Seen {
    pub(crate) fn add(&mut self, other: &Self) {
        self.innocent += other.innocent;
        for (mine, more) in self.counts().into_iter().zip({ *other }.counts()) {
            *mine += *more;
        }
    }

    /// Everything that the simulation is for has happened.
    pub(crate) fn check_coverage(mut self) {
        let text = format!("a simulation of nothing: {self:?}");
        assert!(self.counts().iter().all(|count| **count > 10), "{text}");
    }

    fn counts(&mut self) -> [&mut u64; 13] {
        [
            &mut self.events,
            &mut self.crashes,
            &mut self.expired,
            &mut self.fenced,
            &mut self.superseded,
            &mut self.deaths,
            &mut self.quarantined,
            &mut self.checks,
            &mut self.alarms,
            &mut self.early_stops,
            &mut self.beyond,
            &mut self.done,
            &mut self.seconds,
        ]
    }
}

pub(crate) struct World<'a> {
    pub(crate) ledger: Ledger,
    pub(crate) seen: Seen,
    scenario: &'a Scenario,
    rng: Rng,
    now: Millis,
    /// How far the coordinator's clock is ahead.
    ahead: Millis,
    queue: BTreeMap<(Millis, u64), Action>,
    queued: u64,
    core: Option<Core>,
    /// The coordinator's process, counted, and when it started by its own clock.
    life: u64,
    started: Millis,
    last_epoch: LeaseEpoch,
    check_epochs: BTreeSet<LeaseEpoch>,
    writing: BTreeMap<LeaseEpoch, (u8, ShardCommit)>,
    workers: Vec<Worker>,
    ids: BTreeMap<WorkerId, usize>,
    /// When a worker was last heard, by the coordinator's clock.
    heard: Vec<Millis>,
    /// Whether a process of the worker has ended.
    ended: Vec<bool>,
    operations_left: usize,
}

impl<'a> World<'a> {
    pub(crate) fn new(scenario: &'a Scenario) -> Self {
        let workers = (0..scenario.workers.len())
            .map(|index| Worker { name: format!("worker-{index}"), ..Worker::default() })
            .collect();
        let mut world = Self {
            ledger: Ledger::default(),
            seen: Seen::default(),
            scenario,
            rng: Rng::new(scenario.seed ^ 0x5157),
            now: 0,
            ahead: 0,
            queue: BTreeMap::new(),
            queued: 0,
            core: None,
            life: 0,
            started: 0,
            last_epoch: LeaseEpoch(0),
            check_epochs: BTreeSet::new(),
            writing: BTreeMap::new(),
            workers,
            ids: BTreeMap::new(),
            heard: vec![0; scenario.workers.len()],
            ended: vec![false; scenario.workers.len()],
            operations_left: 0,
        };
        world.set_out();
        world
    }

    fn set_out(&mut self) {
        self.at(0, Action::StartCoordinator);
        for worker in 0..self.workers.len() {
            let start = self.rng.within(0, 3_000);
            self.at(start, Action::StartWorker { worker });
        }
        for (study, plan) in self.scenario.studies.iter().enumerate() {
            for &(time, operation) in &plan.operations {
                self.operations_left += 1;
                self.at(time, Action::Operate { study, operation });
            }
        }
        let faults = &self.scenario.faults;
        for (times, action) in [
            (&faults.worker_crashes, Action::CrashWorker),
            (&faults.stalls, Action::Stall),
            (&faults.drains, Action::DrainWorker),
            (&faults.coordinator_crashes, Action::CrashCoordinator),
            (&faults.clock_jumps, Action::Jump),
        ] {
            times.iter().for_each(|&time| self.at(time, action.clone()));
        }
    }

    /// Runs until every study is done, cancelled or alarmed.
    pub(crate) fn run(&mut self) {
        let deadline = self.scenario.deadline();
        while !self.is_over() {
            let ((time, _), action) = self.queue.pop_first().expect("the coordinator ticks");
            self.now = time;
            assert!(time < deadline, "not finished by {deadline} ms: {:#?}", self.core);
            self.act(action);
        }
        self.seen.seconds = self.now / 1000;
    }

    fn is_over(&self) -> bool {
        self.operations_left == 0
            && self.ledger.status.values().all(|&status| status != Status::Active)
    }

    fn disturbed(&self) -> bool {
        self.now < self.scenario.faults.end
    }

    fn at(&mut self, time: Millis, action: Action) {
        self.queued += 1;
        self.queue.insert((time, self.queued), action);
    }

    fn after(&mut self, low: Millis, high: Millis, action: Action) {
        let delay = self.rng.within(low, high);
        self.at(self.now + delay, action);
    }

    /// Sends over a network that loses, delays, duplicates and reorders.
    fn send(&mut self, action: Action) {
        let faults = &self.scenario.faults;
        if !self.disturbed() {
            self.after(1, 20, action);
            return;
        }
        if self.rng.chance(faults.loss) {
            return;
        }
        if self.rng.chance(faults.duplicate) {
            self.after(1, 5_000, action.clone());
        }
        let late = if self.rng.chance(faults.late) { 40_000 } else { 60 };
        self.after(1, late, action);
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Tick { life } if life == self.life => {
                self.after(900, 1_500, Action::Tick { life });
                self.feed(Event::Tick);
            }
            Action::Operate { study, operation } => self.operate(study, operation),
            Action::Join { worker } => self.join(worker),
            Action::Hear { worker, event } => {
                self.heard[worker] = self.clock();
                self.feed(event);
            }
            Action::Reply { worker, life, reply } => self.reply(worker, life, reply),
            Action::Step { worker, life } => self.step(worker, life),
            Action::Beat { worker, life } => self.beat(worker, life),
            Action::Computed { worker, life, epoch } => self.computed(worker, life, epoch),
            Action::StartWorker { worker } => self.start_worker(worker),
            Action::CrashWorker => {
                let worker = self.any_worker();
                self.stop_worker(worker);
            }
            Action::Stall => {
                let worker = self.any_worker();
                self.workers[worker].stalled_until = self.now + self.rng.within(1_000, 70_000);
            }
            Action::DrainWorker => self.drain(),
            Action::Durable { life, epoch } if life == self.life => self.durable(epoch),
            Action::Written { life, epoch, durable } if life == self.life => {
                self.writing.remove(&epoch);
                let reason = "disk full".to_owned();
                self.feed(if durable {
                    Event::Committed { epoch }
                } else {
                    Event::CommitFailed { epoch, reason }
                });
            }
            Action::CrashCoordinator => self.crash_coordinator(),
            Action::StartCoordinator => self.start_coordinator(),
            Action::Jump => self.ahead += self.rng.within(1_000, 200_000),
            // Of a process that is gone.
            Action::Tick { .. } | Action::Durable { .. } | Action::Written { .. } => {}
        }
    }

    fn any_worker(&mut self) -> usize {
        self.rng.within(0, self.workers.len() as u64 - 1) as usize
    }

    /// The coordinator's clock.
    fn clock(&self) -> Millis {
        self.now + self.ahead
    }

    fn feed(&mut self, event: Event) {
        let now = Duration::from_millis(self.clock() - self.started);
        let Some(core) = &mut self.core else { return };
        self.seen.events += 1;
        let commands = core.handle(now, event);
        core.sanity_check();
        self.check_alarms(&commands);
        for command in commands {
            let torn =
                self.disturbed() && self.rng.within(0, 999) < self.scenario.faults.torn_commands;
            if torn {
                self.crash_coordinator();
                return;
            }
            self.carry_out(command);
        }
    }

    fn plan(&self, study: StudyId) -> &'a [CellPlan] {
        let scenario = self.scenario;
        let found = scenario.studies.iter().find(|plan| plan.id == study);
        &found.expect("a study of the scenario").versions[self.ledger.plans[&study]]
    }

    fn cell(&self, study: StudyId, cell: CellId) -> &'a CellPlan {
        self.plan(study).iter().find(|plan| plan.id == cell).expect("a cell of its plan")
    }
}

/// The coordinator's process: its runtime, its ledger, its end and its beginning.
impl World<'_> {
    fn start_coordinator(&mut self) {
        if self.core.is_some() {
            return;
        }
        self.life += 1;
        self.started = self.clock();
        let first = LeaseEpoch(self.life << 32);
        self.core = Some(Core::new(self.scenario.settings.clone(), first));
        let life = self.life;
        self.after(1, 1_000, Action::Tick { life });
        let studies: Vec<StudyId> = self.ledger.status.keys().copied().collect();
        for study in studies {
            if matches!(self.ledger.status[&study], Status::Active | Status::Done) {
                self.ledger.status.insert(study, Status::Active);
                self.feed(Event::Submit(self.ledger.work(study, self.plan(study))));
            }
        }
    }

    fn crash_coordinator(&mut self) {
        if self.core.take().is_some() {
            self.seen.crashes += 1;
            self.life += 1;
            self.writing.clear();
            self.after(200, 15_000, Action::StartCoordinator);
        }
    }

    fn operate(&mut self, study: usize, operation: Operation) {
        if self.core.is_none() {
            self.after(500, 1_000, Action::Operate { study, operation });
            return;
        }
        self.operations_left -= 1;
        let id = self.scenario.studies[study].id;
        let status = self.ledger.status.get(&id).copied();
        match operation {
            Operation::Cancel => {
                if status == Some(Status::Active) {
                    self.ledger.status.insert(id, Status::Cancelled);
                    self.feed(Event::Cancel { study: id });
                }
            }
            Operation::Submit | Operation::Grow => {
                if status == Some(Status::Alarmed) {
                    return;
                }
                let version = usize::from(operation == Operation::Grow);
                self.ledger.plans.insert(id, version);
                self.ledger.status.insert(id, Status::Active);
                self.feed(Event::Submit(self.ledger.work(id, self.plan(id))));
            }
        }
    }

    fn join(&mut self, worker: usize) {
        if self.core.is_none() {
            return;
        }
        self.heard[worker] = self.clock();
        let id = WorkerId(self.life << 32 | self.ids.len() as u64);
        self.ids.insert(id, worker);
        let (name, slots) =
            (self.workers[worker].name.clone(), self.scenario.workers[worker].slots);
        self.feed(Event::Register { worker: id, name, slots });
        self.answer(id, Reply::Registered(id));
    }

    fn answer(&mut self, id: WorkerId, reply: Reply) {
        let Some(&worker) = self.ids.get(&id) else { return };
        let life = self.workers[worker].life;
        self.send(Action::Reply { worker, life, reply });
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            Command::Grant { worker, grant } => {
                assert!(grant.epoch > self.last_epoch, "epochs increase over all lives");
                self.last_epoch = grant.epoch;
                if grant.check {
                    self.check_epochs.insert(grant.epoch);
                }
                let plan = self.cell(grant.study, grant.cell).clone();
                self.answer(worker, Reply::Lease(worker, grant, plan));
            }
            Command::NothingNow { .. } => {}
            Command::UnknownWorker { worker } => self.answer(worker, Reply::Unknown(worker)),
            Command::Commit { epoch, shard } => self.write(epoch, shard),
            Command::Acknowledge { worker, epoch } => {
                let durable = self.ledger.has(epoch) || self.check_epochs.contains(&epoch);
                assert!(durable, "{epoch} is acknowledged and not durable");
                self.answer(worker, Reply::Over(epoch));
            }
            Command::Reject { worker, epoch, reason } => {
                self.seen.fenced += u64::from(reason == Refusal::NotHeld);
                self.answer(worker, Reply::Over(epoch));
            }
            Command::Revoke { worker, epoch, reason } => {
                self.seen.expired += u64::from(reason == Refusal::Expired);
                self.seen.superseded += u64::from(reason == Refusal::Superseded);
                self.answer(worker, Reply::Over(epoch));
            }
            Command::RecordDeath { study, cell, range, deaths, worker, reason } => {
                self.check_blame(&worker);
                self.seen.deaths += 1;
                let address = (study, cell, self.cell(study, cell).version);
                let record = Deaths { range, count: deaths, reason };
                let known = self.ledger.deaths.entry(address).or_default();
                let before = known.insert(record.range.start, record.clone());
                let bounds = before.as_ref().is_none_or(|before| before.range == record.range);
                assert!(bounds, "{record:?} after {before:?}: bounds are kept");
                let count = before.map_or(0, |before| before.count);
                assert_eq!(record.count, count + 1, "deaths are counted one by one");
            }
            Command::RecordCheck { study, cell, range, digest, agreed, worker } => {
                self.seen.checks += 1;
                let address = (study, cell, self.cell(study, cell).version);
                let rows = self.ledger.rows.get_mut(&address).expect("what is checked is durable");
                let row = rows.get_mut(&range.start).expect("what is checked is durable");
                assert_eq!(agreed, row.shard.digest == digest, "a check compares digests");
                row.checked = agreed.then(|| worker.to_string());
            }
            Command::Quarantined { study, cell, range, deaths, .. } => {
                assert_eq!(deaths, self.scenario.settings.max_deaths, "given up in time");
                self.seen.quarantined += 1;
                let mut killers = self.scenario.killers.iter();
                let guilty =
                    killers.any(|&(a, b, c)| a == study && b == cell && range.contains(&c));
                self.seen.innocent += u64::from(!guilty);
            }
            Command::Alarm(alarm) => {
                self.seen.alarms += 1;
                self.ledger.status.insert(alarm.study, Status::Alarmed);
            }
            Command::CellClosed { study, cell, replicates } => self.closed(study, cell, replicates),
            Command::StudyDone { study } => self.done(study),
        }
    }

    fn write(&mut self, epoch: LeaseEpoch, shard: ShardCommit) {
        let plan = self.cell(shard.study, shard.cell);
        let honest = truth::digest(shard.study, plan, &shard.range, 0);
        assert!(shard.digest == honest || self.lies(&shard.worker), "a shard of other trials");
        assert_eq!(shard.tally, truth::tally(shard.study, plan, &shard.range));
        assert!(self.writing.insert(epoch, (plan.version, shard)).is_none(), "{epoch} twice");
        let (life, faults) = (self.life, &self.scenario.faults);
        let slow = self.disturbed() && self.rng.chance(faults.slow_commit);
        let (low, high) = if slow { (1_000, 60_000) } else { (1, 30) };
        if self.disturbed() && self.rng.chance(faults.failed_commit) {
            self.after(low, high, Action::Written { life, epoch, durable: false });
        } else {
            self.after(low, high, Action::Durable { life, epoch });
        }
    }

    fn durable(&mut self, epoch: LeaseEpoch) {
        let (version, shard) = self.writing.remove(&epoch).expect("it is being written");
        self.ledger.insert(version, epoch, shard);
        let life = self.life;
        self.after(0, 10, Action::Written { life, epoch, durable: true });
    }
}

/// The workers' processes.
impl World<'_> {
    fn start_worker(&mut self, worker: usize) {
        let state = &mut self.workers[worker];
        if state.up {
            return;
        }
        state.up = true;
        let life = state.life;
        self.after(0, 100, Action::Step { worker, life });
        self.after(0, 5_000, Action::Beat { worker, life });
    }

    fn stop_worker(&mut self, worker: usize) {
        if !self.workers[worker].up {
            return;
        }
        self.ended[worker] = true;
        let id = self.workers[worker].stop();
        // Sometimes the connection tells; otherwise there is only silence.
        if let Some(id) = id
            && self.rng.chance(60)
        {
            let event = Event::Disconnected { worker: id };
            self.send(Action::Hear { worker, event });
        }
        self.after(500, 10_000, Action::StartWorker { worker });
    }

    fn drain(&mut self) {
        let worker = self.any_worker();
        let Some(id) = self.workers[worker].id else { return };
        self.workers[worker].draining = true;
        self.send(Action::Hear { worker, event: Event::Drain { worker: id } });
        let epochs: Vec<LeaseEpoch> = self.workers[worker].jobs.keys().copied().collect();
        for epoch in epochs {
            if self.rng.chance(50) {
                self.workers[worker].jobs.remove(&epoch);
                let reason = "draining".to_owned();
                let event = Event::Abandoned { worker: id, epoch, reason };
                self.send(Action::Hear { worker, event });
            }
        }
    }

    /// The worker, if this process of it runs; a stalled one acts when it wakes up.
    fn awake(&mut self, worker: usize, life: u32, action: Action) -> bool {
        let state = &self.workers[worker];
        if !state.up || state.life != life {
            return false;
        }
        if self.now < state.stalled_until {
            self.at(state.stalled_until, action);
            return false;
        }
        true
    }

    fn step(&mut self, worker: usize, life: u32) {
        if !self.awake(worker, life, Action::Step { worker, life }) {
            return;
        }
        let state = &self.workers[worker];
        let Some(id) = state.id else {
            self.send(Action::Join { worker });
            self.after(1_000, 3_000, Action::Step { worker, life });
            return;
        };
        if state.draining && state.jobs.is_empty() {
            self.stop_worker(worker);
            return;
        }
        let wanted = state.wanted(&self.scenario.workers[worker]);
        let computed = state.jobs.iter().filter(|(_, job)| job.computed);
        let computed: Vec<LeaseEpoch> = computed.map(|(&epoch, _)| epoch).collect();
        if wanted > 0 {
            self.send(Action::Hear { worker, event: Event::Request { worker: id, wanted } });
        }
        computed.into_iter().for_each(|epoch| self.send_report(worker, epoch));
        self.after(700, 2_500, Action::Step { worker, life });
    }

    fn send_report(&mut self, worker: usize, epoch: LeaseEpoch) {
        let report = self.workers[worker].report(&self.scenario.workers[worker], epoch);
        if let Some(event) = report {
            self.send(Action::Hear { worker, event });
        }
    }

    fn beat(&mut self, worker: usize, life: u32) {
        if !self.awake(worker, life, Action::Beat { worker, life }) {
            return;
        }
        if let Some(id) = self.workers[worker].id {
            let leases = self.workers[worker].jobs.keys().copied().collect();
            self.send(Action::Hear { worker, event: Event::Heartbeat { worker: id, leases } });
        }
        self.after(5_000, 5_000, Action::Beat { worker, life });
    }

    fn reply(&mut self, worker: usize, life: u32, reply: Reply) {
        if !self.awake(worker, life, Action::Reply { worker, life, reply: reply.clone() }) {
            return;
        }
        let state = &mut self.workers[worker];
        match reply {
            Reply::Registered(id) => state.id = state.id.or(Some(id)),
            Reply::Unknown(id) => state.id = state.id.filter(|&known| known != id),
            Reply::Over(epoch) => drop(state.jobs.remove(&epoch)),
            Reply::Lease(id, grant, plan) => {
                if state.id != Some(id) || state.jobs.contains_key(&grant.epoch) {
                    return;
                }
                let (epoch, trials) = (grant.epoch, grant.range.end - grant.range.start);
                let time = trials * plan.cost * self.scenario.workers[worker].slowness / 100;
                state.jobs.insert(epoch, Job { grant, plan, computed: false });
                self.after(time, time + 50, Action::Computed { worker, life, epoch });
            }
        }
    }

    fn computed(&mut self, worker: usize, life: u32, epoch: LeaseEpoch) {
        if !self.awake(worker, life, Action::Computed { worker, life, epoch }) {
            return;
        }
        if self.workers[worker].is_fatal(epoch, self.scenario) {
            self.stop_worker(worker);
            return;
        }
        if let Some(job) = self.workers[worker].jobs.get_mut(&epoch) {
            job.computed = true;
            self.send_report(worker, epoch);
        }
    }
}

/// What must hold.
impl World<'_> {
    fn lies(&self, name: &str) -> bool {
        let worker = self.workers.iter().position(|worker| worker.name == name);
        self.scenario.workers[worker.expect("a worker of the scenario")].lies
    }

    /// A check that does not agree raises an alarm that names both workers.
    fn check_alarms(&self, commands: &[Command]) {
        for command in commands {
            let Command::RecordCheck { study, cell, range, agreed: false, worker, .. } = command
            else {
                continue;
            };
            let address = (*study, *cell, self.cell(*study, *cell).version);
            let first = &self.ledger.rows[&address][&range.start].shard.worker;
            let named = |alarm: &Alarm| {
                alarm.study == *study
                    && alarm.cell == *cell
                    && alarm.range == *range
                    && alarm.first.0 == *first
                    && alarm.second.0 == *worker
            };
            let raised = commands.iter().any(|it| matches!(it, Command::Alarm(a) if named(a)));
            assert!(raised, "a wrong digest without an alarm");
        }
        for command in commands {
            if let Command::Alarm(Alarm { first, second, .. }) = command {
                assert!(self.lies(&first.0) || self.lies(&second.0), "a false alarm");
            }
        }
    }

    /// A worker is said to have died only if it ended, stalled or was not heard.
    fn check_blame(&self, name: &str) {
        let worker = self.workers.iter().position(|worker| worker.name == name);
        let worker = worker.expect("a worker of the scenario");
        let silence = self.clock() - self.heard[worker];
        let stalled = self.workers[worker].stalled_until > 0;
        // In another life of the coordinator, or when messages are lost, it may well not be heard.
        let unheard = self.scenario.faults.loss > 0 || self.life > 1 || silence >= 15_000;
        assert!(self.ended[worker] || stalled || unheard, "{name} is blamed for a death");
    }

    fn closed(&mut self, study: StudyId, cell: CellId, replicates: u64) {
        let plan = self.cell(study, cell);
        let max_deaths = self.scenario.settings.max_deaths;
        let lost = self.ledger.given_up((study, cell, plan.version), max_deaths);
        assert_eq!(replicates, truth::replicates(study, plan, &lost), "the stop of cell {cell}");
        self.seen.early_stops += u64::from(replicates < plan.replicates.max());
        self.ledger.stops.insert((study, cell), replicates);
    }

    fn done(&mut self, study: StudyId) {
        self.seen.done += 1;
        self.ledger.status.insert(study, Status::Done);
        for plan in self.plan(study) {
            let replicates = self.ledger.stops[&(study, plan.id)];
            self.check_cell(study, plan, replicates);
        }
    }

    /// Every replicate below the stop is durable once or given up, with the right content.
    fn check_cell(&mut self, study: StudyId, plan: &CellPlan, replicates: u64) {
        let address = (study, plan.id, plan.version);
        let lost = self.ledger.given_up(address, self.scenario.settings.max_deaths);
        let mut covered: Vec<_> =
            lost.into_iter().filter(|range| range.start < replicates).collect();
        for row in self.ledger.rows.get(&address).into_iter().flat_map(BTreeMap::values) {
            let shard = &row.shard;
            if shard.range.start >= replicates {
                self.seen.beyond += 1;
                continue;
            }
            covered.push(shard.range.clone());
            let right = shard.digest == truth::digest(study, plan, &shard.range, 0);
            assert!(right || self.lies(&shard.worker), "{} has wrong records", row.epoch);
            let checked = row.checked.as_ref();
            assert!(
                right || checked.is_none_or(|by| self.lies(by)),
                "an honest check agreed with a lie"
            );
        }
        covered.sort_by_key(|range| range.start);
        let mut next = 0;
        for range in covered {
            assert_eq!(range.start, next, "cell {} has a gap or a trial twice", plan.id);
            next = range.end;
        }
        assert_eq!(next, replicates, "cell {} is complete", plan.id);
    }
}
