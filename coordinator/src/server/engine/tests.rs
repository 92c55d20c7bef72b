//! The engine against a store, alone.

use study::CellId;

use super::*;
use crate::core::Settings;
use crate::server::catalog::Source;
use crate::store::{Check, Options};

const STUDY: &str = r#"[study]
name = "engine"
seed = 7
replicates = 10
[prior]
domain = { kind = "grid", points = 10, dimension = 1 }
kernel = { kind = "squared-exponential", lengthscale = 0.2 }
noise_variance = 0.05
[grid]
N = 40
T = 2
delta = 0.5
"#;

fn small() -> Box<Entry> {
    let source = Source { file_name: "engine.toml".into(), text: STUDY.into(), files: vec![] };
    Box::new(source.plan(0, u64::MAX).unwrap())
}

fn engine(store: &Arc<Store>) -> Engine {
    let core = Core::new(Settings::default(), LeaseEpoch(1 << 32));
    let (outcomes, _) = watch::channel(BTreeMap::new());
    let metrics = Arc::new(Metrics::default());
    Engine::new(core, Arc::clone(store), false, Leases::default(), outcomes, metrics)
}

/// Every event moves the core's clock, and what ends by that is another study's.
#[tokio::test]
async fn a_lease_that_expires_while_another_study_is_deleted_ends() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { numerics: "numerics", version: "0.0.0" };
    let store = Arc::new(Store::open(dir.path(), options).await.unwrap().0);
    let (entry, mut engine) = (small(), engine(&store));
    let study = entry.plan.id;
    store.put_study(study, "engine.toml", STUDY, &[]).await.unwrap();
    let (reply, answer) = oneshot::channel();
    engine.studies(Call::Activate { entry, damaged: vec![], reply }).await;
    answer.await.unwrap().unwrap();
    let worker = engine.register("w".to_owned(), 1, None);
    assert!(
        matches!(engine.lease(worker, 1), LeaseAnswer::Granted { grants, .. } if grants.len() == 1)
    );
    tokio::time::pause();
    // A clock that jumps ends no lease.
    for _ in 0..2 {
        tokio::time::advance(Duration::from_secs(14)).await;
        engine.tell(Event::Tick);
    }
    assert_eq!(engine.leases.len(), 1);
    tokio::time::advance(Duration::from_secs(3)).await;
    engine.end_delete(StudyId([9; 32]), true);
    tokio::time::resume();
    assert_eq!(engine.leases.len(), 0);
    assert_eq!(engine.sessions[&worker].revoked.len(), 1);
    engine.settle().await;
    assert_eq!(store.deaths(study).await.unwrap().len(), 1);
}

/// What is noted holds the ledger while it is written, and a submission waits for the ledger.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_for_the_store_does_not_wait_for_what_waits_for_the_engine() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { numerics: "numerics", version: "0.0.0" };
    let (store, _) = Store::open(dir.path(), options).await.unwrap();
    let (store, id) = (Arc::new(store), StudyId([7; 32]));
    store.put_study(id, "a.toml", "", &[]).await.unwrap();
    let mut engine = engine(&store);
    for first in 0..50 {
        let (cell, range) = (CellId(1), first..first + 1);
        let check = Check { cell, range, digest: [4; 32], agreed: true, worker: "w".into() };
        let store = Arc::clone(&store);
        engine.note(async move { store.record_check(id, &check).await });
    }
    let (calls, requests) = mpsc::channel(8);
    let mut answers = Vec::new();
    // Where a study is known, the engine waits for what is being written.
    for _ in 0..2 {
        let entry = small();
        let (reply, answer) = oneshot::channel();
        assert!(calls.send(Call::Activate { entry, damaged: vec![], reply }).await.is_ok());
        answers.push(answer);
    }
    let running = tokio::spawn(engine.run(requests));
    for answer in answers {
        let answer = tokio::time::timeout(Duration::from_secs(60), answer).await;
        answer.expect("the engine and the store wait for each other").unwrap().unwrap();
    }
    drop(calls);
    running.await.unwrap();
    assert_eq!(store.checks(id).await.unwrap().len(), 50);
}
