//! One trial again, step by step, with what its estimator and the true posterior say of every point.
//!
//! The records are those of the trial as it always runs. Their x_t and y_t then go to an estimator drawn
//! from the same streams, so that what is shown has the bits of what was used.

use study::Record;
use study::cell::Policy;

use super::truth::{Truth, observed, unobserved};
use super::{Trials, draw};
use crate::estimator::{Estimator, Observation, Rule};
use crate::posterior::Posterior;
use crate::random::Purpose;
use crate::simd::Buffer;
use theory::PANEL;

/// A mean and a variance at a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Belief {
    /// mu_t or mu_hat_t.
    pub mean: f64,
    /// k_t or k_hat_t.
    pub variance: f64,
}

/// Evaluation t of a trial, with what was known before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Traced {
    /// t.
    pub t: u32,
    /// Index of x_t.
    pub x: usize,
    /// y_t.
    pub y: f64,
    /// f(x_t).
    pub f: f64,
    /// zeta_t of GP-UCB.
    pub zeta: Option<f64>,
    /// The target of PI.
    pub target: Option<f64>,
    /// mu_{t-1} and k_{t-1} at x_t.
    pub truth: Belief,
    /// mu_hat_{t-1} and k_hat_{t-1} at x_t; with a known prior mu_{t-1} and k_{t-1} + sigma^2.
    pub estimate: Option<Belief>,
    /// The acquisition function at x_t, where there is one.
    pub acquisition: Option<f64>,
    /// (N - t) k_hat_{t-1}(x_t), what the estimator divides by.
    pub pivot: Option<f64>,
}

/// A trial that is gone through once more.
pub struct Trace<'a> {
    trials: &'a Trials<'a>,
    records: Vec<Record>,
    f: Buffer,
    x_star: usize,
    f_star: f64,
    estimator: Option<Box<dyn Estimator<1> + 'a>>,
    posterior: Posterior<'a, 1>,
    /// Point and value of every observation so far.
    seen: Vec<(usize, f64)>,
}

impl Trials<'_> {
    /// Traces a replicate as far as its records go without a gap or a failure, from t = 1: trials that are
    /// to be traced to their end have every step as a checkpoint.
    pub fn trace(&self, replicate: u64) -> Trace<'_> {
        let mut records = Vec::new();
        self.run_alone([replicate], &mut |record| records.push(record));
        let open = |purpose| draw::open(self, [replicate], purpose);
        let mut f = Buffer::zeros(self.prior.factor.panels() * PANEL);
        draw::functions::<1>(self, open(Purpose::Function), &mut f);
        let (mut x_star, mut f_star) = (0, f64::NEG_INFINITY);
        for (i, &value) in f[..self.prior.size()].iter().enumerate() {
            if value > f_star {
                (x_star, f_star) = (i, value);
            }
        }
        Trace {
            trials: self,
            records,
            f,
            x_star,
            f_star,
            estimator: draw::estimator(self, &open),
            posterior: Posterior::new(self.prior, self.gram.as_ref(), self.cpu),
            seen: Vec::new(),
        }
    }
}

impl Trace<'_> {
    /// The trial's records.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// f at every point.
    pub fn f(&self) -> &[f64] {
        &self.f[..self.trials.prior.size()]
    }

    /// The first maximiser of f.
    pub fn x_star(&self) -> usize {
        self.x_star
    }

    /// mu_t and k_t at a point, t being the number of steps so far.
    pub fn truth(&self, point: usize) -> Belief {
        let at = self.posterior.locate([point]);
        let Truth { mean, variance } = match self.value_at(point) {
            Some(y) => observed(self.trials.prior, &at, 0, y),
            None => unobserved(self.trials.prior, &at, 0),
        };
        Belief { mean, variance }
    }

    /// mu_hat_t and k_hat_t at a point, or mu_t and k_t + sigma^2 with a known prior; `None` where
    /// nothing is estimated. At an observed point the estimator interpolates.
    pub fn estimate(&self, point: usize) -> Option<Belief> {
        let estimator = self.estimator.as_ref()?;
        let known = self.trials.cell.policy.training().is_none();
        Some(match self.value_at(point) {
            None => {
                Belief { mean: estimator.mean(0, point), variance: estimator.variance(0, point) }
            }
            Some(_) if known => {
                let truth = self.truth(point);
                let variance = truth.variance + self.trials.prior.noise_variance;
                Belief { mean: truth.mean, variance }
            }
            Some(y) => Belief { mean: y, variance: 0.0 },
        })
    }

    /// Goes on by one step; `None` at the end.
    pub fn advance(&mut self) -> Option<Traced> {
        let t = self.seen.len() as u32 + 1;
        let record = self.records.get(self.seen.len()).filter(|record| record.t == t)?;
        let measured = record.outcome.ok()?;
        let (x, y) = (measured.x? as usize, measured.y);
        let (truth, estimate) = (self.truth(x), self.estimate(x));
        let rule = self.rule(t);
        let acquisition = rule.zip(estimate).map(|(rule, e)| rule.value(0, e.mean, e.variance));
        let training = self.trials.cell.policy.training();
        let left = training.map(|training| (training.n - u64::from(t)) as f64);
        let traced = Traced {
            t,
            x,
            y,
            f: self.f[x],
            zeta: measured.zeta,
            target: measured.target,
            truth,
            estimate,
            acquisition,
            pivot: left.zip(estimate).map(|(left, e)| left * e.variance),
        };
        self.observe(x, y, truth);
        Some(traced)
    }

    fn observe(&mut self, x: usize, y: f64, truth: Belief) {
        let mut at = self.posterior.locate([x]);
        let predictive = truth.variance + self.trials.prior.noise_variance;
        self.posterior.observe(&mut at, &[y - truth.mean], &[predictive]);
        if let Some(estimator) = &mut self.estimator {
            let seen = Observation { at: &at, values: &[y], truth: &self.posterior };
            estimator.observe(&seen, None);
        }
        self.seen.push((x, y));
    }

    fn value_at(&self, point: usize) -> Option<f64> {
        self.seen.iter().find(|(x, _)| *x == point).map(|(_, y)| *y)
    }

    /// The rule by which evaluation t is chosen.
    fn rule(&self, t: u32) -> Option<Rule<1>> {
        match self.trials.cell.policy {
            Policy::Fixed(_) | Policy::Random => None,
            policy => match policy.gap() {
                Some(gap) => Some(Rule::Pi { target: [self.f_star + gap] }),
                None => self.trials.zetas.get(t as usize - 1).map(|&zeta| Rule::Ucb { zeta }),
            },
        }
    }
}

#[cfg(test)]
mod tests;
