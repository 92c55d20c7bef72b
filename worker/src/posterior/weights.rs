//! Loadings from directions: l_j(x) = q_j . F_x.

use pulp::{Simd, WithSimd};

use super::{Located, Posterior};
use crate::columns::{BLOCK, add, products};
use crate::simd::{Vector, groups, vectors, vectors_mut};

impl<const L: usize> Posterior<'_, L> {
    pub(super) fn locate_by_weights(&self, located: &mut Located<L>) {
        located.vector.copy_from_slice(&located.row);
        self.cpu.run::<L, _>(Locate { posterior: self, located });
    }

    pub(super) fn advance_by_weights(&self, located: &mut [&mut Located<L>]) {
        let (pairs, single) = located.as_chunks_mut::<2>();
        for located in pairs {
            self.cpu.run::<L, _>(Advance { posterior: self, located });
        }
        for at in single {
            let located = std::array::from_mut(at);
            self.cpu.run::<L, _>(Advance { posterior: self, located });
        }
    }

    /// Takes observations j..j + B into account at a point, in lane group g, and takes their part out
    /// of what is to become its direction.
    #[inline(always)]
    fn project<S: Simd, const B: usize>(
        &self,
        simd: S,
        located: &mut Located<L>,
        j: usize,
        g: usize,
    ) {
        let count = groups::<S, L>();
        let directions: [&[S::f64s]; B] =
            std::array::from_fn(|b| vectors::<S>(&self.vectors[j + b]));
        let loadings = products(simd, directions, vectors::<S>(&located.row), (count, g));
        let innovations = vectors::<S>(&self.innovations);
        for (b, &loading) in loadings.iter().enumerate() {
            let z = Vector::new(simd, innovations[(j + b) * count + g]);
            located.load(simd, g, loading, z);
        }
        let minus = loadings.map(|loading| -loading);
        add(simd, vectors_mut::<S>(&mut located.vector), directions, minus, (count, g));
    }
}

/// The posterior at a point from the prior on, in one pass over the q_j.
struct Locate<'a, 'p, const L: usize> {
    posterior: &'a Posterior<'p, L>,
    located: &'a mut Located<L>,
}

impl<const L: usize> WithSimd for Locate<'_, '_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { posterior, located } = self;
        let (count, t) = (groups::<S, L>(), posterior.seen());
        let full = t / BLOCK * BLOCK;
        for g in 0..count {
            let mut variance = Vector::splat(simd, 0.0);
            for i in (g..located.row.len() / S::F64_LANES).step_by(count) {
                let entry = Vector::new(simd, vectors::<S>(&located.row)[i]);
                variance = variance + entry * entry;
            }
            vectors_mut::<S>(&mut located.variance)[g] = variance.lanes();
        }
        // A block's directions stay in the cache for all lane groups.
        for j in (0..full).step_by(BLOCK) {
            for g in 0..count {
                posterior.project::<S, BLOCK>(simd, located, j, g);
            }
        }
        for j in full..t {
            for g in 0..count {
                posterior.project::<S, 1>(simd, located, j, g);
            }
        }
    }
}

/// The last observation alone.
struct Advance<'a, 'b, 'p, const L: usize, const B: usize> {
    posterior: &'a Posterior<'p, L>,
    located: &'a mut [&'b mut Located<L>; B],
}

impl<const L: usize, const B: usize> WithSimd for Advance<'_, '_, '_, L, B> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { posterior, located } = self;
        let count = groups::<S, L>();
        for g in 0..count {
            let rows = located.each_ref().map(|located| vectors::<S>(&located.row));
            let direction = vectors::<S>(posterior.last_direction());
            let loadings = products(simd, rows, direction, (count, g));
            let z = Vector::new(simd, vectors::<S>(posterior.last_innovation())[g]);
            for (located, loading) in located.iter_mut().zip(loadings) {
                located.load(simd, g, loading, z);
            }
        }
    }
}
