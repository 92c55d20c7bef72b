//! Triangular matrices in blocks of eight by eight, and the one kernel that works on them.
//!
//! Matrices are kept in block columns of [`PANEL`] columns, row by row within each, so that every
//! kernel reads memory in order. Block column J of an upper triangle has the 8 (J + 1) rows down
//! to its diagonal block; where it stands does not depend on the size, so a matrix can grow. Block
//! column J of a lower triangle has the rows from 8 J on. Sizes are padded to whole blocks by rows
//! and columns of the identity.
//!
//! All work is in one kernel, tile = sum_k A_kI^T B_kJ. Lanes are columns, and every sum runs over
//! k in order, so that each instruction set gives the same bits.

use pulp::Simd;
use theory::PANEL;

use crate::simd::{Vector, groups, vectors, vectors_mut};
use crate::sweep::add_products;

/// Doubles in a block.
pub(super) const BLOCK: usize = PANEL * PANEL;

/// Where block column J of an upper triangle begins.
#[inline(always)]
pub(super) fn upper(j: usize) -> usize {
    BLOCK * (j * (j + 1) / 2)
}

/// Where block column J of a lower triangle of `blocks` block columns begins.
#[inline(always)]
pub(super) fn lower(blocks: usize, j: usize) -> usize {
    BLOCK * (j * blocks - j * j.saturating_sub(1) / 2)
}

/// Where entry (i, j), i <= j, of an upper triangle stands.
pub(super) fn entry(i: usize, j: usize) -> usize {
    upper(j / PANEL) + i * PANEL + j % PANEL
}

/// sum_k A_kI^T B_kJ for lane group g of the columns of B.
#[inline(always)]
pub(super) fn product<S: Simd>(simd: S, a: &[f64], b: &[f64], g: usize) -> [Vector<S>; PANEL] {
    let zeros = [Vector::splat(simd, 0.0); PANEL];
    let count = groups::<S, PANEL>();
    add_products(simd, a.as_chunks().0, vectors::<S>(b), (count, g), zeros)
}

/// sum_k w_k B_kJ for lane group g, in four sums by k mod 4. Rows come in multiples of eight.
#[inline(always)]
pub(super) fn weighted<S: Simd>(simd: S, weights: &[f64], b: &[f64], g: usize) -> Vector<S> {
    let count = groups::<S, PANEL>();
    let mut sums = [Vector::splat(simd, 0.0); 4];
    for (rows, weights) in vectors::<S>(b).chunks_exact(4 * count).zip(weights.as_chunks::<4>().0) {
        for q in 0..4 {
            let row = Vector::new(simd, rows[q * count + g]);
            sums[q] = sums[q] + Vector::splat(simd, weights[q]) * row;
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

/// A diagonal block of U and the reciprocals of its diagonal.
#[derive(Clone, Copy)]
pub(super) struct Diagonal<'a> {
    rows: &'a [[f64; PANEL]; PANEL],
    reciprocals: &'a [f64; PANEL],
}

impl<'a> Diagonal<'a> {
    /// Block i of a factor.
    #[inline(always)]
    pub(super) fn of(factor: &'a [f64], reciprocals: &'a [f64], i: usize) -> Self {
        let begin = upper(i) + BLOCK * i;
        Self::new(&factor[begin..begin + BLOCK], &reciprocals[PANEL * i..PANEL * (i + 1)])
    }

    #[inline(always)]
    pub(super) fn new(block: &'a [f64], reciprocals: &'a [f64]) -> Self {
        let rows = block.as_chunks().0.first_chunk().expect("a block has eight rows");
        Self { rows, reciprocals: reciprocals.first_chunk().expect("one per row") }
    }

    /// U_II^-T times a tile.
    #[inline(always)]
    fn solve<S: Simd>(self, simd: S, mut tile: [Vector<S>; PANEL]) -> [Vector<S>; PANEL] {
        for q in 0..PANEL {
            let row = tile[q] * Vector::splat(simd, self.reciprocals[q]);
            tile[q] = row;
            for r in 0..PANEL {
                if r > q {
                    tile[r] = tile[r] - Vector::splat(simd, self.rows[q][r]) * row;
                }
            }
        }
        tile
    }

    /// U_II^-T times a vector.
    #[inline(always)]
    pub(super) fn solve_vector(self, values: &mut [f64]) {
        for q in 0..PANEL {
            values[q] *= self.reciprocals[q];
            for r in q + 1..PANEL {
                values[r] -= self.rows[q][r] * values[q];
            }
        }
    }
}

/// tile <- U_II^-T (tile - sum_k A_kI^T B_kJ).
#[inline(always)]
pub(super) fn update<S: Simd>(simd: S, by: Diagonal, a: &[f64], b: &[f64], tile: &mut [f64]) {
    let count = groups::<S, PANEL>();
    for g in 0..count {
        let mut values = product(simd, a, b, g);
        let tile = vectors_mut::<S>(tile);
        for r in 0..PANEL {
            values[r] = Vector::new(simd, tile[r * count + g]) - values[r];
        }
        let values = by.solve(simd, values);
        for r in 0..PANEL {
            tile[r * count + g] = values[r].lanes();
        }
    }
}
