//! The trials that come closest to violating a claim, or violate it most.

use rayon::prelude::*;
use serde::Serialize;
use study::CellId;
use study::rows::{Row, rows};
use study::tally::Contexts;
use theory::Measurement;
use theory::claims::{At, Outcome, Quantities, Quantity, Trial as _};

use super::columns::Columns;
use super::{Error, check_files, open, starts};
use crate::dataset::{DataCell, Dataset};

/// A trial at one row of the verdicts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// `regretta replay` takes it.
    pub address: String,
    /// t.
    pub t: u32,
    /// delta.
    pub delta: f64,
    /// The form of the constants.
    pub constants: Option<String>,
    /// Where the claim is evaluated.
    pub at: Option<String>,
    /// The share of the bound that is used, where the claim bounds a number; above 1 it is violated.
    pub used: Option<f64>,
    /// Whether the claim is violated, with rho's upper end.
    pub violated: bool,
}

/// The rows of one cell that are about the claim.
struct Asked {
    rows: Vec<(Row, Contexts)>,
}

/// At most `count` trials of the planned rows of a claim: those that use most of its bound, or, where it
/// bounds no single number, the first that violate it.
pub fn worst(dataset: &Dataset, claim: &str, count: usize) -> Result<Vec<Trial>, Error> {
    let asked: Vec<Asked> = dataset.cells.iter().map(|cell| asked(dataset, cell, claim)).collect();
    let starts = starts(dataset);
    check_files(dataset)?;
    let groups = open(dataset)?;
    let found = groups
        .par_iter()
        .map_init(Columns::default, |columns, (first, group)| {
            let rows = *first..first + group.rows as u64;
            let of = |cell: usize| starts[cell] < rows.end && starts[cell + 1] > rows.start;
            let cells: Vec<usize> =
                (0..asked.len()).filter(|&cell| of(cell) && !asked[cell].rows.is_empty()).collect();
            if cells.is_empty() {
                return Ok(vec![]);
            }
            columns.read(
                group,
                Quantity::ALL.into_iter().fold(Quantities::default(), Quantities::with),
            )?;
            let mut found = Vec::new();
            for cell in cells {
                let begin = starts[cell].max(rows.start);
                for row in begin..starts[cell + 1].min(rows.end) {
                    let data = &dataset.cells[cell];
                    let place = row - starts[cell];
                    let per_trial = data.checkpoints.len() as u64;
                    let t = data.checkpoints[(place % per_trial) as usize];
                    let at = (row - first) as usize;
                    if !columns.is_measured(at) {
                        continue;
                    }
                    let m = columns.measurement(at, t);
                    let replicate = place / per_trial;
                    found.extend(judge(dataset, data.id, replicate, &asked[cell], &m));
                }
            }
            keep(&mut found, count);
            Ok(found)
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let mut found: Vec<Trial> = found.into_iter().flatten().collect();
    keep(&mut found, count);
    Ok(found)
}

fn asked(dataset: &Dataset, cell: &DataCell, claim: &str) -> Asked {
    let mut listed = rows(&dataset.study, &cell.cell);
    listed.retain(|row| row.claim.id == claim);
    let contexts = dataset.contexts(cell, &listed);
    Asked { rows: listed.into_iter().zip(contexts).collect() }
}

fn keep(found: &mut Vec<Trial>, count: usize) {
    let key = |trial: &Trial| trial.used.unwrap_or(f64::from(u8::from(trial.violated)));
    // The sort is stable, so that trials that are alike stay in the order of the dataset.
    found.sort_by(|a, b| key(b).total_cmp(&key(a)));
    found.truncate(count);
}

fn judge(
    dataset: &Dataset,
    cell: CellId,
    replicate: u64,
    asked: &Asked,
    m: &Measurement,
) -> Vec<Trial> {
    let rows = asked.rows.iter().filter(|(row, _)| row.t == m.t);
    rows.filter_map(|(row, contexts)| {
        let violated = row.claim.evaluate(&contexts.refuting, m) == Outcome::Violated;
        let used = used(row, contexts, m);
        (violated || used.is_some()).then(|| Trial {
            address: dataset.address(cell, replicate),
            t: row.t,
            delta: row.delta.get(),
            constants: row.form.map(|form| form.name().to_owned()),
            at: row.at.map(|at| at.to_string()),
            used,
            violated,
        })
    })
    .collect()
}

/// The share of the bound that a trial uses.
fn used(row: &Row, contexts: &Contexts, m: &Measurement) -> Option<f64> {
    let context = &contexts.refuting;
    if let Some(regret) = row.claim.bound {
        let bound = (regret.bound.one)(context, m)?;
        return (bound > 0.0).then(|| m.value(regret.regret()) / bound);
    }
    if row.claim.id != "lemma1.mean" {
        return None;
    }
    let at = match row.at? {
        At::Probe => m.probe,
        At::Star => m.star,
        At::Next => m.next,
        At::Observed => m.observed,
    };
    Some(at?.error / context.a()?)
}
