//! What is maximised over the box: a belief about f, seen through a rule.
//!
//! mean(x) = Phi(x)^T m and variance(x) = Phi(x)^T S Phi(x) = |A^T Phi(x)|^2 with S = A A^T (K x r), so a
//! value costs K (r + 1) products. f itself is the belief without variance, under [`Rule::Mean`].

mod kernels;
#[cfg(test)]
mod tests;

use std::cell::RefCell;

use theory::PANEL;

use self::kernels::{AtCandidates, Combine, Contract};
use super::features::Cosines;
use super::maximise::{Candidates, Objective};
use super::panels::{Panels, total};
use crate::simd::{Buffer, Cpu};

/// Stands for a variance of zero, so that PI never divides by it.
const TINY: f64 = 1e-300;

/// What is believed about the weights of f.
pub struct Belief {
    /// (m, A), K x (1 + r).
    loadings: Panels,
    /// Their transpose.
    transposed: Panels,
}

impl Belief {
    /// Mean m (K entries) and A (K x r, row by row; empty where r = 0).
    ///
    /// # Panics
    /// Where A has not K rows.
    pub fn new(mean: &[f64], factor: &[f64]) -> Self {
        let rank = factor.len() / mean.len();
        assert_eq!(factor.len(), rank * mean.len(), "a factor with one row per weight");
        let rows: Vec<f64> = mean
            .iter()
            .enumerate()
            .flat_map(|(k, m)| std::iter::once(m).chain(&factor[k * rank..(k + 1) * rank]))
            .copied()
            .collect();
        let loadings = Panels::from_rows(&rows, rank + 1);
        Self { transposed: loadings.transpose(), loadings }
    }

    /// Weights that are known: f itself.
    pub fn certain(weights: &[f64]) -> Self {
        Self::new(weights, &[])
    }
}

/// What makes a point worth choosing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// The mean alone.
    Mean,
    /// GP-UCB: mean + zeta sqrt(variance) (paper, section 4).
    Ucb {
        /// The exploration weight zeta_t.
        zeta: f64,
    },
    /// PI: (mean - target) / sqrt(variance) (paper, section 4).
    Pi {
        /// The target value.
        target: f64,
    },
}

impl Rule {
    #[inline(always)]
    fn value(self, mean: f64, variance: f64) -> f64 {
        let deviation = if variance > TINY { variance } else { TINY }.sqrt();
        match self {
            Self::Mean => mean,
            Self::Ucb { zeta } => mean + zeta * deviation,
            Self::Pi { target } => (mean - target) / deviation,
        }
    }

    /// Derivatives with respect to mean and deviation; a variance at the floor is taken for constant.
    #[inline(always)]
    fn slopes(self, mean: f64, variance: f64) -> (f64, f64) {
        let floored = variance <= TINY;
        let variance = if floored { TINY } else { variance };
        let (by_mean, by_deviation) = match self {
            Self::Mean => (1.0, 0.0),
            Self::Ucb { zeta } => (1.0, zeta),
            Self::Pi { target } => (1.0 / variance.sqrt(), -(mean - target) / variance),
        };
        (by_mean, if floored { 0.0 } else { by_deviation })
    }
}

/// A belief seen through a rule: what a search maximises.
pub struct Acquisition<'a> {
    cpu: Cpu,
    cosines: &'a Cosines,
    belief: &'a Belief,
    rule: Rule,
    room: RefCell<Room>,
}

/// Room for one evaluation.
struct Room {
    cosine: Buffer,
    sine: Buffer,
    /// (mean, A^T Phi), then derivatives with respect to them.
    loaded: Buffer,
    /// The derivative with respect to Phi.
    slope: Buffer,
}

impl<'a> Acquisition<'a> {
    /// # Panics
    /// Where the belief is not about weights of these features.
    pub fn new(cpu: Cpu, cosines: &'a Cosines, belief: &'a Belief, rule: Rule) -> Self {
        assert_eq!(belief.loadings.rows(), cosines.count(), "a belief has one weight per feature");
        let padded = || Buffer::zeros(cosines.padded());
        let loaded = Buffer::zeros(belief.loadings.count() * PANEL);
        let room = Room { cosine: padded(), sine: padded(), loaded, slope: padded() };
        Self { cpu, cosines, belief, rule, room: RefCell::new(room) }
    }

    /// Mean and variance of f at a point.
    pub fn moments(&self, x: &[f64]) -> (f64, f64) {
        self.load(x, &mut self.room.borrow_mut())
    }

    fn load(&self, x: &[f64], room: &mut Room) -> (f64, f64) {
        self.cosines.at(self.cpu, x, &mut room.cosine, &mut room.sine);
        let (matrix, out) = (&self.belief.loadings, &mut room.loaded);
        self.cpu.run::<PANEL, _>(Combine { matrix, by: &room.cosine, out });
        let mean = std::mem::replace(&mut room.loaded[0], 0.0);
        let mut squares = [0.0; PANEL];
        for row in room.loaded.as_chunks::<PANEL>().0 {
            for (sum, entry) in squares.iter_mut().zip(row) {
                *sum += entry * entry;
            }
        }
        (mean, total(squares))
    }
}

impl Objective for Acquisition<'_> {
    fn value(&self, x: &[f64]) -> f64 {
        let (mean, variance) = self.moments(x);
        self.rule.value(mean, variance)
    }

    fn value_and_gradient(&self, x: &[f64], gradient: &mut [f64]) -> f64 {
        let room = &mut *self.room.borrow_mut();
        let (mean, variance) = self.load(x, room);
        let (by_mean, by_deviation) = self.rule.slopes(mean, variance);
        // The derivative of |v| is v/|v|, divided first: a tiny deviation must not overflow.
        let deviation = if variance > TINY { variance } else { TINY }.sqrt();
        room.loaded.iter_mut().for_each(|v| *v = by_deviation * (*v / deviation));
        room.loaded[0] = by_mean;
        let (matrix, out) = (&self.belief.transposed, &mut room.slope);
        self.cpu.run::<PANEL, _>(Combine { matrix, by: &room.loaded, out });
        let Room { sine, slope, .. } = room;
        self.cpu.run::<PANEL, _>(Contract { cosines: self.cosines, sine, slope, gradient });
        self.rule.value(mean, variance)
    }

    fn values(&self, candidates: &Candidates, out: &mut [f64]) {
        let Some(features) = candidates.features() else {
            return candidates.each(|i, x| out[i] = self.value(x));
        };
        assert_eq!(features.rows(), self.cosines.count(), "candidates of these features");
        let (loadings, rule) = (&self.belief.loadings, self.rule);
        self.cpu.run::<PANEL, _>(AtCandidates { loadings, rule, features, out });
    }
}
