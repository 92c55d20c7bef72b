//! Loadings from the Cholesky root of F F^T + s^2 I at the observed points, by forward substitution.

use pulp::{Simd, WithSimd};

use super::{Gram, Located, Posterior};
use crate::columns::{BLOCK, all_products, products};
use crate::simd::{Vector, groups, vectors, vectors_mut};

impl<const L: usize> Posterior<'_, L> {
    pub(super) fn locate_by_root(&self, gram: &Gram, located: &mut [&mut Located<L>]) {
        for at in located.iter_mut() {
            let products = at.points.map(|point| gram.row(point));
            at.variance = std::array::from_fn(|lane| products[lane][at.points[lane]]);
            for (entry, seen) in at.vector.as_chunks_mut::<L>().0.iter_mut().zip(&self.points) {
                *entry = std::array::from_fn(|lane| products[lane][seen[lane]]);
            }
        }
        for located in located.chunks_mut(BLOCK) {
            self.cpu.run::<L, _>(Solve { posterior: self, located });
        }
    }

    pub(super) fn advance_by_root(&self, gram: &Gram, located: &mut [&mut Located<L>]) {
        let last = self.seen() - 1;
        let seen = self.points[last];
        for at in located.iter_mut() {
            let entry = &mut at.vector.as_chunks_mut::<L>().0[last];
            for (lane, &point) in at.points.iter().enumerate() {
                entry[lane] = gram.row(point)[seen[lane]];
            }
        }
        self.cpu.run::<L, _>(Extend { posterior: self, located });
    }

    /// l_{j+b} of some points for b in 0..B, in lane group g, from those before j; their vectors hold
    /// F_x . F_{x_j} from j on.
    #[inline(always)]
    fn substitute<S: Simd, const B: usize, const P: usize>(
        &self,
        simd: S,
        located: &mut [&mut Located<L>; P],
        j: usize,
        g: usize,
    ) {
        let count = groups::<S, L>();
        let rows: [&[S::f64s]; B] = std::array::from_fn(|b| vectors::<S>(&self.vectors[j + b]));
        let done = located.each_ref().map(|at| &vectors::<S>(&at.vector)[..j * count]);
        let sums = all_products(simd, rows, done, (count, g));
        for (at, sums) in located.iter_mut().zip(sums) {
            let entries = vectors_mut::<S>(&mut at.vector);
            let mut loadings = [Vector::splat(simd, 0.0); B];
            for b in 0..B {
                let mut sum = sums[b];
                for c in 0..b {
                    sum = sum + Vector::new(simd, rows[b][(j + c) * count + g]) * loadings[c];
                }
                let i = (j + b) * count + g;
                let scale = Vector::new(simd, vectors::<S>(&self.scales)[i]);
                loadings[b] = (Vector::new(simd, entries[i]) - sum) * scale;
                entries[i] = loadings[b].lanes();
            }
        }
    }

    /// The last loading of some points, whose vectors hold F_x . F_{x_t} there.
    #[inline(always)]
    fn extend<S: Simd, const P: usize>(&self, simd: S, located: &mut [&mut Located<L>; P]) {
        let (count, last) = (groups::<S, L>(), self.seen() - 1);
        let row = vectors::<S>(&self.vectors[last]);
        for g in 0..count {
            let i = last * count + g;
            let scale = Vector::new(simd, vectors::<S>(&self.scales)[i]);
            let z = Vector::new(simd, vectors::<S>(&self.innovations)[i]);
            let done = located.each_ref().map(|at| vectors::<S>(&at.vector));
            let sums = products(simd, done, row, (count, g));
            for (at, sum) in located.iter_mut().zip(sums) {
                let entry = &mut vectors_mut::<S>(&mut at.vector)[i];
                let loading = (Vector::new(simd, *entry) - sum) * scale;
                *entry = loading.lanes();
                at.load(simd, g, loading, z);
            }
        }
    }
}

/// All loadings of some points.
struct Solve<'a, 'b, 'p, const L: usize> {
    posterior: &'a Posterior<'p, L>,
    located: &'a mut [&'b mut Located<L>],
}

impl<const L: usize> WithSimd for Solve<'_, '_, '_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { posterior, located } = self;
        let t = posterior.seen();
        let full = t / BLOCK * BLOCK;
        let (pairs, single) = located.as_chunks_mut::<2>();
        // A block's rows stay in the cache for all points and lane groups.
        for j in (0..full).step_by(BLOCK) {
            for g in 0..groups::<S, L>() {
                for pair in &mut *pairs {
                    posterior.substitute::<S, BLOCK, 2>(simd, pair, j, g);
                }
                for at in &mut *single {
                    posterior.substitute::<S, BLOCK, 1>(simd, std::array::from_mut(at), j, g);
                }
            }
        }
        for j in full..t {
            for g in 0..groups::<S, L>() {
                for at in &mut *located {
                    posterior.substitute::<S, 1, 1>(simd, std::array::from_mut(at), j, g);
                }
            }
        }
        for at in located {
            at.load_all(simd, &posterior.innovations);
        }
    }
}

/// The last loading of some points.
struct Extend<'a, 'b, 'p, const L: usize> {
    posterior: &'a Posterior<'p, L>,
    located: &'a mut [&'b mut Located<L>],
}

impl<const L: usize> WithSimd for Extend<'_, '_, '_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (blocks, rest) = self.located.as_chunks_mut::<BLOCK>();
        for block in blocks {
            self.posterior.extend(simd, block);
        }
        let (pairs, single) = rest.as_chunks_mut::<2>();
        for pair in pairs {
            self.posterior.extend(simd, pair);
        }
        for at in single {
            self.posterior.extend(simd, std::array::from_mut(at));
        }
    }
}
