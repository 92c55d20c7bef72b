//! Priors of tests: from the JSON of a study's `[prior]`, or from a factor written out.

use study::prior::{Files, PriorSpec};
use theory::Factor;
use worker::prior::{Error, MemoryLimit, Prior};

const LIMIT: MemoryLimit = MemoryLimit { bytes: 1 << 32, state_per_point: 1600 };

/// Kernels of tests, as in a study file.
pub mod kernels {
    /// Smooth: a few columns.
    pub const SMOOTH: &str = r#"{"kind": "squared-exponential", "lengthscale": 0.5}"#;
    /// Wigglier, with another variance.
    pub const WIGGLY: &str =
        r#"{"kind": "squared-exponential", "lengthscale": 0.1, "variance": 2.5}"#;
    /// Rough: as many columns as points.
    pub const ROUGH: &str = r#"{"kind": "matern12", "lengthscale": 0.3}"#;
    /// Between the two.
    pub const MATERN: &str = r#"{"kind": "matern52", "lengthscale": 0.2}"#;
    /// No columns.
    pub const WHITE: &str = r#"{"kind": "white"}"#;
    /// A constant and a slope; the origin keeps the constant alone.
    pub const LINEAR: &str = r#"{"kind": "linear", "variance": 2.0, "offset": 0.5}"#;
    /// A slope alone: a zero row at the origin.
    pub const SLOPE: &str = r#"{"kind": "linear", "variance": 2.0}"#;
    /// Smooth and white parts.
    pub const MIXED: &str = r#"{"kind": "sum", "terms": [
        {"kind": "squared-exponential", "lengthscale": 0.4}, {"kind": "white", "variance": 0.3}]}"#;
    /// Periodic.
    pub const PERIODIC: &str = r#"{"kind": "periodic", "lengthscale": 0.7, "period": 0.37}"#;
}

/// Builds a finite prior from the JSON of its domain, kernel and mean.
///
/// # Panics
/// Where the JSON is no specification.
pub fn try_build(domain: &str, kernel: &str, mean: &str, noise: f64) -> Result<Prior, Error> {
    let spec = format!(
        r#"{{"setting": "finite", "domain": {domain}, "kernel": {kernel}, "mean": {mean},
             "noise_variance": {noise:e}}}"#
    );
    let spec: PriorSpec = serde_json::from_str(&spec).expect("the specification is well formed");
    Prior::build(&spec, &Files::default(), LIMIT)
}

/// Builds a prior with mean zero on a grid in one dimension.
///
/// # Panics
/// Where it is refused.
pub fn on_grid(points: usize, kernel: &str, noise: f64) -> Prior {
    let domain = format!(r#"{{"kind": "grid", "points": {points}, "dimension": 1}}"#);
    try_build(&domain, kernel, r#"{"kind": "zero"}"#, noise).expect("a valid prior")
}

/// The prior F F^T + w I with the rows of F given.
///
/// # Panics
/// Where rows have different lengths.
pub fn explicit(rows: &[Vec<f64>], white: f64, noise: f64) -> Prior {
    let rank = rows.first().map_or(0, Vec::len);
    let columns: Vec<Vec<f64>> =
        (0..rank).map(|k| rows.iter().map(|row| row[k]).collect()).collect();
    Prior::from_factor(Factor::from_columns(rows.len(), &columns), white, noise)
}
