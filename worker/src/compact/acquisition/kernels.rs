//! Products that an evaluation is made of.

use pulp::{Simd, WithSimd};
use theory::PANEL;

use super::super::features::Cosines;
use super::super::panels::{Panels, total};
use super::{Rule, TINY};
use crate::simd::{Vector, groups, vectors, vectors_mut};
use crate::sweep::add_products;

/// out_j = sum_i by_i matrix_ij, over the rows in order.
pub(super) struct Combine<'a> {
    pub(super) matrix: &'a Panels,
    pub(super) by: &'a [f64],
    pub(super) out: &'a mut [f64],
}

impl WithSimd for Combine<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { matrix, by, out } = self;
        let out = vectors_mut::<S>(out);
        let mut at = 0;
        while out.len() - at >= 8 {
            combine::<S, 8>(simd, matrix, by, &mut out[at..], at);
            at += 8;
        }
        while out.len() - at >= 4 {
            combine::<S, 4>(simd, matrix, by, &mut out[at..], at);
            at += 4;
        }
        while at < out.len() {
            combine::<S, 1>(simd, matrix, by, &mut out[at..], at);
            at += 1;
        }
    }
}

/// `B` vectors of a combination, from vector `at` on.
#[inline(always)]
fn combine<S: Simd, const B: usize>(
    simd: S,
    matrix: &Panels,
    by: &[f64],
    out: &mut [S::f64s],
    at: usize,
) {
    let count = groups::<S, PANEL>();
    let panels: [&[S::f64s]; B] = std::array::from_fn(|b| {
        &vectors::<S>(matrix.panel((at + b) / count).as_flattened())[(at + b) % count..]
    });
    let mut sums = [Vector::splat(simd, 0.0); B];
    for (i, &factor) in by[..matrix.rows()].iter().enumerate() {
        let factor = Vector::splat(simd, factor);
        for (sum, panel) in sums.iter_mut().zip(&panels) {
            *sum = *sum + Vector::new(simd, panel[i * count]) * factor;
        }
    }
    out.iter_mut().zip(sums).for_each(|(out, sum)| *out = sum.lanes());
}

/// gradient_j = -sum_k slope_k sine_k w_kj: eight partial sums first.
pub(super) struct Contract<'a> {
    pub(super) cosines: &'a Cosines,
    pub(super) sine: &'a [f64],
    pub(super) slope: &'a mut [f64],
    pub(super) gradient: &'a mut [f64],
}

impl WithSimd for Contract<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let count = groups::<S, PANEL>();
        let slope = vectors_mut::<S>(self.slope);
        for (slope, &sine) in slope.iter_mut().zip(vectors::<S>(self.sine)) {
            *slope = (Vector::new(simd, *slope) * Vector::new(simd, sine)).lanes();
        }
        let frequencies = self.cosines.parameters().chunks_exact(self.cosines.padded());
        for (entry, frequency) in self.gradient.iter_mut().zip(frequencies) {
            let frequency = vectors::<S>(frequency);
            let mut lanes = [0.0; PANEL];
            for (g, lanes) in vectors_mut::<S>(&mut lanes).iter_mut().enumerate() {
                let mut sum = Vector::splat(simd, 0.0);
                for at in (g..slope.len()).step_by(count) {
                    sum = sum + Vector::new(simd, slope[at]) * Vector::new(simd, frequency[at]);
                }
                *lanes = sum.lanes();
            }
            *entry = -total(lanes);
        }
    }
}

/// The rule at every candidate, a lane per candidate.
pub(super) struct AtCandidates<'a> {
    pub(super) loadings: &'a Panels,
    pub(super) rule: Rule,
    pub(super) features: &'a Panels,
    pub(super) out: &'a mut [f64],
}

impl WithSimd for AtCandidates<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let count = groups::<S, PANEL>();
        let zeros = [Vector::splat(simd, 0.0); PANEL];
        for (p, out) in vectors_mut::<S>(self.out).chunks_exact_mut(count).enumerate() {
            let features = vectors::<S>(self.features.panel(p).as_flattened());
            for (g, out) in out.iter_mut().enumerate() {
                let (mut mean, mut variance) = (zeros[0], zeros[0]);
                for q in 0..self.loadings.count() {
                    let panel = self.loadings.panel(q);
                    let mut sums = add_products(simd, panel, features, (count, g), zeros);
                    if q == 0 {
                        mean = std::mem::replace(&mut sums[0], zeros[0]);
                    }
                    for sum in sums {
                        variance = variance + sum * sum;
                    }
                }
                *out = self.rule.values(simd, mean, variance).lanes();
            }
        }
    }
}

impl Rule {
    #[inline(always)]
    fn values<S: Simd>(self, simd: S, mean: Vector<S>, variance: Vector<S>) -> Vector<S> {
        let deviation = || variance.at_least(Vector::splat(simd, TINY)).sqrt();
        match self {
            Self::Mean => mean,
            Self::Ucb { zeta } => mean + Vector::splat(simd, zeta) * deviation(),
            Self::Pi { target } => (mean - Vector::splat(simd, target)) / deviation(),
        }
    }
}
