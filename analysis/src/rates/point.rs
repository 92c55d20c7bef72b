//! What is measured at one (N, T) of the grid, beside what the theory says there.

use rayon::prelude::*;
use theory::theorem2;

use super::{limit, pairs};
use crate::dataset::{DataCell, Dataset};
use crate::pass::{AtResult, CellResult, Series, SeriesResult};
use crate::statistics::summary;
use crate::verdicts::VerdictRow;

/// A mean with its Monte-Carlo standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
}

/// A quantile with limits at confidence 95 %, by order statistics; an end that the sample is too small
/// for is `None`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantile {
    /// Its level.
    pub level: f64,
    /// The quantile of the sample.
    pub value: f64,
    /// Lower limit.
    pub low: Option<f64>,
    /// Upper limit.
    pub high: Option<f64>,
}

/// A mean over trials beside the mean of what the exact law expects of each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// Measured.
    pub measured: Estimate,
    /// Expected, averaged over the same trials.
    pub exact: Estimate,
    /// Measured minus expected, paired.
    pub difference: Estimate,
}

/// The bias of the compact setting's estimators, in units of Lemma 3's claims.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bias {
    /// Of mu_hat_t: Lemma 3 claims 0.
    pub mean: Compared,
    /// Of k_hat_t/(k_t + sigma_bar^2): Lemma 3 claims 1.
    pub variance: Compared,
}

/// A cell at one T.
#[derive(Clone, Debug)]
pub struct RatePoint {
    /// The cell's place in [`Dataset::cells`].
    pub cell: usize,
    /// T.
    pub t: u32,
    /// delta at which the quantile and the bound are taken.
    pub delta: f64,
    /// Trials with a measurement.
    pub trials: u64,
    /// Trials that failed.
    pub failures: u64,
    /// r_T.
    pub best: Option<Estimate>,
    /// The median of r_T.
    pub median: Option<Quantile>,
    /// The (1 - delta)-quantile of r_T.
    pub quantile: Option<Quantile>,
    /// R_T.
    pub simple: Option<Estimate>,
    /// The cumulative regret.
    pub cumulative: Option<Estimate>,
    /// r_T minus that of the known prior, paired.
    pub excess: Option<Estimate>,
    /// Root of the mean of (mu_hat_t - mu_t)^2/(k_t + sigma^2) at the probe.
    pub rms_error: Option<Estimate>,
    /// min_t k_{t-1}(x_t).
    pub least_variance: Option<Estimate>,
    /// Its cap, 2 c rho_T/(T log(1 + c/sigma^2)) with rho's upper end.
    pub cap: Option<f64>,
    /// rho_T, both ends.
    pub rho: Option<(f64, f64)>,
    /// lambda_T with rho's upper end.
    pub lambda: Option<f64>,
    /// max_{s <= T} f(x_s).
    pub best_value: Option<Estimate>,
    /// Lemma 3's bias at the probe, in the compact setting.
    pub bias: Option<Bias>,
    /// Theorem 2's bound with rho's lower end, where it applies.
    pub bound: Option<f64>,
}

const CONFIDENCE: f64 = 0.95;

/// Every cell at every T and delta.
pub fn points(
    dataset: &Dataset,
    records: &[CellResult],
    verdicts: &[VerdictRow],
) -> Vec<RatePoint> {
    let of = |result: &CellResult| {
        let mut points = Vec::new();
        let cell = &dataset.cells[result.cell];
        let own = cell.cell.policy.delta();
        let deltas = own.map_or_else(|| dataset.study.grid.delta.clone(), |delta| vec![delta]);
        let known = limit(dataset, cell).map(|place| &records[place]);
        for at in &result.at {
            for delta in &deltas {
                let known = known.and_then(|known| known.at.iter().find(|other| other.t == at.t));
                let mut point = point(dataset, cell, at, delta.get(), known);
                point.cell = result.cell;
                point.bound = bound(verdicts, cell, at.t, delta.get());
                points.push(point);
            }
        }
        points
    };
    // Each has quantiles to select.
    records.par_iter().flat_map_iter(of).collect()
}

fn point(
    dataset: &Dataset,
    cell: &DataCell,
    at: &AtResult,
    delta: f64,
    known: Option<&AtResult>,
) -> RatePoint {
    let prior = dataset.prior(cell);
    let (c, s2) = (prior.c, cell.cell.noise_variance);
    let rho = prior.rho_at(at.t);
    let best = at.of(Series::BestSample);
    let level = |level: f64| quantile(best, level);
    RatePoint {
        cell: 0,
        t: at.t,
        delta,
        trials: best.count,
        failures: at.failures,
        best: estimate(best),
        median: level(0.5),
        quantile: level(1.0 - delta),
        simple: estimate(at.of(Series::Simple)),
        cumulative: estimate(at.of(Series::Cumulative)),
        excess: known.and_then(|known| excess(best, known.of(Series::BestSample))),
        rms_error: estimate(at.of(Series::Error)).filter(|mean| mean.value > 0.0).map(root),
        least_variance: estimate(at.of(Series::LeastVariance)),
        cap: rho.map(|(_, high)| theorem2::variance_cap(c, s2, high, at.t)),
        rho,
        lambda: rho.map(|(_, high)| theorem2::lambda(c, s2, high, at.t)),
        best_value: estimate(at.of(Series::BestValue)),
        bias: bias(at),
        bound: None,
    }
}

/// Means at the probe beside what the exact law expects of them, and the paired differences.
fn bias(at: &AtResult) -> Option<Bias> {
    let compared = |measured: Series, expected: Series| {
        let (measured, expected) = (at.of(measured), at.of(expected));
        Some(Compared {
            measured: estimate(measured)?,
            exact: estimate(expected)?,
            difference: excess(measured, expected)?,
        })
    };
    Some(Bias {
        mean: compared(Series::Signed, Series::ExpectedSigned)?,
        variance: compared(Series::Ratio, Series::ExpectedRatio)?,
    })
}

fn estimate(series: &SeriesResult) -> Option<Estimate> {
    (series.count >= 2).then(|| Estimate {
        value: series.mean,
        error: (series.variance / series.count as f64).sqrt(),
    })
}

/// The root of a mean, its error by the delta method.
fn root(mean: Estimate) -> Estimate {
    let value = mean.value.sqrt();
    Estimate { value, error: mean.error / (2.0 * value) }
}

fn quantile(series: &SeriesResult, level: f64) -> Option<Quantile> {
    let sample = series.sample.as_ref()?;
    let limits = sample.limits(level, CONFIDENCE);
    Some(Quantile { level, value: sample.quantile(level), low: limits.low, high: limits.high })
}

fn excess(own: &SeriesResult, known: &SeriesResult) -> Option<Estimate> {
    let sample = summary(pairs::differences(&own.blocks, &known.blocks).into_iter().flatten())?;
    Some(Estimate { value: sample.mean, error: sample.standard_error()? })
}

fn bound(verdicts: &[VerdictRow], cell: &DataCell, t: u32, delta: f64) -> Option<f64> {
    let id = cell.id.to_string();
    let is = |row: &&VerdictRow| {
        let theorem = row.claim == "theorem2.ucb" || row.claim == "theorem2.pi";
        theorem
            && row.cell == id
            && row.t == Some(t)
            && row.delta == Some(delta)
            && row.constants.as_deref() != Some("sharp")
            && row.bound.is_some()
    };
    verdicts.iter().find(is)?.bound
}
