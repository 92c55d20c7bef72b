//! The segment that is being written, and the switch to the next one.
//!
//! Frames are staged in memory, flushed by one append, and durable after `sync`. A failed append
//! is rolled back; after a failed sync the segment is given up at its last durable length,
//! because nothing is known about what followed, and the next frame starts a new segment.
//!
//! A segment's number has the epoch of its writer in the upper half, so that no two writers ever
//! have a segment in common, and order by number is order in time.

use std::path::{Path, PathBuf};

use prost::Message;

use super::body::{self, Origin};
use super::disk::{Disk, Log, sync_parent};
use super::error::{At, Error};
use super::frame::{self, HEAD, HEADER, Kind};
use super::row::{Deleted, Place, StoredStudy};

/// A segment of this size is followed by the next.
pub(super) const SIZE: u64 = 256 << 20;

/// What has been lost: frames of `segment` at or behind `from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) segment: u64,
    pub(super) from: u64,
}

impl Lost {
    pub(super) fn covers(&self, place: &Place) -> bool {
        place.segment == self.segment && place.offset >= self.from
    }
}

/// A failure, and which frames it cost.
pub(super) type Failure = Box<(Error, Option<Lost>)>;

struct Active {
    number: u64,
    path: PathBuf,
    log: Box<dyn Log>,
    length: u64,
    durable: u64,
}

/// The segments of a store, as the writer sees them.
pub(super) struct Segments {
    dir: PathBuf,
    disk: Box<dyn Disk>,
    size: u64,
    origin: Origin,
    next: u64,
    active: Option<Active>,
    staged: Vec<u8>,
    /// Every segment begins with all studies, so that older ones can be deleted; of segments that
    /// are made durable as a whole, and are many, only the one that carries them.
    pub(super) studies: Vec<StoredStudy>,
    /// Studies that were deleted, of which older segments may say otherwise.
    pub(super) deleted: Vec<Deleted>,
    carrier: Option<u64>,
}

impl Segments {
    pub(super) fn new(
        dir: &Path,
        (disk, size): (Box<dyn Disk>, u64),
        origin: Origin,
        studies: Vec<StoredStudy>,
    ) -> Self {
        let dir = dir.to_path_buf();
        let next = (u64::from(origin.restarts) << 32) + 1;
        Self {
            dir,
            disk,
            size,
            origin,
            next,
            active: None,
            staged: Vec::new(),
            studies,
            deleted: Vec::new(),
            carrier: None,
        }
    }

    /// The epoch of this writer.
    pub(super) fn epoch(&self) -> u32 {
        self.origin.restarts
    }

    /// Whether a segment has to stay, whatever shards live in it.
    pub(super) fn needs(&self, number: u64) -> bool {
        let active = self.active.as_ref().map(|active| active.number);
        Some(number) == active || Some(number) == self.carrier
    }

    /// Makes sure that origin and studies are durable in a segment that stays.
    pub(super) fn carry(&mut self) -> Result<(), Failure> {
        if !self.disk.is_whole() {
            return self.reserve(0).map(|_| ());
        }
        self.flush()?;
        self.sync()?;
        let before = self.carrier.take();
        let started = self.start();
        // Until the new one is durable, the old one stays.
        self.carrier = before;
        let number = started.map_err(|error| Box::new((error, None)))?;
        self.sync()?;
        self.carrier = Some(number);
        Ok(())
    }

    /// Makes what comes next begin a new segment, and returns its number.
    pub(super) fn cut(&mut self) -> Result<u64, Failure> {
        self.flush()?;
        self.sync()?;
        self.active = None;
        Ok(self.next)
    }

    /// Makes sure that frames with `bytes` in all fit into one segment, and says which.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<u64, Failure> {
        let staged = (self.staged.len() + bytes) as u64;
        if self.active.as_ref().is_some_and(|active| active.length + staged > self.size) {
            self.flush()?;
            self.sync()?;
            self.active = None;
        }
        match &self.active {
            Some(active) => Ok(active.number),
            None => self.start().map_err(|error| Box::new((error, None))),
        }
    }

    /// Stages a frame behind all others.
    pub(super) fn stage(
        &mut self,
        kind: Kind,
        token: u64,
        payload: &[u8],
    ) -> Result<Place, Failure> {
        let segment = self.reserve(HEAD + payload.len())?;
        let flushed = self.active.as_ref().map_or(0, |active| active.length);
        let offset = flushed + self.staged.len() as u64;
        frame::write(&mut self.staged, kind, token, payload);
        Ok(Place { segment, offset, length: payload.len() as u32 })
    }

    /// Appends what is staged; all of it is lost if that fails.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        let staged = std::mem::take(&mut self.staged);
        let Some(active) = self.active.as_mut().filter(|_| !staged.is_empty()) else {
            return Ok(());
        };
        let result = active.log.append(&staged);
        match result {
            Ok(()) => active.length += staged.len() as u64,
            Err(error) => {
                let error = Error::io("write to", &active.path, staged.len(), error);
                let lost = Lost { segment: active.number, from: active.length };
                let rolled_back = active.log.set_len(active.length).is_ok();
                let lost = if rolled_back { Some(lost) } else { self.give_up() };
                return Err(Box::new((error, lost)));
            }
        }
        self.staged = staged;
        self.staged.clear();
        Ok(())
    }

    /// Makes what was flushed durable; all since the last success is lost if that fails.
    pub(super) fn sync(&mut self) -> Result<(), Failure> {
        let Some(active) = self.active.as_mut().filter(|active| active.durable < active.length)
        else {
            return Ok(());
        };
        match active.log.sync() {
            Ok(()) => {
                active.durable = active.length;
                self.active.take_if(|_| self.disk.is_whole());
                Ok(())
            }
            Err(error) => {
                let bytes = active.length - active.durable;
                let error = Error::io("sync", &active.path, bytes as usize, error);
                Err(Box::new((error, self.give_up())))
            }
        }
    }

    fn give_up(&mut self) -> Option<Lost> {
        let mut active = self.active.take()?;
        // Recovery cuts what this leaves behind if it fails too.
        let _ = active.log.set_len(active.durable);
        Some(Lost { segment: active.number, from: active.durable })
    }

    fn start(&mut self) -> Result<u64, Error> {
        let number = self.next;
        let path = path(&self.dir, number);
        let mut bytes = HEADER.to_vec();
        frame::write(&mut bytes, Kind::Origin, 0, &self.origin.encode_to_vec());
        let whole = self.disk.is_whole();
        if !whole || self.carrier.is_none() {
            for &deleted in &self.deleted {
                let deleted = body::Deleted::from(deleted).encode_to_vec();
                frame::write(&mut bytes, Kind::Deleted, 0, &deleted);
            }
            for study in &self.studies {
                frame::write(&mut bytes, Kind::Study, 0, &body::Study::from(study).encode_to_vec());
            }
        }
        self.next += 1;
        let begun = self.disk.create(&path).and_then(|mut log| {
            log.append(&bytes)?;
            if !whole {
                log.sync()?;
            }
            Ok(log)
        });
        let log = begun.map_err(|error| {
            // An incomplete segment would only be skipped at the next start.
            let _ = std::fs::remove_file(&path);
            Error::io("create", &path, bytes.len(), error)
        })?;
        let length = bytes.len() as u64;
        let durable = if whole { 0 } else { length };
        self.active = Some(Active { number, path, log, length, durable });
        Ok(number)
    }
}

/// The epoch of the writer of a segment.
pub(super) fn epoch(number: u64) -> u32 {
    (number >> 32) as u32
}

/// A segment's file.
pub(crate) fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join("segments").join(name(number))
}

pub(super) fn name(number: u64) -> String {
    match epoch(number) {
        // Of the time when there was one writer.
        0 => format!("{number:06}.seg"),
        epoch => format!("{epoch:06}-{:06}.seg", number as u32),
    }
}

pub(super) fn number(name: &str) -> Option<u64> {
    let name = name.strip_suffix(".seg")?;
    let (epoch, sequence) = name.split_once('-').unwrap_or(("0", name));
    Some(u64::from(epoch.parse::<u32>().ok()?) << 32 | u64::from(sequence.parse::<u32>().ok()?))
}

/// Deletes the segments that are not needed.
pub(super) fn delete(dir: &Path, unneeded: impl Fn(u64) -> bool) -> Result<(), Error> {
    let mut last = None;
    for number in list(dir)?.into_iter().filter(|number| unneeded(*number)) {
        let path = path(dir, number);
        std::fs::remove_file(&path).at("delete", &path)?;
        last = Some(path);
    }
    last.map_or(Ok(()), |path| sync_parent(&path).at("sync the folder of", &path))
}

/// The numbers of the segments that are there, ascending.
pub(super) fn list(dir: &Path) -> Result<Vec<u64>, Error> {
    let dir = dir.join("segments");
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(&dir).at("read", &dir)? {
        let name = entry.at("read", &dir)?.file_name();
        numbers.extend(name.to_str().and_then(number));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbers() {
        for (shown, at) in [("000007.seg", 7), ("000002-000001.seg", (2 << 32) + 1)] {
            assert_eq!(name(at), shown);
            assert_eq!(number(shown), Some(at));
        }
        for other in ["000007.tmp", "lock", "a-000001.seg", "1-2-3.seg", ".seg", "99999999999.seg"]
        {
            assert_eq!(number(other), None, "{other}");
        }
    }
}
