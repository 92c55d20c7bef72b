//! Studies that cannot be taken up, and studies that are deleted, at a running coordinator.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proto::convert::{study_bytes, study_id};
use proto::v1;
use proto::v1::StudyState;
use proto::v1::studies_client::StudiesClient;
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection, raw_sql};
use study::StudyId;
use study::family::EarlierFamily;
use study::plan::Size;
use tokio_util::sync::CancellationToken;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};
use worker::client;

use super::takeover::{config, definition, work};
use super::{Config, Coordinator, Datasets, Definition, Outcome, SubmitError, study_memory};
use crate::store::{Options, State, Storage, Store};

/// A small study with another name, and so another id.
fn small(name: &str) -> Definition {
    let all = definition();
    let text = all.text.replace("30000", "200").replace("\"takeover\"", &format!("\"{name}\""));
    Definition { text, ..all }
}

fn local(dir: &Path) -> Config {
    config(&dir.join("ledger"), Storage::default(), ([127, 0, 0, 1], 0).into())
}

async fn start(dir: &Path) -> (Coordinator, StudiesClient<Channel>) {
    start_with(local(dir)).await
}

async fn start_with(config: Config) -> (Coordinator, StudiesClient<Channel>) {
    let coordinator = Coordinator::start(config).await.unwrap();
    let endpoint = Endpoint::from_shared(format!("http://{}", coordinator.address)).unwrap();
    let client = StudiesClient::new(endpoint.connect().await.unwrap());
    (coordinator, client)
}

async fn states(client: &mut StudiesClient<Channel>) -> BTreeMap<StudyId, StudyState> {
    let listed = client.list(v1::ListRequest {}).await.unwrap().into_inner().studies;
    listed.iter().map(|study| (study_id(&study.study).unwrap(), study.state())).collect()
}

async fn status(client: &mut StudiesClient<Channel>, study: StudyId) -> v1::StudyStatus {
    let request = v1::StatusRequest { study: study_bytes(study), after_cell: None };
    client.status(request).await.unwrap().into_inner()
}

async fn delete(client: &mut StudiesClient<Channel>, study: StudyId) -> Result<(), tonic::Status> {
    let request = v1::DeleteRequest { study: study_bytes(study), data: false };
    client.delete(request).await.map(|_| ())
}

/// Damages a row of a ledger that nobody has open.
async fn damage(dir: &Path, statement: &str, study: StudyId) {
    let path = dir.join("ledger/ledger.db");
    let mut ledger =
        SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    let statement = format!("{statement} WHERE id = x'{}'", study.hex());
    let done = raw_sql(AssertSqlSafe(statement)).execute(&mut ledger).await.unwrap();
    assert_eq!(done.rows_affected(), 1);
    ledger.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn studies_that_cannot_be_taken_up_fail_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (sound, damaged) = (small("sound"), small("damaged"));
    let [sound_id, damaged_id] = [&sound, &damaged].map(|study| study.plan().unwrap().id);
    let [unplannable, cancelled, other, missing] = [1, 2, 3, 4].map(|byte| StudyId([byte; 32]));
    let settings = config(dir.path(), Storage::default(), ([127, 0, 0, 1], 0).into());
    let options = Options { numerics: &settings.numerics, version: &settings.version };
    std::fs::create_dir(dir.path().join("ledger")).unwrap();
    let (store, _) = Store::open(&dir.path().join("ledger"), options).await.unwrap();
    for (id, text) in [
        (unplannable, "[study"),
        (cancelled, "[study]\nname = \"old\"\nunknown = 1\n"),
        (other, sound.text.as_str()),
        (damaged_id, damaged.text.as_str()),
        (sound_id, sound.text.as_str()),
    ] {
        store.put_study(id, "a.toml", text, &[]).await.unwrap();
    }
    let files = [("points.csv".to_owned(), [9; 32])];
    store.put_study(missing, "a.toml", &small("missing").text, &files).await.unwrap();
    store.set_state(cancelled, State::Cancelled, "").await.unwrap();
    store.close().await.unwrap();
    damage(dir.path(), "UPDATE studies SET reason = 'altered'", damaged_id).await;

    let (coordinator, mut client) = start(dir.path()).await;
    let failed = [unplannable, cancelled, other, missing, damaged_id];
    let mut expected: BTreeMap<_, _> =
        failed.iter().map(|&study| (study, StudyState::Failed)).collect();
    assert_eq!(coordinator.found.failed.len(), failed.len());
    expected.insert(sound_id, StudyState::Running);
    assert_eq!(states(&mut client).await, expected);
    for (study, why) in [
        (unplannable, "a.toml"),
        (cancelled, "grid is missing"),
        (other, &sound_id.to_string()),
        (missing, "is missing"),
        (damaged_id, "its row in the ledger is damaged"),
    ] {
        let seen = status(&mut client, study).await;
        assert_eq!(seen.state(), StudyState::Failed);
        assert!(seen.reason.contains(why), "{why}: {}", seen.reason);
        let request = v1::WatchRequest { study: study_bytes(study) };
        let mut watching = client.watch(request).await.unwrap().into_inner();
        assert_eq!(watching.message().await.unwrap().unwrap().state(), StudyState::Failed);
        assert_eq!(watching.message().await.unwrap(), None);
        let request = v1::CancelRequest { study: study_bytes(study) };
        let refused = client.cancel(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    }

    // The others run, and so does one that is mended.
    let (handle, shutdown) = (coordinator.handle(), CancellationToken::new());
    let address = format!("http://{}", coordinator.address);
    let worker = work("a", &address, &dir.path().join("files"));
    let worker = tokio::spawn(client::run(worker, shutdown.clone()));
    assert_eq!(handle.outcome(sound_id).await, Outcome::Complete);
    assert_eq!(handle.submit(damaged).await.unwrap(), damaged_id);
    assert_eq!(handle.outcome(damaged_id).await, Outcome::Complete);

    for study in [unplannable, cancelled, other, missing] {
        delete(&mut client, study).await.unwrap();
    }
    let left: Vec<StudyId> = states(&mut client).await.into_keys().collect();
    assert!(left.len() == 2 && left.contains(&sound_id) && left.contains(&damaged_id));
    shutdown.cancel();
    worker.await.unwrap().unwrap();
    drop(handle);
    coordinator.stop(Duration::ZERO).await;
    let (coordinator, mut client) = start(dir.path()).await;
    assert!(coordinator.found.failed.is_empty());
    assert_eq!(states(&mut client).await.into_keys().collect::<Vec<_>>(), left);
    coordinator.stop(Duration::ZERO).await;
}

/// A small study with a claim of its own.
fn claiming(name: &str, bound: &str) -> Definition {
    let all = small(name);
    let claim = format!(
        "[[claim]]\nid = \"mine\"\nholds = \"best_sample_regret <= {bound}\"\nbudget = \"delta\"\n"
    );
    Definition { text: format!("{}{claim}", all.text), ..all }
}

/// Runs studies to their ends.
async fn complete(dir: &Path, definitions: &[Definition]) -> Vec<StudyId> {
    let (coordinator, _) = start(dir).await;
    let (handle, shutdown) = (coordinator.handle(), CancellationToken::new());
    let worker = work("a", &format!("http://{}", coordinator.address), &dir.join("files"));
    let worker = tokio::spawn(client::run(worker, shutdown.clone()));
    let mut studies = Vec::new();
    for definition in definitions {
        let study = handle.submit(definition.clone()).await.unwrap();
        assert_eq!(handle.outcome(study).await, Outcome::Complete);
        studies.push(study);
    }
    shutdown.cancel();
    worker.await.unwrap().unwrap();
    drop(handle);
    coordinator.stop(Duration::ZERO).await;
    studies
}

/// The replicates of every cell, as families of claims have them.
fn existing(definition: &Definition, replicates: u64) -> BTreeMap<String, u64> {
    let plan = definition.plan().unwrap();
    plan.cells.iter().map(|cell| (cell.id.to_string(), replicates)).collect()
}

/// Too little memory for two studies fails the second; once the first is gone, it can be submitted again.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_is_reworded_while_its_study_had_failed_is_exploratory() {
    let dir = tempfile::tempdir().unwrap();
    let (other, before) = (claiming("other", "0.1"), claiming("mine", "0.1"));
    let studies = complete(dir.path(), &[other, before.clone()]).await;
    let needed = study_memory(&Size::read("s.toml", &before.text).unwrap());
    let config = Config { study_memory: needed * 3 / 2, ..local(dir.path()) };
    let (coordinator, mut client) = start_with(config).await;
    let failed = status(&mut client, studies[1]).await;
    assert_eq!(failed.state(), StudyState::Failed);
    assert!(failed.reason.contains("--study-memory"), "{}", failed.reason);
    client.cancel(v1::CancelRequest { study: study_bytes(studies[0]) }).await.unwrap();
    delete(&mut client, studies[0]).await.unwrap();

    // What it has to grow from is known, although it was not taken up.
    let handle = coordinator.handle();
    let fewer = claiming("mine", "9");
    let fewer = Definition { text: fewer.text.replace("= 200\n", "= 100\n"), ..fewer };
    let refused = handle.submit(fewer).await.unwrap_err();
    assert!(matches!(refused, SubmitError::NotGrown(_)), "{refused}");
    assert_eq!(handle.submit(claiming("mine", "9")).await.unwrap(), studies[1]);
    assert_eq!(handle.outcome(studies[1]).await, Outcome::Complete);
    let earlier = handle.results(studies[1]).await.unwrap().unwrap().earlier;
    let was = EarlierFamily::new(&before.plan().unwrap(), existing(&before, 200));
    assert_eq!(earlier, [was]);
    drop(handle);
    coordinator.stop(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_claims_cannot_be_read_any_more_all_are_exploratory() {
    let dir = tempfile::tempdir().unwrap();
    let definition = claiming("mine", "0.1");
    let study = complete(dir.path(), std::slice::from_ref(&definition)).await[0];
    damage(dir.path(), "UPDATE studies SET text = '[study'", study).await;
    let (coordinator, mut client) = start(dir.path()).await;
    assert_eq!(status(&mut client, study).await.state(), StudyState::Failed);
    let handle = coordinator.handle();
    assert_eq!(handle.submit(definition.clone()).await.unwrap(), study);
    assert_eq!(handle.outcome(study).await, Outcome::Complete);
    let earlier = handle.results(study).await.unwrap().unwrap().earlier;
    assert_eq!(earlier.len(), 1);
    assert_eq!((earlier[0].family.rows, &earlier[0].replicates), (0, &existing(&definition, 200)));
    let seen = status(&mut client, study).await;
    assert!(!seen.rows.is_empty() && seen.rows.iter().all(|row| row.exploratory));
    drop(handle);
    coordinator.stop(Duration::ZERO).await;
}

/// Where sealed datasets are, all of one study.
struct Folder(PathBuf);

impl Datasets for Folder {
    fn folder(&self, _: StudyId) -> Option<PathBuf> {
        Some(self.0.clone()).filter(|folder| folder.join("manifest.json").exists())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sealed_of_a_study_that_failed_can_be_fetched() {
    let dir = tempfile::tempdir().unwrap();
    let study = complete(dir.path(), &[small("sealed")]).await[0];
    damage(dir.path(), "UPDATE studies SET text = '[study'", study).await;
    let folder = dir.path().join("sealed");
    std::fs::create_dir_all(folder.join("records")).unwrap();
    let config = Config { datasets: Arc::new(Folder(folder.clone())), ..local(dir.path()) };
    let (coordinator, mut client) = start_with(config).await;
    let request = || v1::FetchResultsRequest { study: study_bytes(study) };
    let refused = client.fetch_results(request()).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    std::fs::write(folder.join("manifest.json"), "sealed").unwrap();
    let mut chunks = client.fetch_results(request()).await.unwrap().into_inner();
    let first = chunks.message().await.unwrap().unwrap();
    assert_eq!((first.name.as_str(), &first.data[..]), ("manifest.json", &b"sealed"[..]));
    drop(client);
    coordinator.stop(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_study_is_deleted_once_it_does_not_run_and_starts_afresh() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, mut client) = start(dir.path()).await;
    let handle = coordinator.handle();
    let unknown = delete(&mut client, StudyId([1; 32])).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound, "{unknown}");
    let study = handle.submit(small("short-lived")).await.unwrap();
    let work = |name: &str, shutdown: &CancellationToken| {
        let config =
            work(name, &format!("http://{}", coordinator.address), &dir.path().join("files"));
        tokio::spawn(client::run(config, shutdown.clone()))
    };
    let shutdown = CancellationToken::new();
    let worker = work("a", &shutdown);
    assert_eq!(handle.outcome(study).await, Outcome::Complete);
    // It is not sealed, and somebody may be about to.
    let refused = delete(&mut client, study).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("study cancel"), "{refused}");
    shutdown.cancel();
    worker.await.unwrap().unwrap();

    client.cancel(v1::CancelRequest { study: study_bytes(study) }).await.unwrap();
    delete(&mut client, study).await.unwrap();
    assert_eq!(states(&mut client).await, BTreeMap::new());
    let request = v1::StatusRequest { study: study_bytes(study), after_cell: None };
    assert_eq!(client.status(request).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(handle.outcomes().borrow().get(&study), None);

    assert_eq!(handle.submit(small("short-lived")).await.unwrap(), study);
    let seen = status(&mut client, study).await;
    assert_eq!((seen.state(), seen.trials_done), (StudyState::Running, 0));
    let shutdown = CancellationToken::new();
    let worker = work("b", &shutdown);
    assert_eq!(handle.outcome(study).await, Outcome::Complete);
    let seen = status(&mut client, study).await;
    assert_eq!(seen.trials_done, seen.trials_planned);
    shutdown.cancel();
    worker.await.unwrap().unwrap();
    drop(handle);
    coordinator.stop(Duration::ZERO).await;
}
