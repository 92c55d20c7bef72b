//! How many replicates a cell runs.

/// Replicates of every cell of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replicates {
    /// Exactly so many.
    Fixed(u64),
    /// Batches until the cell is decided, at most `max` in all.
    Batched {
        /// Replicates per batch.
        batch: u64,
        /// Replicates at most.
        max: u64,
    },
}

impl Replicates {
    /// Replicates per batch; the last batch may be shorter.
    pub fn batch_size(self) -> u64 {
        match self {
            Self::Fixed(max) => max,
            Self::Batched { batch, .. } => batch,
        }
    }

    /// Replicates at most.
    pub fn max(self) -> u64 {
        match self {
            Self::Fixed(max) | Self::Batched { max, .. } => max,
        }
    }

    /// Batches at most.
    pub fn batches(self) -> u64 {
        self.max().div_ceil(self.batch_size())
    }
}
