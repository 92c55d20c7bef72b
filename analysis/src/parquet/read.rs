//! The row groups of a file, one at a time.

use std::fs::File;
use std::path::{Path, PathBuf};

use polars::prelude::{
    DataFrame, DataType, FileMetadataRef, ParallelStrategy, ParquetReader, SerReader,
};

use super::FileError;
use super::table::data_type;
use crate::schema::Type;

/// Frames of chosen columns, a row group each.
pub(crate) struct Frames {
    path: PathBuf,
    file: File,
    metadata: FileMetadataRef,
    columns: Vec<String>,
    group: usize,
    first_row: usize,
}

impl Frames {
    /// Of an open file whose bytes are known to be good; checks that it has the columns.
    pub(crate) fn of(
        file: File,
        path: &Path,
        columns: &[(String, Type)],
    ) -> Result<Self, FileError> {
        let copy = file.try_clone().map_err(FileError::io("open", path))?;
        let mut reader = ParquetReader::new(copy);
        let refused = || FileError::parquet("read", path);
        let metadata = reader.get_metadata().map_err(refused())?.clone();
        let schema = reader.schema().map_err(refused())?;
        for (name, kind) in columns {
            let found = schema.get(name.as_str()).map(DataType::from_arrow_field);
            if found.as_ref() != Some(&data_type(*kind)) {
                let found = found.map_or("nothing".into(), |found| found.to_string());
                let reason = format!("column {name} should hold {}, found {found}", kind.name());
                return Err(FileError::Parquet { doing: "read", path: path.into(), reason });
            }
        }
        let columns = columns.iter().map(|(name, _)| name.clone()).collect();
        Ok(Self { path: path.to_owned(), file, metadata, columns, group: 0, first_row: 0 })
    }

    /// The file, and what was found out about it.
    pub(super) fn into_parts(self) -> (File, FileMetadataRef) {
        (self.file, self.metadata)
    }

    fn read(&self, rows: usize) -> Result<DataFrame, FileError> {
        let file = self.file.try_clone().map_err(FileError::io("read", &self.path))?;
        let mut reader = ParquetReader::new(file)
            .with_columns(Some(self.columns.clone()))
            .with_slice(Some((self.first_row, rows)))
            // By row groups, because that alone leaves out those before the slice.
            .read_parallel(ParallelStrategy::RowGroups);
        reader.set_metadata(self.metadata.clone());
        reader.finish().map_err(FileError::parquet("read", &self.path))
    }
}

impl Iterator for Frames {
    type Item = Result<DataFrame, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = self.metadata.row_groups.get(self.group)?.num_rows();
        let frame = self.read(rows);
        self.group += 1;
        self.first_row += rows;
        Some(frame)
    }
}
