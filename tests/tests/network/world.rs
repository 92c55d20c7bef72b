//! A simulated cluster: one coordinator on a real folder, some workers, and what happens to them.

use std::future::pending;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use coordinator::server::{
    Config, Coordinator, Datasets, Definition, Handle, Outcome, StartError, SubmitError,
};
use coordinator::store;
use study::{Plan, StudyId};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use turmoil::{Builder, Sim};
use worker::client::{self, Compute};
use worker::{Cpu, golden};

use crate::disk::{Disk, State};
use crate::outcome::{self, Trials};
use crate::rogue::harass;
use crate::scenario::{Fault, Incident, Scenario};
use crate::wire;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Trials of microseconds in four cells, of which some violate claims.
const STUDY: &str = r#"[study]
name = "small"
seed = 7
replicates = 60
[prior]
setting = "finite"
domain = { kind = "grid", points = 12, dimension = 1 }
kernel = { kind = "squared-exponential", lengthscale = 0.2 }
mean = { kind = "zero" }
noise_variance = 0.05
[grid]
N = [40, 60]
T = [2, 5]
delta = [0.5]
design = ["fixed", "adaptive"]
method = ["pem-bo"]
acquisition = ["gp-ucb"]
"#;

static NUMERICS: LazyLock<String> = LazyLock::new(|| golden::digest(Cpu::detect()));

/// A step of simulated time.
const TICK: Duration = Duration::from_millis(2);

/// After the last fault a study is complete within this: connections that hang are noticed after
/// half a minute, and calls on them after one.
const PATIENCE: Duration = Duration::from_secs(400);

/// What happened while there was work left.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) links: u32,
    pub(crate) workers: u32,
    pub(crate) coordinators: u32,
    pub(crate) freezes: u32,
    pub(crate) failures: u32,
    /// Operations of the disk that were slow.
    pub(crate) slowed: u32,
    pub(crate) rogues: u32,
    /// What a rogue handed in that was not what it said.
    pub(crate) lies: u32,
    pub(crate) summaries: u32,
    pub(crate) simulated: Duration,
}

impl Seen {
    pub(crate) fn is_everything(&self) -> bool {
        let kinds = [self.links, self.workers, self.coordinators];
        let disk = [self.freezes, self.failures, self.slowed];
        let more = [self.rogues, self.lies, self.summaries];
        kinds.iter().chain(&disk).chain(&more).all(|count| *count > 0)
    }
}

impl AddAssign for Seen {
    fn add_assign(&mut self, more: Self) {
        self.links += more.links;
        self.workers += more.workers;
        self.coordinators += more.coordinators;
        self.freezes += more.freezes;
        self.failures += more.failures;
        self.slowed += more.slowed;
        self.rogues += more.rogues;
        self.lies += more.lies;
        self.summaries += more.summaries;
        self.simulated += more.simulated;
    }
}

/// The running coordinator, while there is one.
type Running = Arc<Mutex<Option<Handle>>>;

pub(crate) struct World {
    scenario: Scenario,
    dir: TempDir,
    plan: Plan,
    sim: Option<Sim<'static>>,
    running: Running,
    disk: Disk,
    lies: Arc<AtomicU32>,
    pub(crate) seen: Seen,
}

/// Nothing is sealed here.
struct NoDatasets;

impl Datasets for NoDatasets {
    fn folder(&self, _: StudyId) -> Option<PathBuf> {
        None
    }
}

fn definition(summary: bool) -> Definition {
    let detail = if summary { "detail = \"summary\"\n[prior]" } else { "[prior]" };
    let text = STUDY.replace("[prior]", detail);
    Definition { file_name: "small.toml".into(), text, files: vec![] }
}

impl World {
    pub(crate) fn new(scenario: Scenario) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (running, disk) = (Running::default(), Disk::default());
        let plan = definition(scenario.summary).plan().expect("a valid study");
        let mut sim = Builder::new()
            .rng_seed(scenario.seed)
            .tick_duration(TICK)
            // The world has its own patience.
            .simulation_duration(Duration::from_secs(1 << 20))
            .min_message_latency(scenario.latency.0)
            .max_message_latency(scenario.latency.1)
            .fail_rate(scenario.fail_rate)
            .repair_rate(0.1)
            .tcp_capacity(1 << 14)
            .enable_random_order()
            .build();
        {
            let (ledger, running) = (dir.path().join("ledger"), Arc::clone(&running));
            let (scenario, disk) = (scenario.clone(), disk.clone());
            sim.host(wire::HOST, move || {
                coordinate(scenario.clone(), ledger.clone(), disk.clone(), Arc::clone(&running))
            });
        }
        for worker in 0..scenario.workers {
            let (cache, slots) = (dir.path().join("cache"), scenario.slots);
            sim.host(name(worker), move || work(name(worker), slots, cache.clone()));
        }
        let (mut seen, lies) = (Seen::default(), Arc::new(AtomicU32::new(0)));
        if scenario.rogue {
            seen.rogues += 1;
            let (seed, plan, lies) = (scenario.seed, plan.clone(), Arc::clone(&lies));
            sim.host("rogue", move || harass(seed, plan.clone(), &NUMERICS, Arc::clone(&lies)));
        }
        seen.summaries += u32::from(scenario.summary);
        Self { scenario, dir, plan, sim: Some(sim), running, disk, lies, seen }
    }

    /// Runs until the study is complete.
    pub(crate) fn run(&mut self) -> Result<(), String> {
        let mut due: Vec<(Duration, Incident, bool)> = Vec::new();
        for incident in self.scenario.incidents.clone() {
            due.push((incident.begin, incident, true));
            due.push((incident.end, incident, false));
        }
        due.sort_by_key(|(at, ..)| *at);
        let healed = due.last().map_or(Duration::ZERO, |(at, ..)| *at);
        let mut due = due.into_iter().peekable();
        let mut calm = false;
        while !self.is_complete()? {
            let now = self.sim().elapsed();
            while let Some((_, incident, begins)) = due.next_if(|(at, ..)| *at <= now) {
                if begins { self.begin(incident.fault) } else { self.end(incident.fault) }
            }
            if now >= healed && !std::mem::replace(&mut calm, true) {
                self.heal();
            }
            if now > healed + PATIENCE {
                return Err(format!("not complete after {now:?}: {}", self.state()));
            }
            self.step()?;
        }
        self.seen.simulated = self.sim().elapsed();
        self.seen.failures += self.disk.failed();
        self.seen.slowed += self.disk.slowed();
        self.seen.lies += self.lies.load(Ordering::Relaxed);
        Ok(())
    }

    fn sim(&mut self) -> &mut Sim<'static> {
        self.sim.as_mut().expect("the simulation lasts until its results are read")
    }

    /// A step of simulated time. Disks are real: while the coordinator opens its folder or waits for
    /// a commit, a step takes half a millisecond of real time at least, so that no more than some
    /// steps pass meanwhile.
    fn step(&mut self) -> Result<(), String> {
        let busy = self.running.lock().unwrap().as_ref().is_none_or(|handle| {
            let page = handle.metrics().page();
            page.lines().any(|line| {
                line.strip_prefix("regretta_queue_commits ").is_some_and(|count| count != "0")
            })
        });
        if busy && !self.disk.is_frozen() && self.sim().is_host_running(wire::HOST) {
            std::thread::sleep(Duration::from_micros(500));
        }
        self.sim().step().map(|_| ()).map_err(|error| error.to_string())
    }

    fn is_complete(&mut self) -> Result<bool, String> {
        let outcome = self
            .running
            .lock()
            .unwrap()
            .as_ref()
            .and_then(|handle| handle.outcomes().borrow().get(&self.plan.id).cloned());
        match outcome {
            None | Some(Outcome::Running) => Ok(false),
            Some(Outcome::Complete) => Ok(true),
            // The disk has refused: whoever ran it runs it again.
            Some(Outcome::Failed(_)) if self.scenario.single => {
                self.stop_coordinator();
                self.restart(wire::HOST.to_owned());
                Ok(false)
            }
            Some(other) => Err(format!("the study ended otherwise: {other}")),
        }
    }

    fn stop_coordinator(&mut self) {
        // Its handle would keep the folder locked.
        self.running.lock().unwrap().take();
        self.disk.crash();
        self.sim().crash(wire::HOST);
    }

    fn begin(&mut self, fault: Fault) {
        match fault {
            Fault::Hold { worker } => self.sim().hold(name(worker), wire::HOST),
            Fault::Partition { worker } => self.sim().partition(name(worker), wire::HOST),
            Fault::OneWay { worker, to_coordinator: true } => {
                self.sim().partition_oneway(name(worker), wire::HOST);
            }
            Fault::OneWay { worker, to_coordinator: false } => {
                self.sim().partition_oneway(wire::HOST, name(worker));
            }
            Fault::Slow { worker } => {
                let longest = Duration::from_secs(3);
                self.sim().set_link_max_message_latency(name(worker), wire::HOST, longest);
            }
            Fault::Crash { worker } => {
                self.sim().crash(name(worker));
                self.seen.workers += 1;
                return;
            }
            Fault::FreezeDisk => {
                self.disk.set(State::Frozen);
                self.seen.freezes += 1;
                return;
            }
            Fault::SlowDisk { each } => {
                self.disk.set(State::Slow { each: Duration::from_millis(each) });
                return;
            }
            Fault::BreakDisk { one_in } => {
                self.disk.set(State::Failing { one_in });
                return;
            }
            Fault::CrashCoordinator => {
                self.stop_coordinator();
                self.seen.coordinators += 1;
                return;
            }
        }
        self.seen.links += 1;
    }

    fn end(&mut self, fault: Fault) {
        match fault {
            Fault::Hold { worker }
            | Fault::Partition { worker }
            | Fault::OneWay { worker, .. }
            | Fault::Slow { worker } => self.mend(worker),
            Fault::Crash { worker } => self.restart(name(worker)),
            Fault::CrashCoordinator => self.restart(wire::HOST.to_owned()),
            Fault::FreezeDisk | Fault::SlowDisk { .. } | Fault::BreakDisk { .. } => {
                self.disk.set(State::Fine);
            }
        }
    }

    fn mend(&mut self, worker: usize) {
        let longest = self.scenario.latency.1;
        self.sim().release(name(worker), wire::HOST);
        self.sim().set_link_max_message_latency(name(worker), wire::HOST, longest);
    }

    fn restart(&mut self, host: String) {
        // Faults may overlap.
        if !self.sim().is_host_running(host.as_str()) {
            self.sim().bounce(host);
        }
    }

    /// No more faults.
    fn heal(&mut self) {
        self.sim().set_fail_rate(0.0);
        self.disk.set(State::Fine);
        for worker in 0..self.scenario.workers {
            self.mend(worker);
            self.restart(name(worker));
        }
        self.restart(wire::HOST.to_owned());
    }

    fn state(&self) -> String {
        match self.running.lock().unwrap().as_ref() {
            Some(handle) => handle
                .metrics()
                .page()
                .lines()
                .filter(|l| !l.starts_with('#'))
                .fold(String::new(), |all, line| all + "\n" + line),
            None => "the coordinator does not run".to_owned(),
        }
    }

    /// Ends everything at once and reads what is on disk.
    pub(crate) fn trials(mut self) -> Result<Trials, String> {
        self.running.lock().unwrap().take();
        self.disk.crash();
        self.sim = None;
        let options = store::Options { numerics: &NUMERICS, version: VERSION };
        outcome::read(&self.dir.path().join("ledger"), options, &self.plan)
    }
}

fn name(worker: usize) -> String {
    format!("worker-{worker}")
}

async fn work(name: String, slots: u32, cache: PathBuf) -> turmoil::Result {
    let config = client::Config {
        coordinator: format!("http://{}:{}", wire::HOST, wire::PORT),
        connector: wire::connector(),
        name,
        slots,
        cache: Some(cache),
        compute: Compute::Inline,
        ..client::Config::default()
    };
    client::run(config, CancellationToken::new()).await?;
    Err("a worker left".into())
}

async fn coordinate(
    scenario: Scenario,
    dir: PathBuf,
    disk: Disk,
    running: Running,
) -> turmoil::Result {
    let coordinator = loop {
        let medium = Some(disk.medium(scenario.room));
        match Coordinator::serve(config(&scenario, &dir), medium, wire::incoming().await?).await {
            // The thread that wrote for the one before ends after what it had begun.
            Err(StartError::Store(store::Error::Locked { .. })) => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(StartError::Store(error)) if error.needs_attention() => {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            result => break result?,
        }
    };
    disk.opened();
    let handle = coordinator.handle();
    loop {
        match handle.submit(definition(scenario.summary)).await {
            Err(SubmitError::Store(error)) if error.needs_attention() => {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            result => break result.map(drop)?,
        }
    }
    *running.lock().unwrap() = Some(handle);
    pending().await
}

fn config(scenario: &Scenario, dir: &Path) -> Config {
    Config {
        dir: dir.to_path_buf(),
        storage: store::Storage::default(),
        listen: ([0, 0, 0, 0], wire::PORT).into(),
        metrics: None,
        token: None,
        tls: None,
        insecure: true,
        single: scenario.single,
        study_memory: coordinator::server::DEFAULT_STUDY_MEMORY,
        settings: scenario.settings.clone(),
        heartbeat: Duration::from_secs(1),
        numerics: NUMERICS.clone(),
        version: VERSION.to_owned(),
        datasets: Arc::new(NoDatasets),
    }
}
