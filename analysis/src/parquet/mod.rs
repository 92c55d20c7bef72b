//! Parquet files of four plain types, with bytes that depend on their values alone.
//!
//! Row groups have a fixed number of rows and are built from fresh columns; options that polars would
//! take from the environment are set here; a file's digest is computed while it is written and
//! checked before it is parsed, so that no damaged byte reaches a decoder.

mod bits;
mod groups;
mod numbers;
mod read;
mod sink;
mod table;
mod write;

use std::io;
use std::path::{Path, PathBuf};

pub(crate) use groups::{Group, groups};
pub(crate) use numbers::Room;
pub(crate) use read::Frames;
pub(crate) use sink::{Sink, digest};
pub(crate) use table::{Datum, Table, data_type};
pub(crate) use write::write;

/// How many rows a row group has, and how many row groups a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows of a row group, the unit of memory.
    pub rows: usize,
    /// Row groups of a file.
    pub groups: usize,
}

impl Default for Shape {
    /// A row group of records is some 17 MB in memory, a file at most half a gigabyte.
    fn default() -> Self {
        Self { rows: 1 << 15, groups: 1 << 5 }
    }
}

/// A file that could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file system refused.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The Parquet library refused.
    #[error("cannot {doing} {} as Parquet: {reason}", path.display())]
    Parquet {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
}

impl FileError {
    /// For `map_err`.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }

    pub(crate) fn parquet(
        doing: &'static str,
        path: &Path,
    ) -> impl FnOnce(polars::error::PolarsError) -> Self {
        let path = path.to_owned();
        move |source| Self::Parquet { doing, path, reason: source.to_string() }
    }
}
