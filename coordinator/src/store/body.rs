//! What the frames that are not records say, in protobuf's encoding.
//!
//! Together they describe a store without its ledger: whose it is, its studies, its shards.

use prost::Message;
use study::{CellId, StudyId};

use super::frame::short;
use super::row::{self, Held, Place, ShardRow, State, StoredShard, StoredStudy};

/// The first frame of a segment.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Origin {
    #[prost(string, tag = "1")]
    pub(super) numerics: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
    /// How often the store had been opened: epochs must grow over a lost ledger too.
    #[prost(uint32, tag = "3")]
    pub(super) restarts: u32,
}

#[derive(Clone, PartialEq, Message)]
struct File {
    #[prost(string, tag = "1")]
    path: String,
    #[prost(bytes = "vec", tag = "2")]
    digest: Vec<u8>,
}

/// A study's definition and state.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Study {
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    #[prost(string, tag = "2")]
    file_name: String,
    #[prost(string, tag = "3")]
    text: String,
    #[prost(message, repeated, tag = "4")]
    files: Vec<File>,
    #[prost(string, tag = "5")]
    state: String,
    #[prost(string, tag = "6")]
    reason: String,
    #[prost(bytes = "vec", optional, tag = "7")]
    sealed: Option<Vec<u8>>,
    #[prost(string, tag = "8")]
    earlier: String,
}

/// A study that was deleted: what segments below `since` say of it counts no more.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Deleted {
    #[prost(bytes = "vec", tag = "1")]
    study: Vec<u8>,
    #[prost(fixed64, tag = "2")]
    since: u64,
}

/// A shard's ledger row.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Commit {
    #[prost(bytes = "vec", tag = "1")]
    study: Vec<u8>,
    #[prost(fixed64, tag = "2")]
    cell: u64,
    #[prost(uint64, tag = "3")]
    first: u64,
    #[prost(uint64, tag = "4")]
    past: u64,
    #[prost(fixed64, tag = "5")]
    token: u64,
    #[prost(bytes = "vec", tag = "6")]
    checkpoints: Vec<u8>,
    #[prost(bytes = "vec", tag = "7")]
    digest: Vec<u8>,
    #[prost(bytes = "bytes", tag = "8")]
    tally: bytes::Bytes,
    #[prost(uint64, tag = "9")]
    records: u64,
    #[prost(string, tag = "10")]
    worker: String,
    #[prost(double, tag = "11")]
    seconds: f64,
    #[prost(message, repeated, tag = "12")]
    places: Vec<Place>,
    #[prost(bytes = "vec", tag = "13")]
    kept: Vec<u8>,
}

/// The frames of a shard, as the ledger keeps them.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Places {
    #[prost(message, repeated, tag = "1")]
    pub(super) places: Vec<Place>,
    /// The digest of their records; empty if an earlier version wrote them.
    #[prost(bytes = "vec", tag = "2")]
    pub(super) kept: Vec<u8>,
}

impl Places {
    /// What the ledger keeps.
    pub(super) fn new(places: &[Place], kept: Option<[u8; 32]>) -> Self {
        Self { places: places.to_vec(), kept: kept.map_or_else(Vec::new, Into::into) }
    }
}

impl From<&StoredStudy> for Study {
    fn from(study: &StoredStudy) -> Self {
        let file = |(path, digest): &(String, [u8; 32])| File {
            path: path.clone(),
            digest: digest.into(),
        };
        Self {
            id: study.id.0.into(),
            file_name: study.file_name.clone(),
            text: study.text.clone(),
            files: study.files.iter().map(file).collect(),
            state: study.state.name().to_owned(),
            reason: study.reason.clone(),
            sealed: study.sealed.map(Into::into),
            earlier: study.earlier.clone(),
        }
    }
}

impl Study {
    /// The study, unless a later version wrote what is not known here.
    pub(super) fn stored(self) -> Option<StoredStudy> {
        let file = |file: File| Some((file.path, file.digest.try_into().ok()?));
        Some(StoredStudy {
            id: StudyId(self.id.try_into().ok()?),
            file_name: self.file_name,
            text: self.text,
            files: self.files.into_iter().map(file).collect::<Option<_>>()?,
            state: State::named(&self.state)?,
            reason: self.reason,
            sealed: self.sealed.map(TryInto::try_into).transpose().ok()?,
            earlier: self.earlier,
        })
    }
}

impl From<row::Deleted> for Deleted {
    fn from(row::Deleted { study, since }: row::Deleted) -> Self {
        Self { study: study.0.into(), since }
    }
}

impl Deleted {
    /// What the ledger has of it.
    pub(super) fn stored(self) -> Option<row::Deleted> {
        Some(row::Deleted { study: StudyId(self.study.try_into().ok()?), since: self.since })
    }
}

impl Commit {
    /// What a shard's row says.
    pub(super) fn row(token: u64, row: &ShardRow) -> Self {
        Self::new(token, row, Places::default())
    }

    /// What a shard's commit frame says.
    pub(super) fn new(token: u64, row: &ShardRow, Places { places, kept }: Places) -> Self {
        Self {
            study: row.study.0.into(),
            cell: row.cell.0,
            first: row.range.start,
            past: row.range.end,
            token,
            checkpoints: row.checkpoints.into(),
            digest: row.digest.into(),
            tally: row.tally.clone(),
            records: row.records,
            worker: row.worker.clone(),
            seconds: row.seconds,
            places,
            kept,
        }
    }

    /// The shard.
    pub(super) fn stored(self) -> Option<StoredShard> {
        let row = ShardRow {
            study: StudyId(self.study.try_into().ok()?),
            cell: CellId(self.cell),
            range: self.first..self.past,
            checkpoints: self.checkpoints.try_into().ok()?,
            digest: self.digest.try_into().ok()?,
            tally: self.tally,
            records: self.records,
            worker: self.worker,
            seconds: self.seconds,
        };
        let kept = self.kept.try_into().ok();
        Some(StoredShard { row, token: self.token, kept, held: Held::Live(self.places) })
    }
}

/// Guards a ledger row: SQLite checks its pages' structure, not their content.
pub(super) fn checksum(message: &impl Message) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&message.encode_to_vec());
    short(&hasher)
}
