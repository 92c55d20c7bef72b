//! A table as a fragment of HTML, in a container of its own that scrolls where it is too wide.

use super::cell::Cell;
use super::model::{Align, Row, Table};
use super::script;
use std::fmt::Write as _;

pub(super) fn render(table: &Table) -> String {
    let id = escape(&table.id);
    let mut out = format!(
        "<div class=\"table\">\n<div class=\"scroll\" role=\"region\" aria-labelledby=\"{id}-caption\" \
         tabindex=\"0\">\n<table id=\"{id}\">\n"
    );
    let caption = formula(&table.caption);
    _ = write!(out, "<caption id=\"{id}-caption\"><span>{caption}</span></caption>\n<thead>\n<tr>");
    for column in table.columns() {
        let class = class(column.align);
        _ = write!(out, "<th scope=\"col\"{class}>{}</th>", formula(&column.head.plain));
    }
    out += "</tr>\n</thead>\n<tbody>\n";
    for (at, row) in table.rows().iter().enumerate() {
        match row {
            Row::Cells(cells) => out += &cells_of(table, cells),
            Row::Group(title) => {
                out += if at == 0 { "" } else { "</tbody>\n<tbody>\n" };
                let (count, title) = (table.columns().len(), formula(&title.plain));
                out += "<tr class=\"group\">";
                _ = writeln!(out, "<th scope=\"rowgroup\" colspan=\"{count}\">{title}</th></tr>");
            }
        }
    }
    out += "</tbody>\n</table>\n</div>\n";
    for note in &table.notes {
        _ = writeln!(out, "<p class=\"note\">{}</p>", formula(note));
    }
    out + "</div>\n"
}

/// A row, named by its first cell.
fn cells_of(table: &Table, cells: &[Cell]) -> String {
    let mut out = String::from("<tr>");
    for (at, (column, cell)) in table.columns().iter().zip(cells).enumerate() {
        let text = formula(&cell.plain());
        let text = match cell.tone() {
            Some(tone) => format!("<span class=\"verdict {}\">{text}</span>", tone.class()),
            None => text,
        };
        let class = class(column.align);
        let (tag, scope) = if at == 0 { ("th", " scope=\"row\"") } else { ("td", "") };
        _ = write!(out, "<{tag}{scope}{class}>{text}</{tag}>");
    }
    out + "</tr>\n"
}

fn class(align: Align) -> &'static str {
    match align {
        Align::Left => "",
        Align::Right => " class=\"num\"",
        Align::Center => " class=\"mid\"",
        Align::Wrap => " class=\"wrap\"",
    }
}

/// Escaped for text and for quoted attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            c if c.is_control() && c != '\n' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Escaped, with `x_t` lowered and `10^5` raised.
fn formula(text: &str) -> String {
    scripts(&text.chars().collect::<Vec<_>>())
}

fn scripts(chars: &[char]) -> String {
    let (mut out, mut from, mut at) = (String::new(), 0, 0);
    while at < chars.len() {
        let script = if script::is_script(chars, at) { script::operand(chars, at) } else { None };
        let Some((range, end)) = script else {
            at += 1;
            continue;
        };
        let tag = if chars[at] == '_' { "sub" } else { "sup" };
        out += &escape(&chars[from..at].iter().collect::<String>());
        _ = write!(out, "<{tag}>{}</{tag}>", scripts(&chars[range]));
        (from, at) = (end, end);
    }
    out + &escape(&chars[from..].iter().collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::fixture;

    #[test]
    fn the_audit() {
        assert_eq!(render(&fixture::audit()), include_str!("snapshots/audit.html"));
    }

    #[test]
    fn everything_special_is_escaped() {
        assert_eq!(escape("<a href=\"x\">&'\u{7}"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39; ");
    }

    #[test]
    fn scripts_are_lowered_and_raised() {
        assert_eq!(
            formula("ι_{τ−1} < x^2 in n_rows"),
            "ι<sub>τ−1</sub> &lt; x<sup>2</sup> in n_rows"
        );
        assert_eq!(formula("x_{y_<}"), "x<sub>y_&lt;</sub>");
    }
}
