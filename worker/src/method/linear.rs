//! Methods that believe something about the weights of basis functions, on a box: PEM-BO (paper, section
//! 4.2), and with it BOX and NIW, and the known prior.

use super::{Method, Prediction, Stuck};
use crate::compact::acquisition::{self, Acquisition, Belief};
use crate::compact::belief::{Moments, Weights};
use crate::compact::conditioned::{Conditioned, ZeroPivot};
use crate::compact::features::Cosines;
use crate::compact::maximise::Search;
use crate::estimator::{PIVOT_FLOOR, Rule};
use crate::method::estimate::Scale;
use crate::simd::Cpu;

/// What is borrowed from the prior, or owned where features were learnt for this trial.
pub(crate) enum Basis<'p> {
    /// The prior's own features.
    Given(&'p Cosines, &'p Search),
    /// This trial's.
    Learnt(Box<(Cosines, Search)>),
}

impl Basis<'_> {
    fn parts(&self) -> (&Cosines, &Search) {
        match self {
            Self::Given(cosines, search) => (cosines, search),
            Self::Learnt(own) => (&own.0, &own.1),
        }
    }
}

/// A run of such a method.
pub(crate) struct Linear<'p> {
    basis: Basis<'p>,
    belief: Conditioned,
    scale: Scale,
    noise: f64,
    t: u64,
    cpu: Cpu,
}

impl<'p> Linear<'p> {
    /// From what is believed before any observation. Conditioning adds `noise` to the variance of an observation:
    /// nothing but for the known prior. `usual` is the largest variance, against which pivots are judged.
    pub(crate) fn new(
        basis: Basis<'p>,
        weights: Weights,
        scale: Scale,
        noise: f64,
        usual: f64,
        cpu: Cpu,
    ) -> Self {
        let belief = Conditioned::new(weights, noise, PIVOT_FLOOR * usual);
        Self { basis, belief, scale, noise, t: 0, cpu }
    }

    fn phi(&self, x: &[f64]) -> Vec<f64> {
        let cosines = self.basis.parts().0;
        let mut phi = vec![0.0; cosines.count()];
        cosines.phi(self.cpu, x, &mut phi);
        phi
    }

    /// What the variance that is left is multiplied by.
    fn factor(&self) -> f64 {
        match self.scale {
            Scale::Unbiased { n } => (n - 1) as f64 / (n - 1 - self.t) as f64,
            Scale::PlugIn => 1.0,
        }
    }
}

impl Method<[f64]> for Linear<'_> {
    fn observe(&mut self, at: &[f64], y: f64) -> Result<(), Stuck> {
        let phi = self.phi(at);
        self.t += 1;
        self.belief.observe(&phi, y).map_err(|ZeroPivot| Stuck::ZeroPivot)
    }

    fn predict(&self, at: &[f64]) -> Prediction {
        let Moments { mean, variance } = self.belief.at(&self.phi(at));
        Prediction { mean, variance: self.factor() * variance + self.noise }
    }

    fn choose(&mut self, rule: &Rule<1>) -> Vec<f64> {
        let rule = match rule {
            // The scale of the variance goes to the weight; the maximum of PI does not depend on it.
            Rule::Ucb { zeta } => acquisition::Rule::Ucb { zeta: zeta * self.factor().sqrt() },
            Rule::Pi { target } => acquisition::Rule::Pi { target: target[0] },
        };
        let (cosines, search) = self.basis.parts();
        let Weights { mean, factor } = self.belief.weights();
        let belief = Belief::new(mean, factor);
        search.maximise(&Acquisition::new(self.cpu, cosines, &belief, rule), &[]).at
    }
}

/// Posterior means of the weights' mean and covariance under the prior of [`super::niw`]; weights have
/// no common level, so m0 = 0.
pub(crate) fn niw(mean: &[f64], covariance: &[f64], n: u64) -> Weights {
    let (size, n) = (mean.len(), n as f64);
    let usual = (0..size).map(|i| covariance[i * size + i]).sum::<f64>() / size as f64;
    let mut posterior = Vec::with_capacity(covariance.len());
    for (i, row) in covariance.chunks_exact(size).enumerate() {
        for (j, entry) in row.iter().enumerate() {
            let psi = if i == j { usual } else { 0.0 };
            let pull = n / (1.0 + n) * mean[i] * mean[j];
            posterior.push((psi + (n - 1.0) * entry + pull) / (n + 1.0));
        }
    }
    let mean = mean.iter().map(|mean| n * mean / (1.0 + n)).collect();
    Weights::with_covariance(mean, &posterior)
}
