//! What is to be run and what comes back: study files, plans, priors, cells, their randomness, the rows
//! of verdicts and their tallies, the record schema, and the reference pages on all of it.

pub mod batch;
pub mod cell;
mod digest;
pub mod family;
pub mod file;
pub mod folder;
mod id;
pub mod plan;
pub mod prior;
pub mod record;
pub mod reference;
pub mod rows;
pub mod tally;

pub use batch::Batch;
pub use cell::{Cell, CellId};
pub use digest::Digest;
pub use file::{FileError, Study, nearest};
pub use id::StudyId;
pub use plan::Plan;
pub use record::{Failure, Record};
pub use tally::Tally;
