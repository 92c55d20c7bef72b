//! |m_i|^2 = |F_i A|^2 for every row, as A is drawn.

use pulp::{Simd, WithSimd};
use theory::{Factor, PANEL};

use super::{BAND, Frame, start};
use crate::simd::{Vector, groups, vectors, vectors_mut};
use crate::sweep::add_products;

/// out_i = |F_i A|^2, padding included.
pub(super) struct Lengths<'a, const L: usize> {
    pub(super) frame: &'a Frame<L>,
    pub(super) factor: &'a Factor,
    pub(super) out: &'a mut [f64],
}

impl<const L: usize> WithSimd for Lengths<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { frame, factor, out } = self;
        let (count, zeros) = (groups::<S, L>(), [Vector::splat(simd, 0.0); PANEL]);
        let rows = vectors_mut::<S>(out).chunks_exact_mut(PANEL * count);
        for (p, rows) in rows.enumerate() {
            let panel = factor.panel(p).as_chunks::<PANEL>().0;
            for g in 0..count {
                let mut totals = zeros;
                for j in (0..frame.columns).step_by(BAND) {
                    let band = &vectors::<S>(&frame.a)[start(frame.rank, j) * count..];
                    for b in 0..BAND {
                        let stride = (BAND * count, b * count + g);
                        let parts = add_products(simd, &panel[j..], band, stride, zeros);
                        for (total, part) in totals.iter_mut().zip(parts) {
                            *total = *total + part * part;
                        }
                    }
                }
                for (row, total) in rows.chunks_exact_mut(count).zip(totals) {
                    row[g] = total.lanes();
                }
            }
        }
    }
}
