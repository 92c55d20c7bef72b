//! What a study takes of the coordinator's memory, from the size of its plan:
//!
//! ```text
//! bytes = priors * PRIOR + cells * CELL + rows * (ROW or, where cells may stop early, ROW_OF_BATCHES)
//! ```
//!
//! Rows are verdict rows over all cells: cell * claim * form * point * t * delta. The constants follow from the
//! structures, with what an allocator and a half-full B-tree node add; `tests/tests/study_memory.rs` compares
//! them with what a process grows by.

use study::plan::{PlannedCell, PlannedPrior, Size};
use study::tally::RowCounts;

use super::SubmitError;
use super::catalog::Contents;
use crate::core::{BYTES_PER_CELL, CellView};
use crate::stopping::Rule;

/// What the studies of a coordinator may take where nothing else is said.
pub const DEFAULT_STUDY_MEMORY: u64 = 256 << 20;

/// A prior: its specification, with lists and names that are allocated apart.
const PRIOR: u64 = size_of::<PlannedPrior>() as u64 + 1024;

/// A cell's label and numbers in a status: as they are looked at, as a message and as bytes.
const STATUS: u64 = (size_of::<CellView>() + size_of::<proto::v1::CellStatus>()) as u64 + 256;

/// A cell: in the plan, in the catalog, in the scheduling core and in a status.
const CELL: u64 = (size_of::<PlannedCell>() + size_of::<Contents>() + size_of::<Option<Rule>>())
    as u64
    + BYTES_PER_CELL as u64
    + STATUS;

/// A row: what is counted so far, and a copy of it for a status.
const ROW: u64 = 2 * size_of::<RowCounts>() as u64;

/// The same with the counts of two open batches, and whether it is decided.
const ROW_OF_BATCHES: u64 = ROW + 2 * size_of::<RowCounts>() as u64 + 2;

/// What reading one file for planning may take where the studies themselves may take less.
const FILE_MEMORY: u64 = 1 << 30;

/// What one file may take while it is read for planning: its bytes and the numbers in it. One is read at a time.
pub(super) fn file_memory(budget: u64) -> u64 {
    budget.max(FILE_MEMORY)
}

/// What a study of this size takes at most.
pub fn study_memory(size: &Size) -> u64 {
    let row = if size.stops { ROW_OF_BATCHES } else { ROW };
    let parts = [(size.priors, PRIOR), (size.cells, CELL), (size.rows, row)];
    parts.iter().fold(0, |sum: u64, (count, each)| sum.saturating_add(count.saturating_mul(*each)))
}

/// The memory that a study needs, if it fits into the budget beside what others have.
pub(super) fn admit(size: &Size, held: u64, budget: u64) -> Result<u64, SubmitError> {
    let needed = study_memory(size);
    if needed <= budget.saturating_sub(held) {
        return Ok(needed);
    }
    let &Size { cells, rows, .. } = size;
    Err(SubmitError::TooLarge { cells, rows, needed, held, budget })
}

/// Mebibytes, rounded up.
pub(super) fn mebibytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}
