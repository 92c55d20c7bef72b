//! What a table is: columns, rows of cells with optional group titles between them, notes.

use super::cell::Cell;
use super::words::Words;

/// A table, before any rendering.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Stem of the table's files, and its label.
    pub id: String,
    /// What the table shows.
    pub caption: String,
    /// Lines under the table: what a reader must know, versions, digests.
    pub notes: Vec<String>,
    columns: Vec<Column>,
    rows: Vec<Row>,
}

/// A column's name for machines, its head for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name in CSV.
    pub key: String,
    /// Head everywhere else.
    pub head: Words,
    /// How its cells are set.
    pub align: Align,
}

/// How the cells of a column are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text of one line.
    Left,
    /// Numbers.
    Right,
    /// Verdicts and other short words.
    Center,
    /// Text that may take several lines: statements.
    Wrap,
}

/// A line of a table's body.
#[derive(Clone, Debug, PartialEq)]
pub enum Row {
    /// The title over the rows that follow, up to the next title.
    Group(Words),
    /// A cell per column.
    Cells(Vec<Cell>),
}

impl Column {
    /// A column of the given name and head.
    pub fn new(key: impl Into<String>, head: impl Into<Words>, align: Align) -> Self {
        Self { key: key.into(), head: head.into(), align }
    }
}

impl Table {
    /// A table without rows.
    pub fn new(id: impl Into<String>, caption: impl Into<String>, columns: Vec<Column>) -> Self {
        let (id, caption) = (id.into(), caption.into());
        Self { id, caption, notes: Vec::new(), columns, rows: Vec::new() }
    }

    /// Adds a row.
    ///
    /// # Panics
    ///
    /// Unless there is a cell per column.
    pub fn push(&mut self, cells: Vec<Cell>) {
        assert_eq!(
            cells.len(),
            self.columns.len(),
            "a row of table {} has a cell per column",
            self.id
        );
        self.rows.push(Row::Cells(cells));
    }

    /// Adds the title of a group: the rows that follow belong to it.
    pub fn group(&mut self, title: impl Into<Words>) {
        self.rows.push(Row::Group(title.into()));
    }

    /// Adds a line under the table.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// The columns, from the left.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The body, from the top.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Whether any rows stand under a title.
    pub(super) fn is_grouped(&self) -> bool {
        self.rows.iter().any(|row| matches!(row, Row::Group(_)))
    }

    /// The rows that hold cells.
    pub(super) fn cells(&self) -> impl Iterator<Item = &[Cell]> {
        self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => Some(cells.as_slice()),
            Row::Group(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "a row of table t has a cell per column")]
    fn a_short_row_is_refused() {
        Table::new("t", "", vec![Column::new("a", "a", Align::Left)]).push(vec![]);
    }
}
