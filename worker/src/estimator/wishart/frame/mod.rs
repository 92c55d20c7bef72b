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
//! With l_j = |(c_j.., kappa)|, the outside axis holds sum_{i>j} c_i A_ki / l_{j+1} when column j is
//! rotated with it, so that A'_kj = l_{j+1}/l_j A_kj - c_j/(l_j l_{j+1}) sum_{i>j} c_i A_ki, and the last
//! of the sums is A c. A stays lower triangular, so that half of it is enough. Where nothing is left
//! outside, kappa = 0, the rotations leave a column zero, and A loses it.
//!
//! Column j holds rows j.., and columns follow one another: entry (k, j) of a lane stands at
//! `(start(j) + k - j) * L + lane`.

mod passes;
mod reveal;

use crate::random::Stream;
use crate::simd::{Buffer, Cpu};
use passes::{Along, Rotate};
use reveal::Reveal;

/// A, and room for what a step computes.
pub(super) struct Frame<const L: usize> {
    rank: usize,
    columns: usize,
    a: Buffer,
    /// m = F_p A.
    along_factor: Buffer,
    /// Normals xi in A's columns, then the new unit direction's part c.
    direction: Buffer,
    /// l_{j+1}/l_j and c_j/(l_j l_{j+1}): what a column's rotation keeps of it, and takes off it.
    keep: Buffer,
    take: Buffer,
    /// The sweep's weights A c.
    weights: Buffer,
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
            along_factor: by_column(),
            direction: by_column(),
            keep: by_column(),
            take: by_column(),
            weights: by_row(),
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

    /// Fits everything to a number of columns.
    fn set_columns(&mut self, columns: usize) {
        self.columns = columns;
        self.a.resize(start(self.rank, columns) * L);
        for by_column in
            [&mut self.along_factor, &mut self.direction, &mut self.keep, &mut self.take]
        {
            by_column.resize(columns * L);
        }
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
        let mut out = [0.0; L];
        for (lane, stream) in streams.iter_mut().enumerate() {
            stream.normals_in_lane(lane, self.direction.as_chunks_mut::<L>().0);
            out[lane] = stream.chi_square(outside).sqrt();
        }
        cpu.run::<L, _>(Along { frame: self, row: chosen.row });
        cpu.run::<L, _>(Reveal { frame: self, chosen, out });
        cpu.run::<L, _>(Rotate { frame: self });
        if outside == 0 {
            self.drop_column();
        }
    }

    /// Drops the column that the rotations have left zero.
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
    /// |F_i A|^2 of one lane.
    pub(super) fn squared_length(&self, lane: usize, row: &[f64]) -> f64 {
        let part = |j: usize| -> f64 {
            let column = self.a[start(self.rank, j) * L..].iter().skip(lane).step_by(L);
            column.zip(&row[j..]).map(|(a, f)| a * f).sum()
        };
        (0..self.columns).map(|j| part(j) * part(j)).sum()
    }
}
