//! The limit N -> infinity: mu_t and k_t + sigma^2 themselves, over the whole domain.

use pulp::{Simd, WithSimd};
use theory::{Factor, PANEL};

use super::argmax::{Argmax, Best};
use super::{Estimator, Observation, Rule, Step};
use crate::prior::Prior;
use crate::random::{Purpose, Stream};
use crate::simd::{Buffer, Cpu, Vector, groups, vectors, vectors_mut};
use crate::sweep::panel_product;

/// mu_t and k_t + sigma^2 at every point. Entry (i, lane) stands at `i * L + lane`.
pub(crate) struct KnownPrior<'p, const L: usize> {
    prior: &'p Prior,
    cpu: Cpu,
    /// Minus infinity at observed points and padding, which are never chosen.
    mean: Buffer,
    variance: Buffer,
}

impl<'p, const L: usize> KnownPrior<'p, L> {
    /// The prior, before any observation.
    pub(crate) fn new(prior: &'p Prior, cpu: Cpu) -> Self {
        let padded = prior.factor.panels() * PANEL;
        let mean = Buffer::filled(f64::NEG_INFINITY, padded * L);
        let mut this = Self { prior, cpu, mean, variance: Buffer::zeros(padded * L) };
        this.forget();
        this
    }

    /// Back to the prior.
    fn forget(&mut self) {
        for i in 0..self.prior.size() {
            self.mean[i * L..(i + 1) * L].fill(self.prior.mean[i]);
            self.variance[i * L..(i + 1) * L].fill(self.prior.observed_variance(i));
        }
    }
}

impl<const L: usize> Estimator<L> for KnownPrior<'_, L> {
    fn redraw(&mut self, _open: &dyn Fn(Purpose) -> [Stream; L]) {
        self.forget();
    }

    fn choose(&mut self, rule: &Rule<L>) -> [usize; L] {
        let (mean, spread) = (&self.mean, &self.variance);
        self.cpu.run::<L, _>(Argmax { rule, mean, spread, precision: 1.0 })
    }

    fn observe(&mut self, seen: &Observation<'_, L>, rule: Option<&Rule<L>>) -> Step<L> {
        for (lane, &point) in seen.at.points.iter().enumerate() {
            self.mean[point * L + lane] = f64::NEG_INFINITY;
        }
        let next = self.cpu.run::<L, _>(Condition {
            factor: &self.prior.factor,
            direction: seen.truth.last_direction(),
            innovation: seen.truth.last_innovation(),
            mean: &mut self.mean,
            variance: &mut self.variance,
            rule,
        });
        Step { next, zero_pivot: [false; L], no_fit: [false; L] }
    }

    fn mean(&self, lane: usize, point: usize) -> f64 {
        self.mean[point * L + lane]
    }

    fn variance(&self, lane: usize, point: usize) -> f64 {
        self.variance[point * L + lane]
    }
}

/// mu_t = mu_{t-1} + (F q_t) z_t, k_t = k_{t-1} - (F q_t)^2, and the next choice, in one pass.
struct Condition<'a, const L: usize> {
    factor: &'a Factor,
    direction: &'a [f64],
    innovation: &'a [f64],
    mean: &'a mut [f64],
    variance: &'a mut [f64],
    rule: Option<&'a Rule<L>>,
}

impl<const L: usize> WithSimd for Condition<'_, L> {
    type Output = [usize; L];

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> [usize; L] {
        let count = groups::<S, L>();
        let zero = Vector::splat(simd, 0.0);
        let direction = vectors::<S>(self.direction);
        let innovation = vectors::<S>(self.innovation);
        let means = vectors_mut::<S>(self.mean).chunks_exact_mut(PANEL * count);
        let variances = vectors_mut::<S>(self.variance).chunks_exact_mut(PANEL * count);
        let mut best = Best::new(simd, self.rule, 1.0);
        for (p, (mean, variance)) in means.zip(variances).enumerate() {
            for g in 0..count {
                let z = Vector::new(simd, innovation[g]);
                let loadings = panel_product(simd, self.factor.panel(p), direction, count, g);
                let (mut updated, mut left) = ([zero; PANEL], [zero; PANEL]);
                for (row, loading) in loadings.into_iter().enumerate() {
                    let i = row * count + g;
                    updated[row] = Vector::new(simd, mean[i]) + loading * z;
                    left[row] = (Vector::new(simd, variance[i]) - loading * loading).at_least(zero);
                    mean[i] = updated[row].lanes();
                    variance[i] = left[row].lanes();
                }
                best.offer(g, p * PANEL, updated, left);
            }
        }
        best.rows()
    }
}
