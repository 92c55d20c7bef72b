//! `counts.parquet`: for every cell, batch and verdict row, how many trials violated the claim.
//!
//! Studies with `detail = "summary"` keep few records; their verdicts stand on these counts.

use std::borrow::Cow;
use std::fs::File;
use std::path::Path;

use polars::prelude::{DataFrame, PolarsResult};
use study::{CellId, Digest};

use crate::manifest::FileEntry;
use crate::parquet::{self, Datum, FileError, Frames, Table};
use crate::schema::Type;

/// The file's name in a dataset's folder.
pub const NAME: &str = "counts.parquet";

/// What the trials of one batch of a cell say about one verdict row.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// The cell.
    pub cell: CellId,
    /// The batch's number within its cell, from 0.
    pub batch: u64,
    /// The claim.
    pub claim: Cow<'static, str>,
    /// The form of its constants, where it has any.
    pub constants: Option<Cow<'static, str>>,
    /// "probe", "x_star" or "x_next", where it matters.
    pub at: Option<Cow<'static, str>>,
    /// The checkpoint or horizon.
    pub t: u32,
    /// The level.
    pub delta: f64,
    /// The probability of a violation that the claim allows.
    pub budget: f64,
    /// Trials that were measured.
    pub trials: u64,
    /// Violations that count against the claim.
    pub refuting: u64,
    /// Violations that count against its confirmation.
    pub confirming: u64,
    /// Trials that failed.
    pub failures: u64,
}

impl Count {
    /// Feeds every value in the order of the columns.
    pub fn feed(&self, digest: &mut Digest) {
        let optional = |digest: &mut Digest, value: &Option<Cow<'_, str>>| match value {
            Some(value) => _ = digest.u64(1).text(value),
            None => _ = digest.u64(0),
        };
        digest.tag("count").u64(self.cell.0).u64(self.batch).text(&self.claim);
        optional(digest, &self.constants);
        optional(digest, &self.at);
        digest.u64(self.t.into()).f64(self.delta).f64(self.budget);
        digest.u64(self.trials).u64(self.refuting).u64(self.confirming).u64(self.failures);
    }

    fn row(&self) -> [Datum; 12] {
        let text = |value: &str| Datum::Text(value.to_owned());
        let optional = |value: &Option<Cow<'_, str>>| value.as_deref().map_or(Datum::Null, text);
        let integer = |value: u64| Datum::Integer(value.cast_signed());
        [
            Datum::Text(self.cell.to_string()),
            integer(self.batch),
            text(&self.claim),
            optional(&self.constants),
            optional(&self.at),
            integer(self.t.into()),
            Datum::Float(self.delta),
            Datum::Float(self.budget),
            integer(self.trials),
            integer(self.refuting),
            integer(self.confirming),
            integer(self.failures),
        ]
    }
}

fn columns() -> Vec<(String, Type)> {
    let columns = [
        ("cell", Type::Text),
        ("batch", Type::Integer),
        ("claim", Type::Text),
        ("constants", Type::Text),
        ("at", Type::Text),
        ("t", Type::Integer),
        ("delta", Type::Float),
        ("budget", Type::Float),
        ("trials", Type::Integer),
        ("violations_refuting", Type::Integer),
        ("violations_confirming", Type::Integer),
        ("failures", Type::Integer),
    ];
    columns.map(|(name, kind)| (name.to_owned(), kind)).to_vec()
}

/// Writes the counts as they come.
pub(crate) fn write<E: From<FileError>>(
    path: &Path,
    rows: usize,
    mut counts: impl Iterator<Item = Result<Count, E>>,
) -> Result<FileEntry, E> {
    let columns = columns();
    let frames = std::iter::from_fn(|| {
        let mut table = Table::new(&columns, rows);
        let mut filled = 0;
        for count in counts.by_ref().take(rows) {
            match count {
                Ok(count) => table.row(&count.row()),
                Err(error) => return Some(Err(error)),
            }
            filled += 1;
        }
        let finish = || table.finish().map_err(|e| FileError::parquet("write", path)(e).into());
        (filled > 0).then(finish)
    });
    parquet::write(path, NAME, &columns, frames)
}

/// The counts of an open file whose bytes are known to be good.
pub(crate) fn read(
    file: File,
    path: &Path,
) -> Result<impl Iterator<Item = Result<Count, FileError>> + use<>, FileError> {
    let path = path.to_owned();
    let frames = Frames::of(file, &path, &columns())?;
    let rows = move |frame: Result<DataFrame, FileError>| {
        let counts =
            frame.and_then(|frame| of_frame(&frame).map_err(FileError::parquet("read", &path)));
        let (counts, error) = match counts {
            Ok(counts) => (counts, None),
            Err(error) => (vec![], Some(Err(error))),
        };
        counts.into_iter().map(Ok).chain(error)
    };
    Ok(frames.flat_map(rows))
}

fn of_frame(frame: &DataFrame) -> PolarsResult<Vec<Count>> {
    let missing = |name: &str| polars::error::polars_err!(ComputeError: "no valid {}", name);
    let text = |name: &str, row| -> PolarsResult<Option<Cow<'static, str>>> {
        Ok(frame.column(name)?.str()?.get(row).map(|value| value.to_owned().into()))
    };
    let integer = |name: &str, row| -> PolarsResult<u64> {
        let value = frame.column(name)?.i64()?.get(row);
        value.and_then(|value| value.try_into().ok()).ok_or_else(|| missing(name))
    };
    let float = |name: &str, row| -> PolarsResult<f64> {
        frame.column(name)?.f64()?.get(row).ok_or_else(|| missing(name))
    };
    let count = |row| -> PolarsResult<Count> {
        let cell = text("cell", row)?.and_then(|cell| crate::dataset::cell_id(&cell));
        Ok(Count {
            cell: cell.ok_or_else(|| missing("cell"))?,
            batch: integer("batch", row)?,
            claim: text("claim", row)?.ok_or_else(|| missing("claim"))?,
            constants: text("constants", row)?,
            at: text("at", row)?,
            t: integer("t", row)?.try_into().map_err(|_| missing("t"))?,
            delta: float("delta", row)?,
            budget: float("budget", row)?,
            trials: integer("trials", row)?,
            refuting: integer("violations_refuting", row)?,
            confirming: integer("violations_confirming", row)?,
            failures: integer("failures", row)?,
        })
    };
    (0..frame.height()).map(count).collect()
}
