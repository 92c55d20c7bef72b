//! A coordinator of 10^8 planned trials with 200 workers stays under 300 MiB.
//!
//! The workers are simulated, in a process of their own: they register, lease, beat and hand in shards
//! over real connections, with a made-up digest and tally for each instead of computing it. What is
//! measured is the process of the coordinator. `cargo test --release --workspace --features tests/measure --test scale -- --ignored --nocapture`
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use coordinator::core::Settings;
use coordinator::server::{Config, Coordinator, Datasets, Definition};
use proto::convert::{Finish, Handed, Heartbeat, Leases, Progress, Registered, Reply, Request};
use proto::v1;
use proto::v1::workers_client::WorkersClient;
use study::tally::Tally;
use study::{CellId, Plan, StudyId, rows};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant as Clock, interval, sleep_until};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::{Channel, Endpoint};

const WORKERS: u64 = 200;
const MOST_MEMORY: u64 = 300 << 10;
const LASTS: Duration = Duration::from_secs(60);

/// What a trial is said to take: 2,000 of them are in a shard then, and 50,000 shards in the study.
const SECONDS_PER_TRIAL: f64 = 1e-3;

/// Set in the process of the workers.
const ADDRESS: &str = "REGRETTA_SCALE_ADDRESS";
const NUMERICS: &str = "00000000000000000000000000000000000000000000000000000000000000aa";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// 1,000 cells of 100,000 trials. Of a summary most trials are only counted, so that no records
/// have to be made up.
const STUDY: &str = r#"[study]
name = "large"
seed = 1
replicates = 100_000
detail = "summary"
[prior]
setting = "finite"
domain = { kind = "grid", points = 80, dimension = 1 }
kernel = { kind = "squared-exponential", lengthscale = 0.1 }
mean = { kind = "zero" }
noise_variance = 0.01
[grid]
N = [200, 300, 400, 500, 600, 700, 800, 900, 1000, 2000]
T = [1, 5, 20, 50]
delta = [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5]
"prior.noise_variance" = [0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1]
"#;

struct NoDatasets;

impl Datasets for NoDatasets {
    fn folder(&self, _: StudyId) -> Option<PathBuf> {
        None
    }
}

fn definition() -> Definition {
    Definition { file_name: "large.toml".into(), text: STUDY.into(), files: vec![] }
}

/// VmHWM of /proc/self/status, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse().ok());
    kibibytes.expect("a number of kB")
}

#[test]
#[ignore = "takes a minute, and is for a machine that does nothing else"]
fn a_coordinator_of_many_trials_and_workers_stays_small() {
    let runtime = Runtime::new().unwrap();
    if let Ok(address) = std::env::var(ADDRESS) {
        return runtime.block_on(fleet(&address));
    }
    let dir = tempfile::tempdir().unwrap();
    let config = Config {
        dir: dir.path().to_path_buf(),
        storage: coordinator::store::Storage::default(),
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        metrics: None,
        token: None,
        tls: None,
        insecure: true,
        single: true,
        settings: Settings::default(),
        heartbeat: Duration::from_secs(5),
        numerics: NUMERICS.to_owned(),
        version: VERSION.to_owned(),
        datasets: Arc::new(NoDatasets),
    };
    let coordinator = runtime.block_on(Coordinator::start(config)).unwrap();
    let handle = coordinator.handle();
    let study = runtime.block_on(handle.submit(definition())).unwrap();
    println!("planned: {} MiB", peak() >> 10);
    let begin = Instant::now();
    let workers = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_coordinator_of_many_trials_and_workers_stays_small"])
        .args(["--ignored", "--nocapture"])
        .env(ADDRESS, format!("http://{}", coordinator.address))
        .status();
    assert!(workers.unwrap().success());
    for line in handle.metrics().page().lines().filter(|line| !line.starts_with('#')) {
        println!("{line}");
    }
    println!("{:?} after {:?}", handle.outcomes().borrow().get(&study), begin.elapsed());
    println!("peak of the coordinator: {} MiB", peak() >> 10);
    assert!(peak() < MOST_MEMORY, "{} MiB", peak() >> 10);
}

/// Verdict rows of every cell.
type Rows = BTreeMap<CellId, usize>;

async fn fleet(address: &str) {
    let plan: Plan = definition().plan().unwrap();
    assert_eq!(plan.trials(), 100_000_000);
    let rows: Rows = plan
        .cells
        .iter()
        .map(|cell| (cell.id, rows::rows(&plan.study, &cell.cell).len()))
        .collect();
    let rows = Arc::new(rows);
    let mut workers = JoinSet::new();
    for number in 0..WORKERS {
        let (address, rows) = (address.to_owned(), Arc::clone(&rows));
        workers.spawn(async move { Worker::join(&address, number, rows).await.work().await });
    }
    let shards: u64 = workers.join_all().await.into_iter().sum();
    println!("{WORKERS} workers handed in {shards} shards");
    assert!(shards > WORKERS);
}

struct Worker {
    client: WorkersClient<Channel>,
    id: u64,
    heartbeat: Duration,
    rows: Arc<Rows>,
    out: mpsc::Sender<v1::RecordStream>,
    replies: Streaming<v1::RecordReply>,
    held: Vec<u64>,
}

impl Worker {
    async fn join(address: &str, number: u64, rows: Arc<Rows>) -> Self {
        let endpoint = Endpoint::from_shared(address.to_owned()).unwrap();
        let mut client = WorkersClient::new(endpoint.connect().await.unwrap());
        let request = v1::RegisterRequest {
            version: VERSION.to_owned(),
            numerics_digest: NUMERICS.to_owned(),
            name: format!("worker-{number}"),
            slots: 2,
            previous_worker_id: None,
        };
        let reply = client.register(request).await.unwrap().into_inner();
        let Registered { worker_id: id, heartbeat, .. } = reply.try_into().unwrap();
        let (out, outgoing) = mpsc::channel(16);
        out.send(Handed::Open { worker_id: id }.into()).await.unwrap();
        let replies = client.stream(ReceiverStream::new(outgoing)).await.unwrap().into_inner();
        Self { client, id, heartbeat, rows, out, replies, held: vec![] }
    }

    /// Takes leases and hands them in until the time is over; how many became durable.
    async fn work(mut self) -> u64 {
        let end = Clock::now() + LASTS;
        let mut beats = interval(self.heartbeat);
        let (mut ask_at, mut done) = (Clock::now(), 0);
        loop {
            tokio::select! {
                biased;
                () = sleep_until(end) => return done,
                _ = beats.tick() => self.beat().await,
                reply = self.replies.message() => {
                    let reply = reply.unwrap().expect("the coordinator stays");
                    let lease = match reply.try_into().unwrap() {
                        Reply::Accepted { .. } => continue,
                        Reply::Committed { lease } => { done += 1; lease }
                        Reply::Rejected { lease, .. } => lease,
                    };
                    self.held.retain(|held| *held != lease);
                }
                () = sleep_until(ask_at), if self.held.len() < 4 => {
                    ask_at = Clock::now() + self.lease().await;
                }
            }
        }
    }

    async fn beat(&mut self) {
        let leases = self.held.iter().map(|&lease| Progress { lease, done_trials: 0 }).collect();
        let beat = Heartbeat { worker_id: self.id, leases };
        self.client.heartbeat(v1::HeartbeatRequest::from(beat)).await.unwrap();
    }

    /// Takes leases and hands them in at once; how long to wait before asking for more.
    async fn lease(&mut self) -> Duration {
        let request = Request { worker_id: self.id, wanted: 4 };
        let reply = self.client.lease(v1::LeaseRequest::from(request)).await.unwrap();
        let Leases { leases, wait, .. } = reply.into_inner().try_into().unwrap();
        for lease in leases {
            let trials = lease.replicates.end - lease.replicates.start;
            let mut tally = Tally::zero(self.rows[&lease.cell]);
            tally.0.iter_mut().for_each(|row| row.trials = trials);
            let name = format!("{} {:?}", lease.cell, lease.replicates);
            let finish = Finish {
                lease: lease.epoch,
                digest: *blake3::hash(name.as_bytes()).as_bytes(),
                tally: tally.encode().into(),
                records: 0,
                trials,
                seconds: trials as f64 * SECONDS_PER_TRIAL,
            };
            self.held.push(lease.epoch);
            self.out.send(Handed::Finish(finish).into()).await.unwrap();
        }
        wait
    }
}
