//! K = U^T U, W = U^-T, and solves with them, on the matrices of [`super::blocks`].

use pulp::{Simd, WithSimd};
use theory::PANEL;

use super::blocks::{BLOCK, Diagonal, lower, product, update, upper, weighted};
use crate::simd::{Vector, groups, vectors_mut};

/// A kernel matrix that rounding has made indefinite, or one that is not finite.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "the covariance of the observations is not positive definite: pivot {pivot} is {value:e}; \
     raise the noise or its lower bound"
)]
pub struct NotPositiveDefinite {
    /// The distinct input, counted from 0 in order of observation.
    pub pivot: usize,
    /// What is left of its variance, relative to the kernel's.
    pub value: f64,
}

/// Replaces the upper triangle of K, in `matrix`, by U.
pub(super) struct Factorise<'a> {
    pub(super) matrix: &'a mut [f64],
    pub(super) reciprocals: &'a mut [f64],
}

impl WithSimd for Factorise<'_> {
    type Output = Result<(), NotPositiveDefinite>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        let count = groups::<S, PANEL>();
        let blocks = self.reciprocals.len() / PANEL;
        for i in 0..blocks {
            let (done, rest) = self.matrix.split_at_mut(upper(i) + BLOCK * i);
            let left = &done[upper(i)..];
            let (diagonal, rest) = rest.split_at_mut(BLOCK);
            let reciprocals = &mut self.reciprocals[PANEL * i..PANEL * (i + 1)];
            for g in 0..count {
                let sums = product(simd, left, left, g);
                let rows = vectors_mut::<S>(diagonal).chunks_exact_mut(count);
                for (row, sum) in rows.zip(sums) {
                    row[g] = (Vector::new(simd, row[g]) - sum).lanes();
                }
            }
            factorise_block(diagonal, reciprocals)
                .map_err(|(q, value)| NotPositiveDefinite { pivot: PANEL * i + q, value })?;
            let diagonal = Diagonal::new(diagonal, reciprocals);
            for j in i + 1..blocks {
                let column = &mut rest[upper(j) - upper(i + 1)..];
                let (above, tile) = column.split_at_mut(BLOCK * i);
                update(simd, diagonal, left, above, &mut tile[..BLOCK]);
            }
        }
        Ok(())
    }
}

/// The factor of one block, zeros below its diagonal; or the row and value of a bad pivot.
#[inline(always)]
fn factorise_block(block: &mut [f64], reciprocals: &mut [f64]) -> Result<(), (usize, f64)> {
    let rows = block.as_chunks_mut::<PANEL>().0;
    for q in 0..PANEL {
        let pivot = rows[q][q];
        if pivot.is_nan() || pivot <= 0.0 || pivot == f64::INFINITY {
            return Err((q, pivot));
        }
        let root = pivot.sqrt();
        reciprocals[q] = 1.0 / root;
        rows[q][..q].fill(0.0);
        rows[q][q] = root;
        for j in q + 1..PANEL {
            rows[q][j] *= reciprocals[q];
        }
        let row = rows[q];
        for r in q + 1..PANEL {
            for j in r..PANEL {
                rows[r][j] -= row[r] * row[j];
            }
        }
    }
    Ok(())
}

/// values <- U^-T values.
pub(super) struct Forward<'a> {
    pub(super) factor: &'a [f64],
    pub(super) reciprocals: &'a [f64],
    pub(super) values: &'a mut [f64],
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for i in 0..self.reciprocals.len() / PANEL {
            let (done, rest) = self.values.split_at_mut(PANEL * i);
            let left = &self.factor[upper(i)..upper(i) + BLOCK * i];
            for (g, out) in vectors_mut::<S>(&mut rest[..PANEL]).iter_mut().enumerate() {
                *out = (Vector::new(simd, *out) - weighted(simd, done, left, g)).lanes();
            }
            Diagonal::of(self.factor, self.reciprocals, i).solve_vector(rest);
        }
    }
}

/// The lower triangle W = U^-T, so that K^-1 = W^T W.
pub(super) struct Invert<'a> {
    pub(super) factor: &'a [f64],
    pub(super) reciprocals: &'a [f64],
    pub(super) inverse: &'a mut [f64],
}

impl WithSimd for Invert<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let blocks = self.reciprocals.len() / PANEL;
        self.inverse[..lower(blocks, blocks)].fill(0.0);
        for j in 0..blocks {
            let column = &mut self.inverse[lower(blocks, j)..lower(blocks, j + 1)];
            (0..PANEL).for_each(|r| column[r * PANEL + r] = 1.0);
            for i in j..blocks {
                let (above, tile) = column.split_at_mut(BLOCK * (i - j));
                let left = &self.factor[upper(i) + BLOCK * j..upper(i) + BLOCK * i];
                let diagonal = Diagonal::of(self.factor, self.reciprocals, i);
                update(simd, diagonal, left, above, &mut tile[..BLOCK]);
            }
        }
    }
}

/// out <- W^T values, which is U^-1 values.
pub(super) struct Backward<'a> {
    pub(super) inverse: &'a [f64],
    pub(super) values: &'a [f64],
    pub(super) out: &'a mut [f64],
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let blocks = self.values.len() / PANEL;
        for (j, out) in self.out.chunks_exact_mut(PANEL).enumerate() {
            let column = &self.inverse[lower(blocks, j)..lower(blocks, j + 1)];
            for (g, out) in vectors_mut::<S>(out).iter_mut().enumerate() {
                *out = weighted(simd, &self.values[PANEL * j..], column, g).lanes();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::blocks::entry;
    use super::*;
    use crate::simd::{Buffer, Cpu};
    use nalgebra::DMatrix;

    /// A positive definite matrix of whole blocks.
    fn matrix(blocks: usize) -> DMatrix<f64> {
        let size = blocks * PANEL;
        let square = DMatrix::from_fn(size, size, |i, j| libm::sin((3 + i * 7 + j * j) as f64));
        &square * square.transpose() + DMatrix::identity(size, size)
    }

    /// U, U^-T, and U^-1 U^-T (1, 2, 3, ...), all kernels in turn.
    fn run(matrix: &DMatrix<f64>, cpu: Cpu) -> [Vec<f64>; 4] {
        let size = matrix.nrows();
        let blocks = size / PANEL;
        let line = || Buffer::zeros(size);
        let (mut factor, mut inverse) =
            (Buffer::zeros(upper(blocks)), Buffer::zeros(upper(blocks)));
        (0..size).for_each(|j| (0..=j).for_each(|i| factor[entry(i, j)] = matrix[(i, j)]));
        let mut reciprocals = line();
        let kernel = Factorise { matrix: &mut factor, reciprocals: &mut reciprocals };
        cpu.run::<PANEL, _>(kernel).unwrap();
        let (factor, reciprocals) = (&*factor, &*reciprocals);
        let (mut values, mut out) = (line(), line());
        (0..size).for_each(|i| values[i] = 1.0 + i as f64);
        cpu.run::<PANEL, _>(Forward { factor, reciprocals, values: &mut values });
        cpu.run::<PANEL, _>(Invert { factor, reciprocals, inverse: &mut inverse });
        cpu.run::<PANEL, _>(Backward { inverse: &inverse, values: &values, out: &mut out });
        [factor.to_vec(), inverse.to_vec(), values.to_vec(), out.to_vec()]
    }

    #[test]
    fn as_dense_algebra_has_it() {
        for blocks in [1, 2, 3, 7] {
            let matrix = matrix(blocks);
            let size = matrix.nrows();
            let [factor, inverse, _, solved] = run(&matrix, Cpu::detect());
            let expected = matrix.clone().cholesky().unwrap();
            let (l, scale) = (expected.l(), matrix.norm());
            let reversed = l.clone().try_inverse().unwrap();
            for j in 0..size {
                for i in 0..size {
                    if i <= j {
                        assert!((factor[entry(i, j)] - l[(j, i)]).abs() < 1e-13 * scale);
                    } else {
                        let column = lower(blocks, j / PANEL) - j / PANEL * BLOCK;
                        let found = inverse[column + i * PANEL + j % PANEL];
                        assert!((found - reversed[(i, j)]).abs() < 1e-11, "{i} {j}");
                    }
                }
            }
            let right = nalgebra::DVector::from_fn(size, |i, _| 1.0 + i as f64);
            let error = &matrix * nalgebra::DVector::from_vec(solved) - right;
            assert!(error.norm() < 1e-9 * scale, "{}", error.norm());
        }
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        for blocks in [1, 4, 9] {
            let matrix = matrix(blocks);
            assert_eq!(run(&matrix, Cpu::detect()), run(&matrix, Cpu::plain()));
        }
    }

    #[test]
    fn a_bad_pivot_is_named() {
        for (bad, value) in [(0, -1.0), (5, 0.0), (13, f64::NAN), (23, f64::INFINITY)] {
            let mut matrix = Buffer::zeros(upper(3));
            (0..24).for_each(|i| matrix[entry(i, i)] = 1.0);
            matrix[entry(bad, bad)] = value;
            let mut reciprocals = Buffer::zeros(24);
            let kernel = Factorise { matrix: &mut matrix, reciprocals: &mut reciprocals };
            let error = Cpu::detect().run::<PANEL, _>(kernel).unwrap_err();
            assert_eq!(error.pivot, bad);
            assert!(error.value == value || value.is_nan());
        }
    }
}
