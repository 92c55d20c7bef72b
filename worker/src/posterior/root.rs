//! Loadings from the Cholesky root of F F^T + s^2 I at the observed points, by forward substitution.

use pulp::{Simd, WithSimd};

use super::{Gram, Located, Posterior};
use crate::columns::{BLOCK, products};
use crate::simd::{Vector, groups, vectors, vectors_mut};

impl<const L: usize> Posterior<'_, L> {
    pub(super) fn locate_by_root(&self, gram: &Gram, located: &mut Located<L>) {
        let rows = located.points.map(|point| gram.row(point));
        let products = |with: &[usize; L]| std::array::from_fn(|lane| rows[lane][with[lane]]);
        located.variance = products(&located.points);
        let entries = located.vector.as_chunks_mut::<L>().0.iter_mut();
        entries.zip(&self.points).for_each(|(entry, seen)| *entry = products(seen));
        self.cpu.run::<L, _>(Solve { posterior: self, located });
    }

    pub(super) fn advance_by_root<const B: usize>(
        &self,
        gram: &Gram,
        mut located: [&mut Located<L>; B],
    ) {
        let last = self.points.len() - 1;
        for located in &mut located {
            let entry = &mut located.vector.as_chunks_mut::<L>().0[last];
            for (lane, &point) in located.points.iter().enumerate() {
                entry[lane] = gram.row(point)[self.points[last][lane]];
            }
        }
        self.cpu.run::<L, _>(Extend { posterior: self, located });
    }

    /// l_{j+b} of a point for b in 0..B, in lane group g, from those before j; its vector holds
    /// F_x . F_{x_j} from j on.
    #[inline(always)]
    fn substitute<S: Simd, const B: usize>(
        &self,
        simd: S,
        located: &mut Located<L>,
        j: usize,
        g: usize,
    ) {
        let count = groups::<S, L>();
        let rows: [&[S::f64s]; B] = std::array::from_fn(|b| vectors::<S>(&self.vectors[j + b]));
        let done = &vectors::<S>(&located.vector)[..j * count];
        let sums = products(simd, rows, done, (count, g));
        let mut loadings = [Vector::splat(simd, 0.0); B];
        for b in 0..B {
            let mut sum = sums[b];
            for c in 0..b {
                sum = sum + Vector::new(simd, rows[b][(j + c) * count + g]) * loadings[c];
            }
            let i = (j + b) * count + g;
            let entry = &mut vectors_mut::<S>(&mut located.vector)[i];
            let scale = Vector::new(simd, vectors::<S>(&self.scales)[i]);
            let loading = (Vector::new(simd, *entry) - sum) * scale;
            *entry = loading.lanes();
            loadings[b] = loading;
            located.load(simd, g, loading, Vector::new(simd, vectors::<S>(&self.innovations)[i]));
        }
    }
}

/// All loadings of a point.
struct Solve<'a, 'p, const L: usize> {
    posterior: &'a Posterior<'p, L>,
    located: &'a mut Located<L>,
}

impl<const L: usize> WithSimd for Solve<'_, '_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { posterior, located } = self;
        let t = posterior.points.len();
        let full = t / BLOCK * BLOCK;
        // A block's rows stay in the cache for all lane groups.
        for j in (0..full).step_by(BLOCK) {
            for g in 0..groups::<S, L>() {
                posterior.substitute::<S, BLOCK>(simd, located, j, g);
            }
        }
        for j in full..t {
            for g in 0..groups::<S, L>() {
                posterior.substitute::<S, 1>(simd, located, j, g);
            }
        }
    }
}

/// The last loading of some points.
struct Extend<'a, 'p, const L: usize, const B: usize> {
    posterior: &'a Posterior<'p, L>,
    located: [&'a mut Located<L>; B],
}

impl<const L: usize, const B: usize> WithSimd for Extend<'_, '_, L, B> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { posterior, mut located } = self;
        let (count, last) = (groups::<S, L>(), posterior.points.len() - 1);
        let row = vectors::<S>(&posterior.vectors[last]);
        for g in 0..count {
            let i = last * count + g;
            let scale = Vector::new(simd, vectors::<S>(&posterior.scales)[i]);
            let z = Vector::new(simd, vectors::<S>(&posterior.innovations)[i]);
            let done = located.each_ref().map(|located| vectors::<S>(&located.vector));
            let sums = products(simd, done, row, (count, g));
            for (located, sum) in located.iter_mut().zip(sums) {
                let entry = &mut vectors_mut::<S>(&mut located.vector)[i];
                let loading = (Vector::new(simd, *entry) - sum) * scale;
                *entry = loading.lanes();
                located.load(simd, g, loading, z);
            }
        }
    }
}
