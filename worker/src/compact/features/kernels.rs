//! Features of one point and of many.

use pulp::{Simd, WithSimd};

use super::super::panels::Panels;
use super::super::sin_cos::sin_cos;
use super::Cosines;
use crate::simd::{Vector, vectors, vectors_mut};

/// One point, a lane per feature.
pub(super) struct AtPoint<'a> {
    pub(super) cosines: &'a Cosines,
    pub(super) x: &'a [f64],
    pub(super) cosine: &'a mut [f64],
    pub(super) sine: &'a mut [f64],
}

impl WithSimd for AtPoint<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let amplitudes = vectors::<S>(&self.cosines.amplitudes);
        let parameters = vectors::<S>(&self.cosines.parameters);
        let cosine = vectors_mut::<S>(self.cosine).iter_mut();
        let sine = vectors_mut::<S>(self.sine).iter_mut();
        let (count, phases) = (amplitudes.len(), self.x.len() * amplitudes.len());
        for (v, ((c, s), &amplitude)) in cosine.zip(sine).zip(amplitudes).enumerate() {
            let mut angle = Vector::new(simd, parameters[phases + v]);
            for (j, &x) in self.x.iter().enumerate() {
                angle =
                    angle + Vector::new(simd, parameters[j * count + v]) * Vector::splat(simd, x);
            }
            let (sin, cos) = sin_cos(simd, angle);
            let amplitude = Vector::new(simd, amplitude);
            (*c, *s) = ((amplitude * cos).lanes(), (amplitude * sin).lanes());
        }
    }
}

/// Many points, a lane per point.
pub(super) struct AtPoints<'a> {
    pub(super) cosines: &'a Cosines,
    pub(super) points: &'a Panels,
    pub(super) cosine: &'a mut Panels,
    pub(super) sine: &'a mut Panels,
}

impl WithSimd for AtPoints<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { cosines, points, .. } = self;
        let (padded, d) = (cosines.padded(), cosines.dimension);
        let (frequencies, phases) = cosines.parameters.split_at(padded * d);
        let amplitude = Vector::splat(simd, cosines.amplitude());
        for p in 0..points.count() {
            let x = vectors::<S>(points.panel(p).as_flattened());
            let count = x.len() / d;
            let cosine = vectors_mut::<S>(self.cosine.panel_mut(p).as_flattened_mut());
            let sine = vectors_mut::<S>(self.sine.panel_mut(p).as_flattened_mut());
            let rows = cosine.chunks_exact_mut(count).zip(sine.chunks_exact_mut(count));
            for (k, (cosine, sine)) in rows.enumerate() {
                for (g, (c, s)) in cosine.iter_mut().zip(sine).enumerate() {
                    let mut angle = Vector::splat(simd, phases[k]);
                    for j in 0..d {
                        let w = Vector::splat(simd, frequencies[j * padded + k]);
                        angle = angle + w * Vector::new(simd, x[j * count + g]);
                    }
                    let (sin, cos) = sin_cos(simd, angle);
                    (*c, *s) = ((amplitude * cos).lanes(), (amplitude * sin).lanes());
                }
            }
        }
    }
}
