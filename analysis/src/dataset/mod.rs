//! Reading a dataset back: the base of a grown study, and what `verify` recomputes.
//!
//! Records come in the order of (cell, replicate, t), a row group at a time. A file is parsed only
//! after its digest was found to be the manifest's.

mod merge;
mod opened;
mod reader;
mod select;
mod steady;
mod verify;

use std::fs::File;
use std::io::{self, Seek};
use std::path::{Path, PathBuf};

use study::CellId;
use study::batch::DecodeError;

use crate::census::Disorder;
use crate::counts::{self, Count};
use crate::manifest::{self, FileEntry, Manifest};
use crate::parquet::{self, FileError};

pub use merge::merge;
pub use opened::{DataCell, Dataset, Earlier, Mismatch};
pub use reader::Reader;
pub use select::{Selection, select};
pub(crate) use steady::Patience;
pub use steady::steadily;
pub use verify::verify;
#[cfg(test)]
pub(crate) use verify::verify_within;

/// What an iterator over records that come from elsewhere may fail with.
pub type Source = Box<dyn std::error::Error + Send + Sync>;

/// Why a dataset cannot be read, or is not what its manifest says.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No usable manifest.
    #[error(transparent)]
    Manifest(#[from] manifest::Error),
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A writer is putting another dataset in its place, or was interrupted at that.
    #[error(
        "the dataset in {} is being replaced, or was while it was read: try again in a moment. If nothing is \
         writing to the folder, its writer was interrupted: run the command again that writes it, which \
         finishes what was begun",
        folder.display()
    )]
    Replaced {
        /// The dataset's folder.
        folder: PathBuf,
    },
    /// A file of the manifest is not there.
    #[error("{name} is missing from the dataset")]
    Missing {
        /// The file's name in the manifest.
        name: String,
    },
    /// A file has other bytes than when it was sealed.
    #[error(
        "{name} was changed since it was sealed: BLAKE3 {found} ({found_bytes} bytes), \
         sealed as {expected} ({expected_bytes} bytes)"
    )]
    Changed {
        /// The file's name in the manifest.
        name: String,
        /// Its length in the manifest.
        expected_bytes: u64,
        /// Its digest in the manifest.
        expected: String,
        /// Its length now.
        found_bytes: u64,
        /// Its digest now.
        found: String,
    },
    /// The dataset's parts do not belong together.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// A row that is no record.
    #[error("{name}, row {row}: column {column} holds no valid value")]
    Value {
        /// The file's name in the manifest.
        name: String,
        /// From 0, within the file.
        row: usize,
        /// The column.
        column: &'static str,
    },
    /// Rows that are no records together.
    #[error("{name}, rows from {row}: {source}")]
    Records {
        /// The file's name in the manifest.
        name: String,
        /// The first of them, from 0, within the file.
        row: usize,
        /// What is wrong.
        source: DecodeError,
    },
    /// Records out of order.
    #[error("the records are not in order: {0}")]
    Disorder(#[from] Disorder),
    /// The records are not those that were sealed.
    #[error("the records have digest {found}, and the manifest says {expected}")]
    Digest {
        /// The manifest's.
        expected: String,
        /// The records'.
        found: String,
    },
    /// The manifest's numbers are not those of its records.
    #[error("there are {found} {what}, and the manifest says {expected}")]
    Total {
        /// What is counted.
        what: &'static str,
        /// The manifest's number.
        expected: u64,
        /// The records' number.
        found: u64,
    },
}

impl Error {
    pub(crate) fn replaced(folder: &Path) -> Self {
        Self::Replaced { folder: folder.to_owned() }
    }

    /// Whether the dataset was read and found to be another than its manifest says.
    pub fn is_mismatch(&self) -> bool {
        match self {
            Self::Manifest(error) => error.is_mismatch(),
            Self::File(_) | Self::Replaced { .. } => false,
            _ => true,
        }
    }
}

/// The counts of a dataset, if it has any.
pub fn counts(
    dir: &Path,
) -> Result<Option<impl Iterator<Item = Result<Count, FileError>> + use<>>, Error> {
    counts_within(Patience::default(), dir)
}

/// The same with other patience.
pub(crate) fn counts_within(
    patience: Patience,
    dir: &Path,
) -> Result<Option<impl Iterator<Item = Result<Count, FileError>> + use<>>, Error> {
    steady::within(patience, dir, || {
        let manifest = Manifest::read(dir)?;
        let Some(entry) = manifest.files.iter().find(|file| file.name == counts::NAME) else {
            return Ok(None);
        };
        let file = check(dir, entry)?;
        Ok(Some(counts::read(file, &dir.join(counts::NAME))?))
    })
}

/// Compares a file with its entry in the manifest. The file that is returned, at its beginning, is the one that
/// was compared, whatever takes its place.
pub(crate) fn check(dir: &Path, entry: &FileEntry) -> Result<File, Error> {
    let path = dir.join(&entry.name);
    let unreadable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => Error::Missing { name: entry.name.clone() },
        _ => FileError::io("read", &path)(source).into(),
    };
    let mut file = study::folder::open(&path).map_err(unreadable)?;
    let (found_bytes, found) = parquet::digest(&mut file).map_err(unreadable)?;
    if (found_bytes, &found) == (entry.bytes, &entry.blake3) {
        file.rewind().map_err(unreadable)?;
        return Ok(file);
    }
    let FileEntry { name, bytes: expected_bytes, blake3: expected } = entry.clone();
    Err(Error::Changed { name, expected_bytes, expected, found_bytes, found })
}

/// The cell that 16 hexadecimal digits name.
pub(crate) fn cell_id(text: &str) -> Option<CellId> {
    let id = CellId(u64::from_str_radix(text, 16).ok()?);
    (id.to_string() == text).then_some(id)
}
