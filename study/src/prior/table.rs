//! Numeric files: text, or NumPy's NPY.

#[cfg(test)]
mod tests;
mod text;

use super::npy::{self, NpyError};

/// A matrix read from a file. What is missing is NaN, always with the same bits.
#[derive(Clone, Debug)]
pub struct Table {
    columns: usize,
    values: Vec<f64>,
    notice: Option<String>,
}

/// Whether a table may have gaps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gaps {
    Refused,
    Allowed,
}

/// A file that is not a table of numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// A field is not a finite number.
    #[error("{file}, line {line}, column {column}: \"{text}\" is not a finite number")]
    Field {
        /// The file.
        file: String,
        /// Counted from 1, as editors do.
        line: usize,
        /// The field's number, counted from 1.
        column: usize,
        /// The field.
        text: String,
    },
    /// A value of an NPY file is not a finite number.
    #[error("{file}, row {row}, column {column}: {text} is not a finite number")]
    Value {
        /// The file.
        file: String,
        /// Counted from 1, as lines of text are.
        row: usize,
        /// Counted from 1.
        column: usize,
        /// The value.
        text: String,
    },
    /// An NPY file is not a table of numbers.
    #[error("{file}: {why}")]
    Npy {
        /// The file.
        file: String,
        /// What was found, and what to write.
        why: NpyError,
    },
    /// A Parquet file where only text and NPY are read.
    #[error(
        "{file} is a Parquet file; Parquet files are converted when a study is loaded: give CSV or \
         NPY here"
    )]
    Parquet {
        /// The file.
        file: String,
    },
    /// A row is shorter or longer than the first.
    #[error(
        "{file}, line {line}: {found} columns in \"{text}\", but {expected} in the rows before it"
    )]
    Ragged {
        /// The file.
        file: String,
        /// Counted from 1.
        line: usize,
        /// Fields in this row.
        found: usize,
        /// Fields in the rows before it.
        expected: usize,
        /// The row, shortened.
        text: String,
    },
    /// A first row of 0, 1, 2, .. that may be a header or a row.
    #[error(
        "{file}, line {line}: \"{text}\" may be column names, as pandas writes them, or numbers; delete \
         the line (pandas: header=False), or write the numbers as 0.0, 1.0, .."
    )]
    NumberedHeader {
        /// The file.
        file: String,
        /// Counted from 1.
        line: usize,
        /// The row, shortened.
        text: String,
    },
    /// A header that has no name for the first column.
    #[error(
        "{file}, line {line}: the header \"{text}\" has no name for the first column, as where row \
         numbers are written, which are not data; leave them out (pandas: index=False), begin a title \
         with #, and write a missing entry as NaN"
    )]
    UnnamedColumn {
        /// The file.
        file: String,
        /// Counted from 1.
        line: usize,
        /// The header, shortened.
        text: String,
    },
    /// The bytes are not text.
    #[error("{file}, line {line}: not UTF-8 text; give a CSV file")]
    NotText {
        /// The file.
        file: String,
        /// Counted from 1.
        line: usize,
    },
    /// No row at all.
    #[error("{file} has no row of numbers; give at least one")]
    Empty {
        /// The file.
        file: String,
    },
}

/// Gaps in the same places are equal.
impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        let same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
        self.columns == other.columns
            && self.values.len() == other.values.len()
            && self.values.iter().zip(&other.values).all(same)
    }
}

impl Table {
    /// Reads a table in which every number is there; `file` is the name that errors give.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self, TableError> {
        Self::read(file, bytes, Gaps::Refused)
    }

    /// Reads a table in which numbers may be missing: these are NaN.
    pub fn parse_incomplete(file: &str, bytes: &[u8]) -> Result<Self, TableError> {
        Self::read(file, bytes, Gaps::Allowed)
    }

    /// A table of these values, row after row.
    ///
    /// # Panics
    /// Where they do not make up whole rows.
    pub fn from_values(columns: usize, values: Vec<f64>) -> Self {
        assert!(columns > 0 && values.len().is_multiple_of(columns), "whole rows");
        Self { columns, values, notice: None }
    }

    /// What whoever gave the file should know of how it was read.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.values.len() / self.columns
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Row i.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.columns..(i + 1) * self.columns]
    }

    /// All entries, row after row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    fn read(file: &str, bytes: &[u8], gaps: Gaps) -> Result<Self, TableError> {
        if bytes.starts_with(b"PAR1") {
            return Err(TableError::Parquet { file: file.to_owned() });
        }
        let npy = npy::is_npy(bytes);
        let read = if npy { Self::read_npy } else { Self::read_text };
        let table = read(file, bytes, gaps)?;
        if table.values.is_empty() {
            return Err(TableError::Empty { file: file.to_owned() });
        }
        Ok(table)
    }

    fn read_npy(file: &str, bytes: &[u8], gaps: Gaps) -> Result<Self, TableError> {
        let npy::Array { columns, mut values } =
            npy::read(bytes).map_err(|why| TableError::Npy { file: file.to_owned(), why })?;
        for (i, value) in values.iter_mut().enumerate() {
            if value.is_nan() && gaps == Gaps::Allowed {
                *value = f64::NAN;
            } else if !value.is_finite() {
                return Err(TableError::Value {
                    file: file.to_owned(),
                    row: i / columns + 1,
                    column: i % columns + 1,
                    text: value.to_string(),
                });
            }
        }
        Ok(Self { columns, values, notice: None })
    }

    fn read_text(file: &str, bytes: &[u8], gaps: Gaps) -> Result<Self, TableError> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let line = bytes[..error.valid_up_to()].split(|&byte| byte == b'\n').count();
            TableError::NotText { file: file.to_owned(), line }
        })?;
        text::read(file, text, gaps)
    }
}
