//! A trace read back, and the true posterior by dense algebra from what is in it.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::common::Bench;

/// A trace as read back from its files.
pub(crate) struct Traced {
    pub(crate) summary: Value,
    pub(crate) mu: Vec<f64>,
    pub(crate) f: Vec<f64>,
    pub(crate) factor: Vec<Vec<f64>>,
    /// x and y.
    pub(crate) steps: Vec<(usize, f64)>,
    pub(crate) acquisition: Vec<Option<f64>>,
    pub(crate) zeta: Vec<Option<f64>>,
    /// By t and index: mean and variance.
    pub(crate) truth: BTreeMap<(usize, usize), (f64, f64)>,
    pub(crate) estimate: BTreeMap<(usize, usize), (f64, f64)>,
}

/// Rows of a CSV by column name; absent values are NaN.
fn csv(bench: &Bench, name: &str) -> Vec<BTreeMap<String, f64>> {
    let Ok(text) = fs::read_to_string(bench.path("trace").join(name)) else { return vec![] };
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().expect("a head").split(',').collect();
    let row = |line: &str| {
        let values = line.split(',').map(|value| value.parse().unwrap_or(f64::NAN));
        head.iter().map(ToString::to_string).zip(values).collect()
    };
    lines.map(row).collect()
}

impl Traced {
    /// Reads the folder `trace` and removes it.
    pub(crate) fn take(bench: &Bench) -> Self {
        let summary = fs::read(bench.path("trace/trace.json")).expect("trace.json");
        let domain = csv(bench, "domain.csv");
        let columns = |row: &BTreeMap<String, f64>| {
            (0..row.len() - 1).map(|k| row[&format!("F{k}")]).collect()
        };
        let beliefs = |name: &str, mean: &str, variance: &str| {
            let key = |row: &BTreeMap<String, f64>| (row["t"] as usize, row["index"] as usize);
            let rows = csv(bench, name).into_iter();
            rows.map(|row| (key(&row), (row[mean], row[variance]))).collect()
        };
        let steps = csv(bench, "steps.csv");
        let of = |key: &str| {
            steps.iter().map(|row| Some(row[key]).filter(|value| !value.is_nan())).collect()
        };
        let traced = Self {
            summary: serde_json::from_slice(&summary).expect("JSON"),
            mu: domain.iter().map(|row| row["mu"]).collect(),
            f: domain.iter().map(|row| row["f"]).collect(),
            factor: csv(bench, "factor.csv").iter().map(columns).collect(),
            acquisition: of("acquisition"),
            zeta: of("zeta"),
            steps: steps.iter().map(|row| (row["x"] as usize, row["y"])).collect(),
            truth: beliefs("true.csv", "mu", "k"),
            estimate: beliefs("estimator.csv", "mu_hat", "k_hat"),
        };
        fs::remove_dir_all(bench.path("trace")).expect("removed");
        traced
    }

    fn number(&self, key: &str) -> f64 {
        self.summary[key].as_f64().expect("a number")
    }

    /// k = F F^T + w I.
    fn kernel(&self, i: usize, j: usize) -> f64 {
        let product: f64 = self.factor[i].iter().zip(&self.factor[j]).map(|(a, b)| a * b).sum();
        product + if i == j { self.number("w") } else { 0.0 }
    }

    /// mu_t, k_t at a point and K, by solving with the dense matrix k(x_t) + sigma^2 I.
    pub(crate) fn posterior(&self, t: usize, point: usize) -> (f64, f64, f64) {
        let seen = &self.steps[..t];
        let entry = |i: usize, j: usize| {
            self.kernel(seen[i].0, seen[j].0) + if i == j { self.number("sigma^2") } else { 0.0 }
        };
        let matrix: Vec<Vec<f64>> = (0..t).map(|i| (0..t).map(|j| entry(i, j)).collect()).collect();
        let surprise: Vec<f64> = seen.iter().map(|&(x, y)| y - self.mu[x]).collect();
        let cross: Vec<f64> = seen.iter().map(|&(x, _)| self.kernel(point, x)).collect();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let weights = solve(matrix.clone(), surprise.clone());
        let mean = self.mu[point] + dot(&cross, &weights);
        let variance = self.kernel(point, point) - dot(&cross, &solve(matrix, cross.clone()));
        (mean, variance, dot(&surprise, &weights))
    }
}

/// Gauss with pivots.
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for k in 0..n {
        let best = (k..n).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs())).expect("a row");
        a.swap(k, best);
        b.swap(k, best);
        for i in k + 1..n {
            let factor = a[i][k] / a[k][k];
            for j in k..n {
                a[i][j] -= factor * a[k][j];
            }
            b[i] -= factor * b[k];
        }
    }
    for k in (0..n).rev() {
        let rest: f64 = (k + 1..n).map(|j| a[k][j] * b[j]).sum();
        b[k] = (b[k] - rest) / a[k][k];
    }
    b
}

pub(crate) fn near(a: f64, b: f64, what: &str) {
    assert!((a - b).abs() <= 1e-9 * (1.0 + b.abs()), "{what}: {a} and {b}");
}
