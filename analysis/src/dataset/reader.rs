//! The records of a dataset, in order, a row group at a time.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use polars::prelude::{DataFrame, PolarsResult};
use study::Batch;
use study::folder::{Moment, is_records};
use study::record::{COLUMNS, Kind};

use super::steady::{Patience, within};
use super::{Error, cell_id, check};
use crate::manifest::{FileEntry, Manifest};
use crate::parquet::{FileError, Frames};
use crate::schema;

/// Reads batches of records. It ends after the first error.
pub struct Reader {
    dir: PathBuf,
    opened: Moment,
    manifest: Manifest,
    files: VecDeque<FileEntry>,
    open: Option<(String, Frames)>,
    /// Rows of the open file that were read.
    rows: usize,
    ready: VecDeque<Batch>,
}

impl Reader {
    /// Opens the dataset of a folder.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        Self::open_within(Patience::default(), dir)
    }

    /// The same with other patience.
    pub(crate) fn open_within(patience: Patience, dir: &Path) -> Result<Self, Error> {
        let (opened, manifest) =
            within(patience, dir, || Ok::<_, Error>((Moment::of(dir), Manifest::read(dir)?)))?;
        let mut files: Vec<FileEntry> =
            manifest.files.iter().filter(|file| is_records(&file.name)).cloned().collect();
        files.sort_by(|a, b| a.name.cmp(&b.name));
        let (dir, files) = (dir.to_owned(), files.into());
        Ok(Self { dir, opened, manifest, files, open: None, rows: 0, ready: VecDeque::new() })
    }

    /// What the dataset is.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn read(&mut self) -> Result<Option<Batch>, Error> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            if let Some((name, frames)) = &mut self.open {
                match frames.next() {
                    Some(frame) => {
                        let frame = frame?;
                        self.ready = batches(&frame, name, self.rows)?;
                        self.rows += frame.height();
                    }
                    None => self.open = None,
                }
            } else {
                let Some(entry) = self.files.pop_front() else { return Ok(None) };
                let file = check(&self.dir, &entry)?;
                let path = self.dir.join(&entry.name);
                let frames = Frames::of(file, &path, &schema::of_records())?;
                self.open = Some((entry.name, frames));
                self.rows = 0;
            }
        }
    }
}

impl Iterator for Reader {
    type Item = Result<Batch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.read().map_err(|error| {
            self.files.clear();
            self.open = None;
            // What was read is what the manifest says, by its digests; what is gone since is no damage.
            if self.opened.lasts(&self.dir) { error } else { Error::replaced(&self.dir) }
        });
        batch.transpose()
    }
}

/// The records of a row group, a batch per cell.
fn batches(frame: &DataFrame, name: &str, first: usize) -> Result<VecDeque<Batch>, Error> {
    let cells = frame.column("cell").and_then(|column| column.str());
    let cells = cells.map_err(FileError::parquet("read", Path::new(name)))?;
    let mut ready = VecDeque::new();
    let mut start = 0;
    while start < frame.height() {
        let cell = cells.get(start);
        let length = (start..frame.height()).take_while(|&row| cells.get(row) == cell).count();
        let rows = frame.slice(start.cast_signed() as i64, length);
        ready.push_back(batch(&rows, cell, name, first + start)?);
        start += length;
    }
    Ok(ready)
}

/// Rows of one cell, of which the first has that place in the file.
fn batch(rows: &DataFrame, cell: Option<&str>, name: &str, first: usize) -> Result<Batch, Error> {
    let library = |error| FileError::parquet("read", Path::new(name))(error);
    let bad = |column| move |row| Error::Value { name: name.into(), row: first + row, column };
    let cell = cell.and_then(cell_id).ok_or_else(|| bad("cell")(0))?;
    let replicates = integers(rows, "replicate").map_err(library)?.map_err(bad("replicate"))?;
    let checkpoints = integers(rows, "t").map_err(library)?.map_err(bad("t"))?;
    let statuses = rows.column("status").and_then(|column| column.str()).map_err(library)?;
    let statuses: Vec<&str> = statuses.iter().map(|status| status.unwrap_or("")).collect();
    let columns = COLUMNS.iter().map(|column| bits(rows, column.name, column.kind));
    let columns = columns.collect::<PolarsResult<_>>().map_err(library)?;
    Batch::from_columns(cell, replicates, checkpoints, &statuses, columns)
        .map_err(|source| Error::Records { name: name.into(), row: first, source })
}

/// A column of whole numbers that fit, or the row that has none.
fn integers<T: TryFrom<i64>>(frame: &DataFrame, name: &str) -> PolarsResult<Result<Vec<T>, usize>> {
    let values = frame.column(name)?.i64()?;
    let valid = |(row, value): (usize, Option<i64>)| {
        value.and_then(|value| T::try_from(value).ok()).ok_or(row)
    };
    Ok(values.iter().enumerate().map(valid).collect())
}

fn bits(frame: &DataFrame, name: &str, kind: Kind) -> PolarsResult<Vec<Option<u64>>> {
    let column = frame.column(name)?;
    Ok(match kind {
        Kind::Bool => column.bool()?.iter().map(|value| value.map(u64::from)).collect(),
        Kind::Integer => column.i64()?.iter().map(|value| value.map(i64::cast_unsigned)).collect(),
        Kind::Float => column.f64()?.iter().map(|value| value.map(f64::to_bits)).collect(),
    })
}
