//! LaTeX in the style of booktabs, to be read by `\input`.
//!
//! Long tables break over pages. A table is set smaller if it would not fit a line of 345 pt, the
//! narrowest in common use, and columns of statements share what room the others leave.

use super::cell::{Cell, Tone};
use super::formula;
use super::model::{Row, Table};
use super::plan::Plan;
use std::fmt::Write as _;

/// More lines than this do not fit a page.
const PAGE: f64 = 45.0;

pub(super) fn render(table: &Table) -> String {
    let packages = "% Needs \\usepackage{amsmath,amssymb,array,booktabs,longtable}\n";
    let plan = Plan::new(table);
    let body = if plan.lines(table) > PAGE { long(table, &plan) } else { floating(table, &plan) };
    format!("{packages}{body}")
}

fn floating(table: &Table, plan: &Plan) -> String {
    let (size, columns) = (plan.size.command, plan.columns(table));
    let mut out = format!("\\begin{{table}}[tbp]\n\\centering{size}\n");
    // Above a table the standard classes leave no space under a caption.
    _ = writeln!(out, "\\setlength{{\\belowcaptionskip}}{{6pt}}\n{}", caption(table));
    _ = writeln!(out, "\\begin{{tabular}}{{{columns}}}\n\\toprule\n{}\\midrule", head(table));
    out += &rows(table, plan);
    out += "\\bottomrule\n\\end{tabular}\n";
    if !table.notes.is_empty() {
        _ = write!(out, "\\par\\medskip\n{}", notes(table));
    }
    out + "\\end{table}\n"
}

fn long(table: &Table, plan: &Plan) -> String {
    let (size, columns) = (plan.size.command, plan.columns(table));
    let (count, head) = (table.columns().len(), head(table));
    let aside = |side: char, text: &str| {
        format!(
            "\\multicolumn{{{count}}}{{@{{}}{side}@{{}}}}{{\\footnotesize\\itshape {text}}} \\\\\n"
        )
    };
    let mut out = format!("\\begingroup{size}\n\\begin{{longtable}}{{{columns}}}\n");
    _ = writeln!(out, "{} \\\\\n\\toprule\n{head}\\midrule\n\\endfirsthead", caption(table));
    _ = writeln!(out, "{}\\toprule\n{head}\\midrule\n\\endhead", aside('l', "continued"));
    _ = writeln!(out, "\\midrule\n{}\\endfoot", aside('r', "continued on the next page"));
    out += "\\bottomrule\n\\endlastfoot\n";
    out += &rows(table, plan);
    out += "\\end{longtable}\n";
    if !table.notes.is_empty() {
        _ = write!(out, "\\nopagebreak\\noindent\n{}", notes(table));
    }
    out + "\\endgroup\n"
}

fn caption(table: &Table) -> String {
    format!("\\caption{{{}}}\\label{{tab:{}}}", formula::latex(&table.caption), table.id)
}

fn head(table: &Table) -> String {
    let heads: Vec<&str> =
        table.columns().iter().map(|column| column.head.latex.as_str()).collect();
    line(&heads.join(" & "))
}

fn rows(table: &Table, plan: &Plan) -> String {
    // Rows of several lines need something between them.
    let between = plan.lines(table) > table.rows().len() as f64;
    let mut out = String::new();
    for (at, row) in table.rows().iter().enumerate() {
        let after_cells = at > 0 && matches!(table.rows()[at - 1], Row::Cells(_));
        match row {
            Row::Cells(cells) => {
                out += if between && after_cells { "\\addlinespace[2pt]\n" } else { "" };
                out += &line(&cells.iter().map(cell).collect::<Vec<_>>().join(" & "));
            }
            Row::Group(title) => {
                out += if at == 0 { "" } else { "\\addlinespace\n" };
                let (count, title) = (table.columns().len(), &title.latex);
                let title =
                    format!("\\multicolumn{{{count}}}{{@{{}}l@{{}}}}{{\\textit{{{title}}}}}");
                out += &line(&title);
            }
        }
    }
    out
}

/// A row. One that began with a bracket or a star would be read as an option of the row before.
fn line(cells: &str) -> String {
    let guard = if cells.trim_start().starts_with(['[', '*']) { "{}" } else { "" };
    format!("{guard}{cells} \\\\\n")
}

fn cell(cell: &Cell) -> String {
    let text = cell.latex();
    match cell.tone() {
        Some(Tone::Refuted) => format!("\\textbf{{{text}}}"),
        Some(Tone::Undecided) => format!("\\textit{{{text}}}"),
        _ => text,
    }
}

fn notes(table: &Table) -> String {
    let notes: Vec<String> =
        table.notes.iter().map(|note| breakable(&formula::latex(note))).collect();
    let notes = notes.join("\\par\n");
    format!(
        "\\begin{{minipage}}{{\\linewidth}}\\footnotesize\\raggedright\n{notes}\n\\end{{minipage}}\n"
    )
}

/// Digests may break after every eighth character: TeX has no hyphen for them.
fn breakable(latex: &str) -> String {
    let mut out = String::new();
    for part in latex.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        for (at, c) in part.chars().enumerate() {
            if part.len() > 32 && at > 0 && at % 8 == 0 && c.is_ascii_alphanumeric() {
                out += "\\allowbreak{}";
            }
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{Align, Column, fixture};

    #[test]
    fn the_audit() {
        assert_eq!(render(&fixture::audit()), include_str!("snapshots/audit.tex"));
    }

    #[test]
    fn more_than_a_page_breaks_over_pages() {
        let mut table = Table::new("long", "Long", vec![Column::new("t", "[t]", Align::Right)]);
        (0..45).for_each(|t| table.push(vec![Cell::Integer(t)]));
        assert!(render(&table).contains("6pt}\n\\caption{Long}\\label{tab:long}\n"));
        table.push(vec![Cell::Empty]);
        table.note("Note");
        let long = render(&table);
        assert!(
            long.contains("\\begin{longtable}{@{}r@{}}\n\\caption{Long}\\label{tab:long} \\\\\n")
        );
        assert!(long.contains("\\toprule\n{}[t] \\\\\n\\midrule\n\\endhead\n"));
        assert!(long.ends_with("Note\n\\end{minipage}\n\\endgroup\n"));
    }

    #[test]
    fn digests_can_break() {
        let digest = "0123456789abcdef0123456789abcdef01";
        let broken = "01234567 89abcdef 01234567 89abcdef 01.".replace(' ', "\\allowbreak{}");
        assert_eq!(breakable(&format!("a {digest}.")), format!("a {broken}"));
    }
}
