//! The true posterior mu_t, k_t at a handful of points, for `L` trials in lockstep.
//!
//! With k = F F^T + w I the observations are y = mu + F theta + (white part and noise), theta ~ N(0, I)
//! and variance s^2 = w + sigma^2 of what theta does not explain. Gram-Schmidt on the rows F_{x_t}
//! in the metric of the posterior gives directions q_j and innovations z_j:
//!
//! l_j = q_j . F_p,  u = F_p - sum_j l_j q_j,  d = |F_p|^2 - sum_j l_j^2 + s^2,
//! q_t = u/sqrt(d),  z_t = (y_t - mu_{t-1}(x_t))/sqrt(d),
//!
//! so that C_t = I - sum q_j q_j^T is the covariance of theta and sum q_j z_j its mean. A step costs
//! O(r t), whatever M is, and sum z_j^2 is the K of Lemma 1's proof.

use pulp::{Simd, WithSimd};

use crate::prior::Prior;
use crate::simd::{Cpu, Vector, groups, vectors, vectors_mut};
use crate::sweep::{add_columns, column_products};

/// The directions and innovations so far. Entry (j, k, lane) stands at `(j * rank + k) * L + lane`.
pub struct Posterior<const L: usize> {
    cpu: Cpu,
    rank: usize,
    directions: Vec<f64>,
    innovations: Vec<f64>,
}

/// One point per lane, with what the weights' posterior says of it.
pub struct Located<const L: usize> {
    /// The points.
    pub points: [usize; L],
    /// F_x . E[theta | D_t].
    pub mean: [f64; L],
    /// F_x C_t F_x^T.
    pub variance: [f64; L],
    row: Vec<f64>,
    /// l_j, `j * L + lane`.
    loadings: Vec<f64>,
}

impl<const L: usize> Posterior<L> {
    /// No observations yet.
    pub fn new(prior: &Prior, cpu: Cpu) -> Self {
        Self { cpu, rank: prior.factor.rank(), directions: Vec::new(), innovations: Vec::new() }
    }

    /// The posterior at one point per lane.
    pub fn locate(&self, prior: &Prior, points: [usize; L]) -> Located<L> {
        let mut located = Located {
            points,
            mean: [0.0; L],
            variance: [0.0; L],
            row: vec![0.0; self.rank * L],
            loadings: vec![0.0; self.innovations.len()],
        };
        for (lane, &point) in points.iter().enumerate() {
            for (k, value) in prior.factor.row(point).enumerate() {
                located.row[k * L + lane] = value;
            }
        }
        self.cpu.run::<L, _>(Locate { posterior: self, located: &mut located });
        located
    }

    /// Moves one lane of `located` to another point.
    pub fn relocate(&self, prior: &Prior, located: &mut Located<L>, lane: usize, point: usize) {
        let alone = self.locate(prior, [point; L]);
        located.points[lane] = point;
        located.mean[lane] = alone.mean[lane];
        located.variance[lane] = alone.variance[lane];
        let copy = |to: &mut [f64], from: &[f64]| {
            for (to, from) in to.chunks_exact_mut(L).zip(from.chunks_exact(L)) {
                to[lane] = from[lane];
            }
        };
        copy(&mut located.row, &alone.row);
        copy(&mut located.loadings, &alone.loadings);
    }

    /// Conditions on y at `here`; `surprise` is y - mu_{t-1} and `variance` k_{t-1} + sigma^2, the
    /// latter positive.
    pub fn observe(&mut self, here: &Located<L>, surprise: &[f64; L], variance: &[f64; L]) {
        let scale = variance.map(|d| 1.0 / d.sqrt());
        self.directions.extend_from_slice(&here.row);
        let kernel = Orthogonalise { posterior: self, loadings: &here.loadings, scale };
        kernel.posterior.cpu.run::<L, _>(kernel);
        self.innovations.extend((0..L).map(|lane| surprise[lane] * scale[lane]));
    }

    /// Brings a located point up to date with the last observation.
    pub fn advance(&self, located: &mut Located<L>) {
        located.loadings.extend([0.0; L]);
        self.cpu.run::<L, _>(Advance { posterior: self, located });
    }

    /// q_t of the last observation.
    pub fn last_direction(&self) -> &[f64] {
        &self.directions[self.directions.len() - self.rank * L..]
    }

    /// z_t of the last observation.
    pub fn last_innovation(&self) -> &[f64] {
        &self.innovations[self.innovations.len() - L..]
    }
}

/// l_j for all j, the mean sum l_j z_j and the variance |F_x|^2 - sum l_j^2.
struct Locate<'a, const L: usize> {
    posterior: &'a Posterior<L>,
    located: &'a mut Located<L>,
}

impl<const L: usize> WithSimd for Locate<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { posterior, located } = self;
        let count = groups::<S, L>();
        let row = vectors::<S>(&located.row);
        let zero = Vector::splat(simd, 0.0);
        for g in 0..count {
            let mut variance = zero;
            for entry in row.chunks_exact(count) {
                let entry = Vector::new(simd, entry[g]);
                variance = variance + entry * entry;
            }
            vectors_mut::<S>(&mut located.variance)[g] = variance.lanes();
        }
        posterior.load(simd, located, 0);
    }
}

/// The same for the last observation alone.
struct Advance<'a, const L: usize> {
    posterior: &'a Posterior<L>,
    located: &'a mut Located<L>,
}

impl<const L: usize> WithSimd for Advance<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let last = self.posterior.innovations.len() / L - 1;
        self.posterior.load(simd, self.located, last);
    }
}

impl<const L: usize> Posterior<L> {
    /// Takes the observations from number `from` on into account at a located point.
    #[inline(always)]
    fn load<S: Simd>(&self, simd: S, located: &mut Located<L>, from: usize) {
        let count = groups::<S, L>();
        let directions = vectors::<S>(&self.directions[from * self.rank * L..]);
        let innovations = vectors::<S>(&self.innovations[from * L..]);
        let row = vectors::<S>(&located.row);
        let loadings = vectors_mut::<S>(&mut located.loadings[from * L..]);
        for g in 0..count {
            let mut mean = Vector::new(simd, vectors::<S>(&located.mean)[g]);
            let mut variance = Vector::new(simd, vectors::<S>(&located.variance)[g]);
            column_products(simd, directions, row, (count, g), |j, loading| {
                loadings[j * count + g] = loading.lanes();
                mean = mean + loading * Vector::new(simd, innovations[j * count + g]);
                variance = variance - loading * loading;
            });
            vectors_mut::<S>(&mut located.mean)[g] = mean.lanes();
            vectors_mut::<S>(&mut located.variance)[g] = variance.lanes();
        }
    }
}

/// Turns the last direction, still F_p, into (F_p - sum_j l_j q_j) scale.
struct Orthogonalise<'a, const L: usize> {
    posterior: &'a mut Posterior<L>,
    loadings: &'a [f64],
    scale: [f64; L],
}

impl<const L: usize> WithSimd for Orthogonalise<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let count = groups::<S, L>();
        let size = self.posterior.rank * L;
        if size == 0 {
            return;
        }
        let split = self.posterior.directions.len() - size;
        let (earlier, last) = self.posterior.directions.split_at_mut(split);
        let last = vectors_mut::<S>(last);
        let minus: Vec<f64> = self.loadings.iter().map(|loading| -loading).collect();
        for g in 0..count {
            add_columns(simd, last, vectors::<S>(earlier), vectors::<S>(&minus), (count, g));
        }
        let scale = vectors::<S>(&self.scale);
        for (i, u) in last.iter_mut().enumerate() {
            *u = (Vector::new(simd, *u) * Vector::new(simd, scale[i % count])).lanes();
        }
    }
}
