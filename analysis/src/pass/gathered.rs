//! A cell put together from its parts, and the summaries that are taken of it when it is whole.

use rayon::prelude::*;
use study::cell::Cell;
use study::tally::RowCounts;
use theory::claims::RegretBound;
use theory::evidence::{Counts, MeanSample, Mixture};

use super::partial::{AtSlot, Partial, Ratios, SERIES};
use super::questions::{Questions, Watch};
use super::series::AllSeries;
use super::spare::Spare;
use super::{AtResult, CellResult, RowResult, Series};
use crate::dataset::{DataCell, Dataset};
use crate::statistics::Sample;

/// Trials of a cell whose values are kept for quantiles and ratios; counts and means are of all trials.
pub const KEPT: usize = 1 << 20;

/// Into how many blocks of consecutive trials a series is summed, at most: what is resampled and paired.
const MOST_BLOCKS: u64 = 4096;

/// The memory for the blocks of all cells.
const BLOCK_BYTES: u64 = 256 << 20;

/// A series summed over blocks of consecutive trials: one trial each while there are few.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Blocks {
    /// The sum over the trials of each block that have a value.
    pub sums: Vec<f64>,
    /// How many have one.
    pub counts: Vec<u32>,
}

/// A series at one t of a cell.
#[derive(Debug)]
pub struct SeriesResult {
    /// Trials with a value.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Their variance (divisor count - 1).
    pub variance: f64,
    /// Sums over blocks.
    pub blocks: Blocks,
    /// Values of the first [`KEPT`] trials, if there are any, of the series whose quantiles are of interest:
    /// best-sample regret, error, and ratio for a fixed design.
    pub sample: Option<Sample>,
}

/// How much of a regret bound is used, with rho's lower end where it depends on rho.
#[derive(Clone, Debug, PartialEq)]
pub struct Slack {
    /// The bound; its mean where it differs between trials.
    pub bound: f64,
    /// Bound over regret, at the (1 - budget)-quantile of regret/bound.
    pub tightness: Option<f64>,
    /// The smallest factor by which the bound could shrink and still be confirmed.
    pub shrink: Option<f64>,
    /// Share of trials in which even the worst point of the domain satisfies the bound.
    pub worst_case: Option<f64>,
    /// Share of the trials of random search, on the same functions, that satisfy the bound.
    pub random: Option<f64>,
}

/// What random search reached, by prior and t: best-sample and simple regret, trial by trial.
pub(super) struct Rivals(Vec<Vec<(u32, [Vec<f64>; 2])>>);

impl Rivals {
    pub(super) fn new(priors: usize) -> Self {
        Self(vec![vec![]; priors])
    }

    pub(super) fn learn(&mut self, dataset: &Dataset, cell: usize, gathered: &Gathered) {
        let cell = &dataset.cells[cell];
        for (&t, at) in cell.checkpoints.iter().zip(&gathered.at) {
            let kept = [Series::BestSample, Series::Simple].map(|one| at.series.kept(one).to_vec());
            self.0[cell.prior].push((t, kept));
        }
    }

    fn at(&self, cell: &DataCell, t: u32) -> Option<&[Vec<f64>; 2]> {
        self.0[cell.prior].iter().find(|entry| entry.0 == t).map(|entry| &entry.1)
    }
}

/// A cell of which some parts are there.
pub(super) struct Gathered {
    batches: Vec<(u64, Vec<RowCounts>)>,
    unseen: Vec<RowCounts>,
    means: Vec<super::partial::Moments>,
    at: Vec<AtGathered>,
}

struct AtGathered {
    series: AllSeries,
    bounds: Vec<Ratios>,
    failures: u64,
}

impl Gathered {
    /// No parts yet; `spare` has vectors of whole cells.
    pub(super) fn new(
        dataset: &Dataset,
        cell: usize,
        questions: &Questions,
        spare: &Spare,
    ) -> Self {
        let per_block = per_block(dataset);
        let DataCell { cell: Cell { policy, .. }, replicates, .. } = &dataset.cells[cell];
        let keeps = |series: Series| match series {
            Series::BestSample | Series::Error => true,
            Series::Ratio => policy.design() == "fixed",
            // What the bounds on the other methods' simple regret are compared with.
            Series::Simple => policy.method() == "random",
            _ => false,
        };
        let ratios = |_| {
            let (mut regret, mut bound) = (spare.take(), spare.take());
            regret.reserve(KEPT.min(*replicates as usize));
            bound.reserve(KEPT.min(*replicates as usize));
            Ratios { regret, bound, ..Ratios::default() }
        };
        let at = |checkpoint: &super::questions::AtCheckpoint| AtGathered {
            series: AllSeries::new(*replicates, per_block, keeps),
            bounds: (0..checkpoint.bounds).map(ratios).collect(),
            failures: 0,
        };
        Self {
            batches: vec![],
            unseen: vec![RowCounts::default(); questions.rows.len()],
            means: vec![super::partial::Moments::default(); questions.means.len()],
            at: questions.at.iter().map(at).collect(),
        }
    }

    /// Adds the next part, whose vectors go where it had them from.
    pub(super) fn absorb(&mut self, part: Partial, spare: &Spare) {
        for (batch, counts) in part.batches {
            match self.batches.last_mut() {
                Some((known, sums)) if *known == batch => add(sums, &counts),
                _ => self.batches.push((batch, counts)),
            }
        }
        add(&mut self.unseen, &part.unseen);
        self.means.iter_mut().zip(part.means).for_each(|(sum, more)| sum.plus(more));
        self.at.par_iter_mut().zip(&part.at).for_each(|(at, more)| {
            at.failures += more.failures;
            at.series.extend(more.series.each_ref().map(Vec::as_slice));
            for (known, more) in at.bounds.iter_mut().zip(&more.bounds) {
                let room = KEPT.saturating_sub(known.regret.len());
                let kept = room.min(more.regret.len());
                known.regret.extend_from_slice(&more.regret[..kept]);
                known.bound.extend_from_slice(&more.bound[..kept]);
                known.trials += more.trials;
                known.worst += more.worst;
            }
        });
        spare.give(part.at.into_iter().flat_map(AtSlot::into_vectors));
    }

    /// Summaries of the whole cell; its vectors go to `spare`.
    pub(super) fn finish(
        mut self,
        dataset: &Dataset,
        cell: usize,
        questions: &Questions,
        rivals: &Rivals,
        spare: &Spare,
    ) -> CellResult {
        let data = &dataset.cells[cell];
        let mut slacks: Vec<Option<Slack>> = vec![None; questions.rows.len()];
        for (checkpoint, at) in questions.at.iter().zip(&mut self.at) {
            let rival = rivals.at(data, checkpoint.t);
            // Bounds have their places in the order of the watches.
            let bounded =
                checkpoint.watches.iter().filter_map(|watch| Some((watch, watch.bound?.1)));
            let bounded: Vec<(&Watch, RegretBound)> = bounded.collect();
            let found: Vec<(usize, Slack)> = bounded
                .par_iter()
                .zip(&mut at.bounds)
                .map(|(&(watch, regret), ratios)| {
                    let budget = questions.rows[watch.row].budget;
                    (watch.row, slack(dataset, budget, regret, ratios, rival))
                })
                .collect();
            found.into_iter().for_each(|(row, slack)| slacks[row] = Some(slack));
            spare.give(at.bounds.drain(..).flat_map(Ratios::into_vectors));
        }
        let is_step = steps(questions);
        let rows = questions.rows.iter().enumerate().map(|(place, &row)| RowResult {
            row,
            exploratory: place >= questions.planned,
            batches: self.batches.iter().map(|(_, counts)| counts[place]).collect(),
            unseen: is_step[place].then_some(self.unseen[place]),
            slack: slacks[place].take(),
        });
        let rows = rows.collect();
        let means = questions.means.iter().zip(&self.means);
        let means = means.map(|(row, moments)| (*row, sample(*moments, row.claim))).collect();
        let at = questions.at.iter().zip(self.at).filter(|(checkpoint, _)| checkpoint.on_grid);
        let at: Vec<_> = at.collect();
        let at = at.into_par_iter().map(|(checkpoint, at)| AtResult {
            t: checkpoint.t,
            failures: at.failures,
            series: at.series.finish(),
        });
        CellResult { cell, rows, means, at: at.collect() }
    }
}

/// Trials in a block: the same for all cells, because blocks of two cells are paired.
fn per_block(dataset: &Dataset) -> u64 {
    let most = dataset.cells.iter().map(|cell| cell.replicates).max().unwrap_or(1);
    let places = (dataset.cells.len() * dataset.study.grid.t.len() * SERIES.len()) as u64;
    let affordable = BLOCK_BYTES / (12 * places.max(1));
    most.div_ceil(affordable.clamp(64, MOST_BLOCKS)).max(1)
}

fn steps(questions: &Questions) -> Vec<bool> {
    let mut is_step = vec![false; questions.rows.len()];
    for watch in questions.at.iter().flat_map(|checkpoint| &checkpoint.watches) {
        is_step[watch.row] = watch.is_step;
    }
    is_step
}

fn add(sums: &mut [RowCounts], more: &[RowCounts]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        sum.trials += more.trials;
        sum.refuting += more.refuting;
        sum.confirming += more.confirming;
        sum.failures += more.failures;
    }
}

fn sample(moments: super::partial::Moments, claim: &theory::claims::Claim) -> MeanSample {
    let expected = match claim.test {
        theory::claims::Test::Mean { expected, .. } => expected,
        _ => 0.0,
    };
    let super::partial::Moments { count, sum, squares } = moments;
    if count == 0 {
        return MeanSample { count, mean: expected, variance: 0.0 };
    }
    let mean = sum / count as f64;
    let spread = squares - sum * mean;
    let variance = if spread > 0.0 { spread / count.saturating_sub(1).max(1) as f64 } else { 0.0 };
    MeanSample { count, mean: expected + mean, variance }
}

fn slack(
    dataset: &Dataset,
    budget: f64,
    regret: RegretBound,
    ratios: &mut Ratios,
    rival: Option<&[Vec<f64>; 2]>,
) -> Slack {
    let bounds = ratios.bound.iter().filter(|bound| !bound.is_nan());
    let (count, sum) = bounds.fold((0_u64, 0.0), |(count, sum), bound| (count + 1, sum + bound));
    let mut used = std::mem::take(&mut ratios.regret);
    used.retain(|ratio| !ratio.is_nan());
    let trials = used.len() as u64;
    let above = (budget * trials as f64) as usize;
    let tightness = nth_largest(&mut used, above);
    let tightness = tightness.filter(|&ratio| ratio > 0.0).map(|ratio| 1.0 / ratio);
    let shrink = most_violations(dataset, budget, trials).and_then(|most| {
        // The largest are in front by now, and fewer violations than the budget's confirm.
        let most = most as usize;
        let part = if most < above { above.min(used.len()) } else { used.len() };
        nth_largest(&mut used[..part], most)
    });
    ratios.regret = used;
    Slack {
        bound: if count > 0 { sum / count as f64 } else { f64::NAN },
        tightness,
        shrink,
        worst_case: (ratios.trials > 0).then(|| ratios.worst as f64 / ratios.trials as f64),
        random: rival.and_then(|rival| random_coverage(regret, ratios, rival)),
    }
}

/// The value that exactly `above` others exceed or equal.
fn nth_largest(values: &mut [f64], above: usize) -> Option<f64> {
    if above >= values.len() {
        return None;
    }
    let (_, value, _) = values.select_nth_unstable_by(above, |a, b| b.total_cmp(a));
    Some(*value)
}

/// The most violations with which so many trials still confirm.
fn most_violations(dataset: &Dataset, budget: f64, trials: u64) -> Option<u64> {
    let family = dataset.manifest.family;
    let mixture = Mixture::new(budget, family.alpha, family.n_opt);
    let threshold = libm::log(family.evidence);
    let confirmed = |violations| {
        let counts = Counts { trials, violations, failures: 0 };
        mixture.ln_e_confirm(counts) >= threshold
    };
    if trials == 0 || budget == 0.0 || !confirmed(0) {
        return None;
    }
    let (mut low, mut high) = (0, trials);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if confirmed(middle) { low = middle } else { high = middle }
    }
    Some(low)
}

fn random_coverage(regret: RegretBound, ratios: &Ratios, rival: &[Vec<f64>; 2]) -> Option<f64> {
    let reached = &rival[usize::from(regret.simple)];
    let pairs = reached.iter().zip(&ratios.bound);
    let pairs = pairs.filter(|(reached, bound)| !reached.is_nan() && !bound.is_nan());
    let (within, of) = pairs.fold((0_u64, 0_u64), |(within, of), (reached, bound)| {
        (within + u64::from(reached <= bound), of + 1)
    });
    (of > 0).then(|| within as f64 / of as f64)
}
