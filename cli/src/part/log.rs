//! The file of a part: a head, then shards, each durable before the next is begun.
//!
//! A frame is mark (4), payload length u32, kind u8, checksum (8), payload; integers little-endian. The
//! checksum is the first 8 bytes of BLAKE3 over kind and payload. A shard is the frames of its batches of
//! records and a frame that says whose they are; what follows the last of these is cut off when the file is
//! opened again.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use coordinator::store::Place;
use serde::{Deserialize, Serialize};
use study::folder::open;
use worker::client::Computed;

use crate::exit::BadInput;

const HEADER: [u8; 16] = *b"regretta-part\0\0\x01";
const MARK: [u8; 4] = [0x9a, 0x4e, 0xc3, 0x17];
/// Bytes of a frame before its payload.
const HEAD: usize = 17;
/// The largest payload; a length beyond is damage.
const MOST: usize = 64 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Head = 1,
    Batch = 2,
    Shard = 3,
}

/// Whose part it is, with all that merging needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) part: u32,
    pub(super) of: u32,
    pub(super) revision: String,
    pub(super) numerics: String,
    pub(super) version: String,
    pub(super) file_name: String,
    pub(super) text: String,
    /// Path and digest of the files that the study names.
    pub(super) files: Vec<(String, String)>,
}

/// A shard of a part.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shard {
    pub(super) about: About,
    /// Its batches; `segment` is for the reader of several parts.
    pub(super) places: Vec<Place>,
}

/// What the last frame of a shard says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct About {
    pub(super) cell: u64,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) digest: [u8; 32],
    pub(super) tally: Vec<u8>,
    pub(super) seconds: f64,
}

/// What a file holds, up to the last whole shard.
struct Scanned {
    head: Option<Head>,
    shards: Vec<Shard>,
    end: u64,
}

/// A part that is being computed.
pub(super) struct Log {
    file: File,
    path: PathBuf,
}

impl Drop for Log {
    /// A program that is being started shares the lock until it runs; closing the file alone would leave it held.
    fn drop(&mut self) {
        if let Err(error) = self.file.unlock() {
            tracing::debug!(path = %self.path.display(), "cannot be unlocked: {error}");
        }
    }
}

impl Log {
    /// Begins a part or takes it up again.
    pub(super) fn open(path: &Path, head: &Head) -> anyhow::Result<(Self, Vec<Shard>)> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).with_context(|| format!("cannot open {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!(BadInput(format!(
                "another process computes {}; wait for it, or end it first",
                path.display()
            ))),
            // A file system without locks: the job array sees to it that a part runs once.
            Err(TryLockError::Error(error)) => {
                tracing::warn!(path = %path.display(), "cannot be locked: {error}");
            }
        }
        let scanned = scan(&file, path)?;
        let mut log = Self { file, path: path.to_path_buf() };
        match scanned.head {
            Some(held) if held == *head => {}
            Some(held) => return Err(other(path, &held, head)),
            None => {
                log.file.set_len(0)?;
                log.file.rewind()?;
                log.file.write_all(&HEADER)?;
                let mut frames = Vec::new();
                frame(&mut frames, Kind::Head, &serde_json::to_vec(head)?);
                log.write(&frames)?;
                return Ok((log, Vec::new()));
            }
        }
        log.file.set_len(scanned.end)?;
        log.file.seek(SeekFrom::Start(scanned.end))?;
        Ok((log, scanned.shards))
    }

    /// Makes a shard durable.
    pub(super) fn append(&mut self, about: &About, computed: &Computed) -> anyhow::Result<()> {
        let mut frames = Vec::new();
        for batch in &computed.batches {
            frame(&mut frames, Kind::Batch, batch);
        }
        frame(&mut frames, Kind::Shard, &serde_json::to_vec(about)?);
        self.write(&frames)
    }

    fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        let mut write = || self.file.write_all(bytes).and_then(|()| self.file.sync_data());
        write().with_context(|| {
            format!(
                "cannot write {}; all shards before are kept: run the same command again once there is room",
                self.path.display()
            )
        })
    }
}

/// What a part's file holds.
pub(super) fn read(path: &Path) -> anyhow::Result<(Head, Vec<Shard>)> {
    let file = open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let scanned = scan(&file, path)?;
    let head = scanned.head.ok_or_else(|| {
        BadInput(format!("{} holds nothing yet; run its part again", path.display()))
    })?;
    Ok((head, scanned.shards))
}

/// Whose part a file is, without its shards; `None` where it holds nothing yet.
pub(super) fn head(path: &Path) -> anyhow::Result<Option<Head>> {
    let words = || format!("cannot read {}", path.display());
    let mut reader = BufReader::new(open(path).with_context(words)?);
    let mut header = [0; HEADER.len()];
    if !fill(&mut reader, &mut header).with_context(words)? || header != HEADER {
        return Ok(None);
    }
    match next(&mut reader).with_context(words)? {
        Some((Kind::Head, payload)) => Ok(Some(serde_json::from_slice(&payload)?)),
        _ => Ok(None),
    }
}

/// The batch at a place.
pub(super) fn batch(file: &mut File, path: &Path, place: Place) -> anyhow::Result<Vec<u8>> {
    let read = |file: &mut File| -> io::Result<Option<(Kind, Vec<u8>)>> {
        file.seek(SeekFrom::Start(place.offset))?;
        next(file)
    };
    let damaged = || format!("{} is damaged; delete it and run its part again", path.display());
    match read(file).with_context(|| format!("cannot read {}", path.display()))? {
        Some((Kind::Batch, payload)) if payload.len() == place.length as usize => Ok(payload),
        _ => bail!(BadInput(damaged())),
    }
}

/// Why a file is not the part that is to be computed.
fn other(path: &Path, held: &Head, head: &Head) -> anyhow::Error {
    let what = if (held.part, held.of) != (head.part, head.of) {
        format!("is part {}/{}", held.part, held.of)
    } else if held.numerics != head.numerics {
        "was begun by a version of regretta that computes other numbers".to_owned()
    } else if held.version != head.version {
        format!("was begun by version {} of regretta", held.version)
    } else {
        "was begun with another study file, or another state of it".to_owned()
    };
    let (path, advice) = (path.display(), "delete it to begin anew, or use another --out folder");
    BadInput(format!("{path} {what}: {advice}")).into()
}

fn scan(file: &File, path: &Path) -> anyhow::Result<Scanned> {
    let mut reader = BufReader::new(file);
    let mut header = [0; HEADER.len()];
    let mut scanned = Scanned { head: None, shards: Vec::new(), end: 0 };
    match reader.read_exact(&mut header) {
        Ok(()) if header == HEADER => {}
        Ok(()) => bail!(BadInput(format!("{} is not a part of a study", path.display()))),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(scanned),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
    let (mut at, mut places) = (HEADER.len() as u64, Vec::new());
    while let Some((kind, payload)) =
        next(&mut reader).with_context(|| format!("cannot read {}", path.display()))?
    {
        let offset = at;
        at += (HEAD + payload.len()) as u64;
        match kind {
            Kind::Head => {
                scanned.head = Some(serde_json::from_slice(&payload)?);
                scanned.end = at;
            }
            Kind::Batch => {
                places.push(Place { segment: 0, offset, length: payload.len() as u32 });
            }
            Kind::Shard => {
                let about = serde_json::from_slice(&payload)?;
                scanned.shards.push(Shard { about, places: std::mem::take(&mut places) });
                scanned.end = at;
            }
        }
    }
    Ok(scanned)
}

/// The next whole frame; `None` at the end, and where the rest is torn.
fn next(reader: &mut impl Read) -> io::Result<Option<(Kind, Vec<u8>)>> {
    let mut head = [0; HEAD];
    if !fill(reader, &mut head)? {
        return Ok(None);
    }
    let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
    let kind = [Kind::Head, Kind::Batch, Kind::Shard].into_iter().find(|k| *k as u8 == head[8]);
    let (Some(kind), true) = (kind, head[..4] == MARK && length <= MOST) else { return Ok(None) };
    let mut payload = vec![0; length];
    let whole = fill(reader, &mut payload)? && checksum(kind, &payload) == head[9..];
    Ok(whole.then_some((kind, payload)))
}

/// Whether there were as many bytes.
fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match reader.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn frame(out: &mut Vec<u8>, kind: Kind, payload: &[u8]) {
    out.extend_from_slice(&MARK);
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    out.push(kind as u8);
    out.extend_from_slice(&checksum(kind, payload));
    out.extend_from_slice(payload);
}

fn checksum(kind: Kind, payload: &[u8]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[kind as u8]).update(payload);
    let [a, b, c, d, e, f, g, h, ..] = *hasher.finalize().as_bytes();
    [a, b, c, d, e, f, g, h]
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn head() -> Head {
        Head {
            part: 1,
            of: 2,
            revision: "r".into(),
            numerics: "n".into(),
            version: "0".into(),
            file_name: "s.toml".into(),
            text: "[study]".into(),
            files: vec![],
        }
    }

    fn shard(start: u64) -> (About, Computed) {
        let digest = [start as u8; 32];
        let batches = vec![Bytes::from(vec![1; 100]), Bytes::from(vec![2; start as usize + 1])];
        let about = About { cell: 7, start, end: start + 8, digest, tally: vec![0], seconds: 0.5 };
        (about, Computed { batches, digest, tally: Bytes::from_static(&[0]), seconds: 0.5 })
    }

    /// Whatever the byte at which a write was cut, whole shards are found and the rest is written anew.
    #[test]
    fn a_torn_tail_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1-of-2.part");
        let (mut log, shards) = Log::open(&path, &head()).unwrap();
        assert!(shards.is_empty());
        for start in [0, 8] {
            let (about, computed) = shard(start);
            log.append(&about, &computed).unwrap();
        }
        drop(log);
        let whole = std::fs::read(&path).unwrap();
        for length in 0..=whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let (mut log, mut held) = Log::open(&path, &head()).unwrap();
            for start in [0, 8].into_iter().skip(held.len()) {
                let (about, computed) = shard(start);
                log.append(&about, &computed).unwrap();
            }
            drop(log);
            assert_eq!(std::fs::read(&path).unwrap(), whole, "cut at {length}");
            held = read(&path).unwrap().1;
            assert_eq!(held.iter().map(|s| s.about.start).collect::<Vec<_>>(), [0, 8]);
            let mut file = File::open(&path).unwrap();
            let bytes = batch(&mut file, &path, held[1].places[1]).unwrap();
            assert_eq!(bytes, [2; 9]);
        }
    }

    #[test]
    fn another_study_another_part_and_damage_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1-of-2.part");
        drop(Log::open(&path, &head()).unwrap());
        let error = |head: &Head| Log::open(&path, head).err().unwrap().to_string();
        assert!(error(&Head { of: 3, ..head() }).contains("is part 1/2"));
        assert!(error(&Head { text: "x".into(), ..head() }).contains("another study file"));
        assert!(error(&Head { numerics: "m".into(), ..head() }).contains("other numbers"));
        std::fs::write(&path, "something else entirely").unwrap();
        assert!(error(&head()).contains("is not a part"));
        let held = Log::open(&dir.path().join("2-of-2.part"), &head()).unwrap();
        let second = Log::open(&dir.path().join("2-of-2.part"), &head()).err().unwrap();
        assert!(second.to_string().contains("another process"), "{second}");
        drop(held);
    }
}
