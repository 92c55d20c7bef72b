//! A table as text.
//!
//! One row per line, fields separated by commas or, where a line has none, by whitespace. `#` starts a
//! comment, blank lines are skipped. Every row has the same number of fields, and every field is a
//! finite number or, where gaps are allowed, a mark of a missing one: nothing between commas, or a
//! word of [`MISSING`].
//!
//! The first row may be a header:
//!
//! | first row | is |
//! |---|---|
//! | names, no number among them | a header |
//! | 0, 1, .., n - 1 | what pandas writes above columns without names: a header where n > 2 and no other field is an integer (pandas writes the integers of a column of floats as 0.0, 1.0, ..); refused for other n > 1, as it may be a row |
//! | either of these without a name for the first column | refused: the column is that of the row numbers |
//! | anything else | a row |

use super::{Gaps, Table, TableError};

/// The fields that stand for a missing number.
pub(super) const MISSING: [&str; 5] = ["", "NA", "NaN", "nan", "null"];

/// Columns from which on 0, 1, .., n - 1 is unlikely to be a row. Of two, it is a corner of a square.
const NUMBERED: usize = 3;

pub(super) fn read(file: &str, text: &str, gaps: Gaps) -> Result<Table, TableError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().map(|text| text.split('#').next().unwrap_or_default().trim());
    let mut lines = (1..).zip(lines).filter(|(_, text)| !text.is_empty());
    let mut table = Table { columns: 0, values: Vec::new(), notice: None };
    let Some((line, head)) = lines.next() else { return Ok(table) };
    let first = First::of(head);
    let unnamed = || TableError::UnnamedColumn { file: file.to_owned(), line, text: shorten(head) };
    match first {
        First::Unnamed => return Err(unnamed()),
        First::Names => {}
        First::Numbers | First::Row => push(&mut table, file, line, head, gaps)?,
    }
    let (names, mut second, mut integers) = (fields(head).count(), true, false);
    for (line, text) in lines {
        if std::mem::take(&mut second) && first != First::Row && fields(text).count() == names + 1 {
            return Err(unnamed());
        }
        integers |= first == First::Numbers && fields(text).any(is_integer);
        push(&mut table, file, line, text, gaps)?;
    }
    // Numbers alone are a row: there is no other.
    if first == First::Numbers && table.rows() > 1 {
        let text = shorten(head);
        if integers || names < NUMBERED {
            return Err(TableError::NumberedHeader { file: file.to_owned(), line, text });
        }
        table.values.drain(..names);
        table.notice = Some(format!("{file}, line {line}: \"{text}\" was read as column names"));
    }
    Ok(table)
}

/// What the first row is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    Row,
    Names,
    /// 0, 1, .., n - 1, n > 1.
    Numbers,
    /// One of the two, after an empty field.
    Unnamed,
}

impl First {
    fn of(text: &str) -> Self {
        let unnamed = fields(text).count() > 1 && fields(text).next() == Some("");
        let rest = || fields(text).skip(usize::from(unnamed));
        // A row in which all numbers are missing is not a header: dropping it would be silent.
        let names = rest().all(|field| field.parse::<f64>().is_err())
            && !rest().all(|field| MISSING.contains(&field));
        let numbers =
            (0..).zip(rest()).all(|(at, field)| is_integer(field) && field.parse() == Ok(at));
        match (unnamed, names, numbers) {
            (true, true, _) | (true, _, true) => Self::Unnamed,
            (false, true, _) => Self::Names,
            (false, _, true) if fields(text).count() > 1 => Self::Numbers,
            _ => Self::Row,
        }
    }
}

fn push(
    table: &mut Table,
    file: &str,
    line: usize,
    text: &str,
    gaps: Gaps,
) -> Result<(), TableError> {
    let before = table.values.len();
    for (column, field) in (1..).zip(fields(text)) {
        let missing = gaps == Gaps::Allowed && MISSING.contains(&field);
        let number = || field.parse::<f64>().ok().filter(|value| value.is_finite());
        let value = if missing { Some(f64::NAN) } else { number() };
        table.values.push(value.ok_or_else(|| TableError::Field {
            file: file.to_owned(),
            line,
            column,
            text: field.to_owned(),
        })?);
    }
    let found = table.values.len() - before;
    if before == 0 {
        table.columns = found;
    }
    let expected = table.columns;
    if found == expected {
        return Ok(());
    }
    let (file, text) = (file.to_owned(), shorten(text));
    Err(TableError::Ragged { file, line, found, expected, text })
}

fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Whether a field is written as an integer.
fn is_integer(field: &str) -> bool {
    let digits = field.strip_prefix(['-', '+']).unwrap_or(field);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn fields(text: &str) -> impl Iterator<Item = &str> {
    let comma = text.contains(',');
    let separator = move |c: char| if comma { c == ',' } else { c.is_whitespace() };
    // Several blanks in a row separate once; two commas enclose an empty field, which is a gap.
    text.split(separator).map(str::trim).filter(move |field| comma || !field.is_empty())
}
