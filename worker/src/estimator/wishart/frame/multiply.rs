//! One pass over A: applies the pending rotations, then m = F_p A, A m and A xi.
//!
//! Columns are taken a few at a time, so that their sums do not wait for one another.

use pulp::{Simd, WithSimd};

use super::{Frame, start};
use crate::columns::BLOCK;
use crate::simd::{Vector, groups, vectors, vectors_mut};

/// The pass over A.
pub(super) struct Multiply<'a, const L: usize> {
    pub(super) frame: &'a mut Frame<L>,
}

impl<const L: usize> WithSimd for Multiply<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let frame = self.frame;
        for by_row in [&mut frame.outside, &mut frame.weights, &mut frame.spread] {
            by_row.fill(0.0);
        }
        for g in 0..groups::<S, L>() {
            let single = frame.columns % BLOCK;
            for j in (frame.columns - single..frame.columns).rev() {
                frame.multiply::<S, 1>(simd, j, g);
            }
            for j in (0..frame.columns - single).step_by(BLOCK).rev() {
                frame.multiply::<S, BLOCK>(simd, j, g);
            }
        }
    }
}

impl<const L: usize> Frame<L> {
    /// The pass over columns j..j + B, last first, in lane group g.
    #[inline(always)]
    fn multiply<S: Simd, const B: usize>(&mut self, simd: S, j: usize, g: usize) {
        let count = groups::<S, L>();
        let pick = |from: &[f64]| -> [Vector<S>; B] {
            std::array::from_fn(|b| Vector::new(simd, vectors::<S>(from)[(j + b) * count + g]))
        };
        let (cosines, sines, xi) = (pick(&self.cosines), pick(&self.sines), pick(&self.direction));
        let mut rest = &mut vectors_mut::<S>(&mut self.a)[start(self.rank, j) * count..];
        let columns: [&mut [S::f64s]; B] = std::array::from_fn(|b| {
            let size = (self.rank - j - b) * count;
            let (column, tail) = std::mem::take(&mut rest).split_at_mut(size);
            rest = tail;
            column
        });
        let mut block = Block {
            simd,
            stride: (count, g),
            first: j,
            columns,
            cosines,
            sines,
            xi,
            m: [Vector::splat(simd, 0.0); B],
        };
        // The block's own triangle first, then the rows that all of its columns have.
        let outside = vectors_mut::<S>(&mut self.outside);
        let row = vectors::<S>(&self.row);
        for k in j..j + B - 1 {
            block.rotate(k, k - j + 1, outside, row);
        }
        for k in j + B - 1..self.rank {
            block.rotate(k, B, outside, row);
        }
        for (b, m) in block.m.into_iter().enumerate() {
            vectors_mut::<S>(&mut self.along_factor)[(j + b) * count + g] = m.lanes();
        }
        let weights = vectors_mut::<S>(&mut self.weights);
        let spread = vectors_mut::<S>(&mut self.spread);
        for k in j..j + B - 1 {
            block.add(k, k - j + 1, weights, spread);
        }
        for k in j + B - 1..self.rank {
            block.add(k, B, weights, spread);
        }
    }
}

/// `B` columns of A on their way through a pass.
struct Block<'a, S: Simd, const B: usize> {
    simd: S,
    stride: (usize, usize),
    first: usize,
    columns: [&'a mut [S::f64s]; B],
    cosines: [Vector<S>; B],
    sines: [Vector<S>; B],
    xi: [Vector<S>; B],
    m: [Vector<S>; B],
}

impl<S: Simd, const B: usize> Block<'_, S, B> {
    /// Rotates row k of the first `depth` columns, and adds it to m.
    #[inline(always)]
    fn rotate(&mut self, k: usize, depth: usize, outside: &mut [S::f64s], row: &[S::f64s]) {
        let (simd, (count, g)) = (self.simd, self.stride);
        let i = k * count + g;
        let f = Vector::new(simd, row[i]);
        let mut out = Vector::new(simd, outside[i]);
        for b in (0..depth).rev() {
            let entry = &mut self.columns[b][(k - self.first - b) * count + g];
            let before = Vector::new(simd, *entry);
            let kept = self.cosines[b] * before - self.sines[b] * out;
            out = self.sines[b] * before + self.cosines[b] * out;
            *entry = kept.lanes();
            self.m[b] = self.m[b] + kept * f;
        }
        outside[i] = out.lanes();
    }

    /// Adds row k of the first `depth` columns to A m and A xi.
    #[inline(always)]
    fn add(&self, k: usize, depth: usize, weights: &mut [S::f64s], spread: &mut [S::f64s]) {
        let (simd, (count, g)) = (self.simd, self.stride);
        let i = k * count + g;
        let (mut of_m, mut of_xi) = (Vector::new(simd, weights[i]), Vector::new(simd, spread[i]));
        for b in (0..depth).rev() {
            let entry = Vector::new(simd, self.columns[b][(k - self.first - b) * count + g]);
            of_m = of_m + entry * self.m[b];
            of_xi = of_xi + entry * self.xi[b];
        }
        weights[i] = of_m.lanes();
        spread[i] = of_xi.lanes();
    }
}
