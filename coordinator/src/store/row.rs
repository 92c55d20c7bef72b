//! What the ledger holds, as the rest of the coordinator sees it.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use study::{CellId, Digest, StudyId};

/// A finished shard, without its records. The tally is opaque here.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardRow {
    /// The study.
    pub study: StudyId,
    /// The cell.
    pub cell: CellId,
    /// The replicates.
    pub range: Range<u64>,
    /// Digest of the cell's checkpoints under which the shard was computed.
    pub checkpoints: [u8; 32],
    /// Digest of the shard's record values.
    pub digest: [u8; 32],
    /// What the records say about the cell's rows.
    pub tally: Bytes,
    /// Number of records.
    pub records: u64,
    /// Who computed it.
    pub worker: String,
    /// How long that took.
    pub seconds: f64,
}

/// What records add up to: those of a shard, or of its batches so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    /// How many there are.
    pub records: u64,
    /// The digest of their values.
    pub digest: [u8; 32],
}

impl Default for Sum {
    fn default() -> Self {
        Self { records: 0, digest: Digest::new().finish() }
    }
}

/// Where one frame of a shard's records lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct Place {
    /// The segment's number.
    #[prost(uint64, tag = "1")]
    pub segment: u64,
    /// Where the frame begins.
    #[prost(uint64, tag = "2")]
    pub offset: u64,
    /// Bytes of payload.
    #[prost(uint32, tag = "3")]
    pub length: u32,
}

/// Where a shard's records are.
#[derive(Clone, Debug, PartialEq)]
pub enum Held {
    /// In segments, one frame per batch, in order.
    Live(Vec<Place>),
    /// In the sealed dataset.
    Sealed,
}

/// A shard that the ledger holds.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredShard {
    /// What was committed.
    pub row: ShardRow,
    /// The lease it was computed under.
    pub token: u64,
    /// The digest of the records that are kept: of a summary not that of the row. None where they are sealed, or an
    /// earlier version kept them.
    pub kept: Option<[u8; 32]>,
    /// Where its records are.
    pub held: Held,
}

impl StoredShard {
    /// How many batches are in segments.
    pub fn batches(&self) -> usize {
        match &self.held {
            Held::Live(places) => places.len(),
            Held::Sealed => 0,
        }
    }
}

/// What a commit did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Committed {
    /// The shard is durable.
    New,
    /// It was already, with the same digest.
    Duplicate,
}

/// How much of a cell a sealed dataset holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedCell {
    /// The cell.
    pub cell: CellId,
    /// All its shards below this replicate.
    pub replicates: u64,
}

/// What has become of a study.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum State {
    /// There is work, or there will be.
    #[default]
    Active,
    /// All trials are durable.
    Done,
    /// The user ended it.
    Cancelled,
    /// Two workers disagreed on a shard.
    Alarmed,
}

impl State {
    const ALL: [Self; 4] = [Self::Active, Self::Done, Self::Cancelled, Self::Alarmed];

    /// The name in the ledger.
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
            Self::Alarmed => "alarmed",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A study as it was put, and what has become of it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredStudy {
    /// The study.
    pub id: StudyId,
    /// The study file's name.
    pub file_name: String,
    /// The study file.
    pub text: String,
    /// The files that it names, and their digests.
    pub files: Vec<(String, [u8; 32])>,
    /// What has become of it.
    pub state: State,
    /// Why, in words; empty if there is nothing to say.
    pub reason: String,
    /// Digest of the dataset that its sealed shards are in.
    pub sealed: Option<[u8; 32]>,
    /// The families of claims that it had before, as its owner encoded them; empty where it had none.
    pub earlier: String,
}

/// A study whose row in the ledger is not what was written. All its data stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedStudy {
    /// The id in the row, or a digest of what stands in its place.
    pub id: StudyId,
    /// The study file's name, if it can be read.
    pub file_name: String,
    /// What is wrong with the row.
    pub reason: String,
}

/// A study that was deleted: what segments below `since` say of it counts no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deleted {
    pub(super) study: StudyId,
    pub(super) since: u64,
}

/// A range of trials that killed its workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    /// The cell.
    pub cell: CellId,
    /// The replicates.
    pub range: Range<u64>,
    /// How often.
    pub deaths: u32,
    /// How the last one looked.
    pub reason: String,
}

/// A shard that was computed a second time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The cell.
    pub cell: CellId,
    /// The replicates.
    pub range: Range<u64>,
    /// What the second computation gave.
    pub digest: [u8; 32],
    /// Whether that is what was committed.
    pub agreed: bool,
    /// Who computed it again.
    pub worker: String,
}

/// A committed shard that recovery had to give up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedShard {
    /// The study.
    pub study: StudyId,
    /// The cell.
    pub cell: CellId,
    /// The replicates, to be computed anew.
    pub range: Range<u64>,
    /// What was found.
    pub reason: String,
}
