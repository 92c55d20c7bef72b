//! Sweeps over the factor: products of F with one weight vector per lane.
//!
//! F is shared by all trials of a prior, so `L` trials in lockstep turn the sweep into a small matrix
//! product that reads F once. Every sum runs over k in order.

use pulp::{Simd, WithSimd};
use theory::{Factor, PANEL};

use crate::simd::{Vector, groups, vectors, vectors_mut};

/// Rows of one panel times the weights of lane group `g`, `weights[k * count + g]`.
#[inline(always)]
pub(crate) fn panel_product<S: Simd>(
    simd: S,
    panel: &[f64],
    weights: &[S::f64s],
    count: usize,
    g: usize,
) -> [Vector<S>; PANEL] {
    let sums = [Vector::splat(simd, 0.0); PANEL];
    add_products(simd, panel.as_chunks::<PANEL>().0, weights, (count, g), sums)
}

/// Some columns of a panel times their weights, added to the sums of its rows.
#[inline(always)]
pub(crate) fn add_products<S: Simd>(
    simd: S,
    columns: &[[f64; PANEL]],
    weights: &[S::f64s],
    (count, g): (usize, usize),
    mut sums: [Vector<S>; PANEL],
) -> [Vector<S>; PANEL] {
    for (column, group) in columns.iter().zip(weights.chunks_exact(count)) {
        let weight = Vector::new(simd, group[g]);
        for (sum, &entry) in sums.iter_mut().zip(column) {
            *sum = *sum + Vector::splat(simd, entry) * weight;
        }
    }
    sums
}

/// out_i = F_i . weights, for every row, padding included.
pub(crate) struct Sweep<'a, const L: usize> {
    pub(crate) factor: &'a Factor,
    pub(crate) weights: &'a [f64],
    pub(crate) out: &'a mut [f64],
}

impl<const L: usize> WithSimd for Sweep<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let count = groups::<S, L>();
        let weights = vectors::<S>(self.weights);
        let out = vectors_mut::<S>(self.out);
        for (j, rows) in out.chunks_exact_mut(PANEL * count).enumerate() {
            let panel = self.factor.panel(j);
            for g in 0..count {
                let sums = panel_product(simd, panel, weights, count, g);
                for (row, sum) in rows.chunks_exact_mut(count).zip(sums) {
                    row[g] = sum.lanes();
                }
            }
        }
    }
}
