//! The two passes over A: m = F_p A, and, once the direction c is known, the rotations that take it out
//! of A, which find A c on their way.
//!
//! The second pass goes from the last band to the first, and begins with what the first has left in the
//! cache.

use pulp::{Simd, WithSimd};

use super::{BAND, Frame, start};
use crate::simd::{Vector, groups, vectors, vectors_mut};

/// m = F_p A.
pub(super) struct Along<'a, const L: usize> {
    pub(super) frame: &'a mut Frame<L>,
    /// F_p.
    pub(super) row: &'a [f64],
}

impl<const L: usize> WithSimd for Along<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { frame, row } = self;
        let (count, row) = (groups::<S, L>(), vectors::<S>(row));
        let m = vectors_mut::<S>(&mut frame.along_factor);
        for j in (0..frame.columns).step_by(BAND) {
            let band = &vectors::<S>(&frame.a)[start(frame.rank, j) * count..];
            for g in 0..count {
                let mut sums = [Vector::splat(simd, 0.0); BAND];
                let below = row[j * count..].chunks_exact(count);
                for (entries, factor) in band.chunks_exact(BAND * count).zip(below) {
                    let factor = Vector::new(simd, factor[g]);
                    for (b, sum) in sums.iter_mut().enumerate() {
                        *sum = *sum + Vector::new(simd, entries[b * count + g]) * factor;
                    }
                }
                for (b, sum) in sums.into_iter().enumerate() {
                    m[(j + b) * count + g] = sum.lanes();
                }
            }
        }
    }
}

/// A <- A', and the weights A c.
pub(super) struct Rotate<'a, const L: usize> {
    pub(super) frame: &'a mut Frame<L>,
}

impl<const L: usize> WithSimd for Rotate<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (frame, count) = (self.frame, groups::<S, L>());
        frame.weights.fill(0.0);
        let weights = vectors_mut::<S>(&mut frame.weights);
        for j in (0..frame.columns).step_by(BAND).rev() {
            for g in 0..count {
                let pick = |from: &[f64]| -> [Vector<S>; BAND] {
                    let from = vectors::<S>(from);
                    std::array::from_fn(|b| Vector::new(simd, from[(j + b) * count + g]))
                };
                let (c, keep, take) =
                    (pick(&frame.direction), pick(&frame.keep), pick(&frame.take));
                let band = &mut vectors_mut::<S>(&mut frame.a)[start(frame.rank, j) * count..];
                let sums = weights[j * count..].chunks_exact_mut(count);
                for (entries, sum) in band.chunks_exact_mut(BAND * count).zip(sums) {
                    // The sum of c_i A_ki over the columns behind the one that is rotated.
                    let mut behind = Vector::new(simd, sum[g]);
                    for b in (0..BAND).rev() {
                        let entry = &mut entries[b * count + g];
                        let before = Vector::new(simd, *entry);
                        *entry = (keep[b] * before - take[b] * behind).lanes();
                        behind = behind + c[b] * before;
                    }
                    sum[g] = behind.lanes();
                }
            }
        }
    }
}
