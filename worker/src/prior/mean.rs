//! The mean at every point; the formulas stand with [`MeanSpec`].

use super::Points;
use std::f64::consts::TAU;
use study::prior::{Files, Invalid, MeanSpec, Table};

/// mu(x_i) for i = 0 .. M - 1.
pub(super) fn values(spec: &MeanSpec, points: &Points, files: &Files) -> Result<Vec<f64>, Invalid> {
    Ok(match spec {
        MeanSpec::Zero {} => vec![0.0; points.size()],
        MeanSpec::Constant { value } => vec![*value; points.size()],
        MeanSpec::Linear { weights, intercept } => {
            let at = |x: &[f64]| x.iter().zip(weights).fold(*intercept, |sum, (x, w)| sum + w * x);
            points.iter().map(at).collect()
        }
        MeanSpec::Sine { amplitude, frequency, phase } => {
            let at = |x: &[f64]| {
                let sum = x.iter().fold(0.0, |sum, x| sum + x);
                amplitude * libm::sin(TAU * frequency * sum + phase)
            };
            points.iter().map(at).collect()
        }
        MeanSpec::File { path } => files.table("prior.mean.path", path)?.values().to_vec(),
        MeanSpec::Data { path, sense } => {
            let means = of_columns(files.table("prior.mean.path", path)?);
            means.into_iter().map(|mean| sense.sign() * mean).collect()
        }
    })
}

/// The mean of every column.
pub(super) fn of_columns(table: &Table) -> Vec<f64> {
    let mean = |j: usize| {
        (0..table.rows()).fold(0.0, |sum, i| sum + table.row(i)[j]) / table.rows() as f64
    };
    (0..table.columns()).map(mean).collect()
}
