//! A document with every symbol, every kind of table and a lot of noise: does LaTeX take it?
//!
//! `cargo test -p analysis -- --ignored latex_takes_it`, with `texlive-latex-recommended` installed.

use super::{Align, Cell, Column, Format, Table, fixture, render, symbols};
use std::path::Path;
use std::process::Command;

/// Meaningless text over all that is special, the same on every call.
pub(super) fn noise(count: usize) -> impl Iterator<Item = String> {
    let alphabet: Vec<char> =
        "_^{}()[]√xNTab2*²₁ₓ′\u{302}μΣ≤−+-=/|<½°‖, .'\"`~$%#&\\éö…log".chars().collect();
    let mut state = 1_u64;
    let mut draw = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        alphabet[(state >> 33) as usize % alphabet.len()]
    };
    (0..count).map(move |at| (0..6 + at % 9).map(|_| draw()).collect())
}

fn in_columns(id: &str, texts: impl Iterator<Item = String>) -> Table {
    let column = |at: usize| Column::new(format!("c{at}"), format!("[c_{at}]"), Align::Left);
    let mut table = Table::new(id, "Text in columns: δ_t & more.", (0..4).map(column).collect());
    let cells: Vec<Cell> = texts.map(Cell::text).collect();
    for row in cells.chunks(4) {
        let mut row = row.to_vec();
        row.resize(4, Cell::Empty);
        table.push(row);
    }
    table.note("Digest 0123456789abcdef0123456789abcdef0123456789abcdef.");
    table
}

fn document() -> String {
    let words = "x₀₁₂₃₄₅₆₇₈₉₊₋|x⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ|f′ f″ f‴|k̂ μ̄ x̃|2√(x+√y) √k(x) √|━ 日|“q” – —";
    let symbols = symbols::all().map(|c| format!("{c} x{c}y"));
    let letters = ('À'..='ž').map(String::from);
    let short = in_columns("words", words.split('|').map(str::to_owned));
    let long = in_columns("symbols", symbols.chain(letters));
    let tables = [fixture::audit(), short, long, in_columns("noise", noise(4000))];
    let tables = tables.map(|table| render(&table, Format::Latex)).join("\n");
    let packages =
        r"\usepackage[utf8]{inputenc}\usepackage{amsmath,amssymb,array,booktabs,longtable}";
    format!(
        "\\documentclass{{article}}\n{packages}\n\\begin{{document}}\n{tables}\\end{{document}}\n"
    )
}

fn compile(folder: &Path) -> (bool, String) {
    let arguments = ["-interaction=nonstopmode", "-halt-on-error", "specimen.tex"];
    let run = Command::new("pdflatex").args(arguments).current_dir(folder).output();
    let run = run.expect("pdflatex is installed");
    (run.status.success(), String::from_utf8_lossy(&run.stdout).into_owned())
}

#[test]
#[ignore = "needs pdflatex"]
fn latex_takes_it() {
    let folder = std::env::temp_dir().join(format!("regretta-specimen-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("specimen.tex"), document()).unwrap();
    let (taken, log) = compile(&folder);
    let error = log.find("\n!").map_or("", |at| &log[at..]);
    assert!(taken, "{}: {error}", folder.display());
    std::fs::remove_dir_all(&folder).unwrap();
}
