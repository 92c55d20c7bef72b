//! What a crash left behind: the torn end of the last segment is cut, and shards whose bytes did
//! not survive are given up, so that they are computed anew.

use std::collections::BTreeMap;
use std::fs::OpenOptions;

use prost::Message;

use super::body::Origin;
use super::error::{At, Error};
use super::frame::{HEAD, Kind};
use super::ledger::{Entry, Ledger, Number};
use super::reader::Reader;
use super::row::{DamagedShard, Held, Place, StoredShard};
use super::scan::Scan;
use super::shelf::Shelf;
use super::{blocking, segment};

/// What a segment says of the store, as far as that can be read.
pub(super) fn origin(shelf: &Shelf, number: u64) -> Result<Origin, Error> {
    let mut scan = Scan::new(shelf.read(number)?);
    let first = scan.next().at("read", &shelf.path(number))?;
    let first = first.filter(|frame| frame.kind == Kind::Origin);
    let mut origin = first.and_then(|frame| Origin::decode(frame.payload).ok()).unwrap_or_default();
    origin.restarts = origin.restarts.max(segment::epoch(number));
    Ok(origin)
}

/// Cuts a segment behind its last whole frame, and says how much that was.
pub(super) fn cut(shelf: &Shelf, number: u64) -> Result<u64, Error> {
    if shelf.is_remote() {
        // An object is there as a whole or not at all.
        return Ok(0);
    }
    let path = shelf.path(number);
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

/// Says whether shards are there: reads them, or only looks whether objects are as long as they were,
/// because the object store keeps checksums itself, and a takeover must not wait for a download.
enum Verifier {
    Frames(Reader),
    Sizes(Shelf, BTreeMap<u64, u64>),
}

impl Verifier {
    async fn new(shelf: &Shelf) -> Result<Self, Error> {
        let shelf = shelf.clone();
        blocking(move || {
            if !shelf.is_remote() {
                return Ok(Self::Frames(Reader::new(shelf)));
            }
            let sizes = shelf.sizes()?;
            Ok(Self::Sizes(shelf, sizes))
        })
        .await
    }

    fn verify(&mut self, shard: &StoredShard) -> Result<(), Error> {
        match (self, &shard.held) {
            (_, Held::Sealed) => Ok(()),
            (Self::Frames(reader), _) => reader.verify(shard),
            (Self::Sizes(shelf, sizes), Held::Live(places)) => {
                let there = |place: &&Place| {
                    let end = place.offset + HEAD as u64 + u64::from(place.length);
                    sizes.get(&place.segment).is_some_and(|size| end <= *size)
                };
                match places.iter().find(|place| !there(place)) {
                    None => Ok(()),
                    Some(place) => {
                        let path = shelf.path(place.segment);
                        Err(Error::Damaged { path, offset: place.offset })
                    }
                }
            }
        }
    }
}

/// Looks after every live shard of the studies that are wanted, and drops those that are damaged from
/// the ledger.
pub(super) async fn verify(
    shelf: &Shelf,
    ledger: &Ledger,
    wanted: impl Fn(Number) -> bool,
) -> Result<Vec<DamagedShard>, Error> {
    let mut reader = Verifier::new(shelf).await?;
    let mut damaged = Vec::new();
    let mut after = None;
    loop {
        let mut page = ledger.page(after).await?;
        let Some(last) = page.last() else { return Ok(damaged) };
        after = Some(last.number);
        page.retain(|entry| wanted(entry.owner));
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
fn problem(verifier: &mut Verifier, entry: Entry) -> Result<Option<(Entry, String)>, Error> {
    let Some(shard) = &entry.shard else {
        return Ok(Some((entry, "its ledger row has another checksum".to_owned())));
    };
    match verifier.verify(shard) {
        Ok(()) => Ok(None),
        Err(error @ Error::Damaged { .. }) => Ok(Some((entry, error.to_string()))),
        Err(error) => Err(error),
    }
}
