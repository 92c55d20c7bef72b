//! Lemma 3: the compact twin of Lemma 1, with the same a_t and b_t ([`crate::lemma1`]), and the
//! exact bias of its estimators.
//!
//! The lemma claims `E[mu_hat_t] = mu_t` and `E[k_hat_t] = k_t + sigma_bar^2`. The estimators
//! condition on Phi_t^T Sigma_hat Phi_t **without** sigma^2 I while y_t carries noise, so with
//! B = Sigma + sigma^2 (Phi(x_bar) Phi(x_bar)^T)^-1 what they estimate is
//!
//! ```text
//! E[mu_hat_t(x) | D_t] = Phi^T u + Phi^T B Phi_t (Phi_t^T B Phi_t)^-1 (y_t - Phi_t^T u)
//! E[k_hat_t(x)]        = Phi^T B Phi - Phi^T B Phi_t (Phi_t^T B Phi_t)^-1 Phi_t^T B Phi
//! ```
//!
//! Equal to the claim for t = 0, for sigma = 0, and for M = K with all points training points.

use crate::dense::{Cholesky, Matrix, NotPositive, dot};

/// The compact prior and its training design.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactPrior {
    /// u, the mean of the weights (K).
    pub mean: Vec<f64>,
    /// Sigma, the covariance of the weights (K x K).
    pub covariance: Matrix,
    /// Phi(x_bar) Phi(x_bar)^T, the Gram matrix of the training design (K x K, full rank).
    pub gram: Matrix,
    /// sigma^2.
    pub noise_variance: f64,
}

/// What the estimators expect at x beside what Lemma 3 claims that they do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bias {
    /// E[mu_hat_t(x) | D_t].
    pub mean_expected: f64,
    /// mu_t(x).
    pub mean_claimed: f64,
    /// E[k_hat_t(x)].
    pub variance_expected: f64,
    /// k_t(x) + sigma_bar^2(x).
    pub variance_claimed: f64,
}

impl Bias {
    /// E[mu_hat_t(x)] - mu_t(x).
    pub fn mean(&self) -> f64 {
        self.mean_expected - self.mean_claimed
    }

    /// E[k_hat_t(x)] - k_t(x) - sigma_bar^2(x).
    pub fn variance(&self) -> f64 {
        self.variance_expected - self.variance_claimed
    }
}

impl CompactPrior {
    /// B, the covariance of a least-squares estimate W_hat_i.
    pub fn estimate_covariance(&self) -> Result<Matrix, NotPositive> {
        if self.noise_variance == 0.0 {
            return Ok(self.covariance.clone());
        }
        let inverse = Cholesky::new(&self.gram)?.inverse();
        Ok(self.covariance.plus(self.noise_variance, &inverse))
    }

    /// sigma_bar^2(x) = sigma^2 Phi^T (Phi(x_bar) Phi(x_bar)^T)^-1 Phi, at features Phi(x).
    pub fn sigma_bar2(&self, features: &[f64]) -> Result<f64, NotPositive> {
        let solved = Cholesky::new(&self.gram)?.solve(features);
        Ok(self.noise_variance * dot(features, &solved))
    }

    /// The exact bias at features Phi(x), given observations `y` at `design` = Phi(x_t) (K x t).
    pub fn bias(&self, design: &Matrix, y: &[f64], features: &[f64]) -> Result<Bias, NotPositive> {
        let target = Target { mean: &self.mean, design, y, features };
        let estimate = self.estimate_covariance()?;
        let (mean_expected, variance_expected) = target.condition(&estimate, 0.0)?;
        let (mean_claimed, variance) = target.condition(&self.covariance, self.noise_variance)?;
        let variance_claimed = variance + self.sigma_bar2(features)?;
        Ok(Bias { mean_expected, mean_claimed, variance_expected, variance_claimed })
    }
}

/// A point to predict, and the data to predict it from.
struct Target<'a> {
    mean: &'a [f64],
    design: &'a Matrix,
    y: &'a [f64],
    features: &'a [f64],
}

impl Target<'_> {
    /// Mean and variance of Phi^T W given y_t = Phi_t^T W + noise, W ~ N(u, covariance).
    fn condition(&self, covariance: &Matrix, noise: f64) -> Result<(f64, f64), NotPositive> {
        let spread = covariance.apply(self.features);
        let prior = (dot(self.features, self.mean), dot(self.features, &spread));
        if self.y.is_empty() {
            return Ok(prior);
        }
        let across = self.design.transpose();
        let observed = across.times(&covariance.times(self.design));
        let noisy = Matrix::from_fn(observed.rows(), observed.columns(), |i, j| {
            observed.at(i, j) + if i == j { noise } else { 0.0 }
        });
        let cross = across.apply(&spread);
        let gain = Cholesky::new(&noisy)?.solve(&cross);
        let expected = across.apply(self.mean);
        let surprise: Vec<f64> = self.y.iter().zip(&expected).map(|(y, m)| y - m).collect();
        Ok((prior.0 + dot(&gain, &surprise), prior.1 - dot(&gain, &cross)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(x: f64) -> Vec<f64> {
        vec![1.0, x, x * x - 0.3]
    }

    fn design(points: &[f64]) -> Matrix {
        let columns: Vec<Vec<f64>> = points.iter().map(|&x| features(x)).collect();
        Matrix::from_fn(3, points.len(), |i, j| columns[j][i])
    }

    fn prior(training: &[f64], noise_variance: f64) -> CompactPrior {
        let phi = design(training);
        CompactPrior {
            mean: vec![0.2, -0.5, 1.0],
            covariance: Matrix::from_fn(3, 3, |i, j| if i == j { 1.0 + i as f64 } else { 0.3 }),
            gram: phi.times(&phi.transpose()),
            noise_variance,
        }
    }

    const TRAINING: [f64; 5] = [0.0, 0.2, 0.5, 0.7, 1.0];

    #[test]
    fn no_bias_without_observations_or_noise() {
        let none = prior(&TRAINING, 0.1).bias(&design(&[]), &[], &features(0.3)).unwrap();
        assert!(none.mean() == 0.0 && none.variance().abs() < 1e-15);
        let noiseless =
            prior(&TRAINING, 0.0).bias(&design(&[0.1, 0.8]), &[1.0, 0.4], &features(0.3)).unwrap();
        assert!(noiseless.mean().abs() < 1e-14 && noiseless.variance().abs() < 1e-14);
    }

    #[test]
    fn no_bias_where_every_point_is_one_of_k_training_points() {
        let training = [0.0, 0.4, 1.0];
        let bias =
            prior(&training, 0.1).bias(&design(&[0.0, 1.0]), &[1.0, -0.4], &features(0.4)).unwrap();
        assert!(bias.mean().abs() < 1e-13 && bias.variance().abs() < 1e-13);
        assert!(bias.mean_claimed != 0.0);
    }

    #[test]
    fn biased_in_general() {
        let bias =
            prior(&TRAINING, 0.1).bias(&design(&[0.1, 0.8]), &[1.0, 0.4], &features(0.3)).unwrap();
        assert!(bias.mean().abs() > 1e-3 && bias.variance().abs() > 1e-3);
    }
}
