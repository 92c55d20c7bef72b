//! Power lost at any moment, and bytes lost at any place.
//!
//! Every acknowledged shard is there, what is there is whole, and the store goes on.

use std::collections::BTreeSet;
use std::sync::Mutex;

use futures_util::future::join_all;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::disk::{Crash, Faulty};
use super::*;

const SHARDS: u64 = 36;
const AT_ONCE: u64 = 4;

/// Operations on segment files before the study is put, and at least as many thereafter.
const OPENING: usize = 3;
const MOMENTS: usize = 28;

fn shard(token: u64) -> ShardRow {
    let first = token / 3 * 8;
    row(token % 3, first..first + 8)
}

/// Commits all shards, several at a time, and notes which were acknowledged.
async fn fill(store: &Store, acknowledged: &Mutex<BTreeSet<u64>>) {
    for first in (0..SHARDS).step_by(AT_ONCE as usize) {
        let writer = store.writer();
        join_all((first..first + AT_ONCE).map(|token| {
            let writer = writer.clone();
            async move {
                if commit(&writer, token, shard(token)).await.is_ok() {
                    acknowledged.lock().unwrap().insert(token);
                }
            }
        }))
        .await;
    }
}

/// Commits what is missing; then all is there, now and after a restart.
async fn goes_on(dir: &Path, store: Store, recovered: &Recovered) {
    if recovered.studies.is_empty() {
        store.put_study(STUDY, "a.toml", "", &[]).await.unwrap();
    }
    let there = contents(&store).await;
    for token in (0..SHARDS).filter(|token| !there.contains_key(token)) {
        assert_eq!(commit(&store.writer(), token, shard(token)).await.unwrap(), Committed::New);
    }
    store.close().await.unwrap();
    let (store, recovered) = open(dir).await;
    assert!(recovered.damaged.is_empty() && recovered.torn_bytes == 0);
    assert_eq!(tokens(&store).await, (0..SHARDS).collect::<Vec<_>>());
    store.close().await.unwrap();
}

async fn crash(at: Index, share: usize, size: u64, lose_ledger: bool) {
    let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let disk = Faulty::new(dir.path());
    let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
    let at_crash = Arc::new(Mutex::new(None));
    {
        let mut plan = disk.0.lock().unwrap();
        let to = copy.path().to_path_buf();
        plan.crash = Some(Crash { operation: OPENING + at.index(MOMENTS), share, to });
        let (acknowledged, at_crash) = (Arc::clone(&acknowledged), Arc::clone(&at_crash));
        plan.on_crash = Some(Box::new(move || {
            *at_crash.lock().unwrap() = Some(acknowledged.lock().unwrap().clone());
        }));
    }
    let (store, _) = Store::open_on(
        dir.path(),
        &Storage::default(),
        OPTIONS,
        Some(medium(Box::new(disk), size)),
    )
    .await
    .unwrap();
    if store.put_study(STUDY, "a.toml", "", &[]).await.is_ok() {
        fill(&store, &acknowledged).await;
    }
    store.close().await.unwrap();
    let before = at_crash.lock().unwrap().take().expect("the run has more operations");
    if lose_ledger {
        remove_ledger(copy.path());
    }
    let (store, recovered) = open(copy.path()).await;
    assert_eq!(recovered.rebuilt, lose_ledger);
    if !lose_ledger {
        assert_eq!(recovered.damaged, []);
    }
    let there: BTreeSet<u64> = contents(&store).await.into_keys().collect();
    assert!(there.is_superset(&before), "{before:?} acknowledged, {there:?} there");
    goes_on(copy.path(), store, &recovered).await;
}

/// A closed store with all shards, of which one segment is then spoiled.
async fn spoil(spoil: impl FnOnce(&mut Vec<u8>), which: Index, lose_ledger: bool) {
    let dir = tempfile::tempdir().unwrap();
    let disk = Box::new(FileSystem);
    let (store, _) =
        Store::open_on(dir.path(), &Storage::default(), OPTIONS, Some(medium(disk, 2048)))
            .await
            .unwrap();
    store.put_study(STUDY, "a.toml", "", &[]).await.unwrap();
    fill(&store, &Mutex::default()).await;
    store.close().await.unwrap();
    let number = *which.get(&segments(dir.path()));
    let path = segment::path(dir.path(), number);
    let mut bytes = std::fs::read(&path).unwrap();
    spoil(&mut bytes);
    std::fs::write(&path, bytes).unwrap();
    if lose_ledger {
        remove_ledger(dir.path());
    }
    let (store, recovered) = open(dir.path()).await;
    let there = contents(&store).await;
    if !lose_ledger {
        assert_eq!(there.len() + recovered.damaged.len(), SHARDS as usize);
    }
    goes_on(dir.path(), store, &recovered).await;
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

proptest! {
    #![proptest_config(config(40))]

    #[test]
    fn power_lost_at_any_moment(
        at in any::<Index>(),
        share in 0..=256_usize,
        // Segments that last for a group, for some, for all.
        size in select(vec![2048, 8192, 1 << 20]),
        lose_ledger in any::<bool>(),
    ) {
        run(crash(at, share, size, lose_ledger));
    }
}

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn a_segment_cut_anywhere(which in any::<Index>(), at in any::<Index>(), lose_ledger in any::<bool>()) {
        run(spoil(|bytes| bytes.truncate(at.index(bytes.len())), which, lose_ledger));
    }

    #[test]
    fn a_byte_changed_anywhere(
        which in any::<Index>(), at in any::<Index>(), change in 1..=255_u8, lose_ledger in any::<bool>(),
    ) {
        run(spoil(|bytes| *at.get_mut(bytes) ^= change, which, lose_ledger));
    }
}
