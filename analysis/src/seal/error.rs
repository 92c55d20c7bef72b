//! Why records cannot be sealed.

use study::CellId;

use crate::census::Disorder;
use crate::dataset::Source;
use crate::parquet::FileError;
use crate::schema::MixedTypes;

/// Why records cannot be sealed. The dataset that was there before is untouched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Where the records come from failed.
    #[error("the records cannot be read: {0}")]
    Source(#[source] Source),
    /// Records out of order.
    #[error(transparent)]
    Disorder(#[from] Disorder),
    /// A swept key with values that no column can hold.
    #[error(transparent)]
    Swept(#[from] MixedTypes),
    /// Records of a cell that is not described.
    #[error("there are records of cell {cell}, which the study does not have")]
    UnknownCell {
        /// The cell.
        cell: CellId,
    },
    /// A record at a t that the cell does not have.
    #[error("cell {cell}, replicate {replicate} has a record at t = {t}, which is no checkpoint")]
    Checkpoint {
        /// The cell.
        cell: CellId,
        /// The trial.
        replicate: u64,
        /// The checkpoint.
        t: u32,
    },
    /// A trial whose number a signed column cannot hold.
    #[error("cell {cell} has a replicate {replicate}, and at most 2^63 - 1 can be recorded")]
    Replicate {
        /// The cell.
        cell: CellId,
        /// The trial.
        replicate: u64,
    },
    /// Records are missing, or there are more than the cell has.
    #[error(
        "cell {cell} has {records} records of {trials} trials, \
         and {expected} records of {planned} trials belong to it"
    )]
    Incomplete {
        /// The cell.
        cell: CellId,
        /// Trials with records.
        trials: u64,
        /// Trials that ran.
        planned: u64,
        /// Records.
        records: u64,
        /// Records that these trials have.
        expected: u64,
    },
    /// Counts out of order.
    #[error("the counts of batch {batch} of cell {cell} come too late to be in order")]
    Counts {
        /// The cell.
        cell: CellId,
        /// The batch.
        batch: u64,
    },
    /// A prior whose points do not fit its size.
    #[error(
        "prior {index} has {points} coordinates and {means} means for {size} points in {d} dimensions"
    )]
    Prior {
        /// The prior's number.
        index: u32,
        /// Coordinates given.
        points: usize,
        /// Means given.
        means: usize,
        /// M.
        size: u64,
        /// d.
        d: u32,
    },
}
