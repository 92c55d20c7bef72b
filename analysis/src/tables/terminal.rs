//! Aligned columns for a terminal: long text is broken into lines, numbers never are.

use super::cell::{Cell, Tone};
use super::layout::{pad, width, wrap};
use super::model::{Align, Row, Table};
use std::fmt::Write as _;

/// Spaces between two columns.
const GAP: &str = "  ";
/// Text is not broken into columns narrower than this.
const NARROWEST: usize = 12;

/// The table in `columns` of a terminal, verdicts coloured if asked for. Wider than that only where
/// numbers need it.
pub fn terminal(table: &Table, columns: usize, colour: bool) -> String {
    let widths = widths(table, columns);
    let style = Style { colour };
    let mut out = String::new();
    for line in wrap(&table.caption, columns) {
        _ = writeln!(out, "{line}");
    }
    let heads: Vec<(String, &str)> =
        table.columns().iter().map(|column| (column.head.plain.clone(), style.bold())).collect();
    let total = widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1);
    let rule = "─".repeat(total) + "\n";
    _ = write!(out, "\n{}{rule}", lines(table, &widths, &heads));
    for (at, row) in table.rows().iter().enumerate() {
        match row {
            Row::Cells(cells) => {
                let cells: Vec<(String, &str)> =
                    cells.iter().map(|cell| (cell.plain(), style.of(cell))).collect();
                out += &lines(table, &widths, &cells);
            }
            Row::Group(title) => {
                out += if at == 0 { "" } else { "\n" };
                _ = writeln!(out, "{}", painted(&title.plain, style.bold()));
            }
        }
    }
    out += &rule;
    for line in table.notes.iter().flat_map(|note| wrap(note, columns)) {
        _ = writeln!(out, "{line}");
    }
    out
}

/// Widths of the columns: the widest text gives way until all fit.
fn widths(table: &Table, columns: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = Vec::new();
    for (at, column) in table.columns().iter().enumerate() {
        let cells = table.cells().map(|cells| width(&cells[at].plain()));
        widths.push(cells.max().unwrap_or(0).max(width(&column.head.plain)));
    }
    let gaps = GAP.len() * widths.len().saturating_sub(1);
    let text = |at: &usize| matches!(table.columns()[*at].align, Align::Left | Align::Wrap);
    while widths.iter().sum::<usize>() + gaps > columns {
        let breakable = (0..widths.len()).filter(text).filter(|at| widths[*at] > NARROWEST);
        // Statements give way before names.
        let first = |at: &usize| (table.columns()[*at].align == Align::Wrap, widths[*at]);
        let Some(widest) = breakable.max_by_key(first) else { break };
        widths[widest] -= 1;
    }
    widths
}

/// The lines of a row, each cell painted on its own.
fn lines(table: &Table, widths: &[usize], cells: &[(String, &str)]) -> String {
    let broken: Vec<Vec<String>> =
        cells.iter().zip(widths).map(|((text, _), width)| wrap(text, *width)).collect();
    let mut out = String::new();
    for line in 0..broken.iter().map(Vec::len).max().unwrap_or(0) {
        let mut whole = Vec::new();
        for (at, column) in table.columns().iter().enumerate() {
            let text = broken[at].get(line).map_or("", String::as_str);
            let painted = painted(text, cells[at].1);
            whole.push(pad(&painted, width(text), widths[at], column.align));
        }
        out += whole.join(GAP).trim_end();
        out.push('\n');
    }
    out
}

fn painted(text: &str, style: &str) -> String {
    if style.is_empty() || text.is_empty() {
        text.to_owned()
    } else {
        format!("\u{1b}[{style}m{text}\u{1b}[0m")
    }
}

/// ANSI codes, none without colour.
struct Style {
    colour: bool,
}

impl Style {
    fn bold(&self) -> &'static str {
        if self.colour { "1" } else { "" }
    }

    fn of(&self, cell: &Cell) -> &'static str {
        match cell.tone().filter(|_| self.colour) {
            Some(Tone::Refuted) => "1;31",
            Some(Tone::Confirmed) => "32",
            Some(Tone::Undecided) => "33",
            Some(Tone::Aside) => "2",
            None => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::fixture;

    #[test]
    fn the_audit() {
        assert_eq!(terminal(&fixture::audit(), 100, false), include_str!("snapshots/audit.txt"));
    }

    #[test]
    fn lines_fit_where_they_can() {
        for columns in 90..160 {
            for line in terminal(&fixture::audit(), columns, false).lines() {
                assert!(width(line) <= columns, "{columns}: {line}");
            }
        }
        // Too narrow for the numbers: still a table.
        assert!(terminal(&fixture::audit(), 10, false).contains("0.012 (0.003)"));
    }

    #[test]
    fn colours_only_paint() {
        let coloured = terminal(&fixture::audit(), 100, true);
        assert!(coloured.contains("\u{1b}[1;31mrefuted\u{1b}[0m"));
        let mut plain = coloured.replace("\u{1b}[0m", "");
        for code in ["1;31", "32", "33", "2", "1"] {
            plain = plain.replace(&format!("\u{1b}[{code}m"), "");
        }
        assert_eq!(plain, terminal(&fixture::audit(), 100, false));
    }
}
