//! Eigenvalues and eigenvectors of a symmetric matrix.
//!
//! Householder reduction and the QL iteration with implicit shifts, as in [`theory::eigen`], which
//! computes values only. Vectors stand as rows: both steps then run along contiguous memory, and the
//! rotations of a QL step pass each row through the registers once.

use pulp::{Simd, WithSimd};
use theory::eigen::NoConvergence;

use super::product::{LANES, Matrix, dot};
use crate::simd::{Cpu, Vector, vectors_mut};

/// Steps of the QL iteration allowed per eigenvalue; two or three are usual.
const STEPS: usize = 64;
/// Vectors of a row that are rotated side by side, so that their chains overlap.
const ABREAST: usize = 4;

/// Eigenvalues, largest first, and eigenvectors as rows in the same order. Reads the lower triangle.
pub(super) fn eigen(mut a: Matrix, cpu: Cpu) -> Result<(Vec<f64>, Matrix), NoConvergence> {
    let mut form = Tridiagonal::of(&mut a);
    let mut vectors = form.basis(&a);
    form.diagonalise(&mut vectors, cpu)?;
    let size = a.columns;
    let mut order: Vec<usize> = (0..size).collect();
    order.sort_by(|&i, &j| form.diagonal[j].total_cmp(&form.diagonal[i]));
    let mut sorted = Matrix::zeros(size, size);
    for (to, &from) in order.iter().enumerate() {
        sorted.row_mut(to).copy_from_slice(vectors.row(from));
    }
    Ok((order.iter().map(|&i| form.diagonal[i]).collect(), sorted))
}

/// T = Q^T A Q with Q = H_{n-1} .. H_1.
struct Tridiagonal {
    diagonal: Vec<f64>,
    /// Entry i couples i - 1 and i.
    off: Vec<f64>,
    /// H_i = I - beta_i v v^T, where v is what the reduction leaves in row i of A, left of the
    /// diagonal.
    beta: Vec<f64>,
}

impl Tridiagonal {
    fn of(a: &mut Matrix) -> Self {
        let n = a.columns;
        let (mut diagonal, mut off, mut beta) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        let mut p = vec![0.0; n];
        for i in (0..n).rev() {
            let (block, rest) = a.values_mut().split_at_mut(i * n);
            diagonal[i] = rest[i];
            if i > 0 {
                (off[i], beta[i]) = reflect(block, n, &mut rest[..i], &mut p[..i]);
            }
        }
        Self { diagonal, off, beta }
    }

    /// Q^T = H_1 .. H_{n-1}: H_i changes the first i columns, of rows before i.
    fn basis(&self, a: &Matrix) -> Matrix {
        let n = a.columns;
        let mut out = Matrix::zeros(n, n);
        for i in 0..n {
            *out.at_mut(i, i) = 1.0;
        }
        for i in (1..n).filter(|&i| self.beta[i] != 0.0) {
            let v = &a.row(i)[..i];
            for r in 0..i {
                let row = &mut out.row_mut(r)[..i];
                let along = self.beta[i] * dot(row, v);
                row.iter_mut().zip(v).for_each(|(value, v)| *value -= along * v);
            }
        }
        out
    }

    /// Leaves the eigenvalues in the diagonal, and turns the rows of `vectors` along.
    fn diagonalise(&mut self, vectors: &mut Matrix, cpu: Cpu) -> Result<(), NoConvergence> {
        let (d, e) = (&mut self.diagonal[..], &mut self.off[..]);
        let n = d.len();
        // From here on e[i] couples i and i + 1.
        e.rotate_left(1);
        let norm = d.iter().zip(&*e).map(|(d, e)| d.abs() + e.abs());
        let negligible = f64::EPSILON * norm.fold(0.0, |a, b| if a > b { a } else { b });
        let mut turns = Vec::with_capacity(n);
        for start in 0..n {
            for steps in 0.. {
                let end = (start..n - 1).find(|&m| e[m].abs() <= negligible).unwrap_or(n - 1);
                if end == start {
                    break;
                }
                if steps == STEPS {
                    return Err(NoConvergence { index: start });
                }
                turns.clear();
                ql_step(d, e, start, end, &mut turns);
                let (matrix, turns) = (&mut *vectors, &turns[..]);
                cpu.run::<LANES, _>(Turn { matrix, end, turns });
            }
        }
        Ok(())
    }
}

/// Applies to the leading block the reflection H = I - beta v v^T that takes the row `v` to
/// (0, .., 0, e); e and beta. The row becomes v; `p` is overwritten.
fn reflect(block: &mut [f64], n: usize, v: &mut [f64], p: &mut [f64]) -> (f64, f64) {
    let last = v.len() - 1;
    let aside = dot(&v[..last], &v[..last]);
    if aside == 0.0 {
        return (v[last], 0.0);
    }
    let norm = (aside + v[last] * v[last]).sqrt();
    let signed = if v[last] < 0.0 { -norm } else { norm };
    v[last] += signed;
    let beta = 1.0 / (signed * v[last]);
    symmetric_product(block, n, v, p);
    p.iter_mut().for_each(|value| *value *= beta);
    let half = 0.5 * beta * dot(v, p);
    p.iter_mut().zip(&*v).for_each(|(value, v)| *value -= half * v);
    // A <- H A H = A - v p^T - p v^T.
    for i in 0..v.len() {
        let (vi, pi) = (v[i], p[i]);
        for ((a, v), p) in block[i * n..=i * n + i].iter_mut().zip(&*v).zip(&*p) {
            *a -= vi * p + pi * v;
        }
    }
    (-signed, beta)
}

/// out = A v, reading each entry of the lower triangle once.
fn symmetric_product(block: &[f64], n: usize, v: &[f64], out: &mut [f64]) {
    out.fill(0.0);
    for i in 0..v.len() {
        let row = &block[i * n..=i * n + i];
        let (before, vi) = (&row[..i], v[i]);
        out[i] += dot(before, v) + row[i] * vi;
        out.iter_mut().zip(before).for_each(|(out, a)| *out += a * vi);
    }
}

/// One implicit QL step with Wilkinson's shift on the unreduced block `start..=end`. Adds its
/// rotations, cosine and sine, of entries (end - 1, end), (end - 2, end - 1) and so on.
fn ql_step(d: &mut [f64], e: &mut [f64], start: usize, end: usize, turns: &mut Vec<(f64, f64)>) {
    let slope = (d[start + 1] - d[start]) / (2.0 * e[start]);
    let root = (slope * slope + 1.0).sqrt();
    let shift = e[start] / if slope < 0.0 { slope - root } else { slope + root };
    let mut g = d[end] - d[start] + shift;
    let (mut sine, mut cosine, mut carried) = (1.0, 1.0, 0.0);
    for i in (start..end).rev() {
        let f = sine * e[i];
        let b = cosine * e[i];
        let length = (f * f + g * g).sqrt();
        e[i + 1] = length;
        if length == 0.0 {
            // The block has split: what is carried belongs to the entry below.
            d[i + 1] -= carried;
            e[end] = 0.0;
            return;
        }
        sine = f / length;
        cosine = g / length;
        turns.push((cosine, sine));
        g = d[i + 1] - carried;
        let turned = (d[i] - g) * sine + 2.0 * cosine * b;
        carried = sine * turned;
        d[i + 1] = g + carried;
        g = cosine * turned - b;
    }
    d[start] -= carried;
    e[start] = g;
    e[end] = 0.0;
}

/// The rotations of a QL step, applied to rows from `end` up.
struct Turn<'a> {
    matrix: &'a mut Matrix,
    end: usize,
    turns: &'a [(f64, f64)],
}

impl WithSimd for Turn<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let width = self.matrix.columns / S::F64_LANES;
        let single = width % ABREAST;
        for v in (0..width - single).step_by(ABREAST) {
            self.turn::<S, ABREAST>(simd, v);
        }
        for v in width - single..width {
            self.turn::<S, 1>(simd, v);
        }
    }
}

impl Turn<'_> {
    /// Vectors v..v + V of the rows.
    #[inline(always)]
    fn turn<S: Simd, const V: usize>(&mut self, simd: S, v: usize) {
        let width = self.matrix.columns / S::F64_LANES;
        let rows = vectors_mut::<S>(self.matrix.values_mut());
        let (head, last) = rows.split_at_mut(self.end * width);
        let mut below = &mut last[v..v + V];
        let mut carried: [_; V] = std::array::from_fn(|k| Vector::new(simd, below[k]));
        for (row, &(cosine, sine)) in head.chunks_exact_mut(width).rev().zip(self.turns) {
            let (cosine, sine) = (Vector::splat(simd, cosine), Vector::splat(simd, sine));
            let row = &mut row[v..v + V];
            for k in 0..V {
                let value = Vector::new(simd, row[k]);
                below[k] = (sine * value + cosine * carried[k]).lanes();
                carried[k] = cosine * value - sine * carried[k];
            }
            below = row;
        }
        for k in 0..V {
            below[k] = carried[k].lanes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::product::gram;
    use super::super::product::tests::{dense, random};
    use super::*;
    use nalgebra::DMatrix;

    #[test]
    fn vectors_are_orthonormal_and_give_the_matrix_back() {
        // Of full rank, of rank 5, and graded over twelve orders of magnitude.
        for (size, rows, grade) in [(8, 30, 1.0), (40, 5, 1.0), (48, 100, 0.75)] {
            let (mut a, mut weight) = (random(9, rows, size), 1.0);
            for j in 0..size {
                (0..rows).for_each(|i| *a.at_mut(i, j) *= weight);
                weight *= grade;
            }
            let g = gram(&a, Cpu::detect());
            let (values, rows) = eigen(g.clone(), Cpu::detect()).unwrap();
            let (plain_values, plain_rows) = eigen(g, Cpu::plain()).unwrap();
            assert_eq!((&values, rows.values()), (&plain_values, plain_rows.values()));
            assert!(values.is_sorted_by(|a, b| a >= b));
            let (a, w) = (dense(&a), dense(&rows));
            let diagonal =
                DMatrix::from_fn(size, size, |i, j| if i == j { values[i] } else { 0.0 });
            let back = w.transpose() * diagonal * &w;
            assert!((back - a.transpose() * &a).abs().max() < 1e-14 * values[0]);
            assert!((&w * w.transpose() - DMatrix::identity(size, size)).abs().max() < 1e-13);
        }
    }

    #[test]
    fn entries_that_are_not_numbers_are_refused() {
        let mut a = Matrix::zeros(8, 8);
        a.values_mut().fill(f64::NAN);
        assert!(eigen(a, Cpu::detect()).is_err());
    }
}
