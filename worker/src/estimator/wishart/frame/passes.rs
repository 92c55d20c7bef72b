//! The two passes over A: m = F_p A, and, once the direction c is known, the rotations that take it out
//! of A, which find A c on their way.
//!
//! Columns are taken a few at a time, so that their sums do not wait for one another. The second pass
//! runs backwards and begins with what the first has left in the cache.

use pulp::{Simd, WithSimd};

use super::{Frame, start};
use crate::columns::{BLOCK, add_products};
use crate::simd::{Vector, groups, vectors, vectors_mut};

/// m = F_p A.
pub(super) struct Along<'a, const L: usize> {
    pub(super) frame: &'a mut Frame<L>,
    /// F_p.
    pub(super) row: &'a [f64],
}

impl<const L: usize> WithSimd for Along<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { frame, row } = self;
        let (count, full) = (groups::<S, L>(), frame.columns / BLOCK * BLOCK);
        for j in (0..full).step_by(BLOCK) {
            for g in 0..count {
                frame.along::<S, BLOCK>(simd, row, j, g);
            }
        }
        for j in full..frame.columns {
            for g in 0..count {
                frame.along::<S, 1>(simd, row, j, g);
            }
        }
    }
}

/// A <- A', and the weights A c.
pub(super) struct Rotate<'a, const L: usize> {
    pub(super) frame: &'a mut Frame<L>,
}

impl<const L: usize> WithSimd for Rotate<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let frame = self.frame;
        let (count, full) = (groups::<S, L>(), frame.columns / BLOCK * BLOCK);
        frame.weights.fill(0.0);
        for j in (full..frame.columns).rev() {
            for g in 0..count {
                frame.rotate::<S, 1>(simd, j, g);
            }
        }
        for j in (0..full).step_by(BLOCK).rev() {
            for g in 0..count {
                frame.rotate::<S, BLOCK>(simd, j, g);
            }
        }
    }
}

impl<const L: usize> Frame<L> {
    /// m_j..m_{j+B}, in lane group g.
    #[inline(always)]
    fn along<S: Simd, const B: usize>(&mut self, simd: S, row: &[f64], j: usize, g: usize) {
        let count = groups::<S, L>();
        let row = vectors::<S>(row);
        let mut rest = &vectors::<S>(&self.a)[start(self.rank, j) * count..];
        let columns: [&[S::f64s]; B] = std::array::from_fn(|b| {
            let (column, tail) = rest.split_at((self.rank - j - b) * count);
            rest = tail;
            column
        });
        // The block's own triangle first, then the rows that all of its columns have.
        let mut m = [Vector::splat(simd, 0.0); B];
        for k in 0..B - 1 {
            for b in 0..=k {
                let entry = Vector::new(simd, columns[b][(k - b) * count + g]);
                m[b] = m[b] + entry * Vector::new(simd, row[(j + k) * count + g]);
            }
        }
        let columns = std::array::from_fn(|b| &columns[b][(B - 1 - b) * count..]);
        let m = add_products(simd, m, columns, &row[(j + B - 1) * count..], (count, g));
        for (b, m) in m.into_iter().enumerate() {
            vectors_mut::<S>(&mut self.along_factor)[(j + b) * count + g] = m.lanes();
        }
    }

    /// Rotates columns j..j + B, last first, in lane group g.
    #[inline(always)]
    fn rotate<S: Simd, const B: usize>(&mut self, simd: S, j: usize, g: usize) {
        let count = groups::<S, L>();
        let pick = |from: &[f64]| -> [Vector<S>; B] {
            std::array::from_fn(|b| Vector::new(simd, vectors::<S>(from)[(j + b) * count + g]))
        };
        let turn =
            Turn { c: pick(&self.direction), keep: pick(&self.keep), take: pick(&self.take) };
        let mut rest = &mut vectors_mut::<S>(&mut self.a)[start(self.rank, j) * count..];
        let columns: [&mut [S::f64s]; B] = std::array::from_fn(|b| {
            let size = (self.rank - j - b) * count;
            let (column, tail) = std::mem::take(&mut rest).split_at_mut(size);
            rest = tail;
            column
        });
        let sums = &mut vectors_mut::<S>(&mut self.weights)[j * count..];
        for k in 0..B - 1 {
            let sum = &mut sums[k * count + g];
            let mut behind = Vector::new(simd, *sum);
            for b in (0..=k).rev() {
                behind = turn.entry(simd, b, &mut columns[b][(k - b) * count + g], behind);
            }
            *sum = behind.lanes();
        }
        let sums = &mut sums[(B - 1) * count..];
        let mut b = 0;
        let columns = columns.map(|column| {
            b += 1;
            &mut column[(B - b) * count..][..sums.len()]
        });
        for i in (g..sums.len()).step_by(count) {
            let mut behind = Vector::new(simd, sums[i]);
            for b in (0..B).rev() {
                behind = turn.entry(simd, b, &mut columns[b][i], behind);
            }
            sums[i] = behind.lanes();
        }
    }
}

/// The rotations of `B` columns.
struct Turn<S: Simd, const B: usize> {
    c: [Vector<S>; B],
    keep: [Vector<S>; B],
    take: [Vector<S>; B],
}

impl<S: Simd, const B: usize> Turn<S, B> {
    /// Rotates an entry of column b; `behind` is the sum of c_i A_ki over the columns behind it, and the
    /// sum with it is returned.
    #[inline(always)]
    fn entry(&self, simd: S, b: usize, entry: &mut S::f64s, behind: Vector<S>) -> Vector<S> {
        let before = Vector::new(simd, *entry);
        *entry = (self.keep[b] * before - self.take[b] * behind).lanes();
        behind + self.c[b] * before
    }
}
