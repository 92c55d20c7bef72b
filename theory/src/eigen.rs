//! Eigenvalues of a symmetric matrix, the same bits on every CPU.
//!
//! Householder reduction to tridiagonal form, then the QL iteration with implicit shifts (Wilkinson
//! and Reinsch, Handbook for Automatic Computation II, contributions 2 and 3; Golub and Van Loan,
//! section 8.3). Only values are computed. Both steps are backward stable: every eigenvalue is off
//! by a small multiple of 1e-16 times the largest one. Entries must be small enough that their
//! squares do not overflow.

use crate::special::larger;

/// Steps of the QL iteration allowed per eigenvalue; two or three are usual.
const QL_STEPS: usize = 64;

/// The QL iteration did not settle on an eigenvalue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("eigenvalue {index} did not converge in {QL_STEPS} QL steps; are all entries finite?")]
pub struct NoConvergence {
    /// Position in the tridiagonal form.
    pub index: usize,
}

/// The eigenvalues, largest first, of the symmetric n x n matrix whose rows stand one after another
/// in `matrix`. Only the lower triangle (j <= i) is read.
///
/// # Panics
/// Where `matrix` does not have n * n entries.
pub fn eigenvalues(matrix: Vec<f64>, n: usize) -> Result<Vec<f64>, NoConvergence> {
    assert_eq!(matrix.len(), n * n, "a symmetric matrix has n rows of n entries");
    let (mut diagonal, mut off) = tridiagonal(matrix, n);
    implicit_ql(&mut diagonal, &mut off)?;
    diagonal.sort_by(|a, b| b.total_cmp(a));
    Ok(diagonal)
}

/// Reduces A to Q^T A Q, tridiagonal: its diagonal, and its subdiagonal in entries 1.. (entry 0 is
/// unused). Row i is reflected onto its last entry, from the last row up, so that what is left is
/// always the leading block and its rows are contiguous.
fn tridiagonal(mut a: Vec<f64>, n: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut diagonal, mut off) = (vec![0.0; n], vec![0.0; n]);
    let mut p = vec![0.0; n];
    for i in (0..n).rev() {
        let (block, rest) = a.split_at_mut(i * n);
        diagonal[i] = rest[i];
        if i > 0 {
            off[i] = reflect(block, n, &mut rest[..i], &mut p[..i]);
        }
    }
    (diagonal, off)
}

/// Applies to the leading block the reflection H = I - beta v v^T that takes the row `v` to
/// (0, .., 0, e), and returns e. `v` and `p` are overwritten.
fn reflect(block: &mut [f64], n: usize, v: &mut [f64], p: &mut [f64]) -> f64 {
    let last = v.len() - 1;
    let aside = dot(&v[..last], &v[..last]);
    if aside == 0.0 {
        return v[last];
    }
    let norm = (aside + v[last] * v[last]).sqrt();
    let signed = if v[last] < 0.0 { -norm } else { norm };
    v[last] += signed;
    let beta = 1.0 / (signed * v[last]);
    symmetric_product(block, n, v, p);
    for value in p.iter_mut() {
        *value *= beta;
    }
    let half = 0.5 * beta * dot(v, p);
    for (value, v) in p.iter_mut().zip(&*v) {
        *value -= half * v;
    }
    // A <- H A H = A - v p^T - p v^T.
    for i in 0..v.len() {
        let (vi, pi) = (v[i], p[i]);
        for ((a, v), p) in block[i * n..=i * n + i].iter_mut().zip(&*v).zip(&*p) {
            *a -= vi * p + pi * v;
        }
    }
    -signed
}

/// out = A v, reading each entry of the lower triangle once.
fn symmetric_product(block: &[f64], n: usize, v: &[f64], out: &mut [f64]) {
    out.fill(0.0);
    for i in 0..v.len() {
        let row = &block[i * n..=i * n + i];
        let (before, vi) = (&row[..i], v[i]);
        out[i] += dot(before, v) + row[i] * vi;
        for (out, a) in out.iter_mut().zip(before) {
            *out += a * vi;
        }
    }
}

/// The sum over the shorter length, in eight lanes that are added in a fixed order.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let length = a.len().min(b.len());
    let (a, b) = (&a[..length], &b[..length]);
    let mut lanes = [0.0; 8];
    let (mut a8, mut b8) = (a.chunks_exact(8), b.chunks_exact(8));
    for (a, b) in a8.by_ref().zip(b8.by_ref()) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    let mut sum = lanes.iter().fold(0.0, |sum, lane| sum + lane);
    for (a, b) in a8.remainder().iter().zip(b8.remainder()) {
        sum += a * b;
    }
    sum
}

/// Turns the tridiagonal form into its eigenvalues, left in `d` in no particular order.
fn implicit_ql(d: &mut [f64], e: &mut [f64]) -> Result<(), NoConvergence> {
    let n = d.len();
    // From here on e[i] couples i and i + 1.
    e.rotate_left(1.min(n));
    let norm = d.iter().zip(&*e).map(|(d, e)| d.abs() + e.abs()).fold(0.0, larger);
    let negligible = f64::EPSILON * norm;
    for start in 0..n {
        let mut steps = 0;
        loop {
            let end = (start..n - 1).find(|&m| e[m].abs() <= negligible).unwrap_or(n - 1);
            if end == start {
                break;
            }
            if steps == QL_STEPS {
                return Err(NoConvergence { index: start });
            }
            steps += 1;
            ql_step(d, e, start, end);
        }
    }
    Ok(())
}

/// One implicit QL step with Wilkinson's shift on the unreduced block `start..=end`.
fn ql_step(d: &mut [f64], e: &mut [f64], start: usize, end: usize) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use nalgebra::{DMatrix, SymmetricEigen};
    use proptest::prelude::*;

    fn close(found: &[f64], expected: &[f64], tolerance: f64) {
        assert_eq!(found.len(), expected.len());
        for (a, b) in found.iter().zip(expected) {
            assert!((a - b).abs() <= tolerance, "{found:?} != {expected:?}");
        }
    }

    #[test]
    fn second_difference_matrix() {
        // 2 on the diagonal, -1 beside it: lambda_k = 2 - 2 cos(k pi/(n + 1)).
        let n = 50;
        let mut matrix = vec![0.0; n * n];
        for i in 0..n {
            matrix[i * n + i] = 2.0;
            if i > 0 {
                matrix[i * n + i - 1] = -1.0;
            }
        }
        let expected: Vec<f64> = (1..=n)
            .rev()
            .map(|k| 2.0 - 2.0 * libm::cos(k as f64 * std::f64::consts::PI / (n + 1) as f64))
            .collect();
        close(&eigenvalues(matrix, n).unwrap(), &expected, 1e-14);
    }

    #[test]
    fn hilbert_matrix_of_order_three() {
        // From mpmath.eigsy at 40 digits.
        let matrix: Vec<f64> =
            (0..9).map(|at| 1.0 / f64::from(u8::try_from(at / 3 + at % 3 + 1).unwrap())).collect();
        let expected = [1.4083189271236539, 0.12232706585390585, 0.002687340355773529];
        close(&eigenvalues(matrix, 3).unwrap(), &expected, 1e-15);
    }

    #[test]
    fn degenerate_sizes_and_matrices() {
        assert_eq!(eigenvalues(vec![], 0).unwrap(), []);
        assert_eq!(eigenvalues(vec![-3.0], 1).unwrap(), [-3.0]);
        close(&eigenvalues(vec![0.0, 9.0, 1.0, 0.0], 2).unwrap(), &[1.0, -1.0], 1e-15);
        assert_eq!(eigenvalues(vec![0.0; 49], 7).unwrap(), [0.0; 7]);
        // All ones: n once, 0 otherwise.
        let found = eigenvalues(vec![1.0; 100], 10).unwrap();
        close(&found[..1], &[10.0], 1e-14);
        close(&found[1..], &[0.0; 9], 1e-14);
    }

    #[test]
    fn entries_that_are_not_numbers_are_refused() {
        assert!(eigenvalues(vec![f64::NAN; 9], 3).is_err());
    }

    proptest! {
        #[test]
        fn as_nalgebra_computes_them(
            n in 1_usize..40,
            entries in prop::collection::vec(-1.0_f64..1.0, 1600),
            grading in 0_u8..3,
        ) {
            let scale = |i: usize| 1.0 / libm::pow(1.0 + i as f64, 4.0 * f64::from(grading));
            let at = |i: usize, j: usize| entries[i * 40 + j] * scale(i) * scale(j);
            let dense = DMatrix::from_fn(n, n, |i, j| at(i.max(j), i.min(j)));
            let found = eigenvalues(dense.as_slice().to_vec(), n).unwrap();
            let mut expected = SymmetricEigen::new(dense).eigenvalues.as_slice().to_vec();
            expected.sort_by(|a, b| b.total_cmp(a));
            for (a, b) in found.iter().zip(&expected) {
                prop_assert!((a - b).abs() <= 1e-13 * n as f64, "{:?} {:?}", found, expected);
            }
        }
    }
}
