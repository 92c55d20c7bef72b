//! How fast records go through the whole of it: leased, computed, streamed, durable.
//!
//! `target/release/examples/pipeline [FOLDER]` (CONTRIBUTING.md says how it is built) prints records per second with the
//! smallest real trials, and how much of a bare loop's speed one worker reaches with trials of about a millisecond.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use coordinator::core::Settings;
use coordinator::server::{Config, Coordinator, Datasets, Definition, Outcome, Token};
use study::StudyId;
use study::prior::Files;
use tokio_util::sync::CancellationToken;
use worker::client::{self, Secret};
use worker::prior::{MemoryLimit, Prior};
use worker::trial::Trials;
use worker::{Cpu, golden};

/// One record per trial.
const SMALLEST: &str = r#"
[study]
name = "smallest"
seed = 1
replicates = 1000000
[prior]
domain = { kind = "grid", points = 4, dimension = 1 }
kernel = { kind = "squared-exponential", lengthscale = 0.5 }
noise_variance = 0.1
[grid]
N = [20]
T = [1]
delta = [0.1]
design = ["fixed"]
method = ["pem-bo"]
[claims]
test = ["lemma1.mean"]
"#;

/// A record at every step of trials that are hardly longer.
const STEPS: &str = r#"
[study]
name = "steps"
seed = 1
replicates = 400000
detail = "steps"
[prior]
domain = { kind = "grid", points = 8, dimension = 1 }
kernel = { kind = "squared-exponential", lengthscale = 0.5 }
noise_variance = 0.1
[grid]
N = [20]
T = [8]
delta = [0.1]
design = ["fixed"]
method = ["pem-bo"]
[claims]
test = ["lemma1.mean"]
"#;

const MILLISECOND: &str = r#"
[study]
name = "millisecond"
seed = 1
replicates = 8000
[prior]
domain = { kind = "grid", points = 500, dimension = 1 }
kernel = { kind = "squared-exponential", lengthscale = 0.05 }
noise_variance = 0.01
[grid]
N = [1000]
T = [10, 70]
delta = [0.1]
"#;

struct Nowhere;

impl Datasets for Nowhere {
    fn folder(&self, _: StudyId) -> Option<PathBuf> {
        None
    }
}

fn main() {
    let folder = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for (what, study, records) in
        [("one record per trial", SMALLEST, 1e6), ("eight records per trial", STEPS, 3.2e6)]
    {
        println!("{what}, bare loop on one core: {:.0} records/s", records / bare(study));
        for workers in [1, 2] {
            let (seconds, records) = runtime.block_on(run(&folder, study, workers));
            println!(
                "{what}, {workers} workers: {:.0} records/s ({records} in {seconds:.1} s)",
                records as f64 / seconds
            );
        }
    }
    let mut efficiencies = Vec::new();
    for _ in 0..3 {
        let bare = bare(MILLISECOND);
        let (seconds, records) = runtime.block_on(run(&folder, MILLISECOND, 1));
        let (trials, share) = (records as f64 / 2.0, bare / seconds);
        println!(
            "{:.2} ms trials: bare loop {bare:.2} s, one worker {seconds:.2} s: {:.1} %",
            1e3 * bare / trials,
            100.0 * share
        );
        efficiencies.push(share);
    }
    efficiencies.sort_by(f64::total_cmp);
    println!("median {:.1} %", 100.0 * efficiencies[1]);
}

fn definition(text: &str) -> Definition {
    Definition { file_name: "study.toml".into(), text: text.into(), files: Vec::new() }
}

/// Seconds of the same trials, one after the other on this thread.
fn bare(text: &str) -> f64 {
    let plan = definition(text).plan().expect("a valid study");
    let limit = MemoryLimit { bytes: 1 << 30, state_per_point: 0 };
    let prior = Prior::build(&plan.priors[0].spec, &Files::default(), limit).expect("a prior");
    let cell = &plan.cells[0];
    let trials = Trials::new(&prior, cell.cell, plan.study.seed, &cell.checkpoints, Cpu::detect());
    let trials = trials.expect("trials that can run");
    let began = Instant::now();
    let mut records = 0_u64;
    trials.run(0..plan.replicates.max(), &mut |_| records += 1);
    assert_eq!(records, plan.replicates.max() * cell.checkpoints.len() as u64);
    began.elapsed().as_secs_f64()
}

/// Seconds from submission until everything is durable, and records.
async fn run(folder: &Path, text: &str, workers: usize) -> (f64, u64) {
    let dir = tempfile::tempdir_in(folder).expect("a folder");
    let token = Token::new("a-token-for-the-benchmark").expect("visible characters");
    let config = Config {
        dir: dir.path().to_path_buf(),
        storage: coordinator::store::Storage::default(),
        listen: ([127, 0, 0, 1], 0).into(),
        metrics: None,
        token: Some(token.clone()),
        tls: None,
        insecure: false,
        single: true,
        study_memory: coordinator::server::DEFAULT_STUDY_MEMORY,
        settings: Settings { check_fraction: 0.0, ..Settings::default() },
        heartbeat: Duration::from_secs(5),
        numerics: golden::digest(Cpu::detect()),
        version: env!("CARGO_PKG_VERSION").into(),
        datasets: Arc::new(Nowhere),
    };
    let coordinator = Coordinator::start(config).await.expect("a coordinator");
    let handle = coordinator.handle();
    let stop = CancellationToken::new();
    let began = Instant::now();
    let study = handle.submit(definition(text)).await.expect("a study");
    for number in 0..workers {
        let config = client::Config {
            coordinator: format!("http://{}", coordinator.address),
            token: Some(Secret::new(token.reveal())),
            name: format!("worker-{number}"),
            cache: Some(dir.path().join("cache")),
            ..client::Config::default()
        };
        tokio::spawn(client::run(config, stop.clone()));
    }
    let outcome = handle.outcome(study).await;
    let seconds = began.elapsed().as_secs_f64();
    assert_eq!(outcome, Outcome::Complete);
    let shards = handle.results(study).await.expect("results").expect("a complete study");
    let records = shards.shards().map(|(_, shard)| shard.row.records).sum();
    stop.cancel();
    coordinator.stop(Duration::from_secs(1)).await;
    (seconds, records)
}
