//! Coordinates of the rows' remainders on the axes that the algorithm's choices define.
//!
//! The remainder of e_i has squared length rest_i and a uniform direction, so its next B coordinates
//! are x_j = sqrt(rest_i) h_j / sqrt(sum h^2 + chi2_{d-B}), h normal, with d dimensions left; only d
//! coordinates exist where d <= B. They are drawn in blocks of B = [`BLOCK`] steps, so that a trial
//! does not depend on how many steps follow.

use pulp::{Simd, WithSimd};

use crate::random::Stream;
use crate::simd::{Buffer, Cpu, Vector, groups, vectors, vectors_mut};

/// Steps whose coordinates are drawn together.
pub(super) const BLOCK: usize = 16;
/// Rows whose coordinates are drawn together; part of the order of the draws.
pub(super) const TILE: usize = 16;

/// The coordinates of the current block. Entry (i, lane) of an array stands at `i * L + lane`.
pub(super) struct Axes {
    /// rest_i at the beginning of the block.
    pub(super) rest: Buffer,
    /// x_{i,t}, step by step.
    coordinates: Buffer,
}

/// How many dimensions the remainders have left.
pub(super) struct Dimensions<F: Fn(usize) -> bool> {
    /// In most rows.
    pub(super) left: u64,
    /// Whether a row has one more.
    pub(super) one_more: F,
}

impl Axes {
    /// Room for `entries` = rows times lanes.
    pub(super) fn new(entries: usize) -> Self {
        Self { rest: Buffer::zeros(entries), coordinates: Buffer::zeros(entries * BLOCK) }
    }

    /// The coordinates of all rows at step t of the current block.
    pub(super) fn at(&self, t: usize) -> &[f64] {
        let size = self.rest.len();
        &self.coordinates[t % BLOCK * size..][..size]
    }

    /// Room of the size of the rows, before anything is drawn.
    pub(super) fn scratch(&mut self) -> &mut [f64] {
        let size = self.rest.len();
        &mut self.coordinates[..size]
    }

    /// rest_i of one entry after t steps.
    pub(super) fn rest_after(&self, t: usize, entry: usize) -> f64 {
        let spent = self.coordinates.iter().skip(entry).step_by(self.rest.len()).take(t % BLOCK);
        spent.fold(self.rest[entry], |rest, x| rest - x * x)
    }

    /// Draws the block that begins with step t, for the first `rows` rows.
    pub(super) fn draw<const L: usize>(
        &mut self,
        cpu: Cpu,
        t: usize,
        rows: usize,
        dimensions: &Dimensions<impl Fn(usize) -> bool>,
        streams: &mut [Stream; L],
    ) {
        let left = dimensions.left;
        if t > 0 {
            let (rest, axes) = (&mut *self.rest, &*self.coordinates);
            cpu.run::<L, _>(SpendAxes { rest, axes });
        }
        let mut tile = Tile::<L>::new();
        for start in (0..rows).step_by(TILE) {
            let count = TILE.min(rows - start);
            for (lane, stream) in streams.iter_mut().enumerate() {
                stream.normals_in_lane(lane, &mut tile.normals[..count * BLOCK]);
                let beyond = left.saturating_sub(BLOCK as u64);
                stream.chi_squares_in_lane(beyond, lane, &mut tile.tails[..count]);
            }
            tile.usable = [left.min(BLOCK as u64) as usize; TILE];
            for row in (0..count).filter(|row| (dimensions.one_more)(start + row)) {
                tile.widen(row, left, streams);
            }
            let (rest, axes) = (&*self.rest, &mut *self.coordinates);
            cpu.run::<L, _>(PlaceAxes { tile: &tile, start, count, rest, axes });
        }
    }
}

/// Draws for [`TILE`] rows, on cache lines of their own.
#[repr(align(64))]
struct Tile<const L: usize> {
    /// h, row by row.
    normals: [[f64; L]; TILE * BLOCK],
    /// chi2_{d-B} of each row.
    tails: [[f64; L]; TILE],
    /// Coordinates that exist in each row.
    usable: [usize; TILE],
}

impl<const L: usize> Tile<L> {
    fn new() -> Self {
        Self { normals: [[0.0; L]; TILE * BLOCK], tails: [[0.0; L]; TILE], usable: [0; TILE] }
    }

    /// Gives a row one dimension more than the `left` of the others.
    fn widen(&mut self, row: usize, left: u64, streams: &mut [Stream; L]) {
        self.usable[row] = (left + 1).min(BLOCK as u64) as usize;
        if left >= BLOCK as u64 {
            for (lane, stream) in streams.iter_mut().enumerate() {
                let extra = stream.normal();
                self.tails[row][lane] += extra * extra;
            }
        }
    }
}

/// Scales a tile's normals to coordinates and puts them in their places.
struct PlaceAxes<'a, const L: usize> {
    tile: &'a Tile<L>,
    start: usize,
    count: usize,
    rest: &'a [f64],
    axes: &'a mut [f64],
}

impl<const L: usize> WithSimd for PlaceAxes<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let groups = groups::<S, L>();
        let stride = vectors::<S>(self.rest).len();
        let rest = vectors::<S>(self.rest);
        let axes = vectors_mut::<S>(self.axes);
        let zero = Vector::splat(simd, 0.0);
        let normals = self.tile.normals.chunks_exact(BLOCK);
        for (row, (h, tail)) in normals.zip(&self.tile.tails).take(self.count).enumerate() {
            let usable = self.tile.usable[row];
            for g in 0..groups {
                let at = (self.start + row) * groups + g;
                let h = |j: usize| Vector::new(simd, vectors::<S>(&h[j])[g]);
                let mut total = Vector::new(simd, vectors::<S>(tail)[g]);
                for j in 0..usable {
                    total = total + h(j) * h(j);
                }
                let scale = (Vector::new(simd, rest[at]) / total).sqrt();
                for j in 0..BLOCK {
                    let x = if j < usable { scale * h(j) } else { zero };
                    axes[j * stride + at] = x.lanes();
                }
            }
        }
    }
}

/// Takes a finished block's coordinates off the remainders: rest <- rest - sum x^2, not below zero.
struct SpendAxes<'a> {
    rest: &'a mut [f64],
    axes: &'a [f64],
}

impl WithSimd for SpendAxes<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let rest = vectors_mut::<S>(self.rest);
        for axis in vectors::<S>(self.axes).chunks_exact(rest.len()) {
            for (rest, &x) in rest.iter_mut().zip(axis) {
                let x = Vector::new(simd, x);
                let left = Vector::new(simd, *rest) - x * x;
                *rest = left.at_least(Vector::splat(simd, 0.0)).lanes();
            }
        }
    }
}
