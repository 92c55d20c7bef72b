//! Soft thresholding of singular values, S_lambda(A) = U (S - lambda)_+ V^T, by a subspace that is
//! kept from one matrix to the next.
//!
//! Only singular values above lambda matter, and the matrices of an iteration change little. So one
//! step of subspace iteration from the last right singular vectors V replaces a whole decomposition:
//! U = orth(A V), then the exact decomposition of U^T A. How far that is from S_lambda(A) is not
//! guessed but bounded, by [`Triplets::error`].

use theory::eigen::NoConvergence;

use super::cholesky::{orthonormalise, positive_definite};
use super::eigen::eigen;
use super::hash::uniform;
use super::product::{LANES, Matrix, gram, product, product_into, transposed_product};
use crate::simd::Cpu;

/// Vectors beyond those above lambda, at least; they find what is about to cross it.
const SPARE: usize = 4;
/// Below this share of the largest, a singular value from a Gram matrix is rounding error.
const VANISHING: f64 = 1e-7;

/// Approximate right singular vectors.
#[derive(Clone)]
pub(super) struct Subspace {
    /// Unit columns, the largest singular value's first.
    basis: Matrix,
    /// Columns of the matrices, without padding.
    size: usize,
    /// Random vectors drawn so far.
    drawn: u64,
}

/// The singular values above lambda.
pub(super) struct Triplets {
    values: Vec<f64>,
    /// Left singular vectors, as columns.
    left: Matrix,
    /// Right singular vectors, as rows.
    right: Matrix,
    /// Columns of the matrix, without padding.
    size: usize,
}

impl Subspace {
    /// Of matrices with `size` columns, no more than they have rows.
    pub(super) fn new(size: usize) -> Self {
        let mut subspace = Self { basis: Matrix::zeros(size, 0), size, drawn: 0 };
        subspace.resize(LANES);
        subspace
    }

    /// Makes room for the vectors of so many singular values, and some to spare.
    pub(super) fn fit(&mut self, rank: usize) {
        self.resize(rank + SPARE);
    }

    /// Half as many vectors again.
    pub(super) fn widen(&mut self) {
        self.resize(self.basis.columns * 3 / 2);
    }

    /// Drops the last vectors, or adds random ones, up to as many as there are columns.
    fn resize(&mut self, width: usize) {
        let most = if width < self.size { width } else { self.size };
        let mut basis = Matrix::zeros(self.size, most);
        let (width, before) = (basis.columns, self.basis.columns);
        let kept = if width < before { width } else { before };
        for i in 0..self.size {
            basis.row_mut(i)[..kept].copy_from_slice(&self.basis.row(i)[..kept]);
        }
        self.basis = basis;
        (kept..width).for_each(|j| self.draw(j));
    }

    /// Makes column j random.
    fn draw(&mut self, j: usize) {
        for i in 0..self.size {
            *self.basis.at_mut(i, j) = uniform(self.drawn, i as u64) - 0.5;
        }
        self.drawn += 1;
    }

    /// Writes S_lambda(A) over `out`.
    pub(super) fn threshold(
        &mut self,
        a: &Matrix,
        lambda: f64,
        out: &mut Matrix,
        cpu: Cpu,
    ) -> Result<Triplets, NoConvergence> {
        let width = self.basis.columns;
        let left = orthonormalise(product(a, &self.basis, self.size, cpu), cpu);
        let right = transposed_product(a, &left, cpu);
        let (squares, turn) = eigen(gram(&right, cpu), cpu)?;
        let turn = turn.transposed();
        let root = |square: &f64| if *square > 0.0 { square.sqrt() } else { 0.0 };
        let mut values: Vec<f64> = squares.iter().map(root).collect();
        self.basis = product(&right, &turn, width, cpu);
        self.normalise(&values);
        values.truncate(values.partition_point(|value| *value > lambda));
        let triplets = Triplets {
            values,
            left: product(&left, &turn, width, cpu),
            right: self.basis.transposed(),
            size: self.size,
        };
        triplets.shrunk(lambda, out, cpu);
        if triplets.rank() + SPARE > width {
            self.fit(triplets.rank() + SPARE);
        }
        Ok(triplets)
    }

    /// Divides the columns by their lengths, and replaces those that have none.
    fn normalise(&mut self, lengths: &[f64]) {
        let vanishing = VANISHING * lengths[0];
        let weight = |length: &f64| if *length > vanishing { 1.0 / length } else { 0.0 };
        let weights: Vec<f64> = lengths.iter().map(weight).collect();
        for i in 0..self.size {
            let row = self.basis.row_mut(i).iter_mut();
            row.zip(&weights).for_each(|(value, weight)| *value *= weight);
        }
        (0..weights.len()).filter(|&j| weights[j] == 0.0).for_each(|j| self.draw(j));
    }
}

impl Triplets {
    pub(super) fn rank(&self) -> usize {
        self.values.len()
    }

    /// U (S - lambda) V^T.
    fn shrunk(&self, lambda: f64, out: &mut Matrix, cpu: Cpu) {
        let mut right = self.right.clone();
        for (j, value) in self.values.iter().enumerate() {
            right.row_mut(j).iter_mut().for_each(|entry| *entry *= value - lambda);
        }
        product_into(&self.left, &right, self.rank(), out, cpu);
    }

    /// A bound on the Frobenius distance of U (S - lambda) V^T from S_lambda(A), for the A that these
    /// triplets were found for; none where another singular value lies above `limit`, which is to be
    /// lambda or hardly more.
    ///
    /// U^T A = S V^T holds by construction. With E = A V - U S, U (S - lambda) V^T is exactly
    /// S_lambda(A - E V^T), provided that A - U S V^T has no singular value above lambda; and
    /// S_lambda brings no two matrices further apart. So the bound is |E|_F, and the proviso is a
    /// Cholesky factorisation: limit^2 I less the Gram matrix of the rest is positive definite.
    pub(super) fn error(&self, a: &Matrix, limit: f64, cpu: Cpu) -> Option<f64> {
        let mut rest = Matrix::zeros(a.rows, a.columns);
        self.shrunk(0.0, &mut rest, cpu);
        rest.values_mut().iter_mut().zip(a.values()).for_each(|(rest, a)| *rest = a - *rest);
        let mut gram = gram(&rest, cpu);
        for i in 0..self.size {
            gram.row_mut(i)[..=i].iter_mut().for_each(|value| *value = -*value);
            *gram.at_mut(i, i) += limit * limit;
        }
        positive_definite(gram, self.size).then(|| {
            // (A - U S V^T) V = E.
            let e = product(&rest, &self.right.transposed(), self.size, cpu);
            let squares = (0..e.rows).flat_map(|i| &e.row(i)[..self.rank()]);
            squares.fold(0.0_f64, |sum, value| sum + value * value).sqrt()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::product::tests::{dense, random};
    use super::*;
    use nalgebra::DMatrix;

    const LAMBDA: f64 = 2.0;

    /// S_lambda(A) by nalgebra, and how many singular values it keeps.
    fn exact(a: &Matrix) -> (DMatrix<f64>, usize) {
        let mut svd = dense(a).svd(true, true);
        let rank = svd.singular_values.iter().filter(|s| **s > LAMBDA).count();
        svd.singular_values.apply(|s| *s = if *s > LAMBDA { *s - LAMBDA } else { 0.0 });
        (svd.recompose().unwrap(), rank)
    }

    #[test]
    fn the_bound_holds_from_the_first_step_to_the_last() {
        let cpu = Cpu::detect();
        let (a, mut subspace) = (random(21, 48, 32), Subspace::new(32));
        let (expected, rank) = exact(&a);
        let (mut out, mut refused, mut accepted) = (Matrix::zeros(48, 32), 0, 0);
        for _ in 0..200 {
            let triplets = subspace.threshold(&a, LAMBDA, &mut out, cpu).unwrap();
            let distance = (dense(&out) - &expected).norm();
            match triplets.error(&a, LAMBDA + 1e-9, cpu) {
                Some(bound) => {
                    assert!(distance <= bound + 1e-8, "{distance} {bound}");
                    accepted += 1;
                }
                None => refused += 1,
            }
        }
        assert!(refused > 0 && accepted > 100, "{refused} {accepted}");
        let triplets = subspace.threshold(&a, LAMBDA, &mut out, cpu).unwrap();
        assert_eq!(triplets.rank(), rank);
        assert!(triplets.error(&a, LAMBDA + 1e-9, cpu).unwrap() < 1e-10);
        assert!((dense(&out) - expected).norm() < 1e-10);
    }

    #[test]
    fn a_direction_that_the_subspace_cannot_see_is_not_overlooked() {
        // Two blocks, and a basis that only knows the first.
        let cpu = Cpu::detect();
        let mut a = Matrix::zeros(32, 24);
        (0..24).for_each(|i| *a.at_mut(i, i) = if i < 2 { 5.0 } else { 0.5 });
        *a.at_mut(20, 20) = LAMBDA + 0.1;
        let mut subspace = Subspace::new(24);
        (8..24).for_each(|i| subspace.basis.row_mut(i).fill(0.0));
        let mut out = Matrix::zeros(32, 24);
        let triplets = subspace.threshold(&a, LAMBDA, &mut out, cpu).unwrap();
        assert_eq!(triplets.rank(), 2);
        assert_eq!(triplets.error(&a, LAMBDA, cpu), None);
        assert!(triplets.error(&a, LAMBDA + 0.11, cpu).is_some());
        // All of them: nothing is left to miss.
        subspace.widen();
        subspace.widen();
        subspace.widen();
        let triplets = subspace.threshold(&a, LAMBDA, &mut out, cpu).unwrap();
        assert_eq!(triplets.rank(), 3);
        assert!(triplets.error(&a, LAMBDA, cpu).unwrap() < 1e-12);
    }
}
