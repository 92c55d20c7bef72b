//! Matrices in panels of eight columns, and the one product that everything here is made of.
//!
//! Entry (i, j) stands at `(j / 8 * rows + i) * 8 + j % 8`; the last panel is padded with zero columns.
//! In A^T B a row of A's panel meets the same row of B's panel, so that both are read in order. Every
//! sum runs over the rows in order.

use pulp::{Simd, WithSimd};
use theory::PANEL;

use crate::simd::{Buffer, Cpu, Vector, groups, vectors, vectors_mut};
use crate::sweep::add_products;

/// Rows of two panels that stay in the nearest cache together.
const BLOCK: usize = 192;

/// A rows x columns matrix.
pub(super) struct Panels {
    rows: usize,
    columns: usize,
    values: Buffer,
}

impl Panels {
    pub(super) fn zeros(rows: usize, columns: usize) -> Self {
        let values = Buffer::zeros(rows * columns.next_multiple_of(PANEL));
        Self { rows, columns, values }
    }

    /// From the entries row by row.
    pub(super) fn from_rows(entries: &[f64], columns: usize) -> Self {
        let rows = entries.len() / columns;
        let mut this = Self::zeros(rows, columns);
        for (i, row) in entries.chunks_exact(columns).enumerate() {
            for (j, &entry) in row.iter().enumerate() {
                this.values[(j / PANEL * rows + i) * PANEL + j % PANEL] = entry;
            }
        }
        this
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// Number of panels.
    pub(super) fn count(&self) -> usize {
        self.columns.div_ceil(PANEL)
    }

    pub(super) fn at(&self, i: usize, j: usize) -> f64 {
        self.values[(j / PANEL * self.rows + i) * PANEL + j % PANEL]
    }

    /// The rows of panel p, eight entries each.
    #[inline(always)]
    pub(super) fn panel(&self, p: usize) -> &[[f64; PANEL]] {
        let size = self.rows * PANEL;
        self.values[p * size..(p + 1) * size].as_chunks().0
    }

    #[inline(always)]
    pub(super) fn panel_mut(&mut self, p: usize) -> &mut [[f64; PANEL]] {
        let size = self.rows * PANEL;
        self.values[p * size..(p + 1) * size].as_chunks_mut().0
    }

    pub(super) fn copy_from(&mut self, other: &Self) {
        self.values.copy_from_slice(&other.values);
    }

    pub(super) fn clear(&mut self) {
        self.values.fill(0.0);
    }

    pub(super) fn negate(&mut self) {
        self.values.iter_mut().for_each(|entry| *entry = -*entry);
    }

    /// Makes the columns of padding zero again.
    pub(super) fn clear_padding(&mut self) {
        let (used, last) = (self.columns % PANEL, self.count().saturating_sub(1));
        if used > 0 {
            self.panel_mut(last).iter_mut().for_each(|row| row[used..].fill(0.0));
        }
    }

    /// The entries row by row.
    pub(super) fn to_rows(&self) -> Vec<f64> {
        (0..self.rows).flat_map(|i| (0..self.columns).map(move |j| self.at(i, j))).collect()
    }

    /// Writes the transpose into `out`.
    pub(super) fn transpose_into(&self, out: &mut Self) {
        debug_assert_eq!((self.rows, self.columns), (out.columns, out.rows));
        let rows = out.rows;
        for p in 0..self.count() {
            let width = (rows - p * PANEL).min(PANEL);
            for (i, row) in self.panel(p).iter().enumerate() {
                let begin = (i / PANEL * rows + p * PANEL) * PANEL + i % PANEL;
                for (lane, &entry) in row[..width].iter().enumerate() {
                    out.values[begin + lane * PANEL] = entry;
                }
            }
        }
    }

    pub(super) fn transpose(&self) -> Self {
        let mut out = Self::zeros(self.columns, self.rows);
        self.transpose_into(&mut out);
        out
    }

    /// The sum of all squares, eight partial sums first.
    pub(super) fn squared_norm(&self) -> f64 {
        let mut sums = [0.0; PANEL];
        for row in self.values.as_chunks::<PANEL>().0 {
            for (sum, entry) in sums.iter_mut().zip(row) {
                *sum += entry * entry;
            }
        }
        total(sums)
    }

    /// self += A^T B.
    pub(super) fn add_transposed_product(&mut self, cpu: Cpu, a: &Self, b: &Self) {
        debug_assert_eq!((a.columns, b.columns, a.rows), (self.rows, self.columns, b.rows));
        cpu.run::<PANEL, _>(AddProduct { a, b, out: self, symmetric: false });
    }

    /// self += A^T A, only on and above the diagonal.
    pub(super) fn add_gram(&mut self, cpu: Cpu, a: &Self) {
        debug_assert_eq!((a.columns, a.columns), (self.rows, self.columns));
        cpu.run::<PANEL, _>(AddProduct { a, b: a, out: self, symmetric: true });
    }
}

/// Eight partial sums, combined in a fixed order.
#[inline(always)]
pub(super) fn total(sums: [f64; PANEL]) -> f64 {
    let [a, b, c, d, e, f, g, h] = sums;
    ((a + b) + (c + d)) + ((e + f) + (g + h))
}

struct AddProduct<'a> {
    a: &'a Panels,
    b: &'a Panels,
    out: &'a mut Panels,
    /// Leaves out panels below the diagonal.
    symmetric: bool,
}

impl WithSimd for AddProduct<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for begin in (0..self.a.rows).step_by(BLOCK) {
            let rows = begin..(begin + BLOCK).min(self.a.rows);
            for p in 0..self.b.count() {
                let b = vectors::<S>(self.b.panel(p)[rows.clone()].as_flattened());
                let used = if self.symmetric { p + 1 } else { self.a.count() };
                let out = self.out.panel_mut(p).chunks_mut(PANEL);
                for (q, out) in out.take(used).enumerate() {
                    add_tile(simd, &self.a.panel(q)[rows.clone()], b, out);
                }
            }
        }
    }
}

/// Up to eight rows of the product, one for each column of A's panel.
#[inline(always)]
fn add_tile<S: Simd>(simd: S, a: &[[f64; PANEL]], b: &[S::f64s], out: &mut [[f64; PANEL]]) {
    let count = groups::<S, PANEL>();
    let out = vectors_mut::<S>(out.as_flattened_mut());
    for g in 0..count {
        let mut sums = [Vector::splat(simd, 0.0); PANEL];
        for (sum, row) in sums.iter_mut().zip(out.chunks_exact(count)) {
            *sum = Vector::new(simd, row[g]);
        }
        let sums = add_products(simd, a, b, (count, g), sums);
        for (row, sum) in out.chunks_exact_mut(count).zip(sums) {
            row[g] = sum.lanes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::normals;
    use super::*;

    #[test]
    fn products_are_sums_over_the_rows_in_order_on_every_instruction_set() {
        for (rows, left, right) in [(1, 1, 1), (3, 8, 9), (7, 17, 5), (500, 12, 30)] {
            let a = Panels::from_rows(&normals(rows * left, 0), left);
            let b = Panels::from_rows(&normals(rows * right, 1), right);
            for cpu in [Cpu::detect(), Cpu::plain()] {
                let mut out = Panels::zeros(left, right);
                out.add_transposed_product(cpu, &a, &b);
                let mut gram = Panels::zeros(left, left);
                gram.add_gram(cpu, &a);
                for i in 0..left {
                    let sum =
                        |b: &Panels, j| (0..rows).fold(0.0, |s, p| s + a.at(p, i) * b.at(p, j));
                    assert!((0..right).all(|j| out.at(i, j) == sum(&b, j)));
                    assert!((i..left).all(|j| gram.at(i, j) == sum(&a, j)));
                }
            }
        }
    }

    #[test]
    fn transposing_twice_changes_nothing() {
        let entries = normals(13 * 21, 2);
        let a = Panels::from_rows(&entries, 21);
        let t = a.transpose();
        assert!((0..13).all(|i| (0..21).all(|j| a.at(i, j) == t.at(j, i))));
        assert_eq!(t.transpose().to_rows(), entries);
        let sum: f64 = entries.iter().map(|e| e * e).sum();
        assert!((a.squared_norm() / sum - 1.0).abs() < 1e-14);
    }
}
