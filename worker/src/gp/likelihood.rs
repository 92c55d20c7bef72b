//! The log marginal likelihood of the collapsed observations, and its gradient.
//!
//! With correlations R, variance v, noise s = r v and C = R + r diag(1/n_i), everything that costs
//! more than O(m) depends on the length-scale l and the ratio r alone:
//!
//! ```text
//! log p(y) = -1/2 [(q + W/r)/v + log det C + n log v + (n - m) log r + sum_i log n_i + n log 2 pi]
//! ```
//!
//! where q = a^T C^-1 a. So the best v for given l and r is (q + W/r)/n, or the end of its interval
//! next to it. With b = C^-1 a and G = R o D/l^2 (the derivative of R by log l):
//!
//! ```text
//! d/d log v, r fixed: 1/2 [(q + W/r)/v - n]
//! d/d log l:          1/2 [b^T G b/v - tr(C^-1 G)]
//! d/d log r, v fixed: 1/2 [(r sum_i b_i^2/n_i + W/r)/v - r sum_i (C^-1)_ii/n_i - (n - m)]
//! ```

use pulp::{Simd, WithSimd};
use theory::PANEL;

use super::blocks::{entry, lower, upper};
use super::cholesky::{Backward, Factorise, Forward, Invert, NotPositiveDefinite};
use super::data::Collapsed;
use super::exp::exp;
use super::traces::{InverseDiagonal, LengthTraces};
use crate::simd::{Buffer, Cpu};

/// log 2 pi.
const LOG_TAU: f64 = 1.8378770664093453;

/// Everything about one (l, r), and the room for it.
pub(super) struct Likelihood {
    cpu: Cpu,
    /// R above the diagonal.
    correlations: Buffer,
    /// U, with C = U^T U.
    pub(super) factor: Buffer,
    pub(super) reciprocals: Buffer,
    /// U^-T a.
    pub(super) whitened: Buffer,
    /// U^-T, once there is a gradient.
    pub(super) inverse: Buffer,
    /// b = C^-1 a, once there is a gradient.
    pub(super) weights: Buffer,
    diagonal: Buffer,
    capacity: usize,
}

/// The likelihood at (l, r), as a function of v.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    ratio: f64,
    /// q + W/r.
    squares: f64,
    /// W/r.
    within: f64,
    /// What does not depend on v.
    rest: f64,
    observations: f64,
    /// n - m.
    repeats: f64,
}

/// What the gradient needs beyond the value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traces {
    /// tr(C^-1 G) and b^T G b.
    length: (f64, f64),
    /// r sum_i (C^-1)_ii/n_i and r sum_i b_i^2/n_i.
    noise: (f64, f64),
}

/// Derivatives by log v (r fixed), log l, and log r (v fixed).
#[derive(Clone, Copy, Debug)]
pub(super) struct Gradient {
    pub(super) variance: f64,
    pub(super) length: f64,
    pub(super) ratio: f64,
}

impl Likelihood {
    pub(super) fn new(cpu: Cpu) -> Self {
        let empty = || Buffer::zeros(0);
        Self {
            cpu,
            correlations: empty(),
            factor: empty(),
            reciprocals: empty(),
            whitened: empty(),
            inverse: empty(),
            weights: empty(),
            diagonal: empty(),
            capacity: 0,
        }
    }

    fn resize(&mut self, blocks: usize) {
        if blocks > self.capacity {
            self.capacity = blocks.max(2 * self.capacity);
            let square = || Buffer::zeros(upper(self.capacity));
            let line = || Buffer::zeros(PANEL * self.capacity);
            (self.correlations, self.factor, self.inverse) = (square(), square(), square());
            (self.reciprocals, self.whitened) = (line(), line());
            (self.weights, self.diagonal) = (line(), line());
        }
        for square in [&mut self.correlations, &mut self.factor, &mut self.inverse] {
            square.resize(upper(blocks));
        }
        let lines = [&mut self.reciprocals, &mut self.whitened];
        for line in lines.into_iter().chain([&mut self.weights, &mut self.diagonal]) {
            line.resize(PANEL * blocks);
        }
    }

    /// Factorises C. `squared` has the squared distances of the inputs.
    pub(super) fn value(
        &mut self,
        squared: &[f64],
        data: &Collapsed,
        length: f64,
        ratio: f64,
    ) -> Result<Value, NotPositiveDefinite> {
        let padded = data.means.len();
        self.resize(padded / PANEL);
        let (correlations, factor) = (&mut *self.correlations, &mut *self.factor);
        let scale = -0.5 / (length * length);
        self.cpu.run::<PANEL, _>(Correlate { squared, scale, correlations, copy: factor });
        (0..padded).for_each(|i| self.factor[entry(i, i)] = 1.0 + ratio * data.shares[i]);
        let (matrix, reciprocals) = (&mut *self.factor, &mut *self.reciprocals);
        self.cpu.run::<PANEL, _>(Factorise { matrix, reciprocals })?;
        self.whitened.copy_from_slice(&data.means);
        let (factor, reciprocals) = (&*self.factor, &*self.reciprocals);
        self.cpu.run::<PANEL, _>(Forward { factor, reciprocals, values: &mut self.whitened });
        Ok(self.collect(data, ratio))
    }

    fn collect(&self, data: &Collapsed, ratio: f64) -> Value {
        let q = self.whitened.iter().fold(0.0, |sum, z| sum + z * z);
        // One logarithm per block: between 1e-20 and 1e20 each, their product is in range.
        let root = |i| self.factor[entry(i, i)];
        let log_determinant = (0..self.whitened.len() / PANEL).fold(0.0, |sum, block| {
            let product = (PANEL * block..PANEL * (block + 1)).fold(1.0, |p, i| p * root(i));
            sum + 2.0 * libm::log(product)
        });
        let (n, m) = (data.observations as f64, data.inputs as f64);
        let within = data.within / ratio;
        let repeats = n - m;
        let rest = log_determinant + repeats * libm::log(ratio) + data.log_counts + n * LOG_TAU;
        Value { ratio, squares: q + within, within, rest, observations: n, repeats }
    }

    /// What the gradient needs, at the (l, r) of the last value.
    pub(super) fn traces(
        &mut self,
        squared: &[f64],
        data: &Collapsed,
        length: f64,
        ratio: f64,
    ) -> Traces {
        self.invert();
        let (inverse, weights) = (&*self.inverse, &*self.weights);
        let correlations = &*self.correlations;
        let (trace, square) =
            self.cpu.run::<PANEL, _>(LengthTraces { inverse, correlations, squared, weights });
        self.cpu.run::<PANEL, _>(InverseDiagonal { inverse, out: &mut self.diagonal });
        let mut noise = (0.0, 0.0);
        for i in 0..data.inputs {
            noise.0 += self.diagonal[i] * data.shares[i];
            noise.1 += self.weights[i] * self.weights[i] * data.shares[i];
        }
        let per = 1.0 / (length * length);
        Traces { length: (trace * per, square * per), noise: (noise.0 * ratio, noise.1 * ratio) }
    }

    /// U^-T and C^-1 a.
    pub(super) fn invert(&mut self) {
        let (factor, reciprocals) = (&*self.factor, &*self.reciprocals);
        let blocks = reciprocals.len() / PANEL;
        let inverse = &mut self.inverse[..lower(blocks, blocks)];
        self.cpu.run::<PANEL, _>(Invert { factor, reciprocals, inverse });
        let (inverse, values) = (&*self.inverse, &*self.whitened);
        self.cpu.run::<PANEL, _>(Backward { inverse, values, out: &mut self.weights });
    }
}

impl Value {
    /// log p(y) at v.
    pub(super) fn at(&self, variance: f64) -> f64 {
        -0.5 * (self.squares / variance + self.observations * libm::log(variance) + self.rest)
    }

    /// The best v, wherever it is; 1 where nothing was observed.
    pub(super) fn best_variance(&self) -> f64 {
        if self.observations == 0.0 { 1.0 } else { self.squares / self.observations }
    }

    /// The gradient at v.
    pub(super) fn gradient(&self, traces: &Traces, variance: f64) -> Gradient {
        let (trace, square) = traces.length;
        let (diagonal, weights) = traces.noise;
        Gradient {
            variance: 0.5 * (self.squares / variance - self.observations),
            length: 0.5 * (square / variance - trace),
            ratio: 0.5 * ((weights + self.within) / variance - diagonal - self.repeats),
        }
    }

    /// r.
    pub(super) fn ratio(&self) -> f64 {
        self.ratio
    }
}

/// exp(scale D), kept twice.
struct Correlate<'a> {
    squared: &'a [f64],
    scale: f64,
    correlations: &'a mut [f64],
    copy: &'a mut [f64],
}

impl WithSimd for Correlate<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let out = self.correlations.iter_mut().zip(self.copy);
        for ((correlation, copy), &squared) in out.zip(self.squared) {
            let value = exp(squared * self.scale);
            *correlation = value;
            *copy = value;
        }
    }
}
