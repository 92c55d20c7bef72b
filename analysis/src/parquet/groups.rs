//! The row groups of many files, each readable by itself, so that threads can share them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polars::prelude::{DataFrame, FileMetadataRef, ParallelStrategy, ParquetReader, SerReader};

use super::{FileError, Frames};
use crate::schema::Type;

/// One row group.
pub(crate) struct Group {
    file: Arc<Opened>,
    /// Rows in it.
    pub(crate) rows: usize,
    /// Rows of the file before it.
    before: usize,
}

struct Opened {
    path: PathBuf,
    metadata: FileMetadataRef,
    columns: Vec<String>,
}

/// The row groups of a file whose bytes are known to be good and that has the columns.
pub(crate) fn groups(path: &Path, columns: &[(String, Type)]) -> Result<Vec<Group>, FileError> {
    let (metadata, columns) = Frames::open(path, columns)?.into_parts();
    let file = Arc::new(Opened { path: path.to_owned(), metadata, columns });
    let mut before = 0;
    let mut groups = Vec::new();
    for group in &file.metadata.row_groups {
        let rows = group.num_rows();
        groups.push(Group { file: Arc::clone(&file), rows, before });
        before += rows;
    }
    Ok(groups)
}

impl Group {
    /// Reads it on this thread.
    pub(crate) fn read(&self) -> Result<DataFrame, FileError> {
        let path = &self.file.path;
        let file = File::open(path).map_err(FileError::io("open", path))?;
        let mut reader = ParquetReader::new(file)
            .with_columns(Some(self.file.columns.clone()))
            .with_slice(Some((self.before, self.rows)))
            .read_parallel(ParallelStrategy::RowGroups);
        reader.set_metadata(self.file.metadata.clone());
        reader.finish().map_err(FileError::parquet("read", path))
    }
}
