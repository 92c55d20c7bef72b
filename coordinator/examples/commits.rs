//! How fast the store is: durable shard commits per second, and payload bytes per second.
//!
//! `target/release/examples/commits [FOLDER [LEDGER [STORE]]]` (CONTRIBUTING.md says how it is built); the folder is made
//! below the current one by default, and removed. LEDGER is `sqlite` or the address of an empty PostgreSQL
//! database, STORE an address such as s3://bucket/prefix, of which nothing is removed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use coordinator::store::{Error, LedgerAt, Options, RecordsAt, ShardRow, Storage, Store, Sum};
use study::{CellId, StudyId};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().map_or_else(|| PathBuf::from("commits.tmp"), PathBuf::from);
    let mut storage = Storage::default();
    if let Some(ledger) = arguments.next().filter(|ledger| ledger != "sqlite") {
        storage.ledger = ledger.parse()?;
    }
    if let Some(store) = arguments.next() {
        storage.records = store.parse()?;
    }
    let cases = [(1, 2 << 10), (16, 2 << 10), (64, 2 << 10), (16, 1 << 20), (16, 8 << 20)];
    for (study, (lanes, bytes)) in (1..).zip(cases) {
        let study = StudyId([study; 32]);
        let (commits, seconds) = measure((&folder, &storage), study, lanes, bytes).await?;
        let rate = commits as f64 / seconds;
        println!(
            "{lanes:>3} in flight, {:>5} KiB each: {rate:>7.0} commits/s, {:>6.1} MB/s",
            bytes >> 10,
            rate * bytes as f64 / 1e6
        );
        // A ledger elsewhere goes on with the folder that it knows.
        if matches!(storage.ledger, LedgerAt::Folder) && storage.records == RecordsAt::Folder {
            // A benchmark's leftovers are of no use, and a failure to remove them shows.
            let _ = std::fs::remove_dir_all(&folder);
        }
    }
    Ok(())
}

/// Commits shards of one batch each from several lanes for some seconds.
async fn measure(
    (folder, storage): (&Path, &Storage),
    study: StudyId,
    lanes: u64,
    bytes: usize,
) -> Result<(u64, f64), Error> {
    let options = Options { numerics: "none", version: "bench" };
    let (store, _) = Store::open_at(folder, storage, options).await?;
    store.put_study(study, "bench.toml", "", &[]).await?;
    let counter = Arc::new(AtomicU64::new(0));
    let payload = Bytes::from((0..bytes).map(|i| ((i * i) >> 3) as u8).collect::<Vec<_>>());
    let start = Instant::now();
    let lanes: Vec<_> = (0..lanes)
        .map(|_| {
            let (writer, counter) = (store.writer(), Arc::clone(&counter));
            let payload = payload.clone();
            tokio::spawn(async move {
                while start.elapsed() < Duration::from_secs(5) {
                    let token = counter.fetch_add(1, Ordering::Relaxed);
                    let (row, mut draft) = (row(study, token), writer.draft(token));
                    let sum = Sum { records: row.records, digest: row.digest };
                    draft.append(payload.clone(), sum).await?;
                    draft.commit(row, sum).await?;
                }
                Ok::<_, Error>(())
            })
        })
        .collect();
    for lane in lanes {
        lane.await.expect("a lane does not panic")?;
    }
    let seconds = start.elapsed().as_secs_f64();
    store.close().await?;
    Ok((counter.load(Ordering::Relaxed), seconds))
}

fn row(study: StudyId, token: u64) -> ShardRow {
    ShardRow {
        study,
        cell: CellId(token % 24),
        range: token * 8..token * 8 + 8,
        checkpoints: [1; 32],
        digest: [2; 32],
        tally: Bytes::from_static(&[3; 200]),
        records: 32,
        worker: "bench".to_owned(),
        seconds: 0.1,
    }
}
