//! The store as its callers see it: what is kept, what is refused, what survives.

mod crashes;
mod damaged;
mod deleting;
pub(crate) mod disk;
mod elsewhere;
mod faults;
mod keeping;
mod leading;
mod refusing;

use std::collections::BTreeMap;
use std::ops::{Range, RangeBounds};
use std::path::Path;

use bytes::Bytes;
use proptest::test_runner::{Config, RngSeed};
use study::{CellId, StudyId};
use tempfile::TempDir;

use super::disk::FileSystem;
use super::*;
use crate::servers;

const STUDY: StudyId = StudyId([7; 32]);
const OPTIONS: Options<'_> = Options { numerics: "numerics-a", version: "0.0.0" };

fn config(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(2018), failure_persistence: None, ..Config::default() }
}

/// A place for a store.
struct Home {
    dir: TempDir,
    storage: Storage,
    database: Option<String>,
}

impl Home {
    /// Everything in a folder.
    #[expect(clippy::unnecessary_wraps, reason = "like the others, which may be missing")]
    fn folder() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        Some(Self { dir, storage: Storage::default(), database: None })
    }

    /// The ledger in a new database.
    fn postgres() -> Option<Self> {
        let database = servers::database()?;
        let ledger = database.parse().unwrap();
        let storage = Storage { ledger, ..Storage::default() };
        Some(Self { storage, database: Some(database), ..Self::folder()? })
    }

    /// Records in a new bucket.
    fn s3() -> Option<Self> {
        let records = RecordsAt::S3(bucket()?);
        Some(Self { storage: Storage { records, ..Storage::default() }, ..Self::folder()? })
    }

    /// Both.
    fn postgres_and_s3() -> Option<Self> {
        let (postgres, s3) = (Self::postgres()?, Self::s3()?);
        let storage = Storage { records: s3.storage.records, ..postgres.storage };
        Some(Self { storage, ..postgres })
    }

    async fn try_open(&self, options: Options<'_>) -> Result<(Store, Recovered), Error> {
        Store::open_at(self.dir.path(), &self.storage, options).await
    }

    async fn open(&self) -> (Store, Recovered) {
        self.try_open(OPTIONS).await.unwrap()
    }

    /// A store that holds the study and nothing else.
    async fn with_study(&self) -> Store {
        let (store, _) = self.open().await;
        store.put_study(STUDY, "a.toml", "[study]", &[]).await.unwrap();
        store
    }

    /// With segments that are soon full, where they are in the folder.
    async fn open_small(&self) -> Store {
        let small = medium(Box::new(FileSystem), 4096);
        let disk = (self.storage.records == RecordsAt::Folder).then_some(small);
        Store::open_on(self.dir.path(), &self.storage, OPTIONS, disk).await.unwrap().0
    }

    fn segments(&self) -> Vec<u64> {
        Shelf::open(self.dir.path(), &self.storage.records).unwrap().list().unwrap()
    }

    fn lose_ledger(&self) {
        match &self.database {
            Some(database) => servers::clear(database),
            None => remove_ledger(self.dir.path()),
        }
    }
}

/// A new place in a bucket.
fn bucket() -> Option<Bucket> {
    let (address, settings) = servers::bucket()?;
    let at: Bucket = address.parse().unwrap();
    Some(settings.iter().fold(at, |at, (key, value)| at.with(key, value)))
}

/// The same test wherever a store may be kept.
macro_rules! everywhere {
    ($($test:ident),* $(,)?) => { everywhere! { @ ($($test)*) folder postgres s3 postgres_and_s3 } };
    (@ $tests:tt $($home:ident)*) => { $(everywhere! { # $home $tests })* };
    (# $home:ident ($($test:ident)*)) => {
        mod $home {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                if let Some(home) = super::Home::$home() {
                    super::$test(home).await;
                }
            })*
        }
    };
}
use everywhere;

fn medium(disk: Box<dyn Disk>, segment: u64) -> Medium {
    Medium { disk, segment, room: 64 << 20 }
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

/// Keeps a file of this content.
async fn keep_file(store: &Store, digest: [u8; 32], content: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    let from = dir.path().join("incoming");
    std::fs::write(&from, content).unwrap();
    store.keep_file(digest, &from).await.unwrap();
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
    (0..=token % 4).map(batch).collect()
}

/// What the batches of a token add up to, the one with this number included.
fn sum(token: u64, i: usize) -> Sum {
    let whole = i + 1 == batches(token).len();
    Sum { records: if whole { 8 } else { i as u64 }, digest: [token as u8; 32] }
}

fn whole(token: u64) -> Sum {
    sum(token, batches(token).len() - 1)
}

/// Appends these batches of a token.
async fn append(
    draft: &mut Draft,
    token: u64,
    which: impl RangeBounds<usize>,
) -> Result<(), Error> {
    for (i, batch) in batches(token).into_iter().enumerate().filter(|(i, _)| which.contains(i)) {
        draft.append(batch, sum(token, i)).await?;
    }
    Ok(())
}

async fn commit(writer: &Writer, token: u64, row: ShardRow) -> Result<Committed, Error> {
    let mut draft = writer.draft(token);
    append(&mut draft, token, ..).await?;
    draft.commit(row, whole(token)).await
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
