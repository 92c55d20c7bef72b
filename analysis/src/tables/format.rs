//! The formats that a table can be asked for in.

use super::model::Table;
use super::terminal::terminal;
use super::{csv, html, latex, markdown};
use std::fmt;
use std::str::FromStr;

/// Columns of the text format, which knows of no terminal.
const COLUMNS: usize = 100;

/// A rendering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For other programs, in full precision.
    Csv,
    /// For GitHub and text files.
    Markdown,
    /// For papers.
    Latex,
    /// For pages: a fragment.
    Html,
    /// For terminals, without colour.
    Text,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 5] = [Self::Csv, Self::Markdown, Self::Latex, Self::Html, Self::Text];

    /// The name that it is asked for by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Markdown => "md",
            Self::Latex => "tex",
            Self::Html => "html",
            Self::Text => "text",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A format that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFormat(pub String);

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Format::ALL.map(Format::name).join(", ");
        write!(f, "unknown table format `{}`: one of {names}", self.0)
    }
}

impl std::error::Error for UnknownFormat {}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

/// The table in a format, ending in a line break.
pub fn render(table: &Table, format: Format) -> String {
    match format {
        Format::Csv => csv::render(table),
        Format::Markdown => markdown::render(table),
        Format::Latex => latex::render(table),
        Format::Html => html::render(table),
        Format::Text => terminal(table, COLUMNS, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::fixture;

    #[test]
    fn formats_are_found_by_name() {
        for format in Format::ALL {
            assert_eq!(format.name().parse(), Ok(format));
            assert!(render(&fixture::audit(), format).ends_with('\n'));
        }
        let error = "xls".parse::<Format>().unwrap_err().to_string();
        assert_eq!(error, "unknown table format `xls`: one of csv, md, tex, html, text");
    }

    #[test]
    fn an_empty_table_renders() {
        for format in Format::ALL {
            render(&Table::new("empty", "", vec![]), format);
        }
    }
}
