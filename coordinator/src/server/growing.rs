//! A study is complete, and then it is not: it grows while its dataset is being written, or has lost records.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use proto::v1::StudyState;
use study::family::{self, EarlierFamily};
use tokio_util::sync::CancellationToken;
use worker::client;

use super::call::Call;
use super::takeover::{config, definition, work};
use super::workers::ask;
use super::{Coordinator, Definition, Outcome, Results, Unsound};
use crate::store::{Held, Storage, segment};

fn of(replicates: u64) -> Definition {
    let all = definition();
    let text = all.text.replace("replicates = 30000", &format!("replicates = {replicates}"));
    Definition { text, ..all }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_grew_while_it_was_sealed_is_sealed_again() {
    let dir = tempfile::tempdir().unwrap();
    let listen = ([127, 0, 0, 1], 0).into();
    let config = config(&dir.path().join("ledger"), Storage::default(), listen);
    let coordinator = Coordinator::start(config).await.unwrap();
    let (handle, shutdown) = (coordinator.handle(), CancellationToken::new());
    let address = format!("http://{}", coordinator.address);
    let worker = work("a", &address, &dir.path().join("files"));
    let worker = tokio::spawn(client::run(worker, shutdown.clone()));
    let study = handle.submit(of(500)).await.unwrap();
    assert_eq!(handle.outcome(study).await, Outcome::Complete);
    let results = handle.results(study).await.unwrap().unwrap();

    handle.submit(of(800)).await.unwrap();
    handle.sealed(&results.plan, [0; 32]).await.unwrap();
    assert_eq!(handle.outcome(study).await, Outcome::Complete);
    let grown = handle.results(study).await.unwrap().unwrap();
    assert_eq!(handle.status(study).await.unwrap().state(), StudyState::Sealing);
    for cell in &grown.cells {
        let trials: u64 = cell.shards.iter().map(|s| s.row.range.end - s.row.range.start).sum();
        assert_eq!((trials, cell.replicates), (800, 800));
    }
    assert_eq!(grown.sealed().count(), 0, "the dataset of before is not that of this plan");
    handle.sealed(&grown.plan, [0; 32]).await.unwrap();
    assert_eq!(handle.status(study).await.unwrap().state(), StudyState::Done);
    shutdown.cancel();
    worker.await.unwrap().unwrap();
    drop(handle);
    coordinator.stop(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_lost_is_computed_anew() {
    let dir = tempfile::tempdir().unwrap();
    let listen = ([127, 0, 0, 1], 0).into();
    let ledger = dir.path().join("ledger");
    let coordinator =
        Coordinator::start(config(&ledger, Storage::default(), listen)).await.unwrap();
    let (handle, shutdown) = (coordinator.handle(), CancellationToken::new());
    let address = format!("http://{}", coordinator.address);
    let worker = work("a", &address, &dir.path().join("files"));
    let worker = tokio::spawn(client::run(worker, shutdown.clone()));
    let study = handle.submit(of(500)).await.unwrap();
    assert_eq!(handle.outcome(study).await, Outcome::Complete);
    let results = handle.results(study).await.unwrap().unwrap();
    let unsound = |results: Results| {
        let mut records = handle.records(&results);
        tokio::task::spawn_blocking(move || records.unsound(&results).unwrap())
    };
    let plan = Arc::clone(&results.plan);
    // A bit of one shard's records, while the coordinator runs.
    let (cell, shard) = results.live().nth(3).unwrap();
    let Held::Live(places) = &shard.held else { panic!("{shard:?}") };
    let path = segment::path(&ledger, places[0].segment);
    let range = shard.row.range.clone();
    let at = places[0].offset + 100;
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 4], at).unwrap();

    let lost = unsound(results).await.unwrap();
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert_eq!((lost[0].cell, &lost[0].range), (cell, &range));
    handle.recompute(&plan, lost).await.unwrap();
    assert_eq!(handle.outcome(study).await, Outcome::Complete);
    let results = handle.results(study).await.unwrap().unwrap();
    let trials: u64 = results.cells.iter().map(|cell| cell.replicates).sum();
    assert_eq!(trials, 500 * results.cells.len() as u64);
    assert_eq!(unsound(results).await.unwrap(), []);
    shutdown.cancel();
    worker.await.unwrap().unwrap();
    drop(handle);
    coordinator.stop(Duration::ZERO).await;
}

/// A change of the ledger that was committed although whoever asked for it heard of an error.
#[tokio::test(flavor = "multi_thread")]
async fn a_gap_in_the_ledger_is_found_and_computed_anew() {
    for detail in ["", "detail = \"summary\"\n"] {
        let dir = tempfile::tempdir().unwrap();
        let listen = ([127, 0, 0, 1], 0).into();
        let config = config(&dir.path().join("ledger"), Storage::default(), listen);
        let coordinator = Coordinator::start(config).await.unwrap();
        let (handle, shutdown) = (coordinator.handle(), CancellationToken::new());
        let address = format!("http://{}", coordinator.address);
        let worker = work("a", &address, &dir.path().join("files"));
        let worker = tokio::spawn(client::run(worker, shutdown.clone()));
        let text = of(500).text.replace("[prior]", &format!("{detail}[prior]"));
        let study = handle.submit(Definition { text, ..definition() }).await.unwrap();
        assert_eq!(handle.outcome(study).await, Outcome::Complete);
        let results = handle.results(study).await.unwrap().unwrap();
        assert_eq!(results.gaps(), []);
        let (cell, shard) = results.shards().nth(3).unwrap();
        let range = shard.row.range.clone();
        handle.store.give_up(study, &[(cell, range.clone())]).await.unwrap();

        let results = handle.results(study).await.unwrap().unwrap();
        let gaps = results.gaps();
        assert_eq!(gaps.len(), 1, "{gaps:?}");
        assert_eq!((gaps[0].cell, &gaps[0].range), (cell, &range));
        assert_eq!(handle.records(&results).unsound(&results).unwrap(), gaps);
        handle.recompute(&results.plan, gaps).await.unwrap();
        assert_eq!(handle.outcome(study).await, Outcome::Complete);
        let results = handle.results(study).await.unwrap().unwrap();
        assert_eq!(results.gaps(), []);
        let notes = handle.status(study).await.unwrap().notes.clone();
        assert!(notes.len() == 1 && notes[0].starts_with("computed anew: "), "{notes:?}");
        shutdown.cancel();
        worker.await.unwrap().unwrap();
        drop(handle);
        coordinator.stop(Duration::ZERO).await;
    }
}

/// Somebody read what was to be sealed, and acts on it later.
#[tokio::test(flavor = "multi_thread")]
async fn only_what_still_waits_to_be_sealed_is_computed_anew() {
    let dir = tempfile::tempdir().unwrap();
    let listen = ([127, 0, 0, 1], 0).into();
    let config = config(&dir.path().join("ledger"), Storage::default(), listen);
    let coordinator = Coordinator::start(config).await.unwrap();
    let (handle, shutdown) = (coordinator.handle(), CancellationToken::new());
    let address = format!("http://{}", coordinator.address);
    let worker = work("a", &address, &dir.path().join("files"));
    let worker = tokio::spawn(client::run(worker, shutdown.clone()));
    let study = handle.submit(of(500)).await.unwrap();
    assert_eq!(handle.outcome(study).await, Outcome::Complete);
    let read = handle.results(study).await.unwrap().unwrap();
    let (cell, shard) = read.live().next().unwrap();
    let lost = Unsound { cell, range: shard.row.range.clone(), reason: "seen before".to_owned() };
    let ignored = async |state: StudyState| {
        let before = handle.store.shards(study).await.unwrap().len();
        handle.recompute(&read.plan, vec![lost.clone()]).await.unwrap();
        let status = handle.status(study).await.unwrap();
        assert_eq!((status.state(), &status.notes[..]), (state, &[][..]));
        assert_eq!(handle.store.shards(study).await.unwrap().len(), before);
    };
    ask(&handle.calls, |reply| Call::Cancel { study, reply }).await.unwrap().unwrap();
    ignored(StudyState::Cancelled).await;

    handle.submit(of(800)).await.unwrap();
    assert_eq!(handle.outcome(study).await, Outcome::Complete);
    ignored(StudyState::Sealing).await;

    let grown = handle.results(study).await.unwrap().unwrap();
    handle.sealed(&grown.plan, [0; 32]).await.unwrap();
    ask(&handle.calls, |reply| Call::Delete { study, reply }).await.unwrap().unwrap();
    ignored(StudyState::Done).await;
    handle.recompute(&grown.plan, vec![lost.clone()]).await.unwrap();
    ignored(StudyState::Done).await;
    shutdown.cancel();
    worker.await.unwrap().unwrap();
    drop(handle);
    coordinator.stop(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_that_are_changed_are_recorded_and_outlive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let listen = ([127, 0, 0, 1], 0).into();
    let config = || config(&dir.path().join("ledger"), Storage::default(), listen);
    let claim = |replicates, bound: &str| {
        let claim = format!(
            "[[claim]]\nid = \"mine\"\nholds = \"best_sample_regret <= {bound}\"\nbudget = \"delta\"\n"
        );
        Definition { text: format!("{}{claim}", of(replicates).text), ..definition() }
    };
    let coordinator = Coordinator::start(config()).await.unwrap();
    let (handle, shutdown) = (coordinator.handle(), CancellationToken::new());
    let address = format!("http://{}", coordinator.address);
    let worker = work("a", &address, &dir.path().join("files"));
    let worker = tokio::spawn(client::run(worker, shutdown.clone()));
    let study = handle.submit(claim(500, "0.1")).await.unwrap();
    assert_eq!(handle.outcome(study).await, Outcome::Complete);
    let first = handle.results(study).await.unwrap().unwrap();
    assert_eq!(first.earlier, []);
    // More of the same is no other family.
    handle.submit(claim(600, "0.1")).await.unwrap();
    assert_eq!(handle.outcome(study).await, Outcome::Complete);
    assert_eq!(handle.results(study).await.unwrap().unwrap().earlier, []);
    handle.submit(claim(800, "9")).await.unwrap();
    assert_eq!(handle.outcome(study).await, Outcome::Complete);
    let results = handle.results(study).await.unwrap().unwrap();
    let existed = results.plan.cells.iter().map(|cell| (cell.id.to_string(), 600)).collect();
    assert_eq!(results.earlier, [EarlierFamily::new(&first.plan, existed)]);
    shutdown.cancel();
    worker.await.unwrap().unwrap();
    drop(handle);
    coordinator.stop(Duration::ZERO).await;

    let coordinator = Coordinator::start(config()).await.unwrap();
    let handle = coordinator.handle();
    handle.outcome(study).await;
    let again = handle.results(study).await.unwrap().unwrap();
    // Lines of the file are not kept.
    assert_eq!(family::encode(&again.earlier), family::encode(&results.earlier));
    drop(handle);
    coordinator.stop(Duration::ZERO).await;
}
