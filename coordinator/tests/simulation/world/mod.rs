//! A core, its ledger, workers and an operator, in simulated time.

mod fleet;
mod runtime;
mod streams;
mod verify;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use coordinator::core::{Core, Event, LeaseEpoch, ShardCommit, WorkerId};
use study::{CellId, StudyId};

use crate::ledger::{Ledger, Status};
use crate::rng::Rng;
use crate::scenario::{CellPlan, Millis, Operation, Scenario};
use crate::seen::Seen;
use crate::store::Store;
use crate::worker::{Reply, Worker};
use streams::{Held, Stream};

pub(crate) use streams::{Message, Report};

/// What happens next.
#[derive(Clone)]
enum Action {
    Tick { life: u64 },
    Operate { study: usize, operation: Operation },
    Join { worker: usize, previous: Option<WorkerId>, connection: u32 },
    Hear { worker: usize, event: Event },
    Arrive { stream: u64, message: Message },
    Receive { stream: u64 },
    EndStream { stream: u64 },
    Break,
    Reply { worker: usize, life: u32, reply: Reply },
    Step { worker: usize, life: u32 },
    Beat { worker: usize, life: u32 },
    Computed { worker: usize, life: u32, epoch: LeaseEpoch },
    StartWorker { worker: usize },
    CrashWorker,
    Stall,
    DrainWorker,
    Disk { life: u64, fails: bool },
    Written { life: u64, epoch: LeaseEpoch, durable: bool },
    CrashCoordinator,
    StartCoordinator,
    Jump,
}

/// A shard on its way to the disk.
struct Writing {
    version: u8,
    shard: ShardCommit,
    batches: u64,
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
    writing: BTreeMap<LeaseEpoch, Writing>,
    store: Store,
    /// Workers that the server knows.
    sessions: BTreeSet<WorkerId>,
    streams: BTreeMap<u64, Stream>,
    opened: u64,
    held: BTreeMap<LeaseEpoch, Held>,
    /// What came of the lease that is being finished.
    received: Option<(LeaseEpoch, u64)>,
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
            store: Store::new(scenario.room, !scenario.planted),
            sessions: BTreeSet::new(),
            streams: BTreeMap::new(),
            opened: 0,
            held: BTreeMap::new(),
            received: None,
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
            (&faults.breaks, Action::Break),
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
            self.check_kept();
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
            Action::Join { worker, previous, connection } => {
                self.join(worker, previous, connection);
            }
            Action::Hear { worker, event } => {
                self.heard[worker] = self.clock();
                self.feed(event);
            }
            Action::Arrive { stream, message } => self.arrive(stream, message),
            Action::Receive { stream } => self.receive(stream),
            Action::EndStream { stream } => drop(self.streams.remove(&stream)),
            Action::Break => {
                let worker = self.any_worker();
                self.break_stream(worker);
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
            Action::Disk { life, fails } if life == self.life => self.disk(fails),
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
            Action::Tick { .. } | Action::Disk { .. } | Action::Written { .. } => {}
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
