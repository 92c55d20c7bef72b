//! Steps 2 to 4 of the sampler in one pass over the rows: alpha_i = F_i . (A c), the rotation of each
//! row, the update of mu_hat and residual, and the next choice.
//!
//! With beta = alpha_i/|m_i| and gamma = sqrt(1 - beta^2): eps = beta b + gamma x,
//! b <- gamma b - beta x, |m_i| <- gamma |m_i|, g_i = alpha_i + s eps,
//! mu_hat_i += g_i (y - mu_hat_p)/g_p, residual_i -= g_i^2.

use pulp::{Simd, WithSimd};
use theory::{Factor, PANEL};

use super::super::Rule;
use super::super::argmax::Best;
use crate::simd::{Vector, groups, vectors, vectors_mut};
use crate::sweep::panel_product;

/// 1 - beta^2 and |m_i| are kept above these, so that nothing overflows.
const FLATTEST: f64 = 1e-32;
const SHORTEST: f64 = 1e-150;

/// Everything that a step changes in the rows.
pub(super) struct Project<'a, const L: usize> {
    pub(super) factor: &'a Factor,
    pub(super) weights: &'a [f64],
    pub(super) axis: &'a [f64],
    pub(super) s: f64,
    /// (y - mu_hat_p)/g_p.
    pub(super) gain: [f64; L],
    pub(super) length: &'a mut [f64],
    pub(super) along: &'a mut [f64],
    pub(super) residual: &'a mut [f64],
    pub(super) mean: &'a mut [f64],
    pub(super) rule: Option<&'a Rule<L>>,
    pub(super) precision: f64,
}

impl<const L: usize> WithSimd for Project<'_, L> {
    type Output = [usize; L];

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> [usize; L] {
        let mut best = Best::new(simd, self.rule, self.precision);
        self.rows(simd, &mut best);
        best.rows()
    }
}

impl<const L: usize> Project<'_, L> {
    #[inline(always)]
    fn rows<S: Simd>(self, simd: S, best: &mut Best<'_, S, L>) {
        let count = groups::<S, L>();
        let at = |slice: &[S::f64s], i: usize| Vector::new(simd, slice[i]);
        let one = Vector::splat(simd, 1.0);
        let zero = Vector::splat(simd, 0.0);
        let flattest = Vector::splat(simd, FLATTEST);
        let shortest = Vector::splat(simd, SHORTEST);
        let s = Vector::splat(simd, self.s);
        let weights = vectors::<S>(self.weights);
        let gain = vectors::<S>(&self.gain);
        let size = PANEL * count;
        let axes = vectors::<S>(self.axis).chunks_exact(size);
        let lengths = vectors_mut::<S>(self.length).chunks_exact_mut(size);
        let alongs = vectors_mut::<S>(self.along).chunks_exact_mut(size);
        let residuals = vectors_mut::<S>(self.residual).chunks_exact_mut(size);
        let means = vectors_mut::<S>(self.mean).chunks_exact_mut(size);
        let panels = axes.zip(lengths).zip(alongs).zip(residuals).zip(means);
        for (p, ((((axis, length), along), residual), mean)) in panels.enumerate() {
            for g in 0..count {
                let gain = at(gain, g);
                let alphas = panel_product(simd, self.factor.panel(p), weights, count, g);
                let (mut updated, mut left) = ([zero; PANEL], [zero; PANEL]);
                for (row, alpha) in alphas.into_iter().enumerate() {
                    let i = row * count + g;
                    let (x, b, before) = (at(axis, i), at(along, i), at(length, i));
                    let beta = (alpha * (one / before)).at_most(one).at_least(-one);
                    let gamma = (one - beta * beta).at_least(flattest).sqrt();
                    let eps = beta * b + gamma * x;
                    along[i] = (gamma * b - beta * x).lanes();
                    length[i] = (before * gamma).at_least(shortest).lanes();
                    let g_i = alpha + s * eps;
                    let mean_now = at(mean, i) + g_i * gain;
                    let left_now = (at(residual, i) - g_i * g_i).at_least(zero);
                    (mean[i], residual[i]) = (mean_now.lanes(), left_now.lanes());
                    (updated[row], left[row]) = (mean_now, left_now);
                }
                best.offer(g, p * PANEL, updated, left);
            }
        }
    }
}
