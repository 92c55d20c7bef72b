//! What is asked of every record of a cell, with its constants at hand.

use std::collections::BTreeSet;

use study::family::RowKey;
use study::rows::{MeanRow, Row, mean_rows, rows, rows_at};
use study::tally::Contexts;
use theory::Delta;
use theory::claims::{
    self, Claim, Context, Predicate, Quantities, Quantity, RegretBound, Statistic, Test,
};

use super::partial::SERIES;
use super::rivals::is_random;
use super::{Asked, Extent};
use crate::dataset::{DataCell, Dataset};

/// The questions of a cell.
pub(super) struct Questions {
    /// The rows of verdicts.
    pub(super) rows: Vec<Row>,
    /// Why they are there.
    pub(super) rows_asked: Parts,
    /// The claims about means.
    pub(super) means: Vec<MeanRow>,
    /// Why they are there.
    pub(super) means_asked: Parts,
    /// By checkpoint.
    pub(super) at: Vec<AtCheckpoint>,
    /// All that is read to answer them.
    pub(super) reads: Quantities,
    /// The series that are kept trial by trial.
    pub(super) kept: Kept,
}

/// A list of what is planned, then at further deltas, then of what was planned before the study was changed.
pub(super) struct Parts {
    planned: usize,
    further: usize,
}

impl Parts {
    /// Why the row at a place of the list is there.
    pub(super) fn of(&self, place: usize) -> Asked {
        match place {
            _ if place < self.planned => Asked::Planned,
            _ if place < self.planned + self.further => Asked::Further,
            _ => Asked::Before,
        }
    }
}

/// What is done with a series at the checkpoints of the grid.
#[derive(Clone, Copy)]
pub(super) struct Kept {
    /// Those that leave a row group.
    pub(super) series: Quantities,
    /// Those of which single values are kept for the whole cell.
    pub(super) values: Quantities,
    /// Whether they are summed.
    pub(super) is_summed: bool,
}

impl Kept {
    fn new(cell: &DataCell, rows: &[Row], extent: Extent) -> Self {
        let policy = &cell.cell.policy;
        let is_all = extent == Extent::All;
        let is_random = is_random(cell);
        let has_tightness = rows.iter().any(|row| row.claim.id == "lemma1.mean");
        let keeps = |series: &Quantity| match series {
            // The bounds on the other methods' regret are compared with random search.
            Quantity::BestSampleRegret => is_all || is_random,
            Quantity::SimpleRegret => is_random,
            Quantity::ErrorProbe => is_all || has_tightness,
            Quantity::RatioProbe => is_all && policy.design() == "fixed",
            _ => false,
        };
        let all = |series: &Quantity| is_all || keeps(series);
        let set = |some: &dyn Fn(&Quantity) -> bool| {
            SERIES.into_iter().filter(|one| some(one)).fold(Quantities::default(), Quantities::with)
        };
        Self { series: set(&all), values: set(&keeps), is_summed: is_all }
    }
}

/// What is asked at one checkpoint.
#[derive(Default)]
pub(super) struct AtCheckpoint {
    pub(super) t: u32,
    /// Whether it is a T of the grid; at other steps invariants are checked, and what was planned before.
    pub(super) on_grid: bool,
    pub(super) watches: Vec<Watch>,
    pub(super) means: Vec<MeanWatch>,
    pub(super) invariants: Vec<Invariant>,
    /// The bounds on regret, in the order of the watches that have one.
    pub(super) bounds: Vec<RegretBound>,
}

/// A row of the verdicts.
pub(super) struct Watch {
    pub(super) row: usize,
    pub(super) holds: Predicate,
    pub(super) contexts: Contexts,
    /// The bound on regret, and its place among those of the checkpoint.
    pub(super) bound: Option<(usize, RegretBound)>,
    /// Whether the statement is a step of a proof that speaks of x*, so that trials in which it was not
    /// observed yet are of interest by themselves.
    pub(super) is_step: bool,
}

/// A claim about a mean.
pub(super) struct MeanWatch {
    pub(super) row: usize,
    pub(super) statistic: Statistic,
    pub(super) expected: f64,
    pub(super) context: Context,
}

/// What must be true of every record.
pub(super) struct Invariant {
    pub(super) claim: &'static Claim,
    pub(super) holds: Predicate,
    pub(super) context: Context,
}

impl Questions {
    /// All questions of a cell, those at further deltas included.
    pub(super) fn new(
        dataset: &Dataset,
        cell: &DataCell,
        further: &[Delta],
        extent: Extent,
    ) -> Self {
        let study = &dataset.study;
        let mut all = rows(study, &cell.cell);
        let planned = all.len();
        if cell.cell.policy.delta().is_none() {
            all.extend(rows_at(study, &cell.cell, further));
        }
        let rows_asked = Parts { planned, further: all.len() - planned };
        let mut means = mean_rows(study, &cell.cell);
        let means_asked = Parts { planned: means.len(), further: 0 };
        if dataset.is_changed() {
            let mut known: BTreeSet<RowKey> = all[..planned].iter().map(Row::key).collect();
            known.extend(means.iter().map(MeanRow::key));
            for earlier in &dataset.earlier {
                let before = rows(&earlier.study, &cell.cell);
                all.extend(before.into_iter().filter(|row| known.insert(row.key())));
                let before = mean_rows(&earlier.study, &cell.cell);
                means.extend(before.into_iter().filter(|row| known.insert(row.key())));
            }
        }
        let checkpoint = |&t: &u32| {
            let on_grid = study.grid.t.contains(&t);
            AtCheckpoint { t, on_grid, ..AtCheckpoint::default() }
        };
        let mut at: Vec<AtCheckpoint> = cell.checkpoints.iter().map(checkpoint).collect();
        watch_rows(&mut at, dataset, cell, &all);
        watch_means(&mut at, dataset, cell, &means);
        watch_invariants(&mut at, dataset, cell);
        let kept = Kept::new(cell, &all, extent);
        let reads = at.iter().map(AtCheckpoint::reads).fold(kept.series, Quantities::and);
        Self { rows: all, rows_asked, means, means_asked, at, reads, kept }
    }
}

impl AtCheckpoint {
    /// Whether more than invariants is asked.
    pub(super) fn is_asked(&self) -> bool {
        self.on_grid || !self.watches.is_empty() || !self.means.is_empty()
    }

    fn reads(&self) -> Quantities {
        // Whether a trial failed is seen in its regret.
        let mut all = Quantities::default().with(Quantity::BestSampleRegret);
        for Invariant { holds, context, .. } in &self.invariants {
            all = all.and((holds.reads)(context));
        }
        for MeanWatch { statistic, context, .. } in &self.means {
            all = all.and((statistic.reads)(context));
        }
        for Watch { holds, contexts, bound, is_step, .. } in &self.watches {
            for context in [&contexts.refuting].into_iter().chain(&contexts.confirming) {
                all = all.and((holds.reads)(context));
            }
            if bound.is_some() {
                all = all.with(Quantity::FRange);
            }
            if *is_step {
                all = all.with(Quantity::StarSeenTau);
            }
        }
        all
    }
}

fn at_t(at: &mut [AtCheckpoint], t: u32) -> Option<&mut AtCheckpoint> {
    let place = at.binary_search_by_key(&t, |checkpoint| checkpoint.t).ok()?;
    at.get_mut(place)
}

fn watch_rows(at: &mut [AtCheckpoint], dataset: &Dataset, cell: &DataCell, rows: &[Row]) {
    for (row, contexts) in dataset.contexts(cell, rows).into_iter().enumerate() {
        let claim = rows[row].claim;
        let Test::Probability { holds, .. } = claim.test else { continue };
        let Some(checkpoint) = at_t(at, rows[row].t) else { continue };
        let bound = claim.bound.map(|bound| (checkpoint.bounds.len(), bound));
        checkpoint.bounds.extend(claim.bound);
        let is_step = claim.id.starts_with("theorem") && claim.id.contains("/step.");
        checkpoint.watches.push(Watch { row, holds, contexts, bound, is_step });
    }
}

fn watch_means(at: &mut [AtCheckpoint], dataset: &Dataset, cell: &DataCell, means: &[MeanRow]) {
    let (delta, c) = (dataset.some_delta(cell), dataset.prior(cell).c);
    for (row, mean) in means.iter().enumerate() {
        let Test::Mean { statistic, expected } = mean.claim.test else { continue };
        let context = mean.context(&cell.cell, delta, c);
        if let Some(checkpoint) = at_t(at, mean.t) {
            checkpoint.means.push(MeanWatch { row, statistic, expected, context });
        }
    }
}

/// Invariants are checked in every study, at every checkpoint, whatever it tests.
fn watch_invariants(at: &mut [AtCheckpoint], dataset: &Dataset, cell: &DataCell) {
    let (delta, prior) = (dataset.some_delta(cell), dataset.prior(cell));
    for claim in claims::all() {
        let Test::Invariant { holds, .. } = claim.test else { continue };
        for checkpoint in at.iter_mut() {
            let row = Row { claim, form: None, at: None, t: checkpoint.t, delta, budget: 0.0 };
            let rho = prior.rho_at(checkpoint.t).map(|(_, upper)| upper);
            let context = row.context(&cell.cell, prior.c, rho);
            if claim.applies(&context).is_ok() {
                checkpoint.invariants.push(Invariant { claim, holds, context });
            }
        }
    }
}
