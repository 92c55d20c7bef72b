//! Reading a shard's batches back, every byte checked.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use bytes::Bytes;

use super::error::{At, Error};
use super::frame::{HEAD, Head, Kind, MAX_PAYLOAD};
use super::row::{Held, Place, StoredShard};
use super::shelf::Shelf;

/// Files kept open.
const OPEN: usize = 64;

/// Reads shards. File operations block: use it on a thread where that is fine.
#[derive(Debug)]
pub struct Reader {
    shelf: Shelf,
    files: HashMap<u64, File>,
}

impl Reader {
    pub(super) fn new(shelf: Shelf) -> Self {
        Self { shelf, files: HashMap::new() }
    }

    /// The batches of a live shard in the order in which they were appended.
    pub fn read<'a>(
        &'a mut self,
        shard: &'a StoredShard,
    ) -> Result<impl Iterator<Item = Result<Bytes, Error>> + 'a, Error> {
        match &shard.held {
            Held::Live(places) => Ok(places.iter().map(|place| self.frame(shard.token, *place))),
            Held::Sealed => Err(Error::Sealed),
        }
    }

    /// One batch of a live shard.
    pub fn batch(&mut self, shard: &StoredShard, at: usize) -> Result<Bytes, Error> {
        match &shard.held {
            Held::Live(places) => self.frame(shard.token, places[at]),
            Held::Sealed => Err(Error::Sealed),
        }
    }

    /// Whether every batch of a shard is there and as it was written.
    pub(super) fn verify(&mut self, shard: &StoredShard) -> Result<(), Error> {
        match &shard.held {
            Held::Live(places) => {
                places.iter().try_for_each(|place| self.frame(shard.token, *place).map(|_| ()))
            }
            Held::Sealed => Ok(()),
        }
    }

    fn frame(&mut self, token: u64, place: Place) -> Result<Bytes, Error> {
        let path = self.shelf.path(place.segment);
        let bytes = match self.bytes(place) {
            Ok(bytes) => Some(bytes),
            Err(error) if gone(&error) => None,
            Err(error) => return Err(error).at("read", &path),
        };
        let payload = bytes.and_then(|bytes| payload(token, place, bytes));
        payload.ok_or(Error::Damaged { path, offset: place.offset })
    }

    fn bytes(&mut self, place: Place) -> io::Result<Vec<u8>> {
        if !self.files.contains_key(&place.segment) {
            if self.files.len() >= OPEN {
                self.files.clear();
            }
            self.files.insert(place.segment, File::open(self.shelf.file(place.segment)?)?);
        }
        let mut file = &self.files[&place.segment];
        file.seek(SeekFrom::Start(place.offset))?;
        // What the ledger says of the length may be wrong too.
        let mut bytes = vec![0; HEAD + (place.length as usize).min(MAX_PAYLOAD)];
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

fn gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof)
}

fn payload(token: u64, place: Place, bytes: Vec<u8>) -> Option<Bytes> {
    let head = bytes.first_chunk().and_then(Head::parse)?;
    let expected = head.kind == Kind::Payload
        && head.token == token
        && head.length == place.length as usize
        && head.fits(&bytes[HEAD..]);
    expected.then(|| Bytes::from(bytes).slice(HEAD..))
}
