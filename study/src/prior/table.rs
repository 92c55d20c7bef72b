//! Numeric files: text, or NumPy's NPY.
//!
//! Text has one row per line, fields separated by commas or, where a line has none, by whitespace.
//! `#` starts a comment, blank lines are skipped, and so is a header: a first row with a name in it
//! and no number. Every row has the same number of fields, and every field is a finite number or,
//! where gaps are allowed, a mark of a missing one: nothing between commas, or a word of
//! [`MISSING`].

#[cfg(test)]
mod tests;

use super::npy::{self, NpyError};

/// The fields that stand for a missing number.
const MISSING: [&str; 5] = ["", "NA", "NaN", "nan", "null"];

/// A matrix read from a file. What is missing is NaN, always with the same bits.
#[derive(Clone, Debug)]
pub struct Table {
    columns: usize,
    values: Vec<f64>,
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
        Self { columns, values }
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
        Ok(Self { columns, values })
    }

    fn read_text(file: &str, bytes: &[u8], gaps: Gaps) -> Result<Self, TableError> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let line = bytes[..error.valid_up_to()].split(|&byte| byte == b'\n').count();
            TableError::NotText { file: file.to_owned(), line }
        })?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut table = Self { columns: 0, values: Vec::new() };
        let mut header_possible = true;
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.split('#').next().unwrap_or_default().trim();
            if text.is_empty() {
                continue;
            }
            let header = header_possible && is_header(text);
            header_possible = false;
            if !header {
                table.push(file, line, text, gaps)?;
            }
        }
        Ok(table)
    }

    fn push(&mut self, file: &str, line: usize, text: &str, gaps: Gaps) -> Result<(), TableError> {
        let before = self.values.len();
        for (column, field) in (1..).zip(fields(text)) {
            let missing = gaps == Gaps::Allowed && MISSING.contains(&field);
            let number = || field.parse::<f64>().ok().filter(|value| value.is_finite());
            let value = if missing { Some(f64::NAN) } else { number() };
            self.values.push(value.ok_or_else(|| TableError::Field {
                file: file.to_owned(),
                line,
                column,
                text: field.to_owned(),
            })?);
        }
        let found = self.values.len() - before;
        if before == 0 {
            self.columns = found;
        }
        let expected = self.columns;
        if found == expected {
            return Ok(());
        }
        let text = text.chars().take(40).collect();
        Err(TableError::Ragged { file: file.to_owned(), line, found, expected, text })
    }
}

/// A row in which all numbers are missing is not a header: dropping it would be silent.
fn is_header(text: &str) -> bool {
    fields(text).all(|field| field.parse::<f64>().is_err())
        && !fields(text).all(|field| MISSING.contains(&field))
}

fn fields(text: &str) -> impl Iterator<Item = &str> {
    let comma = text.contains(',');
    let separator = move |c: char| if comma { c == ',' } else { c.is_whitespace() };
    // Several blanks in a row separate once; two commas enclose an empty field, which is a gap.
    text.split(separator).map(str::trim).filter(move |field| comma || !field.is_empty())
}
