//! The true posterior mu_t, k_t at a handful of points, for `L` trials in lockstep.
//!
//! With k = F F^T + w I the observations are y = mu + F theta + (white part and noise), theta ~ N(0, I)
//! and variance s^2 = w + sigma^2 of what theta does not explain. Conditioning on one observation
//! after the other gives directions q_j and innovations z_j:
//!
//! l_j = q_j . F_p,  u = F_p - sum_j l_j q_j,  d = |F_p|^2 - sum_j l_j^2 + s^2,
//! q_t = u/sqrt(d),  z_t = (y_t - mu_{t-1}(x_t))/sqrt(d),
//!
//! so that C_t = I - sum q_j q_j^T is the covariance of theta and sum q_j z_j its mean. A step costs
//! O(r t), whatever M is, and sum z_j^2 is the K of Lemma 1's proof.

use pulp::{Simd, WithSimd};

use crate::columns::{BLOCK, add, products};
use crate::prior::Prior;
use crate::simd::{Buffer, Cpu, Vector, groups, vectors, vectors_mut};

/// The directions and innovations so far. Entry k of a lane's q_j stands at `k * L + lane`.
pub(crate) struct Posterior<const L: usize> {
    cpu: Cpu,
    rank: usize,
    directions: Vec<Buffer>,
    innovations: Vec<f64>,
}

/// One point per lane, with what the weights' posterior says of it.
pub(crate) struct Located<const L: usize> {
    /// The points.
    pub(crate) points: [usize; L],
    /// F_x . E[theta | D_t].
    pub(crate) mean: [f64; L],
    /// F_x C_t F_x^T.
    pub(crate) variance: [f64; L],
    /// F_x, entry k of a lane at `k * L + lane`.
    pub(crate) row: Buffer,
    /// u, as of when the point was located; spent once the point is observed.
    remainder: Buffer,
}

impl<const L: usize> Posterior<L> {
    /// No observations yet.
    pub(crate) fn new(prior: &Prior, cpu: Cpu) -> Self {
        Self { cpu, rank: prior.factor.rank(), directions: Vec::new(), innovations: Vec::new() }
    }

    /// Forgets all observations.
    pub(crate) fn clear(&mut self) {
        self.directions.clear();
        self.innovations.clear();
    }

    /// The posterior at one point per lane.
    pub(crate) fn locate(&self, prior: &Prior, points: [usize; L]) -> Located<L> {
        let mut row = Buffer::zeros(self.rank * L);
        for (lane, &point) in points.iter().enumerate() {
            let row = row.as_chunks_mut::<L>().0;
            for (entry, value) in row.iter_mut().zip(prior.factor.row(point)) {
                entry[lane] = value;
            }
        }
        let mut remainder = Buffer::zeros(self.rank * L);
        remainder.copy_from_slice(&row);
        let (mean, variance) = ([0.0; L], [0.0; L]);
        let mut located = Located { points, mean, variance, row, remainder };
        self.cpu.run::<L, _>(Locate { posterior: self, located: &mut located });
        located
    }

    /// Moves one lane of `located` to another point; it can be advanced, not observed.
    pub(crate) fn relocate(
        &self,
        prior: &Prior,
        located: &mut Located<L>,
        lane: usize,
        point: usize,
    ) {
        let alone = self.locate(prior, [point; L]);
        located.points[lane] = point;
        located.mean[lane] = alone.mean[lane];
        located.variance[lane] = alone.variance[lane];
        let entries = located.row.as_chunks_mut::<L>().0.iter_mut();
        for (entry, from) in entries.zip(alone.row.as_chunks::<L>().0) {
            entry[lane] = from[lane];
        }
    }

    /// Conditions on y at a point located just now; `surprise` is y - mu_{t-1} and `variance`
    /// k_{t-1} + sigma^2, the latter positive.
    pub(crate) fn observe(
        &mut self,
        here: &mut Located<L>,
        surprise: &[f64; L],
        variance: &[f64; L],
    ) {
        let scale = variance.map(|d| 1.0 / d.sqrt());
        let mut direction = std::mem::replace(&mut here.remainder, Buffer::zeros(0));
        for q in direction.as_chunks_mut::<L>().0 {
            *q = std::array::from_fn(|lane| q[lane] * scale[lane]);
        }
        self.directions.push(direction);
        self.innovations.extend((0..L).map(|lane| surprise[lane] * scale[lane]));
    }

    /// Brings a located point's mean and variance up to date with the last observation.
    pub(crate) fn advance(&self, located: &mut Located<L>) {
        self.cpu.run::<L, _>(Advance { posterior: self, located });
    }

    /// q_t of the last observation.
    pub(crate) fn last_direction(&self) -> &[f64] {
        self.directions.last().map_or(&[], |direction| direction)
    }

    /// z_t of the last observation.
    pub(crate) fn last_innovation(&self) -> &[f64] {
        &self.innovations[self.innovations.len() - L..]
    }

    /// Takes observations j..j + B into account at a located point, in lane group g. Returns l_j.
    #[inline(always)]
    fn load<S: Simd, const B: usize>(
        &self,
        simd: S,
        located: &mut Located<L>,
        j: usize,
        g: usize,
    ) -> [Vector<S>; B] {
        let count = groups::<S, L>();
        let row = vectors::<S>(&located.row);
        let loadings = products(simd, self.directions::<S, B>(j), row, (count, g));
        let innovations = vectors::<S>(&self.innovations);
        let mean = &mut vectors_mut::<S>(&mut located.mean)[g];
        let variance = &mut vectors_mut::<S>(&mut located.variance)[g];
        for (b, loading) in loadings.into_iter().enumerate() {
            let z = Vector::new(simd, innovations[(j + b) * count + g]);
            *mean = (Vector::new(simd, *mean) + loading * z).lanes();
            *variance = (Vector::new(simd, *variance) - loading * loading).lanes();
        }
        loadings
    }

    /// q_j..q_{j+B}.
    #[inline(always)]
    fn directions<S: Simd, const B: usize>(&self, j: usize) -> [&[S::f64s]; B] {
        std::array::from_fn(|b| vectors::<S>(&self.directions[j + b]))
    }
}

/// The posterior at a point from the prior on: mean, variance and u, in one pass over the q_j.
struct Locate<'a, const L: usize> {
    posterior: &'a Posterior<L>,
    located: &'a mut Located<L>,
}

impl<const L: usize> WithSimd for Locate<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { posterior, located } = self;
        let (count, t) = (groups::<S, L>(), posterior.directions.len());
        let full = t / BLOCK * BLOCK;
        for g in 0..count {
            let mut variance = Vector::splat(simd, 0.0);
            for i in (g..located.row.len() / S::F64_LANES).step_by(count) {
                let entry = Vector::new(simd, vectors::<S>(&located.row)[i]);
                variance = variance + entry * entry;
            }
            vectors_mut::<S>(&mut located.variance)[g] = variance.lanes();
            for j in (0..full).step_by(BLOCK) {
                posterior.project::<S, BLOCK>(simd, located, j, g);
            }
            for j in full..t {
                posterior.project::<S, 1>(simd, located, j, g);
            }
        }
    }
}

impl<const L: usize> Posterior<L> {
    /// [`Self::load`], and u <- u - sum_j l_j q_j.
    #[inline(always)]
    fn project<S: Simd, const B: usize>(
        &self,
        simd: S,
        located: &mut Located<L>,
        j: usize,
        g: usize,
    ) {
        let minus = self.load::<S, B>(simd, located, j, g).map(|loading| -loading);
        let remainder = vectors_mut::<S>(&mut located.remainder);
        add(simd, remainder, self.directions::<S, B>(j), minus, (groups::<S, L>(), g));
    }
}

/// The last observation alone.
struct Advance<'a, const L: usize> {
    posterior: &'a Posterior<L>,
    located: &'a mut Located<L>,
}

impl<const L: usize> WithSimd for Advance<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let last = self.posterior.directions.len() - 1;
        for g in 0..groups::<S, L>() {
            self.posterior.load::<S, 1>(simd, self.located, last, g);
        }
    }
}
