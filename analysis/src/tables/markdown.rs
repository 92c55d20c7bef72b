//! Markdown as GitHub reads it: a pipe table, padded so that its source reads as text too.

use super::cell::{Cell, Tone};
use super::layout::{pad, width};
use super::model::{Align, Row, Table};
use super::symbols;
use std::fmt::Write as _;

pub(super) fn render(table: &Table) -> String {
    let columns = table.columns();
    let heads: Vec<String> =
        columns.iter().map(|column| escape(&column.head.plain, false)).collect();
    let mut lines = vec![heads];
    for row in table.rows() {
        lines.push(match row {
            Row::Cells(cells) => cells.iter().map(cell).collect(),
            Row::Group(title) => {
                let mut line = vec![String::new(); columns.len()];
                if let Some(first) = line.first_mut() {
                    *first = format!("**{}**", escape(&title.plain, true));
                }
                line
            }
        });
    }
    let widest = |at: usize| lines.iter().map(|line: &Vec<String>| width(&line[at])).max();
    // A rule needs three dashes, and a colon at either end.
    let widths: Vec<usize> = (0..columns.len()).map(|at| widest(at).unwrap_or(0).max(3)).collect();
    let aligns: Vec<Align> = columns.iter().map(|column| column.align).collect();
    let rule = aligns.iter().zip(&widths).map(|(align, width)| rule(*align, *width)).collect();
    lines.insert(1, rule);
    let mut out = format!("{}\n\n", escape(&table.caption, false));
    for line in &lines {
        for (at, text) in line.iter().enumerate() {
            _ = write!(out, "| {} ", pad(text, width(text), widths[at], aligns[at]));
        }
        out += "|\n";
    }
    for note in &table.notes {
        _ = writeln!(out, "\n{}", escape(note, false));
    }
    out
}

fn rule(align: Align, width: usize) -> String {
    match align {
        Align::Left | Align::Wrap => "-".repeat(width),
        Align::Right => "-".repeat(width - 1) + ":",
        Align::Center => format!(":{}:", "-".repeat(width - 2)),
    }
}

fn cell(cell: &Cell) -> String {
    let text = escape(&cell.plain(), cell.tone().is_some());
    match cell.tone() {
        Some(Tone::Refuted) => format!("**{text}**"),
        Some(Tone::Undecided) => format!("_{text}_"),
        _ => text,
    }
}

/// Escapes what would be read as markup, and nothing else: formulas should stay readable. Within
/// an emphasis any star could end it.
fn escape(text: &str, emphasised: bool) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::new();
    for (at, c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| chars[at]);
        let after = chars.get(at + 1).copied();
        let marks = match c {
            '|' | '\\' | '`' | '~' | '$' => true,
            '*' | '_' if emphasised => true,
            '*' => opens(before, after),
            '_' => opens(before, after) && !before.is_some_and(is_wordy),
            '<' => after.is_some_and(|c| c.is_alphabetic() || matches!(c, '/' | '!' | '?')),
            '&' => after.is_some_and(|c| c.is_alphanumeric() || c == '#'),
            ']' => matches!(after, Some('(' | '[')),
            '#' | '>' | '-' | '+' => at == 0,
            _ => false,
        };
        if marks {
            out.push('\\');
        }
        out.push(if c.is_whitespace() || c.is_control() { ' ' } else { *c });
    }
    out
}

/// Whether a `*` or `_` between two characters can open an emphasis (left-flanking, in the words of
/// the specification). One that cannot, without one that can, stays what it is.
fn opens(before: Option<char>, after: Option<char>) -> bool {
    let Some(after) = after else { return false };
    !after.is_whitespace() && (!after.is_ascii_punctuation() || !before.is_some_and(is_wordy))
}

fn is_wordy(c: char) -> bool {
    c.is_alphanumeric() || symbols::accent(c).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::fixture;

    #[test]
    fn the_audit() {
        assert_eq!(render(&fixture::audit()), include_str!("snapshots/audit.md"));
    }

    #[test]
    fn only_markup_is_escaped() {
        for (plain, expected) in [
            ("μ̂_t(x*) < μ_t(x*) < a", "μ̂_t(x*) < μ_t(x*) < a"),
            ("_x_ *y* a|b `c` ~d~", r"\_x_ \*y* a\|b \`c\` \~d\~"),
            ("<b> &amp; A & B", r"\<b> \&amp; A & B"),
            ("[0.1, 0.2] [a](b)", r"[0.1, 0.2] [a\](b)"),
            ("two\nlines", "two lines"),
            (r"\|", r"\\\|"),
            ("# a", r"\# a"),
        ] {
            assert_eq!(escape(plain, false), expected);
        }
    }
}
