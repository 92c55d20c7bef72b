//! The frame of the lazily revealed estimator: the r x q matrix A with rows F_i A = m_i, the part
//! of every row of V that lies in the span of the factor.
//!
//! At first A is of Bartlett form: lower triangular, A_jj = sqrt(chi2_{n-j}), normals below. Each
//! observation projects all rows off one direction of R^n. With that direction split into its part
//! c in A's columns and kappa > 0 outside, a reflection takes the outside part away again:
//! A <- A - (A c) c^T / (1 + kappa). Where nothing is left outside, A loses a column instead.
//!
//! Stored by columns: entry (k, j) of a lane at `(j * rank + k) * L + lane`.

use pulp::{Simd, WithSimd};
use theory::Factor;

use crate::random::Stream;
use crate::simd::{Cpu, Vector, groups, vectors, vectors_mut};
use crate::sweep::{add_columns, column_products};

/// A, and room for what a step computes.
pub(super) struct Frame<const L: usize> {
    rank: usize,
    columns: usize,
    a: Vec<f64>,
    /// F_p of each lane's chosen point.
    row: Vec<f64>,
    /// m = F_p A.
    along_factor: Vec<f64>,
    /// Normals xi in A's columns, then the new unit direction's part c.
    direction: Vec<f64>,
    /// A c: the weights of the sweep.
    weights: Vec<f64>,
}

/// What the estimator knows of the chosen points before their direction is revealed.
pub(super) struct Chosen<'a, const L: usize> {
    /// The points.
    pub(super) points: &'a [usize; L],
    /// b_p: the component of e_p along m_p.
    pub(super) along: [f64; L],
    /// rest_p: the squared length of the remainder of e_p.
    pub(super) rest: [f64; L],
    /// s, the standard deviation of what the factor does not explain.
    pub(super) s: f64,
}

impl<const L: usize> Frame<L> {
    /// Draws A for n degrees of freedom.
    pub(super) fn draw(rank: usize, n: u64, streams: &mut [Stream; L]) -> Self {
        let columns = usize::try_from(n).map_or(rank, |n| n.min(rank));
        let mut a = vec![0.0; rank * columns * L];
        let mut below = vec![0.0; rank];
        for (lane, stream) in streams.iter_mut().enumerate() {
            for j in 0..columns {
                a[(j * rank + j) * L + lane] = stream.chi_square(n - j as u64).sqrt();
                let below = &mut below[j + 1..];
                stream.normals(below);
                for (k, &value) in (j + 1..).zip(below.iter()) {
                    a[(j * rank + k) * L + lane] = value;
                }
            }
        }
        Self {
            rank,
            columns,
            a,
            row: vec![0.0; rank * L],
            along_factor: vec![0.0; columns * L],
            direction: vec![0.0; columns * L],
            weights: vec![0.0; rank * L],
        }
    }

    /// Columns of A, q.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// A as drawn, by columns; entries above the diagonal are zero.
    pub(super) fn triangle(&self) -> &[f64] {
        &self.a
    }

    /// The weights A c of the last step: alpha_i = F_i . (A c).
    pub(super) fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// |F_i A|^2 of one lane, for checking the invariant.
    #[cfg(test)]
    pub(super) fn squared_length(&self, lane: usize, row: &[f64]) -> f64 {
        let part = |j: usize| {
            row.iter().enumerate().map(|(k, f)| f * self.a[(j * self.rank + k) * L + lane]).sum::<f64>()
        };
        (0..self.columns).map(|j| part(j) * part(j)).sum()
    }

    /// Reveals the direction of the chosen points' rows, and takes it out of A.
    ///
    /// `outside` is the number of dimensions of R^n that are neither spent nor spanned by A.
    pub(super) fn reveal(
        &mut self,
        cpu: Cpu,
        factor: &Factor,
        chosen: &Chosen<'_, L>,
        outside: u64,
        streams: &mut [Stream; L],
    ) {
        let mut out = [0.0; L];
        let mut draws = vec![0.0; self.columns];
        for (lane, stream) in streams.iter_mut().enumerate() {
            for (k, value) in factor.row(chosen.points[lane]).enumerate() {
                self.row[k * L + lane] = value;
            }
            stream.normals(&mut draws);
            for (j, &value) in draws.iter().enumerate() {
                self.direction[j * L + lane] = value;
            }
            out[lane] = stream.chi_square(outside).sqrt();
        }
        let kappa = cpu.run::<L, _>(Reveal { frame: self, chosen, out });
        if outside > 0 {
            cpu.run::<L, _>(Reflect { frame: self, kappa });
        } else {
            cpu.run::<L, _>(DropColumn { frame: self });
            self.columns -= 1;
            self.a.truncate(self.rank * self.columns * L);
            self.direction.truncate(self.columns * L);
            self.along_factor.truncate(self.columns * L);
        }
    }
}

/// Step 1 of the sampler: the new unit direction (c, kappa) of each lane, and A c.
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
    type Output = [f64; L];

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> [f64; L] {
        let Self { frame, chosen, out } = self;
        let mut kappa = [0.0; L];
        let at = |slice: &[S::f64s], i: usize| Vector::new(simd, slice[i]);
        let zero = Vector::splat(simd, 0.0);
        let one = Vector::splat(simd, 1.0);
        let s = Vector::splat(simd, chosen.s);
        let (rank, columns, count) = (frame.rank, frame.columns, groups::<S, L>());
        let a = vectors::<S>(&frame.a);
        let row = vectors::<S>(&frame.row);
        let m = vectors_mut::<S>(&mut frame.along_factor);
        let c = vectors_mut::<S>(&mut frame.direction);
        let weights = vectors_mut::<S>(&mut frame.weights);
        let inverse = |x: Vector<S>| zero.where_greater(x, zero, one / x, zero);
        for g in 0..count {
            let (mut length, mut overlap) = (zero, zero);
            column_products(simd, a, row, (count, g), |j, product| {
                m[j * count + g] = product.lanes();
                length = length + product * product;
                overlap = overlap + product * at(c, j * count + g);
            });
            // xi loses its part along u; its length with `out` scales the remainder of e_p.
            let shift = overlap * inverse(length);
            let out = at(vectors::<S>(&out), g);
            let mut size = out * out;
            for j in 0..columns {
                let xi = at(c, j * count + g) - shift * at(m, j * count + g);
                c[j * count + g] = xi.lanes();
                size = size + xi * xi;
            }
            let rest = at(vectors::<S>(&chosen.rest), g).at_least(zero);
            let reach = s * (rest * inverse(size)).sqrt();
            let along = one + s * at(vectors::<S>(&chosen.along), g) * inverse(length).sqrt();
            let last = reach * out;
            let mut norm = last * last;
            for j in 0..columns {
                let v = along * at(m, j * count + g) + reach * at(c, j * count + g);
                c[j * count + g] = v.lanes();
                norm = norm + v * v;
            }
            let scale = inverse(norm).sqrt();
            vectors_mut::<S>(&mut kappa)[g] = (last * scale).lanes();
            for k in 0..rank {
                weights[k * count + g] = zero.lanes();
            }
            for j in 0..columns {
                c[j * count + g] = (at(c, j * count + g) * scale).lanes();
            }
            add_columns(simd, weights, a, c, (count, g));
        }
        kappa
    }
}

/// A <- A - (A c) c^T / (1 + kappa).
struct Reflect<'a, const L: usize> {
    frame: &'a mut Frame<L>,
    kappa: [f64; L],
}

impl<const L: usize> WithSimd for Reflect<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { frame, kappa } = self;
        let at = |slice: &[S::f64s], i: usize| Vector::new(simd, slice[i]);
        let (rank, count) = (frame.rank, groups::<S, L>());
        let a = vectors_mut::<S>(&mut frame.a);
        let c = vectors::<S>(&frame.direction);
        let weights = vectors::<S>(&frame.weights);
        for (j, column) in a.chunks_exact_mut(rank * count).enumerate() {
            for g in 0..count {
                let kappa = at(vectors::<S>(&kappa), g);
                let factor = at(c, j * count + g) / (Vector::splat(simd, 1.0) + kappa);
                for (entry, weight) in column.chunks_exact_mut(count).zip(weights.chunks_exact(count)) {
                    entry[g] = (at(entry, g) - at(weight, g) * factor).lanes();
                }
            }
        }
    }
}

/// Reflects c onto the last axis, which then is the direction taken out, and leaves it zero-sized.
///
/// With e = -sign(c_q) e_q and h = (c - e)/|c - e|: A <- A - 2 (A h) h^T, last column dropped.
struct DropColumn<'a, const L: usize> {
    frame: &'a mut Frame<L>,
}

impl<const L: usize> WithSimd for DropColumn<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let frame = self.frame;
        let at = |slice: &[S::f64s], i: usize| Vector::new(simd, slice[i]);
        let zero = Vector::splat(simd, 0.0);
        let one = Vector::splat(simd, 1.0);
        let (rank, count, last) = (frame.rank, groups::<S, L>(), frame.columns - 1);
        let (kept, dropped) = frame.a.split_at_mut(last * rank * L);
        let kept = vectors_mut::<S>(kept);
        let dropped = vectors::<S>(dropped);
        let c = vectors::<S>(&frame.direction);
        let weights = vectors::<S>(&frame.weights);
        for g in 0..count {
            let c_last = at(c, last * count + g);
            let sign = zero.where_greater(c_last, zero, one, -one);
            // |c - e|^2 = 2 (1 + |c_q|) for unit c; h's own scale is folded into 2/|c - e|^2.
            let scale = one / (one + sign * c_last);
            for (j, column) in kept.chunks_exact_mut(rank * count).enumerate() {
                let factor = scale * at(c, j * count + g);
                for k in 0..rank {
                    let i = k * count + g;
                    let reflected = at(weights, i) + sign * at(dropped, i);
                    column[i] = (at(column, i) - reflected * factor).lanes();
                }
            }
        }
    }
}
