//! What happens when: a queue of actions on a simulated clock.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::time::Duration;

use coordinator::core::{Command, Event, LeaseEpoch, ShardCommit, StudyWork, WorkerId};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use study::tally::Tally;
use study::{CellId, StudyId};

use crate::fleet::Worker;
use crate::probe::Probe;

/// As the server and the workers have them.
const TICK: Duration = Duration::from_millis(250);
const BEAT: Duration = Duration::from_secs(5);
const SOON: Duration = Duration::from_millis(20);
const LATER: Duration = Duration::from_millis(250);

/// One worker in 10,000 dies so often: each about once in eight minutes.
const BETWEEN_DEATHS: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    Start { worker: usize },
    Ask { worker: usize, life: u64 },
    Beat { worker: usize, life: u64 },
    Computed { worker: usize, life: u64, epoch: LeaseEpoch },
    Durable { epoch: LeaseEpoch },
    Death,
    Tick,
}

/// A range of a cell.
type Address = (StudyId, CellId, u64);

/// The coordinator's and the workers' side, and what is durable.
pub(crate) struct World {
    pub(crate) probe: Probe,
    now: Duration,
    queue: BinaryHeap<Reverse<(Duration, u64, Action)>>,
    actions: u64,
    workers: Vec<Worker>,
    rng: ChaCha8Rng,
    /// Verdict rows of a cell.
    rows: HashMap<(StudyId, CellId), usize>,
    writing: HashMap<LeaseEpoch, ShardCommit>,
    /// When a range that is not durable was leased first.
    begun: HashMap<Address, Duration>,
    durable: Vec<(StudyId, CellId, u64, u64)>,
    longest_wait: Duration,
    oldest_shard: Duration,
    studies_done: usize,
    crashes: u64,
    lost: u64,
    checks: u64,
    copies: u64,
}

impl World {
    /// All workers start within the first second. There is room for so many shards.
    pub(crate) fn new(probe: Probe, workers: u64, room: usize) -> Self {
        let mut world = Self {
            probe,
            now: Duration::ZERO,
            queue: BinaryHeap::new(),
            actions: 0,
            workers: (0..workers).map(Worker::new).collect(),
            rng: ChaCha8Rng::seed_from_u64(1),
            rows: HashMap::new(),
            writing: HashMap::new(),
            begun: HashMap::new(),
            durable: Vec::with_capacity(room),
            longest_wait: Duration::ZERO,
            oldest_shard: Duration::ZERO,
            studies_done: 0,
            crashes: 0,
            lost: 0,
            checks: 0,
            copies: 0,
        };
        for worker in 0..world.workers.len() {
            world.within(Duration::ZERO..Duration::from_secs(1), Action::Start { worker });
        }
        world.after(TICK, Action::Tick);
        world.after(BETWEEN_DEATHS, Action::Death);
        world
    }

    /// Lets time pass until so many studies are done.
    pub(crate) fn run(&mut self, studies: usize) {
        while self.studies_done < studies {
            let Reverse((at, _, action)) = self.queue.pop().expect("there is always a next tick");
            self.now = at;
            self.act(action);
            assert!(self.now < Duration::from_secs(1 << 17), "a study that does not end");
        }
        self.probe.sanity_check();
    }

    pub(crate) fn now(&self) -> Duration {
        self.now
    }

    /// The longest that a worker asked in vain although there was work.
    pub(crate) fn longest_wait(&self) -> Duration {
        self.longest_wait
    }

    /// The longest between a range's first lease and its being durable.
    pub(crate) fn oldest_shard(&self) -> Duration {
        self.oldest_shard
    }

    pub(crate) fn seen(&self) -> String {
        let Self { crashes, lost, checks, copies, .. } = self;
        format!("{crashes} died, with {lost} leases; {copies} stragglers copied, {checks} checks")
    }

    /// The number of durable shards, which have to be every trial of the studies exactly once.
    pub(crate) fn verify(&mut self, studies: &[StudyWork]) -> u64 {
        self.durable.sort_unstable();
        let mut ends: BTreeMap<(StudyId, CellId), u64> = BTreeMap::new();
        for &(study, cell, start, end) in &self.durable {
            let next = ends.entry((study, cell)).or_default();
            assert_eq!(*next, start, "cell {cell}: a gap, or trials that are there twice");
            *next = end;
        }
        for study in studies {
            for cell in &study.cells {
                let end = ends.get(&(study.study, cell.cell)).copied();
                assert_eq!(end, Some(cell.replicates.max()), "cell {} is not complete", cell.cell);
            }
        }
        self.durable.len() as u64
    }

    /// Tells the core, and does what it answers.
    pub(crate) fn feed(&mut self, event: Event) {
        if let Event::Submit(work) = &event {
            let rows = work.cells.iter().map(|cell| ((work.study, cell.cell), cell.rows));
            self.rows.extend(rows);
        }
        self.tell(event);
    }

    /// The same; whether there is work left.
    fn tell(&mut self, event: Event) -> bool {
        let (commands, has_work) = self.probe.handle(self.now, event);
        commands.into_iter().for_each(|command| self.carry_out(command));
        has_work
    }

    fn after(&mut self, delay: Duration, action: Action) {
        self.actions += 1;
        self.queue.push(Reverse((self.now + delay, self.actions, action)));
    }

    fn within(&mut self, delays: std::ops::Range<Duration>, action: Action) {
        let share: f64 = self.rng.random();
        self.after(delays.start + delays.end.saturating_sub(delays.start).mul_f64(share), action);
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Start { worker } => self.start(worker),
            Action::Ask { worker, life } => {
                if self.lives(worker, life) {
                    self.workers[worker].waits = false;
                    self.ask(worker);
                }
            }
            Action::Beat { worker, life } => {
                if self.lives(worker, life) {
                    let (id, leases) = (self.workers[worker].id(), self.workers[worker].leases());
                    self.tell(Event::Heartbeat { worker: id, leases });
                    self.after(BEAT, Action::Beat { worker, life });
                }
            }
            Action::Computed { worker, life, epoch } => {
                if self.lives(worker, life) {
                    self.computed(worker, epoch);
                }
            }
            Action::Durable { epoch } => {
                let shard = self.writing.remove(&epoch).expect("it is being written");
                let ShardCommit { study, cell, range, .. } = shard;
                self.durable.push((study, cell, range.start, range.end));
                let begun = self.begun.remove(&(study, cell, range.start)).expect("it was leased");
                self.oldest_shard = self.oldest_shard.max(self.now.saturating_sub(begun));
                self.tell(Event::Committed { epoch });
            }
            Action::Death => {
                let worker = self.rng.random_range(0..self.workers.len());
                self.die(worker);
                let share = 10_000.0 / self.workers.len() as f64;
                self.after(BETWEEN_DEATHS.mul_f64(share), Action::Death);
            }
            Action::Tick => {
                self.tell(Event::Tick);
                self.after(TICK, Action::Tick);
            }
        }
    }

    fn lives(&self, worker: usize, life: u64) -> bool {
        self.workers[worker].up && self.workers[worker].life == life
    }

    fn start(&mut self, worker: usize) {
        let state = &mut self.workers[worker];
        state.up = true;
        let (id, slots, life) = (state.id(), state.slots as u32, state.life);
        self.tell(Event::Register { worker: id, name: format!("worker-{worker}"), slots });
        self.ask(worker);
        self.within(Duration::ZERO..BEAT, Action::Beat { worker, life });
    }

    /// Half of the deaths are noticed at once; of the others there is only silence.
    fn die(&mut self, worker: usize) {
        let state = &mut self.workers[worker];
        if !state.up {
            return;
        }
        self.crashes += 1;
        self.lost += (state.running.len() + state.stock.len()) as u64;
        let id = state.id();
        *state = state.next_life();
        if self.rng.random() {
            self.tell(Event::Disconnected { worker: id });
        }
        let back = Duration::from_secs(5)..Duration::from_secs(40);
        self.within(back, Action::Start { worker });
    }

    fn ask(&mut self, worker: usize) {
        let (id, wanted) = (self.workers[worker].id(), self.workers[worker].wanted());
        if wanted == 0 || self.workers[worker].waits {
            return;
        }
        let held = self.workers[worker].stock.len();
        let has_work = self.tell(Event::Request { worker: id, wanted });
        let state = &mut self.workers[worker];
        let (life, granted) = (state.life, state.stock.len() > held);
        if granted || !has_work {
            let since = state.hungry.take().unwrap_or(self.now);
            self.longest_wait = self.longest_wait.max(self.now.saturating_sub(since));
        } else {
            state.hungry.get_or_insert(self.now);
        }
        if granted {
            self.work(worker);
        } else {
            self.workers[worker].waits = true;
            self.after(if has_work { SOON } else { LATER }, Action::Ask { worker, life });
        }
    }

    fn work(&mut self, worker: usize) {
        let life = self.workers[worker].life;
        while let Some((epoch, time)) = self.workers[worker].start() {
            self.after(time, Action::Computed { worker, life, epoch });
        }
    }

    fn computed(&mut self, worker: usize, epoch: LeaseEpoch) {
        let state = &mut self.workers[worker];
        // It may have been taken back meanwhile.
        let Some(grant) = state.running.remove(&epoch) else { return };
        let (id, seconds) = (state.id(), state.time(&grant).as_secs_f64());
        let trials = grant.range.end - grant.range.start;
        let mut tally = Tally::zero(self.rows[&(grant.study, grant.cell)]);
        tally.0.iter_mut().for_each(|row| row.trials = trials);
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&grant.cell.0.to_le_bytes());
        digest[8..16].copy_from_slice(&grant.range.start.to_le_bytes());
        self.tell(Event::Finished { worker: id, epoch, digest, tally, trials, seconds });
        self.work(worker);
        self.ask(worker);
    }

    fn worker(&mut self, id: WorkerId) -> Option<&mut Worker> {
        let worker = &mut self.workers[id.0 as u32 as usize];
        (worker.up && worker.id() == id).then_some(worker)
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            Command::Grant { worker, grant } => {
                let now = self.now;
                if !grant.check {
                    let address = (grant.study, grant.cell, grant.range.start);
                    self.begun.entry(address).or_insert(now);
                }
                self.worker(worker).expect("who asked is there").stock.push_back(grant);
            }
            Command::NothingNow { .. }
            | Command::Acknowledge { .. }
            | Command::RecordDeath { .. }
            | Command::CellClosed { .. } => {}
            Command::UnknownWorker { worker } => panic!("{worker} beats, and was forgotten"),
            Command::NotHeld { worker, epoch } => panic!("{worker} does not hold {epoch}"),
            Command::Forget { epoch } => panic!("nobody gave {epoch} back"),
            Command::Commit { epoch, shard } => {
                self.writing.insert(epoch, shard);
                let disk = Duration::from_millis(1)..Duration::from_millis(30);
                self.within(disk, Action::Durable { epoch });
            }
            Command::Reject { worker, epoch, .. } | Command::Revoke { worker, epoch, .. } => {
                self.copies += u64::from(matches!(
                    command,
                    Command::Revoke { reason: coordinator::core::Refusal::Superseded, .. }
                ));
                if let Some(state) = self.worker(worker) {
                    state.lose(epoch);
                    let index = state.number as usize;
                    self.work(index);
                }
            }
            Command::RecordCheck { agreed, .. } => {
                assert!(agreed, "the same trials have the same digest");
                self.checks += 1;
            }
            Command::Quarantined { range, .. } => panic!("{range:?} was given up"),
            Command::Alarm(alarm) => panic!("{alarm:?}"),
            Command::StudyDone { .. } => self.studies_done += 1,
        }
    }
}
