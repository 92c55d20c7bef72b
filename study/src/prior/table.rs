//! Numeric text files.
//!
//! One row per line, fields separated by commas or, where a line has none, by whitespace. `#`
//! starts a comment, blank lines are skipped, and so is a header: a first row in which no field is a
//! number. Every row has the same number of fields, and every field is a finite number.

/// A matrix read from text.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    columns: usize,
    values: Vec<f64>,
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

impl Table {
    /// Reads a table; `file` is the name that errors give.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self, TableError> {
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
            let header = header_possible && fields(text).all(|field| field.parse::<f64>().is_err());
            header_possible = false;
            if !header {
                table.push(file, line, text)?;
            }
        }
        if table.values.is_empty() {
            return Err(TableError::Empty { file: file.to_owned() });
        }
        Ok(table)
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

    fn push(&mut self, file: &str, line: usize, text: &str) -> Result<(), TableError> {
        let before = self.values.len();
        for (column, field) in (1..).zip(fields(text)) {
            let value = field.parse::<f64>().ok().filter(|value| value.is_finite());
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

fn fields(text: &str) -> impl Iterator<Item = &str> {
    let comma = text.contains(',');
    let separator = move |c: char| if comma { c == ',' } else { c.is_whitespace() };
    // Several blanks in a row separate once; two commas enclose an empty field, which is an error.
    text.split(separator).map(str::trim).filter(move |field| comma || !field.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Table, TableError> {
        Table::parse("k.csv", text.as_bytes())
    }

    fn error(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn commas_blanks_headers_and_comments() {
        let expected = Table { columns: 2, values: vec![1.0, -2.5, 3e-7, 4.0] };
        for text in [
            "1,-2.5\n3e-7,4\n",
            "1 -2.5\n3e-7   4",
            "\u{feff}x, y\r\n1,\t-2.5\r\n\r\n3e-7 , 4\r\n",
            "# made by hand\nx y # a header\n1 -2.5 # first\n\n  3e-7\t4  \n",
        ] {
            let table = parse(text).unwrap();
            assert_eq!(table, expected, "{text:?}");
            assert_eq!((table.rows(), table.columns(), table.row(1)), (2, 2, &[3e-7, 4.0][..]));
        }
    }

    #[test]
    fn errors_name_the_place_and_the_text() {
        assert_eq!(
            error("x,y\n1,2\n3,four\n"),
            "k.csv, line 3, column 2: \"four\" is not a finite number"
        );
        assert_eq!(error("1,,2"), "k.csv, line 1, column 2: \"\" is not a finite number");
        assert_eq!(error("1 nan"), "k.csv, line 1, column 2: \"nan\" is not a finite number");
        assert_eq!(error("inf"), "k.csv, line 1, column 1: \"inf\" is not a finite number");
        assert_eq!(
            error("1 2\n\n3 4 5"),
            "k.csv, line 3: 3 columns in \"3 4 5\", but 2 in the rows before it"
        );
        assert_eq!(error("x,y\n"), "k.csv has no row of numbers; give at least one");
        assert_eq!(
            Table::parse("k.csv", b"1\n2\xff\n").unwrap_err().to_string(),
            "k.csv, line 2: not UTF-8 text; give a CSV file"
        );
    }

    #[test]
    fn a_second_header_is_an_error() {
        assert!(error("x\ny\n1").starts_with("k.csv, line 2, column 1: \"y\""));
    }
}
