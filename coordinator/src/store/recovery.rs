//! What a crash left behind: the torn end of the last segment is cut, and shards whose bytes did
//! not survive are given up, so that they are computed anew.

use std::fs::{File, OpenOptions};
use std::path::Path;

use prost::Message;

use super::body::Origin;
use super::error::{At, Error};
use super::frame::Kind;
use super::ledger::{Entry, Ledger};
use super::reader::Reader;
use super::row::DamagedShard;
use super::scan::Scan;
use super::{blocking, segment};

/// How often the store had been opened when a segment was begun, as far as that can be read.
pub(super) fn restarts(dir: &Path, number: u64) -> Result<u32, Error> {
    let path = segment::path(dir, number);
    let mut scan = Scan::new(File::open(&path).at("open", &path)?);
    let first = scan.next().at("read", &path)?.filter(|frame| frame.kind == Kind::Origin);
    let origin = first.and_then(|frame| Origin::decode(frame.payload).ok());
    Ok(origin.map_or(0, |origin| origin.restarts).max(segment::epoch(number)))
}

/// Cuts a segment behind its last whole frame, and says how much that was.
pub(super) fn cut(dir: &Path, number: u64) -> Result<u64, Error> {
    let path = segment::path(dir, number);
    let file = OpenOptions::new().read(true).write(true).open(&path).at("open", &path)?;
    let length = file.metadata().at("read", &path)?.len();
    let mut scan = Scan::new(&file);
    let mut end = 0;
    while let Some(frame) = scan.next().at("read", &path)? {
        end = frame.end;
    }
    if end < length {
        file.set_len(end).at("cut", &path)?;
        file.sync_all().at("sync", &path)?;
    }
    Ok(length - end)
}

/// Reads every live shard, and drops those that are damaged from the ledger.
pub(super) async fn verify(dir: &Path, ledger: &Ledger) -> Result<Vec<DamagedShard>, Error> {
    let mut reader = Reader::new(dir);
    let mut damaged = Vec::new();
    let mut after = None;
    loop {
        let page = ledger.page(after).await?;
        let Some(last) = page.last() else { return Ok(damaged) };
        after = Some(last.number);
        let checked = blocking(move || {
            let bad = page.into_iter().filter_map(|entry| problem(&mut reader, entry).transpose());
            let bad: Result<Vec<_>, _> = bad.collect();
            bad.map(|bad| (reader, bad))
        });
        let bad;
        (reader, bad) = checked.await?;
        if bad.is_empty() {
            continue;
        }
        let mut write = ledger.write().await?;
        let mut group = write.group().await?;
        for (entry, reason) in bad {
            group.drop_shard(entry.number).await?;
            damaged.push(entry.damaged(reason));
        }
        group.commit().await?;
    }
}

/// What is wrong with a shard, if something is.
fn problem(reader: &mut Reader, entry: Entry) -> Result<Option<(Entry, String)>, Error> {
    if !entry.sound {
        return Ok(Some((entry, "its ledger row has another checksum".to_owned())));
    }
    match reader.verify(&entry.shard) {
        Ok(()) => Ok(None),
        Err(error @ Error::Damaged { .. }) => Ok(Some((entry, error.to_string()))),
        Err(error) => Err(error),
    }
}
