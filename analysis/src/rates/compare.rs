//! Methods against each other, on the same functions and noise: paired differences and ranks.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use study::cell::Policy;

use super::pairs;
use crate::dataset::{DataCell, Dataset};
use crate::pass::{AtResult, CellResult, Series};
use crate::rates::Estimate;
use crate::statistics::{PairedDifferences, paired_differences};
use crate::words;

/// The methods of one prior at one T.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The prior's number.
    pub prior: usize,
    /// T.
    pub t: u32,
    /// delta of the policies that use one.
    pub delta: Option<f64>,
    /// Who all are compared with.
    pub reference: String,
    /// The methods, best first.
    pub entrants: Vec<Entrant>,
}

/// A method.
#[derive(Clone, Debug)]
pub struct Entrant {
    /// Its name.
    pub name: String,
    /// The cell's place in [`Dataset::cells`].
    pub cell: usize,
    /// Mean r_T.
    pub regret: Estimate,
    /// Its rank, from 1; the same as that of the method above it where their paired difference cannot
    /// be told from 0.
    pub rank: usize,
    /// r_T minus that of the reference; `None` for the reference itself.
    pub difference: Option<PairedDifferences>,
}

const LEVEL: f64 = 0.95;

/// Cells at one T, with their places.
type Group<'a> = Vec<(&'a DataCell, usize, &'a AtResult)>;

/// All comparisons of at least two methods.
pub fn compare(dataset: &Dataset, records: &[CellResult]) -> Vec<Comparison> {
    let mut groups: BTreeMap<(usize, u64, u32), Group<'_>> = BTreeMap::new();
    let deltas: Vec<u64> =
        dataset.study.grid.delta.iter().map(|delta| delta.get().to_bits()).collect();
    let any_delta = dataset.cells.iter().any(|cell| cell.cell.policy.delta().is_some());
    for result in records {
        let cell = &dataset.cells[result.cell];
        if cell.cell.policy.design() == "fixed" {
            continue;
        }
        let own = cell.cell.policy.delta().map(|delta| delta.get().to_bits());
        // What uses no delta competes at every one.
        let at_deltas = match own {
            Some(own) => vec![own],
            None if any_delta => deltas.clone(),
            None => vec![0],
        };
        for delta in at_deltas {
            for at in &result.at {
                groups.entry((cell.prior, delta, at.t)).or_default().push((cell, result.cell, at));
            }
        }
    }
    let groups = groups.into_iter().filter(|(_, group)| group.len() > 1);
    groups
        .filter_map(|((prior, delta, t), group)| {
            let delta = any_delta.then(|| f64::from_bits(delta));
            comparison(prior, t, delta, &group)
        })
        .collect()
}

fn comparison(
    prior: usize,
    t: u32,
    delta: Option<f64>,
    group: &[(&DataCell, usize, &AtResult)],
) -> Option<Comparison> {
    let mut order: Vec<&(&DataCell, usize, &AtResult)> =
        group.iter().filter(|(_, _, at)| at.of(Series::BestSample).count >= 2).collect();
    let mean = |at: &AtResult| at.of(Series::BestSample).mean;
    order.sort_by(|a, b| mean(a.2).total_cmp(&mean(b.2)));
    // Random search is what every method should beat; without it, the known prior is the limit.
    let is = |of: fn(&Policy) -> bool| order.iter().position(|(cell, ..)| of(&cell.cell.policy));
    let reference = is(|policy| matches!(policy, Policy::Random))
        .or_else(|| is(|policy| matches!(policy, Policy::KnownUcb { .. } | Policy::KnownPi { .. })))
        .unwrap_or(0);
    let (reference_cell, _, reference_at) = **order.get(reference)?;
    let blocks = |at: &AtResult| at.of(Series::BestSample).blocks.clone();
    let against = |at: &AtResult, other: &AtResult| {
        paired_differences(pairs::pairs(&blocks(at), &blocks(other)).into_iter().flatten(), LEVEL)
    };
    let mut entrants: Vec<Entrant> = Vec::new();
    for (place, (cell, number, at)) in order.iter().enumerate() {
        let series = at.of(Series::BestSample);
        let tied = place > 0
            && against(at, order[place - 1].2)
                .and_then(|paired| paired.interval)
                .is_some_and(|interval| interval.low <= 0.0);
        let rank = if tied { entrants[place - 1].rank } else { place + 1 };
        entrants.push(Entrant {
            name: name(cell),
            cell: *number,
            regret: Estimate {
                value: series.mean,
                error: (series.variance / series.count as f64).sqrt(),
            },
            rank,
            difference: (place != reference).then(|| against(at, reference_at)).flatten(),
        });
    }
    Some(Comparison { prior, t, delta, reference: name(reference_cell), entrants })
}

/// A method with its N.
pub(crate) fn name(cell: &DataCell) -> String {
    let mut name = words::short_policy(&cell.cell).to_owned();
    if let Some(training) = cell.cell.policy.training() {
        _ = write!(name, ", N = {}", training.n);
        if let Some(missing) = training.estimator.missing() {
            _ = write!(name, ", {} missing", words::percent(missing));
        }
    }
    if let Some(constants) = cell.cell.policy.constants()
        && constants == study::cell::PolicyConstants::Corrected
    {
        name += ", corrected ζ_t";
    }
    name
}
