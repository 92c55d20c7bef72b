//! Matrix products, the same bits on every CPU: every entry is one sum over the inner index in order,
//! whatever the instruction set and the tiles.

use pulp::{Simd, WithSimd};

use crate::simd::{Buffer, Cpu, Vector, vectors, vectors_mut};

/// Rows and columns are padded with zeros to a multiple of this.
pub(super) const LANES: usize = 8;
/// Rows of a tile, whose sums are independent.
const TILE: usize = 4;

/// A matrix, row by row, padded with zeros.
pub(super) struct Matrix {
    pub(super) rows: usize,
    pub(super) columns: usize,
    values: Buffer,
}

impl Matrix {
    /// Zeros, with room for at least so many rows and columns.
    pub(super) fn zeros(rows: usize, columns: usize) -> Self {
        let (rows, columns) = (rows.next_multiple_of(LANES), columns.next_multiple_of(LANES));
        Self { rows, columns, values: Buffer::zeros(rows * columns) }
    }

    pub(super) fn values(&self) -> &[f64] {
        &self.values
    }

    pub(super) fn values_mut(&mut self) -> &mut [f64] {
        &mut self.values
    }

    pub(super) fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.columns..(i + 1) * self.columns]
    }

    pub(super) fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.values[i * self.columns..(i + 1) * self.columns]
    }

    pub(super) fn at(&self, i: usize, j: usize) -> f64 {
        self.values[i * self.columns + j]
    }

    pub(super) fn at_mut(&mut self, i: usize, j: usize) -> &mut f64 {
        &mut self.values[i * self.columns + j]
    }

    pub(super) fn transposed(&self) -> Self {
        let mut out = Self::zeros(self.columns, self.rows);
        for (i, row) in self.values.chunks_exact(self.columns).enumerate() {
            for (j, &value) in row.iter().enumerate() {
                *out.at_mut(j, i) = value;
            }
        }
        out
    }
}

impl Clone for Matrix {
    fn clone(&self) -> Self {
        let mut copy = Self::zeros(self.rows, self.columns);
        copy.values.copy_from_slice(&self.values);
        copy
    }
}

/// A B, over the first `inner` columns of A and rows of B.
pub(super) fn product(a: &Matrix, b: &Matrix, inner: usize, cpu: Cpu) -> Matrix {
    let mut out = Matrix::zeros(a.rows, b.columns);
    product_into(a, b, inner, &mut out, cpu);
    out
}

/// A B written over `out`.
pub(super) fn product_into(a: &Matrix, b: &Matrix, inner: usize, out: &mut Matrix, cpu: Cpu) {
    debug_assert!(inner <= a.columns && inner <= b.rows);
    debug_assert!(out.rows == a.rows && out.columns == b.columns);
    cpu.run::<LANES, _>(Product { a, b, inner, out });
}

/// A^T B.
pub(super) fn transposed_product(a: &Matrix, b: &Matrix, cpu: Cpu) -> Matrix {
    let mut out = Matrix::zeros(a.columns, b.columns);
    cpu.run::<LANES, _>(TransposedProduct { a, b, lower: false, out: &mut out });
    out
}

/// The lower triangle of A^T A; what stands above it is unspecified.
pub(super) fn gram(a: &Matrix, cpu: Cpu) -> Matrix {
    let mut out = Matrix::zeros(a.columns, a.columns);
    cpu.run::<LANES, _>(TransposedProduct { a, b: a, lower: true, out: &mut out });
    out
}

struct Product<'a> {
    a: &'a Matrix,
    b: &'a Matrix,
    inner: usize,
    out: &'a mut Matrix,
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let width = self.b.columns / S::F64_LANES;
        for i in (0..self.a.rows).step_by(TILE) {
            for v in (0..width - width % 2).step_by(2) {
                self.tile::<S, 2>(simd, i, v);
            }
            if width % 2 == 1 {
                self.tile::<S, 1>(simd, i, width - 1);
            }
        }
    }
}

impl Product<'_> {
    /// Rows i.. of the tile, vectors v..v + V.
    #[inline(always)]
    fn tile<S: Simd, const V: usize>(&mut self, simd: S, i: usize, v: usize) {
        let rows: [&[f64]; TILE] = std::array::from_fn(|t| &self.a.row(i + t)[..self.inner]);
        let width = self.b.columns / S::F64_LANES;
        let b = vectors::<S>(&self.b.values);
        let mut sums = [[Vector::splat(simd, 0.0); V]; TILE];
        for p in 0..self.inner {
            let group = &b[p * width + v..p * width + v + V];
            for (sums, row) in sums.iter_mut().zip(rows) {
                let entry = Vector::splat(simd, row[p]);
                for (sum, &value) in sums.iter_mut().zip(group) {
                    *sum = *sum + entry * Vector::new(simd, value);
                }
            }
        }
        store(self.out, i, v, sums);
    }
}

struct TransposedProduct<'a> {
    a: &'a Matrix,
    b: &'a Matrix,
    lower: bool,
    out: &'a mut Matrix,
}

impl WithSimd for TransposedProduct<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let width = self.b.columns / S::F64_LANES;
        for i in (0..self.a.columns).step_by(TILE) {
            // Vectors that begin at or left of the tile's last diagonal entry.
            let reach = if self.lower { (i + TILE).div_ceil(S::F64_LANES) } else { width };
            for v in (0..reach - reach % 2).step_by(2) {
                self.tile::<S, 2>(simd, i, v);
            }
            if reach % 2 == 1 {
                self.tile::<S, 1>(simd, i, reach - 1);
            }
        }
    }
}

impl TransposedProduct<'_> {
    #[inline(always)]
    fn tile<S: Simd, const V: usize>(&mut self, simd: S, i: usize, v: usize) {
        let width = self.b.columns / S::F64_LANES;
        let b = vectors::<S>(&self.b.values);
        let mut sums = [[Vector::splat(simd, 0.0); V]; TILE];
        for (row, group) in self.a.values.chunks_exact(self.a.columns).zip(b.chunks_exact(width)) {
            let (entries, group) = (&row[i..i + TILE], &group[v..v + V]);
            for (sums, &entry) in sums.iter_mut().zip(entries) {
                let entry = Vector::splat(simd, entry);
                for (sum, &value) in sums.iter_mut().zip(group) {
                    *sum = *sum + entry * Vector::new(simd, value);
                }
            }
        }
        store(self.out, i, v, sums);
    }
}

#[inline(always)]
fn store<S: Simd, const V: usize>(
    out: &mut Matrix,
    i: usize,
    v: usize,
    sums: [[Vector<S>; V]; TILE],
) {
    for (t, sums) in sums.into_iter().enumerate() {
        let row = vectors_mut::<S>(out.row_mut(i + t));
        for (value, sum) in row[v..v + V].iter_mut().zip(sums) {
            *value = sum.lanes();
        }
    }
}

/// The sum of products over the shorter length, in eight lanes that are added in a fixed order.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let length = if a.len() < b.len() { a.len() } else { b.len() };
    let (a8, a_rest) = a[..length].as_chunks::<LANES>();
    let (b8, b_rest) = b[..length].as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for (a, b) in a8.iter().zip(b8) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    let rest = a_rest.iter().zip(b_rest).fold(0.0, |sum, (a, b)| sum + a * b);
    lanes.iter().fold(rest, |sum, lane| sum + lane)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::hash::uniform;
    use super::*;
    use nalgebra::DMatrix;

    /// Numbers in (-1, 1).
    pub(in super::super) fn random(seed: u64, rows: usize, columns: usize) -> Matrix {
        let mut matrix = Matrix::zeros(rows, columns);
        for i in 0..rows {
            for j in 0..columns {
                *matrix.at_mut(i, j) = 2.0 * uniform(seed, (i * columns + j) as u64) - 1.0;
            }
        }
        matrix
    }

    pub(in super::super) fn dense(matrix: &Matrix) -> DMatrix<f64> {
        DMatrix::from_row_slice(matrix.rows, matrix.columns, matrix.values())
    }

    #[test]
    fn products_are_those_of_nalgebra_and_have_the_same_bits_everywhere() {
        for (m, n, k) in [(1, 1, 1), (8, 16, 24), (37, 21, 9), (64, 40, 17)] {
            let (a, b, c) = (random(1, m, n), random(2, n, k), random(3, m, k));
            let run = |cpu| {
                let mut lower = gram(&a, cpu);
                for i in 0..lower.rows {
                    lower.row_mut(i)[i + 1..].fill(0.0);
                }
                [product(&a, &b, n, cpu), transposed_product(&a, &c, cpu), lower]
            };
            let found = run(Cpu::detect());
            for (vector, plain) in found.iter().zip(&run(Cpu::plain())) {
                assert_eq!(vector.values(), plain.values());
            }
            let (a, b, c) = (dense(&a), dense(&b), dense(&c));
            let expected = [&a * &b, a.transpose() * c, (a.transpose() * &a).lower_triangle()];
            for (found, expected) in found.iter().zip(expected) {
                assert!((dense(found) - expected).abs().max() < 1e-13);
            }
        }
    }
}
