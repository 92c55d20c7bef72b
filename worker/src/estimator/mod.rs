//! Estimators of the posterior, for `L` trials in lockstep.
//!
//! [`wishart`] is the product: the exact law, revealed lazily, at a cost that does not grow with N.
//! [`dense`] (Bartlett) and [`simulated`] (N rows of data) are independent routes to the same law
//! and serve as its oracles. [`known_prior`] is what the estimators converge to as N grows.

mod argmax;
pub(crate) mod dense;
pub(crate) mod known_prior;
pub(crate) mod sample;
pub(crate) mod simulated;
pub(crate) mod wishart;

use crate::posterior::{Located, Posterior};
use crate::random::{Purpose, Stream};

/// How the next point is chosen among the unobserved: the largest value, lowest index on ties.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule<const L: usize> {
    /// GP-UCB: mu_hat + zeta sqrt(k_hat) (paper, section 4).
    Ucb {
        /// The exploration weight zeta_t.
        zeta: f64,
    },
    /// PI: (mu_hat - target) / sqrt(k_hat) (paper, section 4).
    Pi {
        /// The target value of each trial, at least max f.
        target: [f64; L],
    },
}

impl<const L: usize> Rule<L> {
    /// The acquisition value of one lane; for the oracles, which do not vectorise.
    pub(crate) fn value(&self, lane: usize, mean: f64, variance: f64) -> f64 {
        let deviation = if variance > TINY { variance } else { TINY }.sqrt();
        match self {
            Self::Ucb { zeta } => mean + zeta * deviation,
            Self::Pi { target } => (mean - target[lane]) / deviation,
        }
    }
}

/// Stands for a variance of zero, so that PI never divides by it.
pub(crate) const TINY: f64 = 1e-300;

/// A pivot below this fraction of the point's variance before any observation is rounding error: fewer
/// than five of its digits are right.
pub(crate) const PIVOT_FLOOR: f64 = 1e-11;

/// What has just been observed.
pub(crate) struct Observation<'a, const L: usize> {
    /// The point of each trial.
    pub(crate) at: &'a Located<L>,
    /// The noisy value of each trial.
    pub(crate) values: &'a [f64; L],
    /// The true posterior, this observation included.
    pub(crate) truth: &'a Posterior<'a, L>,
}

/// The outcome of conditioning on an observation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step<const L: usize> {
    /// The next choice, meaningful where a rule was given.
    pub(crate) next: [usize; L],
    /// Trials whose pivot was too small to divide by; their later values mean nothing.
    pub(crate) zero_pivot: [bool; L],
    /// Trials whose kernel could not be fitted; the same.
    pub(crate) no_fit: [bool; L],
}

/// mu_hat_t and k_hat_t over the whole domain.
pub(crate) trait Estimator<const L: usize> {
    /// Draws anew, for other trials of the same cell. `open` gives the streams of a purpose.
    fn redraw(&mut self, open: &dyn Fn(Purpose) -> [Stream; L]);

    /// The choice under a rule, given the observations so far.
    fn choose(&mut self, rule: &Rule<L>) -> [usize; L];

    /// Conditions on an observation and chooses the next point under `rule`.
    fn observe(&mut self, seen: &Observation<'_, L>, rule: Option<&Rule<L>>) -> Step<L>;

    /// mu_hat_t at an unobserved point.
    fn mean(&self, lane: usize, point: usize) -> f64;

    /// k_hat_t at an unobserved point.
    fn variance(&self, lane: usize, point: usize) -> f64;
}
