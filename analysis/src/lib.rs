//! Sealing records into canonical Parquet, and reading them back.
//!
//! A dataset is a folder with `manifest.json`, `records/part-*.parquet` and what describes them. Its
//! digest is over values in the order of (cell, replicate, t), so that it survives another Parquet
//! library; the bytes of its files depend on the values and on this version alone, never on how the
//! records arrived.

mod analyze;
pub mod audit;
pub mod census;
pub mod codebook;
pub mod counts;
pub mod dataset;
pub mod description;
pub mod figures;
#[cfg(test)]
mod fixture;
pub mod manifest;
pub mod matrix;
pub mod own;
pub mod page;
mod parquet;
pub mod pass;
pub mod rates;
pub mod report;
pub mod schema;
pub mod seal;
pub mod statistics;
pub mod tables;
pub mod verdicts;
mod words;

pub use analyze::{Analysis, Error};
pub use counts::Count;
pub use description::{CellDescription, PriorSummary, Rho, Scalar};
pub use manifest::Manifest;
pub use parquet::{FileError, Shape};
pub use seal::{Sealing, seal};
