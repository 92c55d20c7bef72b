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

use pulp::{Simd, WithSimd};

use crate::columns::BLOCK;
use crate::random::Stream;
use crate::simd::{Buffer, Cpu, Vector, groups, vectors, vectors_mut};

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

/// One pass over A: applies the pending rotations, then m = F_p A, A m and A xi.
struct Multiply<'a, const L: usize> {
    frame: &'a mut Frame<L>,
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

/// Step 1 of the sampler: the new unit direction (c, kappa) of each lane, A c, and the rotations that
/// turn the direction onto the outside axis.
///
/// With m = F_p A, u = m/|m| and xi normal in A's columns but orthogonal to u,
/// v = m + s (b u + sqrt(rest) xi/|(xi, out)|), last = s sqrt(rest) out/|(xi, out)| and
/// (c, kappa) = (v, last)/|(v, last)|. A point with m = 0 has no u.
struct Reveal<'a, const L: usize> {
    frame: &'a mut Frame<L>,
    chosen: &'a Chosen<'a, L>,
    out: [f64; L],
}

impl<const L: usize> WithSimd for Reveal<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { frame, chosen, out } = self;
        let at = |slice: &[S::f64s], i: usize| Vector::new(simd, slice[i]);
        let (zero, one) = (Vector::splat(simd, 0.0), Vector::splat(simd, 1.0));
        let inverse = |x: Vector<S>| zero.where_greater(x, zero, one / x, zero);
        let s = Vector::splat(simd, chosen.s);
        let count = groups::<S, L>();
        let m = vectors::<S>(&frame.along_factor);
        let c = vectors_mut::<S>(&mut frame.direction);
        let weights = vectors_mut::<S>(&mut frame.weights);
        let spread = vectors::<S>(&frame.spread);
        let cosines = vectors_mut::<S>(&mut frame.cosines);
        let sines = vectors_mut::<S>(&mut frame.sines);
        for g in 0..count {
            let (mut length, mut overlap) = (zero, zero);
            for i in (g..m.len()).step_by(count) {
                length = length + at(m, i) * at(m, i);
                overlap = overlap + at(m, i) * at(c, i);
            }
            // xi loses its part along u; its length with `out` scales the remainder of e_p.
            let shift = overlap * inverse(length);
            let out = at(vectors::<S>(&out), g);
            let mut size = out * out;
            for i in (g..m.len()).step_by(count) {
                let xi = at(c, i) - shift * at(m, i);
                c[i] = xi.lanes();
                size = size + xi * xi;
            }
            let rest = at(vectors::<S>(&chosen.rest), g).at_least(zero);
            let reach = s * (rest * inverse(size)).sqrt();
            let along = one + s * at(vectors::<S>(&chosen.along), g) * inverse(length).sqrt();
            let last = reach * out;
            let mut norm = last * last;
            for i in (g..m.len()).step_by(count) {
                let v = along * at(m, i) + reach * at(c, i);
                c[i] = v.lanes();
                norm = norm + v * v;
            }
            let scale = inverse(norm).sqrt();
            // Last column first: |(c_j.., kappa)| grows from kappa to 1.
            let kappa = last * scale;
            let (mut squared, mut length) = (kappa * kappa, kappa);
            for i in (g..m.len()).step_by(count).rev() {
                let unit = at(c, i) * scale;
                c[i] = unit.lanes();
                squared = squared + unit * unit;
                let longer = squared.sqrt();
                let shrink = inverse(longer);
                cosines[i] = zero.where_greater(longer, zero, length * shrink, one).lanes();
                sines[i] = (unit * shrink).lanes();
                length = longer;
            }
            // A c = scale (along A m + reach (A xi - shift A m)).
            let (of_m, of_xi) = (scale * (along - reach * shift), scale * reach);
            for i in (g..weights.len()).step_by(count) {
                weights[i] = (of_m * at(weights, i) + of_xi * at(spread, i)).lanes();
            }
        }
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
