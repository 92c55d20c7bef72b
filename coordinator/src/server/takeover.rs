//! A leader is killed half-way, a standby takes over, and real workers go on.

use std::collections::BTreeMap;
use std::future::pending;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use study::{CellId, StudyId};
use tokio_util::sync::CancellationToken;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use worker::client;
use worker::golden;

use super::{Config, Coordinator, DEFAULT_STUDY_MEMORY, Datasets, Definition, Outcome};
use crate::core::Settings;
use crate::servers;
use crate::store::{Bucket, RecordsAt, Storage, StoredShard, peek_at};

const STUDY: &str = r#"[study]
name = "takeover"
seed = 7
replicates = 30000
[prior]
setting = "finite"
domain = { kind = "grid", points = 40, dimension = 1 }
kernel = { kind = "squared-exponential", lengthscale = 0.2 }
mean = { kind = "zero" }
noise_variance = 0.05
[grid]
N = [40, 60]
T = [2, 12]
delta = [0.5]
design = ["fixed", "adaptive"]
method = ["pem-bo"]
acquisition = ["gp-ucb"]
"#;

const REPLICATES: u64 = 30_000;

/// Shards of the first leader before it is killed.
const BEFORE: usize = 40;

/// Long enough for any machine; a test that hangs should end.
const PATIENCE: Duration = Duration::from_secs(300);

pub(super) struct NoDatasets;

impl Datasets for NoDatasets {
    fn folder(&self, _: StudyId) -> Option<PathBuf> {
        None
    }
}

pub(super) fn definition() -> Definition {
    Definition { file_name: "takeover.toml".into(), text: STUDY.into(), files: vec![] }
}

pub(super) fn config(dir: &Path, storage: Storage, listen: SocketAddr) -> Config {
    Config {
        dir: dir.to_path_buf(),
        storage,
        listen,
        metrics: None,
        token: None,
        tls: None,
        insecure: false,
        single: false,
        study_memory: DEFAULT_STUDY_MEMORY,
        settings: Settings {
            shard_target: Duration::from_millis(50),
            max_shard_records: 1000,
            ..Settings::default()
        },
        heartbeat: Duration::from_secs(1),
        numerics: golden::DIGEST.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        datasets: Arc::new(NoDatasets),
    }
}

/// The leader as a process of its own; killed when it is dropped.
struct Leader {
    process: Child,
    address: String,
}

impl Drop for Leader {
    fn drop(&mut self) {
        // It may have been killed already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Where the leader keeps its store.
const DIR: &str = "REGRETTA_TEST_DIR";
const LEDGER: &str = "REGRETTA_TEST_LEDGER";
const STORE: &str = "REGRETTA_TEST_STORE";

/// A leader with a study, until it is killed.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by the tests of takeovers"]
async fn leader() {
    let (dir, ledger) = (std::env::var(DIR).unwrap(), std::env::var(LEDGER).unwrap());
    let mut storage = Storage { ledger: ledger.parse().unwrap(), ..Storage::default() };
    if let Ok(store) = std::env::var(STORE) {
        storage.records = store.parse().unwrap();
    }
    let listen = ([127, 0, 0, 1], 0).into();
    let leader = Coordinator::start(config(Path::new(&dir), storage, listen)).await.unwrap();
    leader.handle().submit(definition()).await.unwrap();
    println!("\nlistens at {}", leader.address);
    pending::<()>().await;
}

fn lead(dir: &Path, ledger: &str, store: Option<&(String, Vec<(&str, String)>)>) -> Leader {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "server::takeover::leader", "--ignored", "--nocapture"])
        .env(DIR, dir)
        .env(LEDGER, ledger)
        .stdout(Stdio::piped());
    if let Some((address, settings)) = store {
        command.env(STORE, address);
        command.envs(settings.iter().map(|(key, value)| (key.to_uppercase(), value)));
    }
    let mut process = command.spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let address =
        lines.find_map(|line| Some(line.unwrap().strip_prefix("listens at ")?.to_owned()));
    // What it says later goes nowhere.
    std::thread::spawn(move || lines.for_each(drop));
    Leader { process, address: address.expect("the leader starts") }
}

pub(super) fn work(name: &str, coordinators: &str, cache: &Path) -> client::Config {
    client::Config {
        coordinator: coordinators.to_owned(),
        name: name.to_owned(),
        cache: Some(cache.to_path_buf()),
        ..client::Config::default()
    }
}

async fn is_serving(address: SocketAddr) -> Option<bool> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let mut client = HealthClient::new(endpoint.connect().await.ok()?);
    let answer = client.check(HealthCheckRequest::default()).await.ok()?.into_inner();
    Some(answer.status() == ServingStatus::Serving)
}

/// All trials, each once, and every record as it was computed.
fn complete(shards: &[StoredShard], mut records: super::Records) -> BTreeMap<u64, usize> {
    let plan = definition().plan().unwrap();
    let mut next: BTreeMap<CellId, u64> = plan.cells.iter().map(|cell| (cell.id, 0)).collect();
    let mut epochs = BTreeMap::new();
    for shard in shards {
        let (row, due) = (&shard.row, next.get_mut(&shard.row.cell).unwrap());
        assert_eq!(row.range.start, *due, "a trial is missing, or there twice");
        *due = row.range.end;
        *epochs.entry(shard.token >> 32).or_default() += 1;
        let mut digest = study::Digest::new();
        for at in 0..shard.batches() {
            records.batch(shard, at).unwrap().feed(&mut digest);
        }
        assert_eq!(digest.finish(), row.digest);
    }
    assert!(next.values().all(|&due| due == REPLICATES), "{next:?}");
    epochs
}

async fn take_over(store: Option<(String, Vec<(&'static str, String)>)>, ledger: &str) {
    let dir = tempfile::tempdir().unwrap();
    let mut storage = Storage { ledger: ledger.parse().unwrap(), ..Storage::default() };
    if let Some((address, settings)) = &store {
        let at: Bucket = address.parse().unwrap();
        let at = settings.iter().fold(at, |at, (key, value)| at.with(key, value));
        storage.records = RecordsAt::S3(at);
    }
    let leader = lead(&dir.path().join("one"), ledger, store.as_ref());
    // Without a bucket the folder is what they share.
    let folder = dir.path().join(if store.is_some() { "two" } else { "one" });
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let standby = tokio::spawn(Coordinator::start(config(&folder, storage.clone(), free)));
    while is_serving(free).await.is_none() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(is_serving(free).await, Some(false));
    assert_eq!(is_serving(leader.address.parse().unwrap()).await, Some(true));
    let (shutdown, coordinators) =
        (CancellationToken::new(), format!("http://{free},http://{}", leader.address));
    let workers: Vec<_> = ["a", "b"]
        .map(|name| work(name, &coordinators, &dir.path().join("files")))
        .map(|config| tokio::spawn(client::run(config, shutdown.clone())))
        .into();
    let study = definition().plan().unwrap().id;
    loop {
        let known = peek_at(&folder, &storage.ledger).await.unwrap().unwrap();
        let shards =
            known.into_iter().find(|(known, _)| known.id == study).map_or(0, |(_, s)| s.len());
        if shards >= BEFORE {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    drop(leader);
    let killed = Instant::now();
    let standby = standby.await.unwrap().unwrap();
    eprintln!("took over {:?} after the leader was killed", killed.elapsed());
    assert!(standby.found.damaged.is_empty(), "{:?}", standby.found);
    let handle = standby.handle();
    let outcome = tokio::time::timeout(PATIENCE, handle.outcome(study)).await.unwrap();
    assert_eq!(outcome, Outcome::Complete);
    assert_eq!(is_serving(free).await, Some(true));
    let results = handle.results(study).await.unwrap().unwrap();
    let shards: Vec<StoredShard> = results.shards().map(|(_, shard)| shard.clone()).collect();
    let records = handle.records(&results);
    let epochs = tokio::task::spawn_blocking(move || complete(&shards, records)).await.unwrap();
    assert_eq!(epochs.keys().copied().collect::<Vec<_>>(), [1, 2], "both leaders had a part");
    assert!(epochs[&1] >= BEFORE, "what was acknowledged is kept: {epochs:?}");
    shutdown.cancel();
    for worker in workers {
        worker.await.unwrap().unwrap();
    }
    drop(handle);
    standby.stop(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_shared_folder() {
    let Some(ledger) = servers::database() else { return };
    take_over(None, &ledger).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_an_object_store() {
    let Some(ledger) = servers::database() else { return };
    let Some(store) = servers::bucket() else { return };
    take_over(Some(store), &ledger).await;
}
