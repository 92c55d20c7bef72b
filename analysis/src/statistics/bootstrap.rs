//! Resampling of replicates, jointly across series.
//!
//! Series (cells, or a statistic in several cells) share their seeds: replicate i of one goes with
//! replicate i of every other. So a resample draws replicate *numbers*, with replacement, and uses
//! the same numbers in all series (Efron and Tibshirani 1993, chapter 8.3, the pairs bootstrap). With
//! w_i the times that i was drawn, the mean of a series is the ratio of sums
//!
//! ```text
//! mean = sum_i w_i value_i / sum_i w_i [value_i exists]
//! ```
//!
//! in which a failed trial is absent above and below, as in the sample itself.
//!
//! Beyond [`BLOCKS`] replicates, consecutive blocks of equal size (the last may be shorter) take the
//! place of replicates, with their sums and counts. Replicates are independent and alike, hence so
//! are blocks, and a mean depends on its values only through such sums: the resampled means keep
//! their expectation and variance. What changes is that the variance is estimated from some thousand
//! blocks, at least BLOCKS/2 = 2048, not from all replicates: its own standard error is then up to
//! sqrt(2/2048) = 3 % and the interval's width moves by 1.6 %. It serves means only, not quantiles.
//!
//! Resample k reads ChaCha's stream k under the seed, and sums run in the order of the replicates, so
//! that the number of threads cannot be seen in a result.

use super::summary;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;
use theory::evidence::MeanSample;

/// How many resamples are drawn.
pub const RESAMPLES: usize = 2000;

/// The largest number of units that are resampled.
pub const BLOCKS: usize = 4096;

/// The key of a bootstrap's random streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub [u8; 32]);

/// Series of values over the same replicates, as far as resampling their means needs them.
#[derive(Clone, Debug)]
pub struct Replicates {
    samples: Vec<Option<MeanSample>>,
    units: usize,
    /// Unit by unit: the sums of all series, then each distinct column of counts.
    table: Vec<f64>,
    /// The column of counts of each series.
    counts: Vec<usize>,
}

/// The means of every series in every resample.
#[derive(Clone, Debug, PartialEq)]
pub struct Resamples {
    series: usize,
    means: Vec<Option<f64>>,
}

impl Replicates {
    /// Takes `value(series, replicate)`, `None` for a trial that failed.
    ///
    /// # Panics
    /// Where there is no replicate, or a value is not finite.
    pub fn new(
        series: usize,
        replicates: usize,
        value: impl Fn(usize, usize) -> Option<f64>,
    ) -> Self {
        assert!(replicates > 0, "a bootstrap needs replicates");
        let size = replicates.div_ceil(BLOCKS);
        let units = replicates.div_ceil(size);
        let (mut sums, mut tallies): (Vec<Vec<f64>>, Vec<Vec<f64>>) = (Vec::new(), Vec::new());
        let (mut samples, mut counts) = (Vec::new(), Vec::new());
        for s in 0..series {
            let (mut sum, mut tally) = (vec![0.0; units], vec![0.0; units]);
            samples.push(summary((0..replicates).filter_map(|i| {
                let x = value(s, i)?;
                assert!(x.is_finite(), "series {s}, replicate {i}: {x}");
                sum[i / size] += x;
                tally[i / size] += 1.0;
                Some(x)
            })));
            sums.push(sum);
            // Series without failures, usually all, share one column of counts.
            let known = tallies.iter().position(|other| *other == tally);
            counts.push(series + known.unwrap_or(tallies.len()));
            if known.is_none() {
                tallies.push(tally);
            }
        }
        sums.append(&mut tallies);
        let table = (0..units).flat_map(|k| sums.iter().map(move |column| column[k])).collect();
        Self { samples, units, table, counts }
    }

    /// How many series there are.
    pub fn series(&self) -> usize {
        self.samples.len()
    }

    /// How many units are resampled: replicates, or blocks of them.
    pub fn units(&self) -> usize {
        self.units
    }

    /// Mean and variance of a series over all its replicates; `None` where all failed.
    pub fn sample(&self, series: usize) -> Option<MeanSample> {
        self.samples[series]
    }

    /// Draws [`RESAMPLES`] resamples, in parallel.
    pub fn resample(&self, seed: Seed) -> Resamples {
        self.weighted(RESAMPLES, |k, weights| draw(seed, k, weights))
    }

    /// The means of `count` resamples, of which `weigh` says how often each unit is in the k-th.
    pub(super) fn weighted(
        &self,
        count: usize,
        weigh: impl Fn(usize, &mut [u16]) + Sync,
    ) -> Resamples {
        let mut means = vec![None; count * self.series()];
        if self.series() > 0 {
            means.par_chunks_mut(self.series()).enumerate().for_each_init(
                || (vec![0; self.units], vec![0.0; self.columns()]),
                |(weights, totals), (k, row)| {
                    weigh(k, weights);
                    self.means(weights, totals, row);
                },
            );
        }
        Resamples { series: self.series(), means }
    }

    fn columns(&self) -> usize {
        self.table.len() / self.units
    }

    /// The means of all series under the given weights of the units.
    fn means(&self, weights: &[u16], totals: &mut [f64], means: &mut [Option<f64>]) {
        totals.fill(0.0);
        for (&weight, row) in weights.iter().zip(self.table.chunks_exact(totals.len())) {
            let weight = f64::from(weight);
            totals.iter_mut().zip(row).for_each(|(total, x)| *total += weight * x);
        }
        for (s, mean) in means.iter_mut().enumerate() {
            let count = totals[self.counts[s]];
            *mean = (count > 0.0).then(|| totals[s] / count);
        }
    }
}

impl Resamples {
    /// The means of all series in each resample; `None` where a series had no value in it.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[Option<f64>]> {
        // A chunk must not be empty; without series there are no means to chunk.
        let width = if self.series > 0 { self.series } else { 1 };
        self.means.chunks_exact(width)
    }

    /// The resampled means of one series that exist.
    pub fn of(&self, series: usize) -> Vec<f64> {
        self.rows().filter_map(|row| row[series]).collect()
    }
}

/// How often each unit is drawn in resample k: as many draws as there are units.
pub(super) fn draw(seed: Seed, k: usize, weights: &mut [u16]) {
    let mut stream = ChaCha8Rng::from_seed(seed.0);
    stream.set_stream(k as u64);
    weights.fill(0);
    for _ in 0..weights.len() {
        weights[below(&mut stream, weights.len() as u32)] += 1;
    }
}

/// A uniform integer below `bound`, without bias (Lemire's multiplication, with rejection).
fn below(stream: &mut ChaCha8Rng, bound: u32) -> usize {
    loop {
        let wide = u64::from(stream.next_u32()) * u64::from(bound);
        // Rejecting needs a division; hardly any word can need rejecting.
        if wide as u32 >= bound || wide as u32 >= bound.wrapping_neg() % bound {
            return (wide >> 32) as usize;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: Seed = Seed([7; 32]);

    fn wave(s: usize, i: usize) -> f64 {
        libm::sin(1.7 * i as f64 + s as f64) + s as f64
    }

    #[test]
    fn the_first_draws_are_pinned() {
        let mut weights = [0; 10];
        draw(SEED, 0, &mut weights);
        assert_eq!(weights, PINNED.0);
        draw(SEED, 1999, &mut weights);
        assert_eq!(weights, PINNED.1);
    }

    const PINNED: ([u16; 10], [u16; 10]) =
        ([1, 1, 2, 2, 0, 1, 0, 1, 2, 0], [2, 0, 4, 0, 0, 2, 0, 0, 1, 1]);

    #[test]
    fn threads_do_not_matter() {
        let data = Replicates::new(3, 500, |s, i| Some(wave(s, i)));
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| data.resample(SEED))
        };
        assert_eq!(on(1), on(7));
    }

    #[test]
    fn series_are_resampled_together() {
        // The second series is the first plus 1, and so are its means in every resample.
        let data = Replicates::new(2, 300, |s, i| Some(wave(0, i) + s as f64));
        for row in data.resample(SEED).rows() {
            assert!((row[1].unwrap() - row[0].unwrap() - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn failures_are_absent_above_and_below() {
        let some = |s: usize, i: usize| (s == 0 || !i.is_multiple_of(3)).then_some(2.0 + s as f64);
        let data = Replicates::new(2, 30, some);
        assert!(data.resample(SEED).rows().all(|row| row == [Some(2.0), Some(3.0)]));
        // A series with one value is absent from about e^-1 of the resamples.
        let rare = Replicates::new(1, 50, |_, i| (i == 9).then_some(1.0));
        let found = rare.resample(SEED).of(0).len();
        // Binomial(2000, 1 - 0.98^50 = 0.636): six standard deviations are 129.
        assert!(found.abs_diff(1272) < 129, "{found}");
        assert!(Replicates::new(1, 5, |_, _| None).sample(0).is_none());
    }

    /// Resampled means have variance (n-1)/n MCSE^2 given the sample. The variance of 2000 of them
    /// is within 6 standard errors, 6 sqrt(2/2000) = 19 %; false-alarm rate about 1e-8 each.
    #[test]
    fn the_spread_is_the_standard_error_with_and_without_blocks() {
        for replicates in [400, BLOCKS, BLOCKS + 1, 3 * BLOCKS + 5] {
            let data = Replicates::new(1, replicates, |s, i| Some(wave(s, i * i)));
            let expected = data.sample(0).unwrap().standard_error().unwrap();
            let found = summary(data.resample(SEED).of(0)).unwrap();
            let ratio = found.variance / (expected * expected);
            assert!((ratio - 1.0).abs() < 0.19 + 0.05, "{replicates}: {ratio}");
            assert!((found.mean - data.sample(0).unwrap().mean).abs() < expected * 6.0 / 44.0);
            assert!(data.units() <= BLOCKS && data.units() * 2 >= BLOCKS.min(replicates));
        }
    }

    /// 2000 resamples of 2000 replicates in 40 series; run with --nocapture for the time.
    #[test]
    fn speed_for_the_record() {
        let data = Replicates::new(40, 2000, |s, i| Some(wave(s, i)));
        let start = std::time::Instant::now();
        let resamples = data.resample(SEED);
        println!("bootstrap of 40 series: {:?}", start.elapsed());
        assert_eq!(resamples.rows().len(), RESAMPLES);
    }
}
