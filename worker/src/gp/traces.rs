//! What the gradient of the likelihood needs of K^-1 = W^T W, without keeping K^-1.

use pulp::{Simd, WithSimd};
use theory::PANEL;

use super::blocks::{BLOCK, lower, product, upper};
use crate::simd::{Vector, groups, vectors, vectors_mut};

/// For G = R o D, correlations times squared distances: tr(K^-1 G) and a^T G a.
///
/// K^-1 is made tile by tile and used at once. G is 0 on and below the diagonal of what is stored,
/// and both sums are twice those above it.
pub(super) struct LengthTraces<'a> {
    pub(super) inverse: &'a [f64],
    pub(super) correlations: &'a [f64],
    pub(super) squared: &'a [f64],
    pub(super) weights: &'a [f64],
}

impl WithSimd for LengthTraces<'_> {
    type Output = (f64, f64);

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> (f64, f64) {
        let zero = Vector::splat(simd, 0.0);
        let count = groups::<S, PANEL>();
        let blocks = self.weights.len() / PANEL;
        let (mut traces, mut squares) = ([0.0; PANEL], [0.0; PANEL]);
        for j in 0..blocks {
            let column = &self.inverse[lower(blocks, j)..lower(blocks, j + 1)];
            let own = vectors::<S>(&self.weights[PANEL * j..PANEL * (j + 1)]);
            for i in 0..=j {
                let begin = lower(blocks, i) + BLOCK * (j - i);
                let other = &self.inverse[begin..lower(blocks, i + 1)];
                let tile = upper(j) + BLOCK * i..upper(j) + BLOCK * (i + 1);
                let correlations = vectors::<S>(&self.correlations[tile.clone()]);
                let squared = vectors::<S>(&self.squared[tile]);
                let weights = &self.weights[PANEL * i..PANEL * (i + 1)];
                for g in 0..count {
                    let inverse = product(simd, other, column, g);
                    let (mut trace, mut square) = (zero, zero);
                    for r in 0..PANEL {
                        let at = r * count + g;
                        let entry =
                            Vector::new(simd, correlations[at]) * Vector::new(simd, squared[at]);
                        trace = trace + inverse[r] * entry;
                        square = square + Vector::splat(simd, weights[r]) * entry;
                    }
                    add(simd, &mut traces, g, trace);
                    add(simd, &mut squares, g, square * Vector::new(simd, own[g]));
                }
            }
        }
        (2.0 * total(&traces), 2.0 * total(&squares))
    }
}

/// The diagonal of K^-1.
pub(super) struct InverseDiagonal<'a> {
    pub(super) inverse: &'a [f64],
    pub(super) out: &'a mut [f64],
}

impl WithSimd for InverseDiagonal<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let count = groups::<S, PANEL>();
        let blocks = self.out.len() / PANEL;
        for (j, out) in self.out.chunks_exact_mut(PANEL).enumerate() {
            let column = &self.inverse[lower(blocks, j)..lower(blocks, j + 1)];
            for (g, out) in vectors_mut::<S>(out).iter_mut().enumerate() {
                let rows = vectors::<S>(column).chunks_exact(count);
                let square =
                    |row: &[S::f64s]| Vector::new(simd, row[g]) * Vector::new(simd, row[g]);
                *out = rows.fold(Vector::splat(simd, 0.0), |sum, row| sum + square(row)).lanes();
            }
        }
    }
}

#[inline(always)]
fn add<S: Simd>(simd: S, sums: &mut [f64; PANEL], g: usize, value: Vector<S>) {
    let sum = &mut vectors_mut::<S>(sums)[g];
    *sum = (Vector::new(simd, *sum) + value).lanes();
}

fn total(sums: &[f64; PANEL]) -> f64 {
    sums.iter().fold(0.0, |total, sum| total + sum)
}
