//! The row groups of many files, each readable by itself, so that threads can share them.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polars::prelude::FileMetadataRef;

use super::numbers::{Reason, Room, Stored};
use super::{FileError, Frames};
use crate::schema::Type;

/// One row group.
pub(crate) struct Group {
    file: Arc<Opened>,
    /// Rows in it.
    pub(crate) rows: usize,
    /// Its place in the file.
    place: usize,
}

struct Opened {
    path: PathBuf,
    file: File,
    metadata: FileMetadataRef,
    /// By name: the column's place in the file, and how it is stored.
    columns: HashMap<String, (usize, Stored)>,
}

/// The row groups of a file whose bytes are known to be good and that has the columns.
pub(crate) fn groups(path: &Path, columns: &[(String, Type)]) -> Result<Vec<Group>, FileError> {
    let file = study::folder::open(path).map_err(FileError::io("open", path))?;
    let (file, metadata) = Frames::of(file, path, columns)?.into_parts();
    let mut places = HashMap::new();
    if let Some(group) = metadata.row_groups.first() {
        for (place, column) in group.parquet_columns().iter().enumerate() {
            let name = column.descriptor().path_in_schema.first().map(ToString::to_string);
            places.extend(name.map(|name| (name, place)));
        }
    }
    let stored = columns.iter().filter_map(|(name, kind)| {
        let stored = match kind {
            Type::Bool => Stored::Flags,
            Type::Integer => Stored::Integers,
            Type::Float => Stored::Floats,
            Type::Text => return None,
        };
        Some((name.clone(), (*places.get(name)?, stored)))
    });
    let columns = stored.collect();
    let file = Arc::new(Opened { path: path.to_owned(), file, metadata, columns });
    let groups = file.metadata.row_groups.iter().enumerate();
    let groups = groups.map(|(place, group)| {
        let rows = group.num_rows();
        Group { file: Arc::clone(&file), rows, place }
    });
    Ok(groups.collect())
}

impl Group {
    /// Reads a column of numbers or flags on this thread, NaN for null. Whether there is any value.
    pub(crate) fn numbers(
        &self,
        name: &str,
        room: &mut Room,
        values: &mut Vec<f64>,
    ) -> Result<bool, FileError> {
        let Opened { path, file, metadata, columns } = self.file.as_ref();
        let refused = |reason: Reason| FileError::Parquet {
            doing: "read",
            path: path.clone(),
            reason: format!("column {name}: {reason}"),
        };
        let found = columns.get(name).ok_or_else(|| refused("it was not opened".into()));
        let (place, stored) = *found?;
        let range = metadata.row_groups[self.place].parquet_columns()[place].byte_range();
        let length = (range.end - range.start) as usize;
        if room.chunk.len() < length {
            room.chunk.resize(length, 0);
        }
        let chunk = &mut room.chunk[..length];
        file.read_exact_at(chunk, range.start).map_err(FileError::io("read", path))?;
        values.resize(self.rows, f64::NAN);
        room.decode(length, stored, values).map_err(refused)
    }
}
