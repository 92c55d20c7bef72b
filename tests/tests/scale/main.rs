//! One real coordinator and a thousand workers: no lease starves, heartbeats are answered in time, nothing
//! is lost or comes twice, memory stays bounded.
//!
//! The workers are simulated, in a process of their own: they register, lease, beat and hand in shards
//! over a thousand real connections, with a made-up digest and tally for each shard, after as long as
//! computing it would have taken. What is measured is the process of the coordinator. The measurements
//! are for a machine that does nothing else:
//! `cargo test --release --workspace --test scale -- --ignored --nocapture --test-threads 1`
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![cfg(target_os = "linux")]

mod fleet;
mod worker;

use std::io::Read;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use coordinator::core::Settings;
use coordinator::server::{Config, Coordinator, Datasets, Definition, Outcome, Results};
use rustix::process::{Resource, getrlimit, setrlimit};
use study::StudyId;
use tests::large::thousand_cells;
use tests::process::{cpu_time, peak_memory};
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// Of the coordinator, in KiB.
const MOST_MEMORY: u64 = 300 << 10;

/// How often workers report, as they do by default.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Set in the process of the workers.
const ADDRESS: &str = "REGRETTA_SCALE_ADDRESS";

/// Set in the process of the coordinator: a peak of memory is a process's, and this one runs other tests.
const ALONE: &str = "REGRETTA_SCALE_ALONE";
const NUMERICS: &str = "00000000000000000000000000000000000000000000000000000000000000aa";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How many workers there are, and what they have to do.
struct Load {
    /// The test, by its name.
    test: &'static str,
    workers: u64,
    /// Of each of 1,000 cells.
    replicates: u64,
    /// What a trial is said to take.
    seconds_per_trial: f64,
    /// Whether it takes that long; otherwise shards are handed in at once.
    paced: bool,
    /// The longest that a heartbeat may take.
    beat_limit: Duration,
    /// The longest that a worker may ask in vain although there is work.
    wait_limit: Duration,
    /// The longest until all is done.
    lasts: Duration,
}

impl Load {
    fn definition(&self) -> Definition {
        let text = thousand_cells(1, self.replicates);
        Definition { file_name: "large.toml".into(), text, files: vec![] }
    }
}

/// Limits that a machine with other things to do keeps, too: a lease lives 30 s, so that whoever reports
/// every 5 s and waits no more than 25 s for the answer loses none.
#[test]
fn a_thousand_workers_are_served() {
    let lease = Settings::default().lease;
    run(&Load {
        test: "a_thousand_workers_are_served",
        workers: 1000,
        replicates: 1000,
        seconds_per_trial: 1e-2,
        paced: true,
        beat_limit: lease.saturating_sub(HEARTBEAT),
        wait_limit: lease,
        lasts: Duration::from_secs(300),
    });
}

#[test]
#[ignore = "takes a minute or two, and is for a machine that does nothing else"]
fn a_hundred_million_trials_by_a_thousand_workers() {
    run(&Load {
        test: "a_hundred_million_trials_by_a_thousand_workers",
        workers: 1000,
        replicates: 100_000,
        seconds_per_trial: 1e-3,
        paced: true,
        beat_limit: HEARTBEAT,
        wait_limit: HEARTBEAT,
        lasts: Duration::from_secs(300),
    });
}

/// How many shards a second the coordinator takes in when workers need no time.
#[test]
#[ignore = "takes a minute, and is for a machine that does nothing else"]
fn as_many_shards_as_it_takes() {
    run(&Load {
        test: "as_many_shards_as_it_takes",
        workers: 200,
        replicates: 100_000,
        seconds_per_trial: 1e-3,
        paced: false,
        beat_limit: HEARTBEAT,
        wait_limit: HEARTBEAT,
        lasts: Duration::from_secs(300),
    });
}

fn run(load: &Load) {
    // A connection is an open file, and 1,024 of them is what many systems start with.
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let runtime = Runtime::new().unwrap();
    if let Ok(address) = std::env::var(ADDRESS) {
        runtime.block_on(fleet::work(load, &address));
    } else if std::env::var_os(ALONE).is_some() {
        runtime.block_on(serve(load));
    } else {
        assert!(again(load).env(ALONE, "1").status().unwrap().success());
    }
}

/// The same test in another process.
fn again(load: &Load) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", load.test, "--include-ignored", "--nocapture"]);
    command
}

async fn serve(load: &Load) {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::start(config(dir.path(), true)).await.unwrap();
    let handle = coordinator.handle();
    let study = handle.submit(load.definition()).await.unwrap();
    println!("planned: {} MiB", peak_memory() >> 10);
    let (began, cpu) = (Instant::now(), cpu_time());
    let workers = Workers::start(load, &format!("http://{}", coordinator.address));
    let outcome = timeout(load.lasts, handle.outcome(study)).await;
    let (seconds, cpu) =
        (began.elapsed().as_secs_f64(), cpu_time().saturating_sub(cpu).as_secs_f64());
    let report = workers.stop();
    assert_eq!(outcome, Ok(Outcome::Complete), "after {seconds:.0} s");
    let peak = peak_memory();
    let results = handle.results(study).await.unwrap().unwrap();
    let shards = exactly_once(load, &results);
    for line in handle.metrics().page().lines().filter(|line| !line.starts_with('#')) {
        println!("{line}");
    }
    println!("{shards} shards in {seconds:.1} s: {:.0} a second", shards as f64 / seconds);
    let each = 1e6 * cpu / shards as f64;
    println!("processor time of the coordinator: {cpu:.1} s, {each:.0} us a shard");
    println!("peak of the coordinator: {} MiB", peak >> 10);
    println!("peak with all shards at hand for sealing: {} MiB", peak_memory() >> 10);
    assert_eq!(report, shards, "shards that workers were told are durable");
    assert!(peak < MOST_MEMORY, "{} MiB", peak >> 10);
    drop((results, handle));
    coordinator.stop(Duration::from_secs(1)).await;
    restart(dir.path(), study, shards).await;
}

/// A coordinator that is started again knows all of it.
async fn restart(dir: &Path, study: StudyId, shards: u64) {
    let (began, cpu) = (Instant::now(), cpu_time());
    let coordinator = Coordinator::start(config(dir, false)).await.unwrap();
    let handle = coordinator.handle();
    assert_eq!(handle.outcome(study).await, Outcome::Complete);
    let (seconds, cpu) =
        (began.elapsed().as_secs_f64(), cpu_time().saturating_sub(cpu).as_secs_f64());
    println!("started again with {shards} shards: {seconds:.2} s, {cpu:.2} s of processor time");
    println!("peak with it: {} MiB", peak_memory() >> 10);
    drop(handle);
    coordinator.stop(Duration::from_secs(1)).await;
}

/// The number of shards, which are every trial exactly once.
fn exactly_once(load: &Load, results: &Results) -> u64 {
    assert_eq!(results.cells.len(), 1000);
    for cell in &results.cells {
        assert_eq!(cell.replicates, load.replicates);
        let end = cell.shards.iter().fold(0, |next, shard| {
            assert_eq!(shard.row.range.start, next, "a gap, or trials that are there twice");
            shard.row.range.end
        });
        assert_eq!(end, load.replicates);
    }
    results.shards().count() as u64
}

fn config(dir: &Path, single: bool) -> Config {
    Config {
        dir: dir.to_path_buf(),
        storage: coordinator::store::Storage::default(),
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        metrics: None,
        token: None,
        tls: None,
        insecure: true,
        single,
        study_memory: coordinator::server::DEFAULT_STUDY_MEMORY,
        settings: Settings::default(),
        heartbeat: HEARTBEAT,
        numerics: NUMERICS.to_owned(),
        version: VERSION.to_owned(),
        datasets: Arc::new(NoDatasets),
    }
}

struct NoDatasets;

impl Datasets for NoDatasets {
    fn folder(&self, _: StudyId) -> Option<PathBuf> {
        None
    }
}

/// The process of the workers.
struct Workers(Child);

impl Workers {
    fn start(load: &Load, address: &str) -> Self {
        let child =
            again(load).env(ADDRESS, address).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        Self(child.unwrap())
    }

    /// Lets them go; how many shards they were told are durable.
    fn stop(mut self) -> u64 {
        drop(self.0.stdin.take());
        let mut text = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        print!("{text}");
        assert!(self.0.wait().unwrap().success(), "the workers ask more of the coordinator");
        let shards = text.lines().find_map(|line| line.split_once(fleet::DURABLE)).unwrap().1;
        shards.trim().parse().unwrap()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        // Where the test failed before they were let go.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}
