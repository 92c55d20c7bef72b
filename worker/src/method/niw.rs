//! Hierarchical Bayes with a normal-inverse-Wishart prior on (mu, k) (paper, appendix, "Connections and
//! differences to hierarchical Bayes"), at its posterior means.
//!
//! mu | k ~ N(m0, k/kappa0), k ~ IW(Psi, nu0). With N training functions of mean y_bar and scatter S,
//!
//! E[mu] = (kappa0 m0 + N y_bar)/(kappa0 + N),
//! E[k]  = (Psi + S + kappa0 N/(kappa0 + N) (y_bar - m0)(y_bar - m0)^T)/(nu0 + N - M - 1).
//!
//! Weak and scaled to the data: m0 the mean of all responses at every point, kappa0 = 1, nu0 = M + 2 and
//! Psi = v I, v the mean of the columns' variances, so that one function in N + 1 speaks for independent
//! values of usual size. The posterior means are then plugged in.

use super::estimate::{Estimate, Scale};

/// kappa0.
const KAPPA: f64 = 1.0;

/// From the mean and the covariance of N training functions.
pub(crate) fn from_moments(mean: &[f64], covariance: &[f64], n: u64) -> Estimate {
    let (size, n) = (mean.len(), n as f64);
    let common = mean.iter().sum::<f64>() / size as f64;
    let usual = (0..size).map(|i| covariance[i * size + i]).sum::<f64>() / size as f64;
    let pull = KAPPA * n / (KAPPA + n);
    let divisor = n + 1.0;
    let shifts: Vec<f64> = mean.iter().map(|mean| mean - common).collect();
    let mut posterior = Vec::with_capacity(covariance.len());
    for (i, row) in covariance.chunks_exact(size).enumerate() {
        for (j, entry) in row.iter().enumerate() {
            let psi = if i == j { usual } else { 0.0 };
            posterior.push((psi + (n - 1.0) * entry + pull * shifts[i] * shifts[j]) / divisor);
        }
    }
    let mean = mean.iter().map(|mean| (KAPPA * common + n * mean) / (KAPPA + n)).collect();
    Estimate::new(mean, posterior, Scale::PlugIn)
}

#[cfg(test)]
mod tests {
    use super::super::{Method, Prediction};
    use super::*;

    /// With one point everything is a number: m0 = y_bar, so E[k] = (v + (N-1) v)/(N + 1).
    #[test]
    fn one_point_by_hand() {
        let estimate = from_moments(&[3.0], &[4.0], 9);
        let Prediction { mean, variance } = estimate.predict(&0);
        assert_eq!(mean, 3.0);
        assert!((variance - 36.0 / 10.0).abs() < 1e-15);
    }

    #[test]
    fn two_points_by_hand() {
        // m0 = 2, v = 3, N = 4: pull = 4/5, shifts -1 and 1.
        let estimate = from_moments(&[1.0, 3.0], &[2.0, 1.0, 1.0, 4.0], 4);
        let first = estimate.predict(&0);
        assert!((first.mean - (2.0 + 4.0) / 5.0).abs() < 1e-15);
        assert!((first.variance - (3.0 + 6.0 + 0.8) / 5.0).abs() < 1e-14);
        let covariance = (3.0 - 0.8) / 5.0;
        let mut told = from_moments(&[1.0, 3.0], &[2.0, 1.0, 1.0, 4.0], 4);
        told.observe(&0, 2.2).unwrap();
        let gain = covariance / first.variance * (2.2 - first.mean);
        let second = told.predict(&1);
        assert!((second.mean - ((2.0 + 12.0) / 5.0 + gain)).abs() < 1e-14);
    }
}
