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
//! Columns stand side by side in bands of [`BAND`]: the band of columns j..j + BAND holds rows j.., row
//! by row, with zeros above the diagonal and in columns that A does not have, which stay zeros. So a
//! pass over A reads its memory from one end to the other.

mod lengths;
mod passes;
mod reveal;

use theory::Factor;

use crate::random::Stream;
use crate::simd::{Buffer, Cpu};
use lengths::Lengths;
use passes::{Along, Rotate};
use reveal::Reveal;

/// Columns that stand side by side and are taken together, so that their sums do not wait for one
/// another.
pub(super) const BAND: usize = 4;

/// A, and room for what a step computes. What goes by columns has room for whole bands.
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

/// Where the band of column j begins in a triangle of `rank` rows, in entries per lane; `j` is a multiple
/// of [`BAND`].
fn start(rank: usize, j: usize) -> usize {
    j * rank - j * (j - BAND.min(j)) / 2
}

/// Where entry (k, j) stands, k >= j, in entries per lane.
fn place(rank: usize, k: usize, j: usize) -> usize {
    let first = j / BAND * BAND;
    start(rank, first) + (k - first) * BAND + j - first
}

impl<const L: usize> Frame<L> {
    /// Room for A with `n` degrees of freedom.
    pub(super) fn new(rank: usize, n: u64) -> Self {
        let columns = usize::try_from(n).map_or(rank, |n| n.min(rank));
        let whole_bands = columns.next_multiple_of(BAND);
        let by_column = || Buffer::zeros(whole_bands * L);
        Self {
            rank,
            columns,
            a: Buffer::zeros(start(rank, whole_bands) * L),
            along_factor: by_column(),
            direction: by_column(),
            keep: by_column(),
            take: by_column(),
            weights: Buffer::zeros(rank * L),
        }
    }

    /// Draws A for n degrees of freedom.
    pub(super) fn draw(&mut self, n: u64, streams: &mut [Stream; L]) {
        let rank = self.rank;
        self.columns = usize::try_from(n).map_or(rank, |n| n.min(rank));
        self.a.fill(0.0);
        let a = self.a.as_chunks_mut::<L>().0;
        for j in 0..self.columns {
            let column = &mut self.weights.as_chunks_mut::<L>().0[..rank - j];
            for (lane, stream) in streams.iter_mut().enumerate() {
                column[0][lane] = stream.chi_square(n - j as u64).sqrt();
                stream.normals_in_lane(lane, &mut column[1..]);
            }
            let below = a[place(rank, j, j)..].iter_mut().step_by(BAND);
            below.zip(column).for_each(|(entry, drawn)| *entry = *drawn);
        }
    }

    /// Columns of A, q.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// |F_i A|^2 for every row of the factor.
    pub(super) fn squared_lengths(&self, cpu: Cpu, factor: &Factor, out: &mut [f64]) {
        cpu.run::<L, _>(Lengths { frame: self, factor, out });
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
            let xi = &mut self.direction.as_chunks_mut::<L>().0[..self.columns];
            stream.normals_in_lane(lane, xi);
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
        let (rank, last) = (self.rank, self.columns - 1);
        for lane in 0..L {
            let zero = (0..=last).rev().find(|&j| self.direction[j * L + lane] != 0.0);
            for j in zero.unwrap_or(last)..last {
                self.a[place(rank, j, j) * L + lane] = 0.0;
                for k in j + 1..rank {
                    let after = self.a[place(rank, k, j + 1) * L + lane];
                    self.a[place(rank, k, j) * L + lane] = after;
                }
            }
            (last..rank).for_each(|k| self.a[place(rank, k, last) * L + lane] = 0.0);
            self.along_factor[last * L + lane] = 0.0;
            self.direction[last * L + lane] = 0.0;
        }
        self.columns = last;
    }
}

#[cfg(test)]
impl<const L: usize> Frame<L> {
    /// |F_i A|^2 of one lane.
    pub(super) fn squared_length(&self, lane: usize, row: &[f64]) -> f64 {
        let entry = |k: usize, j: usize| self.a[place(self.rank, k, j) * L + lane];
        let part = |j: usize| -> f64 { (j..self.rank).map(|k| entry(k, j) * row[k]).sum() };
        (0..self.columns).map(|j| part(j) * part(j)).sum()
    }
}
