//! The frame of the lazily revealed estimator: the r x q matrix A with rows F_i A = m_i, the part
//! of every row of V that lies in the span of the factor.
//!
//! At first A is of Bartlett form: lower triangular, A_jj = sqrt(chi2_{n-j}), normals below. Each
//! observation projects all rows off one direction of R^n, with part c in A's columns and kappa on
//! an axis outside them. Plane rotations, from the last column to the first, turn that direction
//! onto the outside axis, which is then left out:
//!
//! [A, 0] -> [A', A c],  A' A'^T = A A^T - (A c)(A c)^T.
//!
//! They keep A lower triangular, so that half of it is enough. Where nothing is left outside,
//! kappa = 0, the rotations leave a column zero, and A loses it.
//!
//! The rotations are kept pending until the next observation, so that one pass over A does all of a
//! step's work while a column is in the cache.
//!
//! Column j holds rows j.., and columns follow one another: entry (k, j) of a lane stands at
//! `(start(j) + k - j) * L + lane`.

mod multiply;
mod reveal;

use crate::random::Stream;
use crate::simd::{Buffer, Cpu};
use multiply::Multiply;
use reveal::Reveal;

/// A, and room for what a step computes.
pub(super) struct Frame<const L: usize> {
    rank: usize,
    columns: usize,
    a: Buffer,
    /// Cosine and sine of each column's pending rotation.
    cosines: Buffer,
    sines: Buffer,
    /// The outside axis while rotations are applied.
    outside: Buffer,
    /// F_p of each lane's chosen point.
    row: Buffer,
    /// m = F_p A.
    along_factor: Buffer,
    /// Normals xi in A's columns, then the new unit direction's part c.
    direction: Buffer,
    /// A m, then the sweep's weights A c.
    weights: Buffer,
    /// A xi.
    spread: Buffer,
}

/// What the estimator knows of the chosen points before their direction is revealed.
pub(super) struct Chosen<'a, const L: usize> {
    /// F_p, entry k of a lane at `k * L + lane`.
    pub(super) row: &'a [f64],
    /// b_p: the component of e_p along m_p.
    pub(super) along: [f64; L],
    /// rest_p: the squared length of the remainder of e_p.
    pub(super) rest: [f64; L],
    /// s, the standard deviation of what the factor does not explain.
    pub(super) s: f64,
}

/// Where column j begins in a triangle of `rank` rows, in entries per lane.
fn start(rank: usize, j: usize) -> usize {
    j * (2 * rank + 1 - j) / 2
}

impl<const L: usize> Frame<L> {
    /// Room for A with `n` degrees of freedom.
    pub(super) fn new(rank: usize, n: u64) -> Self {
        let columns = usize::try_from(n).map_or(rank, |n| n.min(rank));
        let by_row = || Buffer::zeros(rank * L);
        let by_column = || Buffer::zeros(columns * L);
        Self {
            rank,
            columns,
            a: Buffer::zeros(start(rank, columns) * L),
            cosines: by_column(),
            sines: by_column(),
            outside: by_row(),
            row: by_row(),
            along_factor: by_column(),
            direction: by_column(),
            weights: by_row(),
            spread: by_row(),
        }
    }

    /// Draws A for n degrees of freedom.
    pub(super) fn draw(&mut self, n: u64, streams: &mut [Stream; L]) {
        let rank = self.rank;
        self.set_columns(usize::try_from(n).map_or(rank, |n| n.min(rank)));
        for (lane, stream) in streams.iter_mut().enumerate() {
            let a = self.a.as_chunks_mut::<L>().0;
            for j in 0..self.columns {
                let column = &mut a[start(rank, j)..start(rank, j + 1)];
                column[0][lane] = stream.chi_square(n - j as u64).sqrt();
                stream.normals_in_lane(lane, &mut column[1..]);
            }
        }
    }

    /// Fits everything to a number of columns, with no rotation pending.
    fn set_columns(&mut self, columns: usize) {
        self.columns = columns;
        self.a.resize(start(self.rank, columns) * L);
        for by_column in
            [&mut self.cosines, &mut self.sines, &mut self.along_factor, &mut self.direction]
        {
            by_column.resize(columns * L);
        }
        self.cosines.fill(1.0);
        self.sines.fill(0.0);
    }

    /// Columns of A, q.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// A as drawn, column after column.
    pub(super) fn triangle(&self) -> &[f64] {
        &self.a
    }

    /// The weights A c of the last step: alpha_i = F_i . (A c).
    pub(super) fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Reveals the direction of the chosen points' rows, and takes it out of A.
    ///
    /// `outside` is the number of dimensions of R^n that are neither spent nor spanned by A.
    pub(super) fn reveal(
        &mut self,
        cpu: Cpu,
        chosen: &Chosen<'_, L>,
        outside: u64,
        streams: &mut [Stream; L],
    ) {
        self.row.copy_from_slice(chosen.row);
        let mut out = [0.0; L];
        for (lane, stream) in streams.iter_mut().enumerate() {
            stream.normals_in_lane(lane, self.direction.as_chunks_mut::<L>().0);
            out[lane] = stream.chi_square(outside).sqrt();
        }
        cpu.run::<L, _>(Multiply { frame: self });
        cpu.run::<L, _>(Reveal { frame: self, chosen, out });
        if outside == 0 {
            // A column has to be rotated into nothing before it can go.
            let weights = self.weights.to_vec();
            cpu.run::<L, _>(Multiply { frame: self });
            self.weights.copy_from_slice(&weights);
            self.drop_column();
        }
    }

    /// Drops the column that the rotations have left zero; none are pending any more.
    ///
    /// It is the last one with c_j != 0: nearly always the last of all, so that there is nothing to
    /// move. Without noise c can end in zeros; later columns then move up by one, below a zero.
    fn drop_column(&mut self) {
        let last = self.columns - 1;
        for lane in 0..L {
            let zero = (0..=last).rev().find(|&j| self.direction[j * L + lane] != 0.0);
            for j in zero.unwrap_or(last)..last {
                let (to, from) = (start(self.rank, j), start(self.rank, j + 1));
                self.a[to * L + lane] = 0.0;
                for k in 0..self.rank - j - 1 {
                    self.a[(to + 1 + k) * L + lane] = self.a[(from + k) * L + lane];
                }
            }
        }
        self.set_columns(last);
    }
}

#[cfg(test)]
impl<const L: usize> Frame<L> {
    /// |F_i A|^2 of one lane, the pending rotations applied.
    pub(super) fn squared_length(&self, lane: usize, row: &[f64]) -> f64 {
        let mut outside = 0.0;
        let mut total = 0.0;
        for j in (0..self.columns).rev() {
            let column = self.a[start(self.rank, j) * L..].iter().skip(lane).step_by(L);
            let part: f64 = column.zip(&row[j..]).map(|(a, f)| a * f).sum();
            let (cosine, sine) = (self.cosines[j * L + lane], self.sines[j * L + lane]);
            let kept = cosine * part - sine * outside;
            outside = sine * part + cosine * outside;
            total += kept * kept;
        }
        total
    }
}
