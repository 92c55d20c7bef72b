//! An interval for the exponent of A + B n^-c, by refitting every resample.
//!
//! Resampled means of all sizes at once ([`super::Replicates`]) are fitted with the weights of the
//! original sample, and the interval is the simple percentile interval (Efron and Tibshirani 1993,
//! section 13.3): the quantiles, type 7, of the refitted exponents at (1 -+ level)/2. No correction
//! for bias or acceleration is made.
//!
//! A resample whose exponent is at an end of the range counts with that end. One in which no fit
//! exists could have any exponent: it counts as the least at the lower end and as the largest at the
//! upper end, so that refusals can only widen the interval.

use super::fit::Fitter;
use super::{EXPONENTS, Fit, FitError, Floor, Point, Replicates, Resamples, Sample, Seed};
use rayon::prelude::*;
use theory::evidence::Interval;

/// The confidence of [`exponent_interval`].
pub const LEVEL: f64 = 0.95;

/// What is fitted, as a function of a series' mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transform {
    /// The mean.
    Identity,
    /// Its square root: the RMS error, where the series holds squares.
    SquareRoot,
}

impl Transform {
    /// The transformed mean with its standard error.
    pub fn apply(self, mean: f64, error: f64) -> Option<(f64, f64)> {
        Some((self.value(mean)?, self.error(mean, error)))
    }

    /// The transformed mean; `None` where a root does not exist.
    fn value(self, mean: f64) -> Option<f64> {
        match self {
            Self::Identity => Some(mean),
            Self::SquareRoot => (mean > 0.0).then(|| mean.sqrt()),
        }
    }

    /// The standard error by the delta method, |d value/d mean| MCSE, for a mean that has a value.
    fn error(self, mean: f64, error: f64) -> f64 {
        match self {
            Self::Identity => error,
            Self::SquareRoot => error / (2.0 * mean.sqrt()),
        }
    }
}

/// A fit with the bootstrap interval of its exponent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitInterval {
    /// The fit to the sample itself.
    pub fit: Fit,
    /// Lower end of the interval of c, at confidence [`LEVEL`].
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Resamples in which no fit existed.
    pub refused: usize,
}

/// The simple percentile interval of `values`; `None` where there are none or one is NaN.
///
/// # Panics
/// Where `level` is not in [0, 1].
pub fn percentile_interval(values: Vec<f64>, level: f64) -> Option<Interval> {
    let sample = Sample::new(values)?;
    let (low, high) = (sample.quantile(0.5 * (1.0 - level)), sample.quantile(0.5 * (1.0 + level)));
    Some(Interval { low, high })
}

/// Fits the transformed means of the series against their sizes, with an interval for c.
///
/// # Panics
/// Where there is not one size per series.
pub fn exponent_interval(
    sizes: &[f64],
    data: &Replicates,
    transform: Transform,
    floor: Floor,
    seed: Seed,
) -> Result<FitInterval, FitError> {
    assert_eq!(sizes.len(), data.series(), "one size per series");
    let points = points(sizes, data, transform)?;
    let fitter = Fitter::new(&points, floor)?;
    let values: Vec<f64> = points.iter().map(|point| point.value).collect();
    // A sample without a fit needs no resamples.
    let fit = fitter.fit(&values)?;
    Ok(around(fit, &fitter, transform, &data.resample(seed)))
}

/// The points of the sample itself.
pub(super) fn points(
    sizes: &[f64],
    data: &Replicates,
    transform: Transform,
) -> Result<Vec<Point>, FitError> {
    let point = |(index, &size): (usize, &f64)| {
        let usable = || {
            let sample = data.sample(index)?;
            let (mean, error) = (sample.mean, sample.standard_error()?);
            let value = transform.value(mean)?;
            Some(Point { size, value, error: transform.error(mean, error) })
        };
        usable().ok_or(FitError::InvalidPoint { index })
    };
    sizes.iter().enumerate().map(point).collect()
}

/// Refits every resample.
pub(super) fn around(
    fit: Fit,
    fitter: &Fitter,
    transform: Transform,
    resamples: &Resamples,
) -> FitInterval {
    let refit = |row: &[Option<f64>]| -> Option<f64> {
        let value = |mean: &Option<f64>| mean.and_then(|mean| transform.value(mean));
        let values: Option<Vec<f64>> = row.iter().map(value).collect();
        Some(fitter.exponent(&values?).ok()?.0)
    };
    let rows: Vec<&[Option<f64>]> = resamples.rows().collect();
    let exponents: Vec<Option<f64>> = rows.into_par_iter().map(refit).collect();
    let refused = exponents.iter().filter(|c| c.is_none()).count();
    let ends = |absent: f64| {
        let values = exponents.iter().map(|c| c.unwrap_or(absent)).collect();
        percentile_interval(values, LEVEL).expect("there are resamples, and exponents are numbers")
    };
    FitInterval { fit, low: ends(EXPONENTS.0).low, high: ends(EXPONENTS.1).high, refused }
}

#[cfg(test)]
mod tests {
    use super::super::FitError::{InvalidPoint, NoTrend};
    use super::*;

    const SIZES: [f64; 6] = [25.0, 50.0, 100.0, 200.0, 400.0, 800.0];
    const SEED: Seed = Seed([3; 32]);
    const PINNED: [u64; 5] = [
        0x3fce7c9bf476c3b9,
        0x4012974839cc9e7a,
        0x3fe22768d10608a7,
        0x3fdb5453d7d8a5a9,
        0x3fe6be37c2264741,
    ];

    /// 1 + noise, shared by the sizes, of a fixed pattern with mean zero.
    fn pattern(i: usize) -> f64 {
        1.0 + libm::sin(2.4 * (i * i) as f64)
    }

    fn data(curve: impl Fn(f64) -> f64) -> Replicates {
        Replicates::new(SIZES.len(), 500, |s, i| {
            Some(curve(SIZES[s]) * pattern(i * SIZES.len() + s))
        })
    }

    #[test]
    fn root_of_squares_has_half_the_exponent() {
        let squares = data(|n| 40.0 / n);
        let whole =
            exponent_interval(&SIZES, &squares, Transform::Identity, Floor::Known(0.0), SEED);
        let root =
            exponent_interval(&SIZES, &squares, Transform::SquareRoot, Floor::Known(0.0), SEED);
        let (whole, root) = (whole.unwrap(), root.unwrap());
        assert!((whole.fit.c - 2.0 * root.fit.c).abs() < 0.05, "{whole:?} {root:?}");
        assert!(root.low < root.fit.c && root.fit.c < root.high && root.refused == 0);
        assert!(root.low < 0.5 && 0.5 < root.high);
    }

    /// Every bit, on every CPU and with every version of what this stands on.
    #[test]
    fn an_interval_is_pinned() {
        let data = data(|n| 0.2 + 4.0 / n.sqrt());
        let found = exponent_interval(&SIZES, &data, Transform::Identity, Floor::Free, SEED);
        let found = found.unwrap();
        let bits = [found.fit.a, found.fit.b, found.fit.c, found.low, found.high].map(f64::to_bits);
        assert_eq!(bits, PINNED, "{found:?}");
    }

    #[test]
    fn a_sample_without_a_fit_has_no_interval() {
        let interval = |data: &Replicates, transform| {
            exponent_interval(&SIZES, data, transform, Floor::Free, SEED)
        };
        assert!(matches!(interval(&data(|_| 1.0), Transform::Identity), Err(NoTrend { .. })));
        let negative = interval(&data(|n| -1.0 / n), Transform::SquareRoot);
        assert_eq!(negative, Err(InvalidPoint { index: 0 }));
        let constant = Replicates::new(6, 9, |s, _| Some(1.0 / SIZES[s]));
        assert_eq!(interval(&constant, Transform::Identity), Err(InvalidPoint { index: 0 }));
    }

    #[test]
    fn refusals_widen_both_ends() {
        // Few replicates: the trend is lost in many resamples.
        let curve = |n: f64| 0.3 + 3.0 / n.sqrt();
        let few = Replicates::new(SIZES.len(), 28, |s, i| {
            Some(curve(SIZES[s]) * pattern(i * SIZES.len() + s))
        });
        let found = exponent_interval(&SIZES, &few, Transform::Identity, Floor::Free, SEED);
        let found = found.unwrap();
        assert!(found.refused > 50, "{found:?}");
        assert_eq!((found.low, found.high), EXPONENTS);
    }
}
