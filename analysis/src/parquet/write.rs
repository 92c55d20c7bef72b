//! One file from frames, each a row group.

use std::path::Path;

use polars::prelude::{DataFrame, ParquetCompression, ParquetWriter, StatisticsOptions};

use super::{FileError, Sink, table};
use crate::manifest::FileEntry;
use crate::schema::Type;

/// A page holds a column of a row group of 2^15 rows.
const PAGE_BYTES: usize = 1 << 20;

/// Least and greatest value and the number of nulls of every page, texts in full.
const STATISTICS: StatisticsOptions = StatisticsOptions {
    min_value: true,
    max_value: true,
    distinct_count: false,
    null_count: true,
    binary_statistics_truncate_length: Some(0),
};

/// Writes a file of the frames, and brings it to the disk.
pub(crate) fn write<E: From<FileError>>(
    path: &Path,
    name: &str,
    columns: &[(String, Type)],
    frames: impl Iterator<Item = Result<DataFrame, E>>,
) -> Result<FileEntry, E> {
    let mut sink = Sink::create(path)?;
    let written = write_frames(path, &mut sink, columns, frames);
    if let Some(refused) = sink.refused() {
        return Err(refused.into());
    }
    written?;
    Ok(sink.finish(name)?)
}

fn write_frames<E: From<FileError>>(
    path: &Path,
    sink: &mut Sink,
    columns: &[(String, Type)],
    frames: impl Iterator<Item = Result<DataFrame, E>>,
) -> Result<(), E> {
    let refused = || FileError::parquet("write", path);
    let mut writer = ParquetWriter::new(sink)
        .with_compression(ParquetCompression::Snappy)
        .with_statistics(STATISTICS)
        .with_data_page_size(Some(PAGE_BYTES))
        .batched(&table::schema(columns))
        .map_err(refused())?;
    for frame in frames {
        writer.write_batch(&frame?).map_err(refused())?;
    }
    writer.finish().map_err(refused())?;
    Ok(())
}
