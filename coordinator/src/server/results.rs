//! What a finished study has to seal: its cells, and where the records of their trials are.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use study::batch::{Batch, DecodeError};
use study::family::EarlierFamily;
use study::plan::{Detail, Plan};
use study::tally::Tally;
use study::{CellId, Digest};

use crate::store::{self, Held, Reader, StoredShard};

/// The results of a study, in the order in which they are sealed.
pub struct Results {
    /// The plan.
    pub plan: Arc<Plan>,
    /// The families of claims that the study had before, oldest first.
    pub earlier: Vec<EarlierFamily>,
    /// Its cells, ascending.
    pub cells: Vec<CellResults>,
}

/// The trials of a cell.
pub struct CellResults {
    /// The cell.
    pub cell: CellId,
    /// How many trials count.
    pub replicates: u64,
    /// Shards of these trials, in order; [`Results::gaps`] says what is missing.
    pub shards: Vec<StoredShard>,
}

impl Results {
    /// Which replicates of a cell are in the dataset that was sealed before.
    pub fn sealed(&self) -> impl Iterator<Item = (CellId, &StoredShard)> {
        self.shards().filter(|(_, shard)| shard.held == Held::Sealed)
    }

    /// Shards whose records are still in segments.
    pub fn live(&self) -> impl Iterator<Item = (CellId, &StoredShard)> {
        self.shards().filter(|(_, shard)| shard.held != Held::Sealed)
    }

    /// Every shard with its cell.
    pub fn shards(&self) -> impl Iterator<Item = (CellId, &StoredShard)> {
        self.cells.iter().flat_map(|cell| cell.shards.iter().map(|shard| (cell.cell, shard)))
    }

    /// Replicates that count and are in no shard.
    pub fn gaps(&self) -> Vec<Unsound> {
        self.cells.iter().flat_map(CellResults::gaps).collect()
    }

    /// Counts of a cell's rows, batch by batch.
    pub fn tallies(&self, cell: &CellResults) -> Vec<Tally> {
        let size = self.plan.replicates.batch_size();
        let batches = cell.replicates.div_ceil(size) as usize;
        let mut tallies: Vec<Option<Tally>> = vec![None; batches];
        for shard in &cell.shards {
            let Ok(tally) = Tally::decode(&shard.row.tally) else { continue };
            let batch = (shard.row.range.start / size) as usize;
            match tallies.get_mut(batch) {
                Some(Some(sum)) => sum.plus(&tally),
                Some(none) => *none = Some(tally),
                None => {}
            }
        }
        tallies.into_iter().map(Option::unwrap_or_default).collect()
    }
}

impl CellResults {
    fn gaps(&self) -> Vec<Unsound> {
        let (mut gaps, mut next) = (Vec::new(), 0);
        let shards = self.shards.iter().map(|shard| shard.row.range.clone());
        let end = std::iter::once(self.replicates..self.replicates);
        for range in shards.chain(end) {
            if range.start > next {
                let reason = "the ledger has no shard of them".to_owned();
                gaps.push(Unsound { cell: self.cell, range: next..range.start, reason });
            }
            next = range.end;
        }
        gaps
    }
}

/// A shard of which records are lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsound {
    /// Its cell.
    pub cell: CellId,
    /// Its replicates.
    pub range: Range<u64>,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for Unsound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cell, range, reason } = self;
        write!(f, "cell {cell}, replicates {} to {}: {reason}", range.start, range.end)
    }
}

/// Reads live shards batch by batch, in their order, and holds each against what was committed of it.
pub struct Records {
    reader: Reader,
    detail: Detail,
    count: u64,
    digest: Digest,
}

impl Records {
    pub(super) fn new(reader: Reader, detail: Detail) -> Self {
        Self { reader, detail, count: 0, digest: Digest::new() }
    }

    /// A batch of a shard, by its number; those before it were read before.
    pub fn batch(&mut self, shard: &StoredShard, at: usize) -> Result<Batch, ReadError> {
        if at == 0 {
            (self.count, self.digest) = (0, Digest::new());
        }
        let payload = self.reader.batch(shard, at).map_err(|error| match error {
            store::Error::Damaged { .. } => unsound(shard, error.to_string()),
            error => error.into(),
        })?;
        let batch = decode(shard.row.cell, &payload)?;
        self.count += batch.len() as u64;
        batch.feed(&mut self.digest);
        if at + 1 == shard.batches() {
            self.require(shard)?;
        }
        Ok(batch)
    }

    /// Checks that all that was committed of a shard has been read.
    fn require(&self, shard: &StoredShard) -> Result<(), ReadError> {
        let (found, due) = (self.count, shard.row.records);
        if found != due {
            return Err(unsound(shard, format!("{found} of {due} records are there")));
        }
        let all = (self.detail != Detail::Summary).then_some(shard.row.digest);
        if shard.kept.or(all).is_some_and(|digest| digest != self.digest.finish()) {
            return Err(unsound(shard, "its records do not have its digest".to_owned()));
        }
        Ok(())
    }

    /// Gaps, and all live shards that do not add up; each is read.
    pub fn unsound(&mut self, results: &Results) -> Result<Vec<Unsound>, ReadError> {
        let mut found = results.gaps();
        for (_, shard) in results.live() {
            match self.sound(shard) {
                Err(ReadError::Unsound(unsound)) => found.push(unsound),
                result => result?,
            }
        }
        Ok(found)
    }

    fn sound(&mut self, shard: &StoredShard) -> Result<(), ReadError> {
        (self.count, self.digest) = (0, Digest::new());
        for at in 0..shard.batches() {
            self.batch(shard, at)?;
        }
        self.require(shard)
    }
}

fn unsound(shard: &StoredShard, reason: String) -> ReadError {
    let (cell, range) = (shard.row.cell, shard.row.range.clone());
    ReadError::Unsound(Unsound { cell, range, reason })
}

/// Records that cannot be read back.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// From the disk.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A shard does not add up.
    #[error("records are lost: {0}")]
    Unsound(Unsound),
    /// From what is there.
    #[error("a stored batch of cell {cell} is not one: {source}")]
    Decode {
        /// The cell.
        cell: CellId,
        /// What is wrong.
        source: DecodeError,
    },
}

/// Decodes a stored payload.
pub fn decode(cell: CellId, payload: &[u8]) -> Result<Batch, ReadError> {
    Batch::decode(payload).map_err(|source| ReadError::Decode { cell, source })
}
