//! The TOML document as a tree in which every value knows its line.

use std::collections::BTreeMap;
use std::fmt;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::FileError;

/// How much of a value or a key a message repeats.
const SHOWN: usize = 60;

/// A value and the line that it stands on.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) line: usize,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Integer(i128),
    Float(f64),
    Bool(bool),
    /// A date, or a number that no type holds: kept as written, valid nowhere.
    Other(String),
    List(Vec<Node>),
    Table(Table),
}

/// Values by key; a table's own line is that of its key.
pub(super) type Table = BTreeMap<String, Node>;

/// Where offsets into the text become lines.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        Self(text.match_indices('\n').map(|(at, _)| at).collect())
    }

    fn at(&self, offset: usize) -> usize {
        1 + self.0.partition_point(|&end| end < offset)
    }
}

/// Reads a document.
pub(super) fn parse(file: &str, text: &str) -> Result<Table, FileError> {
    let lines = Lines::new(text);
    let document = DeTable::parse(text).map_err(|error| FileError {
        file: file.into(),
        line: lines.at(error.span().map_or(0, |span| span.start)),
        key: String::new(),
        value: None,
        reason: format!("not TOML: {}", error.message()),
        valid: "docs/study-file.md shows a study file".to_owned(),
    })?;
    Ok(table(document.into_inner(), &lines))
}

fn table(table: DeTable<'_>, lines: &Lines) -> Table {
    let entry = |(key, value): (Spanned<_>, Spanned<DeValue<'_>>)| {
        // Tables, and lists of them, span their content; their key says where they begin.
        let line = match value.get_ref() {
            DeValue::Table(_) | DeValue::Array(_) => lines.at(key.span().start),
            _ => lines.at(value.span().start),
        };
        let key: std::borrow::Cow<'_, str> = key.into_inner();
        (key.into_owned(), Node { value: convert(value.into_inner(), lines), line })
    };
    table.into_iter().map(entry).collect()
}

fn convert(value: DeValue<'_>, lines: &Lines) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => i128::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| Value::Other(number.to_string()), Value::Integer),
        DeValue::Float(number) => {
            number.as_str().parse().map_or_else(|_| Value::Other(number.to_string()), Value::Float)
        }
        DeValue::Boolean(flag) => Value::Bool(flag),
        DeValue::Datetime(date) => Value::Other(date.to_string()),
        DeValue::Array(items) => Value::List(
            items
                .into_iter()
                .map(|item| {
                    let line = lines.at(item.span().start);
                    Node { value: convert(item.into_inner(), lines), line }
                })
                .collect(),
        ),
        DeValue::Table(items) => Value::Table(table(items, lines)),
    }
}

impl Value {
    /// A scalar as text, in full.
    pub(super) fn to_full(&self) -> String {
        match self {
            Self::Text(text) | Self::Other(text) => format!("{text:?}"),
            scalar => scalar.to_string(),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(&quoted(text)),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number:?}"),
            Self::Bool(flag) => write!(f, "{flag}"),
            Self::Other(text) => f.write_str(&shortened(text)),
            Self::List(items) if items.is_empty() => f.write_str("[]"),
            Self::List(_) => f.write_str("[..]"),
            Self::Table(_) => f.write_str("{ .. }"),
        }
    }
}

/// A text in quotation marks, without line breaks and not too long.
fn quoted(text: &str) -> String {
    format!("\"{}\"", shortened(text))
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN).is_some() {
        short.push_str("..");
    }
    short
}

/// `parent.key`, with quotation marks where TOML needs them.
pub(super) fn dotted(parent: &str, key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let key = if !key.is_empty() && key.len() <= SHOWN && key.chars().all(bare) {
        key.to_owned()
    } else {
        quoted(key)
    };
    if parent.is_empty() { key } else { format!("{parent}.{key}") }
}
