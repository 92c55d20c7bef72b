//! What is to be run and what comes back: priors, cells, their randomness, and the record schema.

pub mod batch;
pub mod cell;
mod digest;
mod id;
pub mod plan;
pub mod prior;
pub mod record;
pub mod tally;

pub use batch::Batch;
pub use cell::{Cell, CellId};
pub use digest::Digest;
pub use id::StudyId;
pub use record::{Failure, Record};
