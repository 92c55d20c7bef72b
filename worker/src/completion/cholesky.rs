//! Cholesky factors of Gram matrices, and orthonormal columns by them.

use super::product::{Matrix, dot, gram, product};
use crate::simd::Cpu;

/// A pivot below this share of its diagonal entry is rounding error: the column depends on those
/// before it.
const DEPENDENT: f64 = 1e-14;
/// One pass leaves an orthogonality error of about 1e-16 over the smallest pivot's share; above this
/// share that is small enough.
const WELL_CONDITIONED: f64 = 1e-2;
/// Passes that suffice for any pivots that are kept ("CholeskyQR2", and one to spare).
const PASSES: usize = 3;

/// What became of the pivots.
struct Pivots {
    /// The smallest that was kept, as a share of its diagonal entry.
    smallest: f64,
    /// How many were not kept.
    dropped: usize,
}

/// Overwrites the lower triangle of G with L, G = L L^T. A row whose pivot is at most the share `drop`
/// of its diagonal entry becomes zero.
fn factor(g: &mut Matrix, size: usize, drop: f64) -> Pivots {
    let (mut pivots, columns) = (Pivots { smallest: 1.0, dropped: 0 }, g.columns);
    for i in 0..size {
        let (above, rest) = g.values_mut().split_at_mut(i * columns);
        let (row, last) = rest[..=i].split_at_mut(i);
        for (j, other) in above.chunks_exact(columns).enumerate() {
            let pivot = other[j];
            row[j] = if pivot > 0.0 { (row[j] - dot(&row[..j], other)) / pivot } else { 0.0 };
        }
        let (diagonal, pivot) = (last[0], last[0] - dot(row, row));
        if diagonal > 0.0 && pivot > drop * diagonal {
            last[0] = pivot.sqrt();
            if pivot < pivots.smallest * diagonal {
                pivots.smallest = pivot / diagonal;
            }
        } else {
            row.fill(0.0);
            last[0] = 0.0;
            pivots.dropped += 1;
        }
    }
    pivots
}

/// Whether the symmetric matrix whose lower triangle this is has positive eigenvalues only.
pub(super) fn positive_definite(mut g: Matrix, size: usize) -> bool {
    factor(&mut g, size, 0.0).dropped == 0
}

/// Makes the columns orthonormal, in order; a column that depends on those before it becomes zero.
///
/// A = Q L^T with A^T A = L L^T, again where A was ill conditioned (Yamamoto, Nakatsukasa, Yanagisawa
/// and Fukaya 2015). The factor is indifferent to the columns' lengths, so that only their angles
/// count.
pub(super) fn orthonormalise(mut a: Matrix, cpu: Cpu) -> Matrix {
    let size = a.columns;
    for _ in 0..PASSES {
        let mut g = gram(&a, cpu);
        let pivots = factor(&mut g, size, DEPENDENT);
        a = product(&a, &inverse(&g).transposed(), size, cpu);
        if pivots.smallest > WELL_CONDITIONED {
            break;
        }
    }
    a
}

/// L^-1, row by row; a zero row stays one.
fn inverse(l: &Matrix) -> Matrix {
    let (size, columns) = (l.columns, l.columns);
    let mut out = Matrix::zeros(size, size);
    for i in 0..size {
        let pivot = l.at(i, i);
        if pivot == 0.0 {
            continue;
        }
        let (above, rest) = out.values_mut().split_at_mut(i * columns);
        let row = &mut rest[..=i];
        for (j, other) in above.chunks_exact(columns).enumerate() {
            let weight = l.at(i, j);
            for (value, other) in row[..=j].iter_mut().zip(other) {
                *value -= weight * other;
            }
        }
        row[i] = 1.0;
        row.iter_mut().for_each(|value| *value /= pivot);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::product::tests::{dense, random};
    use super::*;
    use nalgebra::{DMatrix, SymmetricEigen};

    #[test]
    fn columns_become_orthonormal_however_close_they_were() {
        for closeness in [1.0, 1e-3, 1e-6] {
            let (mut a, common) = (random(5, 60, 16), random(6, 60, 1));
            for i in 0..60 {
                let row = a.row_mut(i).iter_mut().enumerate();
                row.for_each(|(j, v)| *v = (common.at(i, 0) + closeness * *v) / (1.0 + j as f64));
            }
            let before = dense(&a);
            let q = dense(&orthonormalise(a, Cpu::detect()));
            let identity = DMatrix::identity(16, 16);
            assert!((q.transpose() * &q - identity).abs().max() < 1e-14, "{closeness}");
            // The span is kept, column by column: A - Q Q^T A vanishes.
            assert!((&before - &q * (q.transpose() * &before)).abs().max() < 1e-13, "{closeness}");
        }
    }

    #[test]
    fn dependent_columns_become_zero() {
        let mut a = random(7, 20, 8);
        for i in 0..20 {
            *a.at_mut(i, 3) = a.at(i, 0) - 2.0 * a.at(i, 2);
            *a.at_mut(i, 5) = 0.0;
        }
        let q = dense(&orthonormalise(a, Cpu::detect()));
        let mut expected = DMatrix::identity(8, 8);
        (expected[(3, 3)], expected[(5, 5)]) = (0.0, 0.0);
        assert!((q.transpose() * &q - expected).abs().max() < 1e-14);
    }

    #[test]
    fn definiteness_is_the_sign_of_the_least_eigenvalue() {
        for size in [1, 5, 16] {
            let mut symmetric = random(8, size, size);
            for i in 0..size {
                (0..i).for_each(|j| *symmetric.at_mut(j, i) = symmetric.at(i, j));
            }
            let whole = dense(&symmetric).view((0, 0), (size, size)).into_owned();
            let least = SymmetricEigen::new(whole).eigenvalues.min();
            for (shift, expected) in [(1e-9, true), (-1e-9, false), (-1.0, false)] {
                let mut shifted = symmetric.clone();
                (0..size).for_each(|i| *shifted.at_mut(i, i) += shift - least);
                assert_eq!(positive_definite(shifted, size), expected, "{size} {shift}");
            }
        }
    }
}
