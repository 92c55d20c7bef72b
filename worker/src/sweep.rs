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
    let mut sums = [Vector::splat(simd, 0.0); PANEL];
    for (entries, group) in panel.as_chunks::<PANEL>().0.iter().zip(weights.chunks_exact(count)) {
        let weight = Vector::new(simd, group[g]);
        for (sum, &entry) in sums.iter_mut().zip(entries) {
            *sum = *sum + Vector::splat(simd, entry) * weight;
        }
    }
    sums
}

/// Columns that are taken together where one sum alone would wait for itself.
const TOGETHER: usize = 4;

/// The product of each column with `row`, in lane group `g`; columns of `row.len()` vectors.
///
/// Calls `each(j, product)` in order of j.
#[inline(always)]
pub(crate) fn column_products<S: Simd>(
    simd: S,
    columns: &[S::f64s],
    row: &[S::f64s],
    (count, g): (usize, usize),
    mut each: impl FnMut(usize, Vector<S>),
) {
    if row.is_empty() {
        let columns = 0..columns.len();
        columns.for_each(|j| each(j, Vector::splat(simd, 0.0)));
        return;
    }
    let size = row.len();
    let mut blocks = columns.chunks_exact(TOGETHER * size);
    let mut j = 0;
    for block in &mut blocks {
        let mut sums = [Vector::splat(simd, 0.0); TOGETHER];
        let (a, rest) = block.split_at(size);
        let (b, rest) = rest.split_at(size);
        let (c, d) = rest.split_at(size);
        let groups = row.chunks_exact(count).zip(a.chunks_exact(count)).zip(b.chunks_exact(count));
        let groups = groups.zip(c.chunks_exact(count)).zip(d.chunks_exact(count));
        for ((((row, a), b), c), d) in groups {
            let row = Vector::new(simd, row[g]);
            for (sum, entry) in sums.iter_mut().zip([a[g], b[g], c[g], d[g]]) {
                *sum = *sum + Vector::new(simd, entry) * row;
            }
        }
        for sum in sums {
            each(j, sum);
            j += 1;
        }
    }
    for column in blocks.remainder().chunks_exact(size) {
        let mut sum = Vector::splat(simd, 0.0);
        for (row, entry) in row.chunks_exact(count).zip(column.chunks_exact(count)) {
            sum = sum + Vector::new(simd, entry[g]) * Vector::new(simd, row[g]);
        }
        each(j, sum);
        j += 1;
    }
}

/// total_k <- total_k + sum_j columns_jk factors_j, in order of j, in lane group `g`.
#[inline(always)]
pub(crate) fn add_columns<S: Simd>(
    simd: S,
    total: &mut [S::f64s],
    columns: &[S::f64s],
    factors: &[S::f64s],
    (count, g): (usize, usize),
) {
    if total.is_empty() {
        return;
    }
    let size = total.len();
    let mut blocks = columns.chunks_exact(TOGETHER * size);
    let mut weights = factors.chunks_exact(TOGETHER * count);
    for (block, weights) in (&mut blocks).zip(&mut weights) {
        let weight = |j: usize| Vector::new(simd, weights[j * count + g]);
        let weight = [weight(0), weight(1), weight(2), weight(3)];
        let (a, rest) = block.split_at(size);
        let (b, rest) = rest.split_at(size);
        let (c, d) = rest.split_at(size);
        let groups = total.chunks_exact_mut(count).zip(a.chunks_exact(count));
        let groups = groups.zip(b.chunks_exact(count)).zip(c.chunks_exact(count));
        for ((((total, a), b), c), d) in groups.zip(d.chunks_exact(count)) {
            let mut sum = Vector::new(simd, total[g]);
            for (entry, weight) in [a[g], b[g], c[g], d[g]].into_iter().zip(weight) {
                sum = sum + Vector::new(simd, entry) * weight;
            }
            total[g] = sum.lanes();
        }
    }
    let rest = blocks.remainder().chunks_exact(size);
    for (column, weight) in rest.zip(weights.remainder().chunks_exact(count)) {
        let weight = Vector::new(simd, weight[g]);
        for (total, entry) in total.chunks_exact_mut(count).zip(column.chunks_exact(count)) {
            total[g] = (Vector::new(simd, total[g]) + Vector::new(simd, entry[g]) * weight).lanes();
        }
    }
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

/// out_i = |F_i A|^2 for lower triangular A, stored by columns of `rank` rows.
pub(crate) struct SquaredLengths<'a, const L: usize> {
    pub(crate) factor: &'a Factor,
    pub(crate) columns: &'a [f64],
    pub(crate) out: &'a mut [f64],
}

impl<const L: usize> WithSimd for SquaredLengths<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (rank, count) = (self.factor.rank(), groups::<S, L>());
        if rank == 0 {
            return;
        }
        let columns = vectors::<S>(self.columns);
        let out = vectors_mut::<S>(self.out);
        for (p, rows) in out.chunks_exact_mut(PANEL * count).enumerate() {
            let panel = self.factor.panel(p);
            for g in 0..count {
                let mut totals = [Vector::splat(simd, 0.0); PANEL];
                for (j, column) in columns.chunks_exact(rank * count).enumerate() {
                    let below = &column[j * count..];
                    let parts = panel_product(simd, &panel[j * PANEL..], below, count, g);
                    for (total, part) in totals.iter_mut().zip(parts) {
                        *total = *total + part * part;
                    }
                }
                for (row, total) in rows.chunks_exact_mut(count).zip(totals) {
                    row[g] = total.lanes();
                }
            }
        }
    }
}
