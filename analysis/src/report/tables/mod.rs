//! The tables of a report.

mod audit;
pub(super) mod best;
mod bias;
mod coverage;
mod means;
mod methods;
mod rates;
mod regret;
mod summary;

pub(crate) use coverage::{axes, cell as verdict_cell};

use crate::tables::{Cell, Table, Tone};
use crate::{Analysis, Manifest, words};

/// All tables that have rows, each with the dataset's footnote.
pub(crate) fn all(analysis: &Analysis) -> Vec<Table> {
    let mut tables = summary::tables(analysis);
    tables.extend(coverage::tables(analysis));
    tables.push(regret::table(analysis));
    tables.push(audit::table(analysis));
    tables.push(means::table(analysis));
    tables.push(bias::table(analysis));
    tables.extend(rates::tables(analysis));
    tables.push(best::table(analysis));
    tables.push(methods::table(analysis));
    finished(analysis, tables)
}

/// The numbers of verdicts by claim.
pub(crate) fn summary(analysis: &Analysis) -> Vec<Table> {
    finished(analysis, summary::tables(analysis))
}

fn finished(analysis: &Analysis, mut tables: Vec<Table>) -> Vec<Table> {
    tables.retain(|table| !table.rows().is_empty());
    for table in &mut tables {
        table.note(footnote_of(&analysis.dataset.manifest));
    }
    tables
}

/// What every table says of where it comes from.
pub(crate) fn footnote_of(manifest: &Manifest) -> String {
    format!(
        "Study {} (seed {}), {} trials, {} failed. Dataset digest {}, regretta {}. Monte-Carlo standard errors in \
         parentheses.",
        manifest.name,
        manifest.seed,
        words::count(manifest.trials),
        words::count(manifest.failures),
        &manifest.digest[..12.min(manifest.digest.len())],
        manifest.version
    )
}

/// A verdict as a word.
pub(crate) fn verdict(verdict: &str) -> Cell {
    Cell::flag(verdict, tone(verdict))
}

/// How a verdict is emphasised.
fn tone(verdict: &str) -> Tone {
    match verdict {
        "refuted" | "inconsistent" | "contradicted" => Tone::Refuted,
        "confirmed" => Tone::Confirmed,
        "undecided" => Tone::Undecided,
        _ => Tone::Aside,
    }
}

fn text(value: Option<&str>) -> Cell {
    value.map_or(Cell::Empty, Cell::text)
}

fn integer(value: Option<u64>) -> Cell {
    value.map_or(Cell::Empty, |value| Cell::Integer(value.cast_signed()))
}

fn size(value: usize) -> Cell {
    integer(Some(value as u64))
}

fn number(value: Option<f64>, digits: u8) -> Cell {
    value.map_or(Cell::Empty, |value| Cell::Number { value, digits })
}

fn exact(value: Option<f64>) -> Cell {
    value.map_or(Cell::Empty, Cell::Exact)
}
