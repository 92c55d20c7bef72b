//! What is on disk in the end.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use coordinator::server::decode;
use coordinator::store::{self, Options, Reader, Store, StoredShard};
use study::plan::Detail;
use study::tally::Tally;
use study::{CellId, Digest, Plan};

/// For every cell the digest over its records in order, and what they say about its rows.
pub(crate) type Trials = BTreeMap<CellId, ([u8; 32], Tally)>;

/// Reads a complete study. An error where a trial is missing, or there twice, or where a shard's
/// records are not those of its digest.
pub(crate) fn read(dir: &Path, options: Options<'_>, plan: &Plan) -> Result<Trials, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (shards, mut reader, store) = runtime.block_on(async {
        let (store, recovered) = open(dir, options).await.map_err(|error| error.to_string())?;
        if !recovered.damaged.is_empty() || recovered.rebuilt {
            return Err(format!("the store was damaged: {recovered:?}"));
        }
        let shards = store.shards(plan.id).await.map_err(|error| error.to_string())?;
        Ok((shards, store.reader(), store))
    })?;
    let summary = plan.study.detail == Detail::Summary;
    let trials = plan.cells.iter().map(|cell| {
        let own: Vec<&StoredShard> = shards.iter().filter(|s| s.row.cell == cell.id).collect();
        let replicates = plan.replicates.max();
        Ok((cell.id, cell_trials(&mut reader, cell.id, &own, replicates, summary)?))
    });
    let trials = trials.collect::<Result<Trials, String>>()?;
    let foreign = shards.iter().find(|shard| !trials.contains_key(&shard.row.cell));
    runtime.block_on(store.close()).map_err(|error| error.to_string())?;
    foreign.map_or(Ok(trials), |shard| Err(format!("{shard:?} is of no cell")))
}

/// A run that has just crashed may hold the folder for another moment.
async fn open(dir: &Path, options: Options<'_>) -> Result<(Store, store::Recovered), store::Error> {
    loop {
        match Store::open(dir, options).await {
            Err(store::Error::Locked { .. }) => std::thread::sleep(Duration::from_millis(1)),
            result => return result,
        }
    }
}

fn cell_trials(
    reader: &mut Reader,
    cell: CellId,
    shards: &[&StoredShard],
    replicates: u64,
    summary: bool,
) -> Result<([u8; 32], Tally), String> {
    let (mut all, mut next, mut tally) = (Digest::new(), 0, None::<Tally>);
    for shard in shards {
        let row = &shard.row;
        if row.range.start != next {
            return Err(format!(
                "cell {cell}: replicate {next} is due, and {:?} is there",
                row.range
            ));
        }
        let (mut digest, mut records) = (Digest::new(), 0);
        for payload in reader.read(shard).map_err(|error| error.to_string())? {
            let payload = payload.map_err(|error| error.to_string())?;
            let batch = decode(cell, &payload).map_err(|error| error.to_string())?;
            if batch.cell() != cell || !batch.replicates().iter().all(|r| row.range.contains(r)) {
                return Err(format!("cell {cell}: {:?} holds other records", row.range));
            }
            records += batch.len() as u64;
            batch.feed(&mut digest);
            batch.feed(&mut all);
        }
        // Of a summary the row has the digest over all trials, of which some are kept.
        let kept = shard.kept.unwrap_or(row.digest);
        let is_whole = summary || kept == row.digest;
        if !is_whole || digest.finish() != kept || records != row.records {
            return Err(format!("cell {cell}: {:?} is not what was committed", row.range));
        }
        let counts = Tally::decode(&row.tally).map_err(|error| error.to_string())?;
        match &mut tally {
            Some(tally) => tally.plus(&counts),
            None => tally = Some(counts),
        }
        next = row.range.end;
    }
    if next != replicates {
        return Err(format!("cell {cell}: {next} of {replicates} replicates"));
    }
    Ok((all.finish(), tally.unwrap_or_default()))
}
