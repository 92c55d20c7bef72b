//! The mean at every point; the formulas stand with [`MeanSpec`].

use super::Points;
use std::f64::consts::TAU;
use study::prior::{Files, Invalid, MeanSpec};

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
    })
}
