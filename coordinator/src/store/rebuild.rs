//! A ledger from the segments alone.
//!
//! Frames are replayed in the order in which they were written: the last definition of a study
//! counts, and a commit replaces what overlaps it or has other checkpoints in its cell, because
//! the lost ledger took it and would not have done so otherwise. What is older than the deletion of its
//! study does not count. Not recovered: shards that were
//! sealed and whose segments are deleted, deaths, and checks. Shards of a forgotten cell may come
//! back, with the checkpoints for which they were forgotten.

use std::io;
use std::path::{Path, PathBuf};

use prost::Message;
use study::StudyId;

use super::body::{self, Commit, Origin};
use super::disk::sync_parent;
use super::error::{At, Error};
use super::frame::Kind;
use super::ledger::{Group, Ledger};
use super::row::{Deleted, Held, StoredShard, StoredStudy};
use super::scan::{Frame, Scan};
use super::shelf::Shelf;
use super::{blocking, segment};

/// What a frame says about the store.
enum Event {
    Origin(Origin),
    Study(StoredStudy),
    Deleted(Deleted),
    Commit(StoredShard),
}

/// What all segments say together, but for the shards.
#[derive(Default)]
struct Said {
    origin: Option<Origin>,
    /// In the order in which they were first put.
    studies: Vec<StoredStudy>,
    deleted: Vec<Deleted>,
}

impl Said {
    fn hear(&mut self, event: Event) {
        match event {
            Event::Origin(found) => {
                let restarts = self.origin.as_ref().map_or(0, |origin| origin.restarts);
                self.origin = Some(Origin { restarts: restarts.max(found.restarts), ..found });
            }
            Event::Study(study) => match self.studies.iter_mut().find(|known| known.id == study.id)
            {
                Some(known) => *known = study,
                None => self.studies.push(study),
            },
            Event::Deleted(deleted) => {
                self.studies.retain(|known| known.id != deleted.study);
                self.deleted.retain(|known| known.study != deleted.study);
                self.deleted.push(deleted);
            }
            Event::Commit(_) => {}
        }
    }

    /// Whether a segment is older than the deletion of a study.
    fn is_deleted(&self, study: StudyId, segment: u64) -> bool {
        self.deleted.iter().any(|deleted| deleted.study == study && segment < deleted.since)
    }
}

/// Writes a new ledger beside the segments, and puts it in place once it is complete.
pub(super) async fn rebuild(shelf: &Shelf, path: &Path) -> Result<(), Error> {
    let temporary = path.with_extension("rebuild");
    remove(&temporary)?;
    let ledger = Ledger::open(&temporary).await?;
    let mut write = ledger.write().await?;
    let mut group = write.group().await?;
    let origin = replay(shelf, &mut group).await?;
    group.commit().await?;
    drop(write);
    if let Some(origin) = origin {
        ledger.register(origin).await?;
    }
    ledger.close().await?;
    // A log of the lost ledger must not be applied to the new one.
    remove(path)?;
    std::fs::rename(&temporary, path).at("rename", &temporary)?;
    sync_parent(path).at("sync the folder of", path)
}

/// Puts all that the segments say into an empty ledger, and returns whose they are. Studies come
/// first: a segment with their shards may be older than the one that carries them.
pub(super) async fn replay(shelf: &Shelf, group: &mut Group<'_>) -> Result<Option<Origin>, Error> {
    let numbers = numbers(shelf).await?;
    let said = said(shelf, &numbers).await?;
    for &deleted in &said.deleted {
        group.delete_study(deleted).await?;
    }
    for study in &said.studies {
        group.put_study(study).await?;
    }
    for number in numbers {
        for event in events(shelf, number, |kind| kind == Kind::Commit).await? {
            if let Event::Commit(shard) = event
                && !said.is_deleted(shard.row.study, number)
            {
                take(group, shard, number).await?;
            }
        }
    }
    Ok(said.origin)
}

/// The studies that the segments know of and that are not among these.
pub(super) async fn others(
    shelf: &Shelf,
    known: &[StoredStudy],
) -> Result<Vec<StoredStudy>, Error> {
    let mut others = said(shelf, &numbers(shelf).await?).await?.studies;
    others.retain(|study| known.iter().all(|known| known.id != study.id));
    Ok(others)
}

async fn numbers(shelf: &Shelf) -> Result<Vec<u64>, Error> {
    let shelf = shelf.clone();
    blocking(move || shelf.list()).await
}

async fn said(shelf: &Shelf, numbers: &[u64]) -> Result<Said, Error> {
    let mut said = Said::default();
    for &number in numbers {
        for event in events(shelf, number, |kind| kind != Kind::Commit).await? {
            said.hear(event);
        }
        // The name says it where the frame is damaged.
        said.origin.iter_mut().for_each(|origin| {
            origin.restarts = origin.restarts.max(segment::epoch(number));
        });
    }
    Ok(said)
}

async fn take(group: &mut Group<'_>, shard: StoredShard, segment: u64) -> Result<(), Error> {
    let Held::Live(places) = &shard.held else { return Ok(()) };
    match group.replace(&shard, places, segment).await {
        // Its definition is damaged: without it the shard is of no use.
        Err(error) if error.is_refusal() => Ok(()),
        result => result,
    }
}

/// What the frames of some kinds say.
async fn events(shelf: &Shelf, number: u64, wanted: fn(Kind) -> bool) -> Result<Vec<Event>, Error> {
    let shelf = shelf.clone();
    blocking(move || {
        let mut scan = Scan::new(shelf.read(number)?);
        let mut events = Vec::new();
        while let Some(frame) = scan.next().at("read", &shelf.path(number))? {
            events.extend(
                Some(frame).filter(|frame| wanted(frame.kind)).and_then(|frame| event(&frame)),
            );
        }
        Ok(events)
    })
    .await
}

fn event(frame: &Frame<'_>) -> Option<Event> {
    let bytes = frame.payload;
    match frame.kind {
        Kind::Origin => Origin::decode(bytes).ok().map(Event::Origin),
        Kind::Study => decoded(body::Study::decode(bytes), body::Study::stored, Event::Study),
        Kind::Commit => decoded(Commit::decode(bytes), Commit::stored, Event::Commit),
        Kind::Deleted => {
            decoded(body::Deleted::decode(bytes), body::Deleted::stored, Event::Deleted)
        }
        Kind::Payload => None,
    }
}

fn decoded<T, U>(
    body: Result<T, prost::DecodeError>,
    stored: impl Fn(T) -> Option<U>,
    event: impl Fn(U) -> Event,
) -> Option<Event> {
    body.ok().and_then(stored).map(event)
}

/// Removes a database and what SQLite keeps beside it.
fn remove(path: &Path) -> Result<(), Error> {
    for end in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        let file = PathBuf::from(name);
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).at("delete", &file);
            }
            _ => {}
        }
    }
    Ok(())
}
