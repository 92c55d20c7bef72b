//! What a finished study has to seal: its cells, and where the records of their trials are.

use std::sync::Arc;

use study::CellId;
use study::batch::{Batch, DecodeError};
use study::family::EarlierFamily;
use study::plan::Plan;
use study::tally::Tally;

use crate::store::{self, Held, StoredShard};

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
    /// Shards of these trials, in order, without gaps.
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

/// Records that cannot be read back.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// From the disk.
    #[error(transparent)]
    Store(#[from] store::Error),
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
