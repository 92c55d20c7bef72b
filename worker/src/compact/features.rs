//! Cosine features Phi_k(x) = sqrt(2/K) cos(w_k . x + b_k), k < K (paper, section 5: the basis of the
//! continuous domains, up to the constant factor).
//!
//! One point is evaluated with a lane per feature, many points with a lane per point; the angle is
//! summed in the same order, so both give the same bits.

mod kernels;
#[cfg(test)]
mod tests;

use theory::PANEL;

use self::kernels::{AtPoint, AtPoints};
use super::panels::Panels;
use super::sin_cos::LIMIT;
use crate::simd::Cpu;

/// Frequencies or phases that make no features.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Invalid {
    /// No phases at all, or points of no dimension.
    #[error("{features} features in dimension {dimension}: both must be at least 1")]
    Empty {
        /// K.
        features: usize,
        /// d.
        dimension: usize,
    },
    /// Frequencies are not K x d.
    #[error("{found} frequencies where {expected} are needed: one per feature and dimension")]
    Frequencies {
        /// How many there are.
        found: usize,
        /// K d.
        expected: usize,
    },
    /// A frequency or phase is not a number.
    #[error("frequencies and phases must be finite; found {value}")]
    NotFinite {
        /// The first that is not.
        value: f64,
    },
}

/// K cosine features of points in dimension d.
#[derive(Clone, Debug, PartialEq)]
pub struct Cosines {
    dimension: usize,
    count: usize,
    /// Feature after feature, dimension by dimension, then the phases; each padded to whole panels.
    parameters: Vec<f64>,
    /// sqrt(2/K), and 0 in the padding.
    amplitudes: Vec<f64>,
    /// The largest |w_kj| for each j, then the largest |b_k|.
    largest: Vec<f64>,
}

impl Cosines {
    /// From w_k, feature by feature (K x d), and b_k.
    pub fn new(frequencies: &[f64], phases: &[f64], dimension: usize) -> Result<Self, Invalid> {
        let features = phases.len();
        if features == 0 || dimension == 0 {
            return Err(Invalid::Empty { features, dimension });
        }
        let (found, expected) = (frequencies.len(), features * dimension);
        if found != expected {
            return Err(Invalid::Frequencies { found, expected });
        }
        if let Some(&value) = frequencies.iter().chain(phases).find(|v| !v.is_finite()) {
            return Err(Invalid::NotFinite { value });
        }
        let mut this = Self::still(features, dimension);
        let padded = this.padded();
        for (k, frequency) in frequencies.chunks_exact(dimension).enumerate() {
            for (j, &w) in frequency.iter().enumerate() {
                this.parameters[j * padded + k] = w;
            }
            this.parameters[dimension * padded + k] = phases[k];
        }
        this.measure();
        Ok(this)
    }

    /// All frequencies and phases zero.
    pub(super) fn still(count: usize, dimension: usize) -> Self {
        let padded = count.next_multiple_of(PANEL);
        let mut amplitudes = vec![0.0; padded];
        amplitudes[..count].fill((2.0 / count as f64).sqrt());
        Self {
            dimension,
            count,
            parameters: vec![0.0; padded * (dimension + 1)],
            amplitudes,
            largest: vec![0.0; dimension + 1],
        }
    }

    fn measure(&mut self) {
        let groups = self.parameters.chunks_exact(self.amplitudes.len());
        for (largest, group) in self.largest.iter_mut().zip(groups) {
            *largest = group.iter().fold(0.0, |most, v| larger(most, v.abs()));
        }
    }

    /// K.
    pub fn count(&self) -> usize {
        self.count
    }

    /// K, rounded up to whole panels: the length of weights and features with their padding.
    pub(super) fn padded(&self) -> usize {
        self.amplitudes.len()
    }

    /// d.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// sqrt(2/K).
    pub(super) fn amplitude(&self) -> f64 {
        self.amplitudes[0]
    }

    /// Coordinate j of w_k.
    ///
    /// # Panics
    /// Where there is no such feature or coordinate.
    pub fn frequency(&self, k: usize, j: usize) -> f64 {
        assert!(k < self.count && j < self.dimension, "feature {k}, coordinate {j}");
        self.parameters[j * self.padded() + k]
    }

    /// b_k.
    ///
    /// # Panics
    /// Where there is no such feature.
    pub fn phase(&self, k: usize) -> f64 {
        assert!(k < self.count, "feature {k}");
        self.parameters[self.dimension * self.padded() + k]
    }

    /// Frequencies dimension by dimension, then phases, each of [`Self::padded`] entries.
    pub(super) fn parameters(&self) -> &[f64] {
        &self.parameters
    }

    /// The same features with other parameters; padding has to stay zero.
    pub(super) fn set_parameters(&mut self, parameters: &[f64]) {
        self.parameters.copy_from_slice(parameters);
        self.measure();
    }

    /// The root mean square of the frequencies along axis j: one over the length on which features vary.
    pub fn bandwidth(&self, j: usize) -> f64 {
        let sum = (0..self.count).fold(0.0, |sum, k| {
            let w = self.frequency(k, j);
            sum + w * w
        });
        (sum / self.count as f64).sqrt()
    }

    /// Whether every angle at points with |x_j| <= `reach(j)` may be reduced by our own sine and cosine.
    fn within_limit(&self, reach: impl Fn(usize) -> f64) -> bool {
        let phase = self.largest[self.dimension];
        (0..self.dimension).fold(phase, |sum, j| sum + self.largest[j] * reach(j)) <= LIMIT
    }

    /// Phi(x).
    ///
    /// # Panics
    /// Where x has not d coordinates or `out` not K entries.
    pub fn phi(&self, cpu: Cpu, x: &[f64], out: &mut [f64]) {
        let (mut cosine, mut sine) = (vec![0.0; self.padded()], vec![0.0; self.padded()]);
        self.at(cpu, x, &mut cosine, &mut sine);
        out.copy_from_slice(&cosine[..self.count]);
    }

    /// Phi(x) and its derivative, entry (k, j) of which stands at `k * d + j`.
    ///
    /// # Panics
    /// Where x has not d coordinates, `out` not K or `derivative` not K d entries.
    pub fn gradient(&self, cpu: Cpu, x: &[f64], out: &mut [f64], derivative: &mut [f64]) {
        assert_eq!(derivative.len(), self.count * self.dimension, "a K x d derivative");
        let (mut cosine, mut sine) = (vec![0.0; self.padded()], vec![0.0; self.padded()]);
        self.at(cpu, x, &mut cosine, &mut sine);
        out.copy_from_slice(&cosine[..self.count]);
        for (k, row) in derivative.chunks_exact_mut(self.dimension).enumerate() {
            for (j, entry) in row.iter_mut().enumerate() {
                *entry = -sine[k] * self.frequency(k, j);
            }
        }
    }

    /// Phi(x) and sqrt(2/K) sin(w_k . x + b_k), both with zeros in their padding.
    pub(super) fn at(&self, cpu: Cpu, x: &[f64], cosine: &mut [f64], sine: &mut [f64]) {
        assert_eq!(x.len(), self.dimension, "a point of dimension d");
        if self.within_limit(|j| x[j].abs()) {
            cpu.run::<PANEL, _>(AtPoint { cosines: self, x, cosine, sine });
        } else {
            self.at_slowly(x, |k, c, s| (cosine[k], sine[k]) = (c, s));
        }
    }

    /// Phi at the columns of `points` (d x M): K x M.
    pub(super) fn batch(&self, cpu: Cpu, points: &Panels) -> Panels {
        let shape = (self.count, points.columns());
        let (mut cosine, mut sine) =
            (Panels::zeros(shape.0, shape.1), Panels::zeros(shape.0, shape.1));
        self.batch_into(cpu, points, &mut cosine, &mut sine);
        cosine
    }

    /// Phi and sqrt(2/K) sin at the columns of `points` (d x M): both K x M.
    pub(super) fn batch_into(
        &self,
        cpu: Cpu,
        points: &Panels,
        cosine: &mut Panels,
        sine: &mut Panels,
    ) {
        assert_eq!(points.rows(), self.dimension, "points of dimension d");
        let reach: Vec<f64> = (0..self.dimension)
            .map(|j| (0..points.columns()).fold(0.0, |most, m| larger(most, points.at(j, m).abs())))
            .collect();
        if self.within_limit(|j| reach[j]) {
            cpu.run::<PANEL, _>(AtPoints { cosines: self, points, cosine, sine });
            cosine.clear_padding();
            sine.clear_padding();
            return;
        }
        for m in 0..points.columns() {
            let (p, lane) = (m / PANEL, m % PANEL);
            let x: Vec<f64> = points.panel(p).iter().map(|row| row[lane]).collect();
            self.at_slowly(&x, |k, c, s| {
                (cosine.panel_mut(p)[k][lane], sine.panel_mut(p)[k][lane]) = (c, s);
            });
        }
    }

    /// Features whose angles are too large for our own reduction, and their sines.
    #[cold]
    fn at_slowly(&self, x: &[f64], mut set: impl FnMut(usize, f64, f64)) {
        for k in 0..self.count {
            let angle =
                (0..self.dimension).fold(self.phase(k), |sum, j| sum + self.frequency(k, j) * x[j]);
            let (sin, cos) = libm::sincos(angle);
            set(k, self.amplitude() * cos, self.amplitude() * sin);
        }
    }
}

fn larger(a: f64, b: f64) -> f64 {
    if b > a { b } else { a }
}
