//! A cell put together from its parts, and the summaries that are taken of it when it is whole.

use rayon::prelude::*;
use study::tally::RowCounts;
use theory::claims::RegretBound;
use theory::evidence::MeanSample;

use super::bounded::{Bounded, Slack};
use super::partial::{AtSlot, Moments, Partial, SERIES};
use super::questions::{AtCheckpoint, Questions};
use super::rivals::{Rivals, is_random};
use super::series::AllSeries;
use super::spare::Spare;
use super::{AtResult, CellResult, MeanResult, RowResult, Span};
use crate::dataset::{DataCell, Dataset};
use crate::manifest::Family;
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

/// A cell of which some parts are there.
pub(super) struct Gathered<'a> {
    pub(super) cell: usize,
    pub(super) data: &'a DataCell,
    pub(super) questions: &'a Questions,
    family: Family,
    spans: Vec<(Span, Vec<RowCounts>)>,
    unseen: Vec<RowCounts>,
    means: Vec<(usize, Vec<Moments>)>,
    at: Vec<AtGathered>,
}

struct AtGathered {
    series: AllSeries,
    bounds: Vec<Bounded>,
    failures: u64,
}

impl<'a> Gathered<'a> {
    /// No parts yet; `spare` has vectors of whole cells.
    pub(super) fn new(
        dataset: &'a Dataset,
        cell: usize,
        questions: &'a Questions,
        spare: &Spare,
    ) -> Self {
        let per_block = per_block(dataset);
        let data = &dataset.cells[cell];
        let bounded = |_: &RegretBound| {
            let mut used = spare.take();
            used.reserve(KEPT.min(data.replicates as usize));
            Bounded::new(used)
        };
        let at = |checkpoint: &AtCheckpoint| AtGathered {
            series: AllSeries::new(data.replicates, per_block, questions.kept),
            bounds: checkpoint.bounds.iter().map(bounded).collect(),
            failures: 0,
        };
        Self {
            cell,
            data,
            questions,
            family: dataset.manifest.family,
            spans: vec![],
            unseen: vec![RowCounts::default(); questions.rows.len()],
            means: vec![],
            at: questions.at.iter().map(at).collect(),
        }
    }

    /// Best-sample and simple regret at a checkpoint, as far as they are kept.
    pub(super) fn reached(&self, slot: usize) -> [&[f64]; 2] {
        self.at[slot].series.reached()
    }

    /// Adds the next part, whose vectors go where it had them from.
    pub(super) fn absorb(&mut self, part: Partial, rivals: &Rivals, spare: &Spare) {
        for (span, counts) in part.spans {
            match self.spans.last_mut() {
                Some((known, sums)) if *known == span => add(sums, &counts),
                _ => self.spans.push((span, counts)),
            }
        }
        add(&mut self.unseen, &part.unseen);
        for (period, moments) in part.means {
            match self.means.last_mut() {
                Some((known, sums)) if *known == period => {
                    sums.iter_mut().zip(moments).for_each(|(sum, more)| sum.plus(more));
                }
                _ => self.means.push((period, moments)),
            }
        }
        let (is_random, data) = (is_random(self.data), self.data);
        let places = self.at.par_iter_mut().zip(&part.at).zip(&self.questions.at);
        places.for_each(|((at, more), checkpoint)| {
            at.series.extend(more.series.each_ref().map(Vec::as_slice));
            let AtGathered { series, bounds, failures } = at;
            *failures += more.failures;
            let own = is_random.then(|| series.reached());
            let rival = rivals.at(data, checkpoint.t).or(own);
            let regrets = &checkpoint.bounds;
            for ((known, more), regret) in bounds.iter_mut().zip(&more.bounds).zip(regrets) {
                known.extend(more, rival.map(|rival| rival[usize::from(regret.simple)]));
            }
        });
        spare.give(part.at.into_iter().flat_map(AtSlot::into_vectors));
    }

    /// Summaries of the whole cell; its vectors go to `spare`.
    pub(super) fn finish(mut self, spare: &Spare) -> CellResult {
        let (questions, family) = (self.questions, self.family);
        let mut slacks: Vec<Option<Slack>> = vec![None; questions.rows.len()];
        for (checkpoint, at) in questions.at.iter().zip(&mut self.at) {
            // Bounds have their places in the order of the watches.
            let bounded = checkpoint.watches.iter().filter(|watch| watch.bound.is_some());
            let rows: Vec<usize> = bounded.map(|watch| watch.row).collect();
            let found = rows.par_iter().zip(&mut at.bounds);
            let found =
                found.map(|(&row, bounded)| bounded.slack(family, questions.rows[row].budget));
            let found: Vec<Slack> = found.collect();
            rows.into_iter().zip(found).for_each(|(row, slack)| slacks[row] = Some(slack));
            spare.give(at.bounds.drain(..).map(|bounded| bounded.used));
        }
        let is_step = steps(questions);
        let rows = questions.rows.iter().enumerate().map(|(place, &row)| RowResult {
            row,
            asked: questions.rows_asked.of(place),
            spans: self.spans.iter().map(|(span, counts)| (*span, counts[place])).collect(),
            unseen: is_step[place].then_some(self.unseen[place]),
            slack: slacks[place].take(),
        });
        let rows = rows.collect();
        let means = questions.means.iter().enumerate().map(|(place, &row)| MeanResult {
            row,
            asked: questions.means_asked.of(place),
            periods: self.means.iter().map(|(period, all)| (*period, all[place])).collect(),
        });
        let means = means.collect();
        let at = questions.at.iter().zip(self.at).filter(|(checkpoint, _)| checkpoint.on_grid);
        let at: Vec<_> = at.collect();
        let at = at.into_par_iter().map(|(checkpoint, at)| AtResult {
            t: checkpoint.t,
            failures: at.failures,
            series: at.series.finish(),
        });
        CellResult { cell: self.cell, rows, means, at: at.collect() }
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
    sums.iter_mut().zip(more).for_each(|(sum, more)| sum.plus(more));
}

/// The mean and the variance of a statistic.
pub(super) fn sample(moments: Moments, claim: &theory::claims::Claim) -> MeanSample {
    let expected = match claim.test {
        theory::claims::Test::Mean { expected, .. } => expected,
        _ => 0.0,
    };
    let Moments { count, sum, squares } = moments;
    if count == 0 {
        return MeanSample { count, mean: expected, variance: 0.0 };
    }
    let mean = sum / count as f64;
    let spread = squares - sum * mean;
    let variance = if spread > 0.0 { spread / count.saturating_sub(1).max(1) as f64 } else { 0.0 };
    MeanSample { count, mean: expected + mean, variance }
}
