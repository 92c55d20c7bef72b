//! The posterior of f: at every candidate, or at any x with gradients.
//!
//! With c the correlations of x with the inputs and u = U^-T c:
//!
//! ```text
//! mean = u . U^-T a,   variance = v (1 - |u|^2)
//! ```
//!
//! and with w = U^-1 u = C^-1 c, b = C^-1 a and dc_i/dx = -c_i (x - x_i)/l^2:
//!
//! ```text
//! d mean/dx = sum_i b_i dc_i/dx,   d variance/dx = -2 v sum_i w_i dc_i/dx
//! ```

use pulp::{Simd, WithSimd};
use theory::PANEL;

use super::blocks::{BLOCK, Diagonal, update, upper, weighted};
use super::cholesky::{Backward, Forward};
use super::data::Design;
use super::exp::exp;
use super::fit::Parameters;
use super::likelihood::Likelihood;
use super::points::{Distances, Points, Space};
use crate::simd::{Buffer, Cpu, Vector, groups, vectors, vectors_mut};

/// The Gaussian process given the observations, in units of the responses that were given.
pub struct Posterior<'a, P: Points> {
    pub(super) cpu: Cpu,
    pub(super) design: &'a Design<P>,
    pub(super) likelihood: &'a mut Likelihood,
    pub(super) parameters: Parameters,
    pub(super) log_likelihood: f64,
}

impl<'a, P: Points> Posterior<'a, P> {
    /// The hyper-parameters.
    pub fn parameters(&self) -> Parameters {
        self.parameters
    }

    /// log p(responses), every observation counted.
    pub fn log_likelihood(&self) -> f64 {
        self.log_likelihood
    }

    /// Makes ready for many points: costs two thirds of a gradient of the likelihood.
    pub fn anywhere(self) -> Anywhere<'a, P> {
        self.likelihood.invert();
        let line = || Buffer::zeros(self.likelihood.weights.len());
        let (correlations, whitened, weights) = (line(), line(), line());
        Anywhere { posterior: self, correlations, whitened, weights }
    }
}

impl Posterior<'_, &Distances> {
    /// Mean and variance of f at every candidate; the variance of a response there is greater by
    /// the noise.
    ///
    /// # Panics
    /// Where the slices are not of one entry per candidate.
    pub fn predict(&self, mean: &mut [f64], variance: &mut [f64]) {
        let table = *self.design.points();
        assert!(mean.len() == table.size() && variance.len() == table.size(), "one per candidate");
        let Parameters { variance: v, length, .. } = self.parameters;
        let mut room = Buffer::zeros(self.likelihood.whitened.len() * PANEL);
        for (c, (mean, variance)) in
            mean.chunks_mut(PANEL).zip(variance.chunks_mut(PANEL)).enumerate()
        {
            for (row, &input) in
                room.as_chunks_mut::<PANEL>().0.iter_mut().zip(self.design.inputs())
            {
                row.copy_from_slice(&table.row(input)[PANEL * c..PANEL * (c + 1)]);
            }
            let inputs = self.design.inputs().len();
            let scale = -0.5 / (length * length);
            let (means, explained) = self.cpu.run::<PANEL, _>(Predict {
                factor: &self.likelihood.factor,
                reciprocals: &self.likelihood.reciprocals,
                whitened: &self.likelihood.whitened,
                room: &mut room,
                inputs,
                scale,
            });
            mean.copy_from_slice(&means[..mean.len()]);
            for (variance, explained) in variance.iter_mut().zip(explained) {
                *variance = v * left(explained);
            }
        }
    }
}

/// 1 - |u|^2, which rounding may have made negative.
fn left(explained: f64) -> f64 {
    if explained < 1.0 { 1.0 - explained } else { 0.0 }
}

/// u . U^-T a and |u|^2 for eight candidates, whose squared distances to the inputs are in `room`.
struct Predict<'a> {
    factor: &'a [f64],
    reciprocals: &'a [f64],
    whitened: &'a [f64],
    room: &'a mut [f64],
    inputs: usize,
    scale: f64,
}

impl WithSimd for Predict<'_> {
    type Output = ([f64; PANEL], [f64; PANEL]);

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        let count = groups::<S, PANEL>();
        let (used, padding) = self.room.split_at_mut(self.inputs * PANEL);
        used.iter_mut().for_each(|d| *d = exp(*d * self.scale));
        padding.fill(0.0);
        for i in 0..self.reciprocals.len() / PANEL {
            let (above, tile) = self.room.split_at_mut(BLOCK * i);
            let left = &self.factor[upper(i)..upper(i) + BLOCK * i];
            let diagonal = Diagonal::of(self.factor, self.reciprocals, i);
            update(simd, diagonal, left, above, &mut tile[..BLOCK]);
        }
        let (mut means, mut explained) = ([0.0; PANEL], [0.0; PANEL]);
        for g in 0..count {
            vectors_mut::<S>(&mut means)[g] = weighted(simd, self.whitened, self.room, g).lanes();
            let rows = vectors::<S>(self.room).chunks_exact(count);
            let square = |row: &[S::f64s]| Vector::new(simd, row[g]) * Vector::new(simd, row[g]);
            let sum = rows.fold(Vector::splat(simd, 0.0), |sum, row| sum + square(row));
            vectors_mut::<S>(&mut explained)[g] = sum.lanes();
        }
        (means, explained)
    }
}

/// A posterior that can be asked at any point.
pub struct Anywhere<'a, P: Points> {
    posterior: Posterior<'a, P>,
    /// c, u and w.
    correlations: Buffer,
    whitened: Buffer,
    weights: Buffer,
}

impl<P: Points> Anywhere<'_, P> {
    /// Mean and variance of f at x, which has to be finite.
    pub fn at(&mut self, x: &P::Point) -> (f64, f64) {
        let Posterior { cpu, design, likelihood, parameters, .. } = &self.posterior;
        let scale = -0.5 / (parameters.length * parameters.length);
        for (c, input) in self.correlations.iter_mut().zip(design.inputs()) {
            *c = exp(scale * design.points().squared_distance(input, x));
        }
        self.whitened.copy_from_slice(&self.correlations);
        let (factor, reciprocals) = (&*likelihood.factor, &*likelihood.reciprocals);
        cpu.run::<PANEL, _>(Forward { factor, reciprocals, values: &mut self.whitened });
        let products = self.whitened.iter().zip(&*likelihood.whitened);
        let mean = products.fold(0.0, |sum, (u, z)| sum + u * z);
        let explained = self.whitened.iter().fold(0.0, |sum, u| sum + u * u);
        (mean, parameters.variance * left(explained))
    }
}

impl Anywhere<'_, Space> {
    /// Mean and variance of f at x, which has to be finite, and their gradients by x.
    pub fn with_gradients(
        &mut self,
        x: &Vec<f64>,
        mean_gradient: &mut [f64],
        variance_gradient: &mut [f64],
    ) -> (f64, f64) {
        let moments = self.at(x);
        let Posterior { cpu, design, likelihood, parameters, .. } = &self.posterior;
        let (inverse, values) = (&*likelihood.inverse, &*self.whitened);
        cpu.run::<PANEL, _>(Backward { inverse, values, out: &mut self.weights });
        mean_gradient.fill(0.0);
        variance_gradient.fill(0.0);
        let per = 1.0 / (parameters.length * parameters.length);
        for (i, input) in design.inputs().iter().enumerate() {
            let slope = -per * self.correlations[i];
            let by_mean = likelihood.weights[i] * slope;
            let by_variance = -2.0 * parameters.variance * self.weights[i] * slope;
            for (k, (x, input)) in x.iter().zip(input).enumerate() {
                mean_gradient[k] += by_mean * (x - input);
                variance_gradient[k] += by_variance * (x - input);
            }
        }
        moments
    }
}
