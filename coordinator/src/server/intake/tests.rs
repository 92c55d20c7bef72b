//! Studies that come in while others work, and those that do not come in.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use proto::v1::StudyState;
use study::plan::Size;

use super::*;
use crate::core::LeaseEpoch;
use crate::server::catalog::Definition;
use crate::server::takeover::{config, definition};
use crate::server::{Coordinator, DEFAULT_STUDY_MEMORY, Handle, SubmitError, study_memory};
use crate::store::{Options, Storage, Store};

/// Long enough for any machine; a test that hangs should end.
const PATIENCE: Duration = Duration::from_secs(60);

async fn start(dir: &Path) -> (Coordinator, Handle) {
    let config = config(dir, Storage::default(), ([127, 0, 0, 1], 0).into());
    let coordinator = Coordinator::start(config).await.unwrap();
    let handle = coordinator.handle();
    (coordinator, handle)
}

/// The study with points from a file.
fn with_file(points: &[u8]) -> Definition {
    let all = definition();
    let kind = "{ kind = \"grid\", points = 40, dimension = 1 }";
    assert!(all.text.contains(kind));
    let text = all.text.replace(kind, "{ kind = \"points\", path = \"points.csv\" }");
    Definition { text, files: vec![("points.csv".to_owned(), points.to_vec())], ..all }
}

fn points() -> Vec<u8> {
    (0..40).flat_map(|i| format!("{i}\n").into_bytes()).collect()
}

/// A heartbeat, a lease and a list, as others want them; they must not wait.
async fn others_are_served(handle: &Handle) {
    let served = async {
        let register = |reply| Call::Register { name: "w".into(), slots: 1, previous: None, reply };
        let worker = ask(&handle.calls, register).await.unwrap();
        let leases = vec![LeaseEpoch(1)];
        let beat = |reply| Call::Heartbeat { worker, leases, reply };
        assert!(ask(&handle.calls, beat).await.unwrap().is_some());
        _ = ask(&handle.calls, |reply| Call::Lease { worker, wanted: 1, reply }).await.unwrap();
        handle.list().await
    };
    tokio::time::timeout(PATIENCE, served).await.expect("the engine waits for a submission");
}

/// A pipe in the place of a file keeps the plan from going on for as long as nobody writes to it.
#[tokio::test(flavor = "multi_thread")]
async fn others_are_served_while_a_file_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, handle) = start(dir.path()).await;
    let upload = handle.intake.spool.put(with_file(&points())).await.unwrap();
    let place = upload.source.files[0].place.clone();
    std::fs::remove_file(&place).unwrap();
    assert!(Command::new("mkfifo").arg(&place).status().unwrap().success());
    let intake = Arc::clone(&handle.intake);
    let submitted = tokio::spawn(async move { intake.submit(upload).await });
    // Opening it waits for the reader: the plan is under way then.
    let opened = tokio::task::spawn_blocking(move || {
        std::fs::OpenOptions::new().write(true).open(place).unwrap()
    });
    let writer = tokio::time::timeout(PATIENCE, opened).await.unwrap().unwrap();
    others_are_served(&handle).await;
    assert!(!submitted.is_finished());
    drop(writer);
    let refused = submitted.await.unwrap().unwrap_err();
    assert!(refused.to_string().contains("has no row of numbers"), "{refused}");
    assert!(handle.list().await.is_empty());
    drop(handle);
    coordinator.stop(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn others_are_served_while_studies_wait_for_their_turn() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, handle) = start(dir.path()).await;
    let turn = handle.intake.turn.lock().await;
    let here = handle.clone();
    let submitted = tokio::spawn(async move { here.submit(with_file(&points())).await });
    let waiting = async {
        while std::fs::read_dir(dir.path().join("spool")).unwrap().count() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    others_are_served(&handle).await;
    assert!(!submitted.is_finished());
    drop(turn);
    let study = submitted.await.unwrap().unwrap();
    assert_eq!(handle.definition(study).await, Some(with_file(&points())));
    assert_eq!(std::fs::read_dir(dir.path().join("spool")).unwrap().count(), 0);
    drop(handle);
    coordinator.stop(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_study_comes_in_although_its_client_went_away() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, handle) = start(dir.path()).await;
    let turn = handle.intake.turn.lock().await;
    let upload = handle.intake.spool.put(definition()).await.unwrap();
    let mut client = Box::pin(handle.intake.submit(upload));
    assert!(futures_util::poll!(client.as_mut()).is_pending());
    drop(client);
    drop(turn);
    let active = async {
        while handle.list().await.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, active).await.unwrap();
    drop(handle);
    coordinator.stop(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_stored_is_not_active() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, handle) = start(dir.path()).await;
    // More than the ledger takes of a study.
    let text = format!("{}#{}\n", definition().text, "-".repeat(crate::store::MAX_PAYLOAD));
    let refused = handle.submit(Definition { text, ..definition() }).await.unwrap_err();
    assert!(matches!(refused, SubmitError::Store(_)), "{refused}");
    assert!(handle.list().await.is_empty());
    assert_eq!(handle.store.studies().await.unwrap(), []);
    // Nor is a study that grew, whose files cannot be kept.
    let study = handle.submit(definition()).await.unwrap();
    let kept = dir.path().join("files");
    std::fs::remove_dir(&kept).unwrap();
    let mut grown = with_file(&points());
    grown.text = grown.text.replace("seed = 7", "seed = 8");
    assert!(matches!(handle.submit(grown).await, Err(SubmitError::Store(_))));
    let known: Vec<StudyId> = handle.store.studies().await.unwrap().iter().map(|s| s.id).collect();
    assert_eq!(known, [study]);
    assert_eq!(handle.list().await.len(), 1);
    drop(handle);
    coordinator.stop(Duration::ZERO).await;
}

/// The crash that leaves a study in the ledger which no engine has heard of.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_stored_before_a_crash_is_active_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let about = config(dir.path(), Storage::default(), ([127, 0, 0, 1], 0).into());
    let options = Options { numerics: &about.numerics, version: &about.version };
    let (store, _) = Store::open(dir.path(), options).await.unwrap();
    let Definition { file_name, text, .. } = definition();
    let id = definition().plan().unwrap().id;
    store.put_study(id, &file_name, &text, &[]).await.unwrap();
    store.close().await.unwrap();

    let (coordinator, handle) = start(dir.path()).await;
    assert_eq!(handle.status(id).await.unwrap().state(), StudyState::Running);
    assert_eq!(handle.submit(definition()).await.unwrap(), id);
    assert_eq!(handle.list().await.len(), 1);
    drop(handle);
    coordinator.stop(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_cancelled_and_submitted_again_is_active_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, handle) = start(dir.path()).await;
    let study = handle.submit(definition()).await.unwrap();
    for _ in 0..20 {
        ask(&handle.calls, |reply| Call::Cancel { study, reply }).await.unwrap().unwrap();
        handle.submit(definition()).await.unwrap();
        let stored = handle.store.studies().await.unwrap();
        assert_eq!(stored[0].state, crate::store::State::Active);
    }
    drop(handle);
    coordinator.stop(Duration::ZERO).await;
}

/// 120,000 cells of many rows, in 350 kB.
fn giant() -> Definition {
    let sizes: Vec<String> = (0..40_000).map(|i| (100_000 + 3 * i).to_string()).collect();
    let all = definition();
    let text = all.text.replace("[40, 60]", &format!("[{}]", sizes.join(", ")));
    let text = text.replace("delta = [0.5]", "delta = [0.05, 0.1, 0.5]");
    let text = text.replace("design = [\"fixed\", \"adaptive\"]", "design = \"adaptive\"");
    Definition { text: text.replace("seed = 7", "seed = 8"), ..all }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_study_that_needs_too_much_memory_is_refused_with_the_setting_to_raise() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, handle) = start(dir.path()).await;
    let small = handle.submit(definition()).await.unwrap();
    let refused = handle.submit(giant()).await.unwrap_err();
    let SubmitError::TooLarge { cells, rows, needed, held, budget } = refused else {
        panic!("{refused}")
    };
    assert_eq!((cells, budget), (120_000, DEFAULT_STUDY_MEMORY));
    assert!(rows > cells && needed > budget && held > 0, "{refused}");
    let raise = format!("--study-memory {}", (needed + held).div_ceil(1 << 20));
    assert!(refused.to_string().ends_with(&raise), "{refused}");
    let known: Vec<StudyId> = handle.store.studies().await.unwrap().iter().map(|s| s.id).collect();
    assert_eq!(known, [small]);
    drop(handle);
    coordinator.stop(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn studies_share_the_budget_and_a_study_that_grows_does_not_count_twice() {
    let dir = tempfile::tempdir().unwrap();
    let of = |seed: u32, replicates: u32| {
        let all = definition();
        let text = all.text.replace("seed = 7", &format!("seed = {seed}"));
        let text = text.replace("= 30000", &format!("= {replicates}"));
        Definition { text, ..all }
    };
    let needed = study_memory(&Size::read("s.toml", &of(1, 100).text).unwrap());
    let listen = ([127, 0, 0, 1], 0).into();
    let config = config(dir.path(), Storage::default(), listen);
    let config = crate::server::Config { study_memory: 2 * needed, ..config };
    let coordinator = Coordinator::start(config).await.unwrap();
    let handle = coordinator.handle();
    handle.submit(of(1, 100)).await.unwrap();
    handle.submit(of(2, 100)).await.unwrap();
    handle.submit(of(2, 200)).await.unwrap();
    let refused = handle.submit(of(3, 100)).await.unwrap_err();
    assert!(
        matches!(refused, SubmitError::TooLarge { held, .. } if held == 2 * needed),
        "{refused}"
    );
    drop(handle);
    coordinator.stop(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_study_of_the_ledger_that_is_too_large_is_not_planned() {
    let Definition { file_name, text, .. } = giant();
    let source = Source { file_name, text, files: vec![] };
    let refused = replan(source, 0, DEFAULT_STUDY_MEMORY).await.err().unwrap();
    assert!(matches!(refused, SubmitError::TooLarge { .. }), "{refused}");
}
