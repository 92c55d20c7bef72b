//! The series of a checkpoint, summed as trials come in.
//!
//! A sum waits for its last addition, so all series are summed side by side. Adding 0 where a trial has no
//! value changes no sum, since none is ever -0.

use super::gathered::{Blocks, KEPT};
use super::partial::SERIES;
use super::questions::Kept;
use super::{Series, SeriesResult};
use crate::statistics::Sample;

const COUNT: usize = SERIES.len();

/// The series of a checkpoint.
pub(super) struct AllSeries {
    each: [One; COUNT],
    /// Trials so far, those without a value included.
    trials: u64,
    per_block: u64,
    is_summed: bool,
}

#[derive(Default)]
struct One {
    kept: Vec<f64>,
    /// How many values are kept at most.
    room: usize,
    blocks: Blocks,
    count: u64,
    mean: f64,
    /// Sum of squared deviations from the mean.
    spread: f64,
}

impl AllSeries {
    /// None yet, of at most so many trials, in blocks of so many.
    pub(super) fn new(trials: u64, per_block: u64, kept: Kept) -> Self {
        let each = SERIES.map(|series| {
            let room = if kept.values.has(series) { KEPT.min(trials as usize) } else { 0 };
            One { kept: Vec::with_capacity(room), room, ..One::default() }
        });
        Self { each, trials: 0, per_block, is_summed: kept.is_summed }
    }

    /// The best-sample and simple regrets that are kept, NaN for none.
    pub(super) fn reached(&self) -> [&[f64]; 2] {
        [Series::BestSample, Series::Simple].map(|one| self.each[one as usize].kept.as_slice())
    }

    /// Adds the values of the next trials, as many of each series that is asked for. Chan's update keeps the variance stable,
    /// part by part.
    pub(super) fn extend(&mut self, values: [&[f64]; COUNT]) {
        for (one, values) in self.each.iter_mut().zip(values) {
            let room = one.room - one.kept.len();
            one.kept.extend_from_slice(&values[..room.min(values.len())]);
        }
        if !self.is_summed {
            return;
        }
        let (counts, sums) = self.sum(values);
        let means: [f64; COUNT] = std::array::from_fn(|at| sums[at] / counts[at] as f64);
        let spreads = spreads(values, means);
        for (at, one) in self.each.iter_mut().enumerate().filter(|(at, _)| counts[*at] > 0) {
            let count = counts[at] as f64;
            let (known, all) = (one.count as f64, (one.count + counts[at]) as f64);
            let gap = means[at] - one.mean;
            one.spread += spreads[at] + gap * gap * known * count / all;
            one.mean += gap * count / all;
            one.count += counts[at];
        }
    }

    /// Adds values to their blocks: the number of values and their sums.
    fn sum(&mut self, values: [&[f64]; COUNT]) -> ([u64; COUNT], [f64; COUNT]) {
        let (mut counts, mut sums) = ([0; COUNT], [0.0; COUNT]);
        let (mut from, all) = (0, values[0].len());
        while from < all {
            let into = self.trials % self.per_block;
            if into == 0 {
                for one in &mut self.each {
                    one.blocks.sums.push(0.0);
                    one.blocks.counts.push(0);
                }
            }
            let length = (self.per_block - into).min((all - from) as u64) as usize;
            let last = self.each[0].blocks.sums.len() - 1;
            let mut measured = [0; COUNT];
            let mut block: [f64; COUNT] = std::array::from_fn(|at| self.each[at].blocks.sums[last]);
            let here = values.map(|values| &values[from..from + length]);
            for place in 0..length {
                for at in 0..COUNT {
                    let value = here[at][place];
                    let (is, value) = if value.is_nan() { (0, 0.0) } else { (1, value) };
                    measured[at] += is;
                    block[at] += value;
                    sums[at] += value;
                }
            }
            for (at, one) in self.each.iter_mut().enumerate() {
                one.blocks.sums[last] = block[at];
                one.blocks.counts[last] += measured[at];
                counts[at] += u64::from(measured[at]);
            }
            self.trials += length as u64;
            from += length;
        }
        (counts, sums)
    }

    /// Summaries, in the order of [`Series`].
    pub(super) fn finish(self) -> Vec<SeriesResult> {
        self.each.into_iter().map(One::finish).collect()
    }
}

/// Sums of squared deviations from the means.
fn spreads(values: [&[f64]; COUNT], means: [f64; COUNT]) -> [f64; COUNT] {
    let mut spreads = [0.0; COUNT];
    let length = values[0].len();
    let values = values.map(|values| &values[..length]);
    for place in 0..length {
        for at in 0..COUNT {
            let gap = values[at][place] - means[at];
            spreads[at] += if gap.is_nan() { 0.0 } else { gap * gap };
        }
    }
    spreads
}

impl One {
    fn finish(self) -> SeriesResult {
        let mut kept = self.kept;
        kept.retain(|value| !value.is_nan());
        let degrees = self.count.saturating_sub(1).max(1) as f64;
        SeriesResult {
            count: self.count,
            mean: self.mean,
            variance: self.spread / degrees,
            blocks: self.blocks,
            sample: Sample::new(kept),
        }
    }
}
