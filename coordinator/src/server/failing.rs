//! Studies that cannot be taken up, and studies that are deleted, at a running coordinator.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use proto::convert::{study_bytes, study_id};
use proto::v1;
use proto::v1::StudyState;
use proto::v1::studies_client::StudiesClient;
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection, raw_sql};
use study::StudyId;
use tokio_util::sync::CancellationToken;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};
use worker::client;

use super::takeover::{config, definition, work};
use super::{Coordinator, Definition, Outcome};
use crate::store::{Options, State, Storage, Store};

/// A small study with another name, and so another id.
fn small(name: &str) -> Definition {
    let all = definition();
    let text = all.text.replace("30000", "200").replace("\"takeover\"", &format!("\"{name}\""));
    Definition { text, ..all }
}

async fn start(dir: &Path) -> (Coordinator, StudiesClient<Channel>) {
    let listen = ([127, 0, 0, 1], 0).into();
    let coordinator =
        Coordinator::start(config(&dir.join("ledger"), Storage::default(), listen)).await.unwrap();
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
