//! The store as its callers see it: what is kept, what is refused, what survives.

mod crashes;
mod disk;
mod faults;
mod keeping;
mod refusing;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use bytes::Bytes;
use proptest::test_runner::{Config, RngSeed};
use study::{CellId, StudyId};

use super::*;

const STUDY: StudyId = StudyId([7; 32]);
const OPTIONS: Options<'_> = Options { numerics: "numerics-a", version: "0.0.0" };

fn config(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(2018), failure_persistence: None, ..Config::default() }
}

async fn open(dir: &Path) -> (Store, Recovered) {
    Store::open(dir, OPTIONS).await.unwrap()
}

/// A store that holds the study and nothing else.
async fn with_study(dir: &Path) -> Store {
    let (store, _) = open(dir).await;
    store.put_study(STUDY, "a.toml", "[study]", &[]).await.unwrap();
    store
}

fn row(cell: u64, range: Range<u64>) -> ShardRow {
    ShardRow {
        study: STUDY,
        cell: CellId(cell),
        digest: *blake3::hash(format!("{cell} {range:?}").as_bytes()).as_bytes(),
        range,
        checkpoints: [1; 32],
        tally: Bytes::from_static(&[3; 40]),
        records: 8,
        worker: "w1".to_owned(),
        seconds: 0.25,
    }
}

/// The batches of a shard: other ones for every token.
fn batches(token: u64) -> Vec<Bytes> {
    let batch =
        |i: u64| Bytes::from(format!("{token}.{i};").repeat((token * 37 % 90 + i) as usize));
    (0..token % 4).map(batch).collect()
}

async fn commit(writer: &Writer, token: u64, row: ShardRow) -> Result<Committed, Error> {
    for batch in batches(token) {
        writer.append(token, batch).await?;
    }
    writer.commit(token, row).await
}

/// The shards of the study by token, after reading every one of them.
async fn contents(store: &Store) -> BTreeMap<u64, StoredShard> {
    let mut reader = store.reader();
    let shards = store.shards(STUDY).await.unwrap();
    for shard in &shards {
        let read: Result<Vec<Bytes>, Error> = reader.read(shard).unwrap().collect();
        assert_eq!(read.unwrap(), batches(shard.token), "{shard:?}");
    }
    shards.into_iter().map(|shard| (shard.token, shard)).collect()
}

async fn tokens(store: &Store) -> Vec<u64> {
    contents(store).await.into_keys().collect()
}

fn segments(dir: &Path) -> Vec<u64> {
    segment::list(dir).unwrap()
}

fn remove_ledger(dir: &Path) {
    std::fs::remove_file(dir.join("ledger.db")).unwrap();
}
