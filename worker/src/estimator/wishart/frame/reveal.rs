//! Step 1 of the sampler: the new unit direction (c, kappa) of each lane, and the rotations that turn it
//! onto the outside axis.
//!
//! With m = F_p A, u = m/|m| and xi normal in A's columns but orthogonal to u,
//! v = m + s (b u + sqrt(rest) xi/|(xi, out)|), last = s sqrt(rest) out/|(xi, out)| and
//! (c, kappa) = (v, last)/|(v, last)|. A point with m = 0 has no u.

use pulp::{Simd, WithSimd};

use super::{Chosen, Frame};
use crate::simd::{Vector, groups, vectors, vectors_mut};

/// The direction from m and xi.
pub(super) struct Reveal<'a, const L: usize> {
    pub(super) frame: &'a mut Frame<L>,
    pub(super) chosen: &'a Chosen<'a, L>,
    /// The length outside A's columns.
    pub(super) out: [f64; L],
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
        let keep = vectors_mut::<S>(&mut frame.keep);
        let take = vectors_mut::<S>(&mut frame.take);
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
            // Last column first: l_j = |(c_j.., kappa)| grows from kappa to 1.
            let kappa = last * scale;
            let mut squared = kappa * kappa;
            let mut length = squared.sqrt();
            let mut shrink = inverse(length);
            for i in (g..m.len()).step_by(count).rev() {
                let unit = at(c, i) * scale;
                c[i] = unit.lanes();
                squared = squared + unit * unit;
                let longer = squared.sqrt();
                let shorter = inverse(longer);
                keep[i] = zero.where_greater(longer, zero, length * shorter, one).lanes();
                take[i] = (unit * shorter * shrink).lanes();
                (length, shrink) = (longer, shorter);
            }
        }
    }
}
