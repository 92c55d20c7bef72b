//! Several processes share a PostgreSQL ledger; one leads.

use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Notify;

use super::*;

/// An opening that waits for the lead.
fn standing_by(home: &Home) -> tokio::task::JoinHandle<(Store, Recovered)> {
    standing_by_at(home, home.storage.clone())
}

fn standing_by_at(home: &Home, storage: Storage) -> tokio::task::JoinHandle<(Store, Recovered)> {
    let dir = home.dir.path().to_path_buf();
    tokio::spawn(async move { Store::open_at(&dir, &storage, OPTIONS).await.unwrap() })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_waits_and_a_leader_that_resigns_makes_way_at_once() {
    let Some(home) = Home::postgres() else { return };
    let first = home.with_study().await;
    let second = standing_by(&home);
    // Longer than a lease: it is renewed.
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert!(!second.is_finished() && !first.lost().is_cancelled());
    commit(&first.writer(), 5, row(1, 0..8)).await.unwrap();
    first.close().await.unwrap();
    let (second, recovered) = second.await.unwrap();
    assert_eq!(recovered.first_epoch, 2 << 32);
    assert_eq!(tokens(&second).await, [5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_hangs_is_deposed_and_writes_nothing_more() {
    let Some(home) = Home::postgres_and_s3() else { return };
    let first = home.with_study().await;
    let writer = first.writer();
    commit(&writer, 5, row(1, 0..8)).await.unwrap();
    let mut draft = writer.draft(7);
    append(&mut draft, 7, ..).await.unwrap();
    // It renews nothing, as if it hung, and does not know.
    first.lead.as_ref().unwrap().pause();
    let begin = Instant::now();
    let (second, _) = standing_by(&home).await.unwrap();
    assert!(begin.elapsed() > Duration::from_secs(3), "the lease was not over");
    commit(&second.writer(), 9, row(1, 8..16)).await.unwrap();
    // The old leader's own segments, and all others, are beyond its reach now.
    let before = home.segments();
    let error = draft.commit(row(1, 16..24), whole(7)).await.unwrap_err();
    assert!(matches!(error, Error::Deposed { epoch: 1 }), "{error}");
    assert!(first.lost().is_cancelled());
    let error = first.put_study(STUDY, "b.toml", "", &[]).await.unwrap_err();
    assert!(matches!(error, Error::Deposed { .. }), "{error}");
    assert!(matches!(
        first.record_check(STUDY, &check()).await.unwrap_err(),
        Error::Deposed { .. }
    ));
    let _ = first.writer.prune().await;
    let after = home.segments();
    assert!(
        before.iter().filter(|number| segment::epoch(**number) == 2).all(|n| after.contains(n))
    );
    commit(&second.writer(), 10, row(1, 16..24)).await.unwrap();
    assert_eq!(tokens(&second).await, [5, 9, 10]);
    assert_eq!(second.studies().await.unwrap()[0].file_name, "a.toml");
    assert_eq!(second.checks(STUDY).await.unwrap(), []);
    drop(first);
    second.close().await.unwrap();
    home.lose_ledger();
    let (third, recovered) = home.open().await;
    assert!(recovered.rebuilt);
    let there = tokens(&third).await;
    assert!([5, 9, 10].iter().all(|token| there.contains(token)), "{there:?}");
}

fn check() -> Check {
    let (cell, worker) = (CellId(1), "w2".to_owned());
    Check { cell, range: 8..16, digest: [4; 32], agreed: true, worker }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_break_are_made_anew() {
    let Some(home) = Home::postgres() else { return };
    let store = home.with_study().await;
    commit(&store.writer(), 1, row(1, 0..8)).await.unwrap();
    servers::disconnect(home.database.as_deref().unwrap());
    let mut token = 5;
    // The first attempts hear of it; a shard that was not acknowledged is committed again.
    while commit(&store.writer(), token, row(1, 8..16)).await.is_err() {
        token += 1;
        assert!(token < 10, "the connection does not come back");
    }
    assert_eq!(tokens(&store).await, [1, token]);
    assert!(!store.lost().is_cancelled());
}

/// Another way to a database, and what loses its first connections as a network does: they stay open, and
/// nothing comes through any more.
fn unreliable(database: &str) -> (TempDir, String, [Arc<Notify>; 2]) {
    let socket = ".s.PGSQL.5432";
    let (address, there) = database.split_once("?host=").unwrap();
    let (there, here) = (Path::new(there).join(socket), tempfile::tempdir().unwrap());
    let listener = UnixListener::bind(here.path().join(socket)).unwrap();
    let lose = [(); 2].map(|()| Arc::new(Notify::new()));
    let mut lost = lose.clone().into_iter();
    tokio::spawn(async move {
        loop {
            let (mut near, _) = listener.accept().await.unwrap();
            let mut far = UnixStream::connect(&there).await.unwrap();
            let lost = lost.next().unwrap_or_default();
            tokio::spawn(async move {
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                    () = lost.notified() => pending().await,
                }
            });
        }
    });
    let address = format!("{address}?host={}", here.path().display());
    (here, address, lose)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_that_lost_its_connections_makes_others() {
    // To write and to read; what only waits to write must not matter either.
    for which in [&[0, 1][..], &[0]] {
        let Some(home) = Home::postgres() else { return };
        let first = home.with_study().await;
        let (_way, address, lose) = unreliable(home.database.as_deref().unwrap());
        let storage = Storage { ledger: address.parse().unwrap(), ..Storage::default() };
        let second = standing_by_at(&home, storage);
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(!second.is_finished());
        which.iter().for_each(|&at: &usize| lose[at].notify_one());
        tokio::time::sleep(Duration::from_secs(2)).await;
        first.close().await.unwrap();
        let led = tokio::time::timeout(Duration::from_secs(60), second).await;
        let (second, _) = led.expect("it waits for an answer that never comes").unwrap();
        commit(&second.writer(), 5, row(1, 0..8)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_with_another_folder_is_refused() {
    let Some(home) = Home::postgres() else { return };
    let _leader = home.with_study().await;
    let elsewhere = tempfile::tempdir().unwrap();
    let error = Store::open_at(elsewhere.path(), &home.storage, OPTIONS).await.unwrap_err();
    assert!(matches!(error, Error::OtherHome { .. }), "{error}");
    let other = Options { numerics: "numerics-b", ..OPTIONS };
    let error = home.try_open(other).await.unwrap_err();
    assert!(matches!(error, Error::OtherNumerics { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_database_is_not_believed() {
    let Some(home) = Home::postgres() else { return };
    home.with_study().await.close().await.unwrap();
    let (store, _) = home.open().await;
    commit(&store.writer(), 1, row(1, 0..8)).await.unwrap();
    store.close().await.unwrap();
    servers::run(home.database.as_deref().unwrap(), "UPDATE store SET restarts = 1");
    let error = home.try_open(OPTIONS).await.unwrap_err();
    assert!(matches!(error, Error::CorruptDatabase { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_row_costs_its_shard() {
    let Some(home) = Home::postgres() else { return };
    let store = home.with_study().await;
    commit(&store.writer(), 1, row(1, 0..8)).await.unwrap();
    commit(&store.writer(), 2, row(1, 8..16)).await.unwrap();
    store.close().await.unwrap();
    let database = home.database.as_deref().unwrap();
    servers::run(database, "UPDATE shards SET records = 9 WHERE first = 8");
    let (store, recovered) = home.open().await;
    let [damaged] = &recovered.damaged[..] else { panic!("{recovered:?}") };
    assert_eq!((damaged.cell, damaged.range.clone()), (CellId(1), 8..16));
    assert_eq!(tokens(&store).await, [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_database_says_so_without_the_password() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = "postgres://me:geheim@127.0.0.1:1/led".parse().unwrap();
    let storage = Storage { ledger, ..Storage::default() };
    let error = Store::open_at(dir.path(), &storage, OPTIONS).await.unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(text.contains("postgres://me@127.0.0.1:1/led") && !text.contains("geheim"), "{text}");
}
