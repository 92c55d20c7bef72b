//! A coordinator under attack while two honest workers compute a study: none of them may lose a lease, the dataset
//! has to be that of an undisturbed run, and the coordinator's memory stays below a bound.

#![allow(dead_code, reason = "every test file uses a part of it")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::common::Bench;
use crate::service::{Process, Service, digest, until};

/// What a coordinator may take, in KiB.
const MEMORY: u64 = 512 << 10;

/// Without heartbeats for so long, in seconds, an honest worker loses its leases.
const LEASE: &str = "5";

/// What honest workers compute in a round.
const STUDY: &str = r#"
[study]
name = "besieged-ROUND"
seed = 11
replicates = 12000

[prior]
domain = { kind = "grid", points = 60, dimension = 1 }
kernel = { kind = "squared-exponential", lengthscale = 0.1 }
noise_variance = 0.01

[grid]
N = [200]
T = [2, 10]
delta = [0.1]
design = ["fixed", "adaptive"]
method = ["pem-bo"]
"#;

const CREDENTIALS: [&str; 2] = ["--token-file", "token"];

/// How long an attack may take to get into position; one that is repelled never does.
const POSITION: Duration = Duration::from_secs(8);

/// Trials of a round's study.
const TRIALS: u64 = 24_000;

/// A study may end before an attack has done what it is there for; then another one follows, up to so many.
const ROUNDS: u64 = 50;

/// What a worker may be told of a lease without anything being wrong. The last is said to a heartbeat that crosses the
/// acknowledgement of a lease; one that was lost is refused on the stream too, as "ended".
const BENIGN: [&[&str]; 3] = [
    &["another worker was faster"],
    &["the cell has stopped"],
    &["took a lease back", "this worker does not hold this lease"],
];

/// How much of an attack has been carried out.
#[derive(Clone, Default)]
pub(crate) struct Attack {
    pub(crate) stop: CancellationToken,
    blows: Arc<AtomicU64>,
}

impl Attack {
    pub(crate) fn count(&self, blows: u64) {
        self.blows.fetch_add(blows, Relaxed);
    }

    pub(crate) fn blows(&self) -> u64 {
        self.blows.load(Relaxed)
    }

    pub(crate) fn goes_on(&self) -> bool {
        !self.stop.is_cancelled()
    }
}

pub(crate) struct Siege {
    pub(crate) bench: Bench,
    pub(crate) service: Service,
    pub(crate) attackers: Runtime,
    pub(crate) attack: Attack,
    credentials: &'static [&'static str],
    honest: Vec<(String, Process)>,
    _alone: MutexGuard<'static, ()>,
}

impl Siege {
    /// A coordinator that asks for no credentials, and two honest workers that have joined.
    pub(crate) fn open() -> Self {
        Self::lay(&[], None)
    }

    /// The same where callers need a token that only the honest ones have.
    pub(crate) fn guarded() -> Self {
        Self::lay(&CREDENTIALS, None)
    }

    /// The same where the coordinator may open only so many files.
    pub(crate) fn with_open_files(most: u32) -> Self {
        Self::lay(&CREDENTIALS, Some(most))
    }

    fn lay(credentials: &'static [&'static str], open_files: Option<u32>) -> Self {
        // One after another: each has the machine to itself.
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let bench = Bench::new();
        bench.write("token", "correct-horse-battery-staple-4242");
        undisturbed(0);
        let arguments = [
            &["coordinator", "--dir", "service", "--listen", "127.0.0.1:0"][..],
            &["--metrics", "127.0.0.1:0", "--lease-seconds", LEASE, "--shard-seconds", "0.05"],
            credentials,
        ];
        // The process that the shell becomes has the id that the shell had.
        let limit = open_files.map(|most| format!("ulimit -n {most} && ")).unwrap_or_default();
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{limit}exec \"$@\""), "sh"]);
        command.arg(env!("CARGO_BIN_EXE_regretta")).args(arguments.concat());
        command.current_dir(bench.dir.path()).env("RUST_LOG", "info");
        let service = Service::of(command);
        let mut siege = Self {
            bench,
            service,
            attackers: Runtime::new().unwrap(),
            attack: Attack::default(),
            credentials,
            honest: Vec::new(),
            _alone: alone,
        };
        siege.join("honest-1");
        siege.join("honest-2");
        siege
    }

    /// An honest worker joins.
    pub(crate) fn join(&mut self, name: &str) {
        let arguments = ["worker", "--coordinator", &self.service.url, "--name", name];
        let arguments = [&arguments[..], &["--slots", "1"], self.credentials].concat();
        let mut command = self.bench.command(&arguments);
        command.env("RUST_LOG", "info");
        let worker = Process::start(command);
        until(&format!("{name} joins"), || worker.said().contains(" joined "));
        self.honest.push((name.to_owned(), worker));
    }

    /// Waits until so many blows have fallen, or for as long as the attack may need.
    pub(crate) fn wait_for_blows(&self, blows: u64) {
        let began = Instant::now();
        while self.attack.blows() < blows && began.elapsed() < POSITION {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// `regretta study ..` with credentials.
    pub(crate) fn study(&self, arguments: &[&str]) -> Output {
        self.service.study(&self.bench, &[arguments, self.credentials].concat())
    }

    /// Computes studies beside the attack until at least `blows` blows have fallen, and checks everything.
    pub(crate) fn is_withstood(&self, blows: u64) {
        let mut rounds = 0;
        while rounds == 0 || self.attack.blows() < blows {
            assert!(rounds < ROUNDS, "{} blows of {blows} in {rounds} rounds", self.attack.blows());
            self.compute(rounds);
            rounds += 1;
        }
        let fallen = self.attack.blows();
        self.attack.stop.cancel();
        for (name, worker) in &self.honest {
            let said = worker.said();
            assert_eq!(lost(&said), [""; 0], "{name} lost a lease");
            assert_eq!(said.matches(" joined ").count(), 1, "{name} had to join again: {said}");
        }
        let said = self.service.process.said();
        let deaths = said.lines().filter(|line| line.contains("a worker was lost"));
        let deaths: Vec<&str> = deaths.filter(|line| line.contains("honest-")).collect();
        assert_eq!(deaths, [""; 0], "honest workers were given up");
        assert!(!said.contains("panicked"), "{said}");
        let trials = rounds * TRIALS;
        until("the metrics are there", || self.service.metric("regretta_trials_total") >= trials);
        assert_eq!(self.service.metric("regretta_trials_total"), trials, "durable trials");
        assert_eq!(self.service.metric("regretta_alarms_total"), 0);
        let peak = peak(self.service.process.id());
        assert!(peak < MEMORY, "the coordinator took {} MiB", peak >> 10);
        eprintln!("{fallen} blows in {rounds} rounds, {} MiB", peak >> 10);
    }

    /// Submits a round's study, waits for its end and compares its dataset with that of an undisturbed run.
    fn compute(&self, round: u64) {
        let name = &format!("besieged-{round}");
        self.bench.write("study.toml", &study(round));
        until("the study is submitted", || self.study(&["submit", "study.toml"]).status.success());
        until("the study is sealed", || {
            std::thread::sleep(Duration::from_millis(100));
            let asked = self.study(&["status", name, "--json"]);
            let status: Value = serde_json::from_slice(&asked.stdout).unwrap_or_default();
            assert_ne!(status["state"], "failed", "{status}");
            status["state"] == "done"
        });
        until("the dataset is fetched", || {
            self.study(&["fetch", name, "--out", name]).status.success()
        });
        assert_eq!(digest(&self.bench.path(name)), undisturbed(round), "the dataset");
    }
}

/// Leases that a worker was told to drop, by its log, and connections that it lost.
fn lost(said: &str) -> Vec<&str> {
    let signs = [
        "took a lease back",
        "ended a lease",
        "no connection to the coordinator",
        "cannot compute a lease",
    ];
    let is_lost = |line: &&str| {
        let is_benign = |words: &&[&str]| words.iter().all(|word| line.contains(word));
        signs.iter().any(|sign| line.contains(sign)) && !BENIGN.iter().any(is_benign)
    };
    said.lines().filter(is_lost).collect()
}

fn study(round: u64) -> String {
    STUDY.replace("ROUND", &round.to_string())
}

/// The digest of a round's study without an attack.
fn undisturbed(round: u64) -> String {
    static DIGESTS: Mutex<BTreeMap<u64, String>> = Mutex::new(BTreeMap::new());
    let mut digests = DIGESTS.lock().unwrap_or_else(PoisonError::into_inner);
    let digest = digests.entry(round).or_insert_with(|| {
        let bench = Bench::new();
        bench.write("study.toml", &study(round));
        bench.run("study.toml", "whole", &[])["digest"].as_str().unwrap().to_owned()
    });
    digest.clone()
}

/// The most memory that a process has had, in KiB.
pub(crate) fn peak(process: u32) -> u64 {
    let status = PathBuf::from(format!("/proc/{process}/status"));
    let status = std::fs::read_to_string(status).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Raises the number of files that this process may open; how many sockets it can spend.
pub(crate) fn sockets() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    limit.current.map_or(usize::MAX, |most| most as usize).saturating_sub(256)
}
