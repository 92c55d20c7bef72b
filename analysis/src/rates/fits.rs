//! Exponents: A + B n^-c fitted to a quantity by N - T or by T, beside the theory's exponent.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use study::cell::Policy;
use theory::theorem2;

use super::{limit, pairs};
use crate::dataset::{DataCell, Dataset};
use crate::pass::{AtResult, CellResult, Series};
use crate::statistics::{
    Comparison, Floor, MIN_SIZES, Replicates, Seed, Transform, compare, exponent_interval,
};
use crate::words;

/// What is fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    /// Root mean square of (mu_hat_t - mu_t)/sqrt(k_t + sigma^2).
    RmsError,
    /// Mean of r_T minus that of the known prior.
    Excess,
    /// Mean of r_T.
    BestSample,
    /// Mean of min_t k_{t-1}(x_t).
    LeastVariance,
}

/// The size that a quantity falls with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Against {
    /// N - T, or N - t.
    Functions,
    /// T.
    Horizon,
}

/// A fitted rate.
#[derive(Clone, Debug)]
pub struct RateFit {
    /// What falls.
    pub quantity: Quantity,
    /// With what.
    pub against: Against,
    /// Which cells, in words.
    pub of: String,
    /// T, where the size is N - T.
    pub t: Option<u32>,
    /// N, where the size is T and there is one.
    pub n: Option<u64>,
    /// The sizes, and value and standard error at each.
    pub points: Vec<(f64, f64, f64)>,
    /// The floor A: fitted, or known to be 0.
    pub floor: Floor,
    /// Why the theory has its exponent.
    pub theory: &'static str,
    /// The fit beside the theory's exponent.
    pub comparison: Comparison,
}

impl Quantity {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::RmsError => "RMS error of μ̂_t",
            Self::Excess => "excess of r_T over the known prior",
            Self::BestSample => "best-sample regret r_T",
            Self::LeastVariance => "min k_{t−1}(x_t)",
        }
    }
}

impl Against {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Functions => "N − T",
            Self::Horizon => "T",
        }
    }
}

/// Series over replicates, one per size.
struct Curve {
    sizes: Vec<f64>,
    series: Vec<Vec<Option<f64>>>,
}

/// All rates of the study that have enough sizes.
pub fn fits(dataset: &Dataset, records: &[CellResult]) -> Vec<RateFit> {
    let mut fits = Vec::new();
    for (key, cells) in by_functions(dataset, records) {
        for &t in &dataset.study.grid.t {
            fits.extend(against_functions(dataset, &key, &cells, t));
        }
    }
    for result in records {
        fits.extend(against_horizon(dataset, result));
    }
    fits.sort_by(|a, b| {
        let key = |fit: &RateFit| (fit.quantity, fit.against, fit.of.clone(), fit.n, fit.t);
        key(a).cmp(&key(b))
    });
    fits
}

/// A cell with its N, and the run with the known prior that is its limit.
type Member<'r> = (u64, &'r CellResult, Option<&'r CellResult>);

/// A series over replicates from a cell's results at one t, and those of its limit.
type Extract<'e> = &'e dyn Fn(&AtResult, Option<&AtResult>) -> Option<Vec<Option<f64>>>;

/// Cells that differ in N alone, by what they have in common.
fn by_functions<'r>(
    dataset: &Dataset,
    records: &'r [CellResult],
) -> BTreeMap<String, Vec<Member<'r>>> {
    let mut groups: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for result in records {
        let cell = &dataset.cells[result.cell];
        let Some(training) = cell.cell.policy.training() else { continue };
        let known = limit(dataset, cell).map(|place| &records[place]);
        groups.entry(label(dataset, cell)).or_default().push((training.n, result, known));
    }
    groups.values_mut().for_each(|cells| cells.sort_by_key(|cell| cell.0));
    groups
}

/// A cell in words, without its N.
fn label(dataset: &Dataset, cell: &DataCell) -> String {
    let mut label = words::short_policy(&cell.cell).to_owned();
    if let Some(delta) = cell.cell.policy.delta() {
        _ = write!(label, ", δ = {delta}");
    }
    if dataset.study.grid.policy_constants.len() > 1
        && let Some(constants) = cell.cell.policy.constants()
    {
        _ = write!(label, ", {} ζ_t", constants.form());
    }
    if !cell.swept.is_empty() {
        _ = write!(label, ", {}", words::swept(&cell.swept));
    }
    label
}

fn against_functions(dataset: &Dataset, label: &str, cells: &[Member<'_>], t: u32) -> Vec<RateFit> {
    let at = |result: &CellResult| result.at.iter().position(|at| at.t == t);
    let size = |n: u64| n as f64 - f64::from(t);
    let curve = |value: Extract<'_>| {
        let mut curve = Curve { sizes: vec![], series: vec![] };
        for (n, result, known) in cells {
            let Some(place) = at(result).filter(|_| size(*n) > 0.0) else { continue };
            let known = known.and_then(|known| Some(&known.at[at(known)?]));
            if let Some(series) = value(&result.at[place], known) {
                curve.sizes.push(size(*n));
                curve.series.push(series);
            }
        }
        curve
    };
    let fixed = cells
        .iter()
        .all(|(_, result, _)| matches!(dataset.cells[result.cell].cell.policy, Policy::Fixed(_)));
    let fit = |quantity, curve, theory| {
        let against = Against::Functions;
        let about = About { quantity, against, label, t: Some(t), n: None, theory };
        rate(dataset, about, 0.5, &curve)
    };
    if fixed {
        let errors = curve(&|at, _| Some(pairs::values(&at.of(Series::Error).blocks)));
        let theory = "exact law: E[error] = 1/N + (1 + 1/N) t/(N − t − 2)";
        return fit(Quantity::RmsError, errors, theory).into_iter().collect();
    }
    let excess = curve(&|at, known| {
        let known = &known?.of(Series::BestSample).blocks;
        Some(pairs::differences(&at.of(Series::BestSample).blocks, known))
    });
    let best = curve(&|at, _| Some(pairs::values(&at.of(Series::BestSample).blocks)));
    let theory = "η_T(N) approaches its limit as (N − T)^{−1/2}";
    let excess = fit(Quantity::Excess, excess, theory);
    excess.into_iter().chain(fit(Quantity::BestSample, best, theory)).collect()
}

/// How fast the least variance falls with T within one run, beside its cap's own fall.
fn against_horizon(dataset: &Dataset, result: &CellResult) -> Option<RateFit> {
    let cell = &dataset.cells[result.cell];
    if cell.cell.policy.design() == "fixed" {
        return None;
    }
    let prior = dataset.prior(cell);
    let at: Vec<&AtResult> = result.at.iter().filter(|at| prior.rho_at(at.t).is_some()).collect();
    let (first, last) = (at.first()?, at.last()?);
    let cap = |t: u32| {
        let (_, high) = prior.rho_at(t)?;
        Some(theorem2::variance_cap(prior.c, cell.cell.noise_variance, high, t))
    };
    let fall = libm::log(cap(first.t)? / cap(last.t)?);
    let claimed = fall / libm::log(f64::from(last.t) / f64::from(first.t));
    let label = label(dataset, cell);
    let curve = Curve {
        sizes: at.iter().map(|at| f64::from(at.t)).collect(),
        series: at.iter().map(|at| pairs::values(&at.of(Series::LeastVariance).blocks)).collect(),
    };
    let about = About {
        quantity: Quantity::LeastVariance,
        against: Against::Horizon,
        label: &label,
        t: None,
        n: cell.cell.policy.training().map(|training| training.n),
        theory: "its cap 2cρ_T/(T log(1 + c/σ²)) over the same T",
    };
    rate(dataset, about, claimed, &curve)
}

/// What a fit is about.
#[derive(Clone, Copy)]
struct About<'a> {
    quantity: Quantity,
    against: Against,
    label: &'a str,
    t: Option<u32>,
    n: Option<u64>,
    theory: &'static str,
}

fn rate(dataset: &Dataset, about: About<'_>, claimed: f64, curve: &Curve) -> Option<RateFit> {
    let About { quantity, against, label, t, n, theory } = about;
    let replicates = curve.series.iter().map(Vec::len).max().unwrap_or(0);
    // Fewer sizes than parameters plus two say nothing about an exponent: no fit is offered.
    if curve.sizes.len() < MIN_SIZES || replicates == 0 {
        return None;
    }
    let value =
        |series: usize, replicate: usize| curve.series[series].get(replicate).copied().flatten();
    let data = Replicates::new(curve.series.len(), replicates, value);
    let transform = match quantity {
        Quantity::RmsError => Transform::SquareRoot,
        _ => Transform::Identity,
    };
    let floor = match quantity {
        // In the limit the estimators are the prior itself, and the run is that of the known prior.
        Quantity::RmsError | Quantity::Excess => Floor::Known(0.0),
        Quantity::BestSample | Quantity::LeastVariance => Floor::Free,
    };
    let seed = seed(dataset, &about);
    let measured = exponent_interval(&curve.sizes, &data, transform, floor, seed);
    let points = curve.sizes.iter().enumerate().filter_map(|(place, &size)| {
        let sample = data.sample(place)?;
        let (value, error) = transform.apply(sample.mean, sample.standard_error()?)?;
        Some((size, value, error))
    });
    Some(RateFit {
        quantity,
        against,
        of: label.to_owned(),
        t,
        n,
        points: points.collect(),
        floor,
        theory,
        comparison: compare(claimed, measured),
    })
}

/// The same for every analysis of the same study.
fn seed(dataset: &Dataset, about: &About<'_>) -> Seed {
    let mut digest = study::Digest::new();
    digest.tag("bootstrap v1").text(&dataset.manifest.study_digest);
    digest.text(about.quantity.name()).text(about.against.name()).text(about.label);
    digest.u64(about.t.unwrap_or(0).into()).u64(about.n.unwrap_or(0));
    Seed(digest.finish())
}
