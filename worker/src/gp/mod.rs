//! Gaussian-process regression with the squared exponential kernel
//!
//! ```text
//! k(x, x') = v exp(-|x - x'|^2/(2 l^2)),   y = f(x) + noise of variance s
//! ```
//!
//! and (v, l, s) of maximum likelihood: the model of the paper's baselines Plain and TLSM-BO. Plain
//! sees the current function's responses, standardised by [`Scale`]; TLSM-BO also those of other
//! functions, each standardised on its own, mostly at the same inputs, which are collapsed so that
//! only distinct inputs cost.

mod blocks;
mod cholesky;
mod data;
mod exp;
mod fit;
mod likelihood;
mod maximise;
mod model;
mod points;
mod predict;
mod scale;
#[cfg(test)]
mod tests;
mod traces;

pub use cholesky::NotPositiveDefinite;
pub use fit::{Bounds, NOISE_FLOOR, Noise, Parameters, Search};
pub use points::{Distances, Points, Space};
pub use predict::{Anywhere, Posterior};
pub use scale::Scale;

use crate::simd::Cpu;
use data::Design;
use likelihood::Likelihood;

/// Why there is no posterior.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// Rounding, with too little noise.
    #[error(transparent)]
    NotPositiveDefinite(#[from] NotPositiveDefinite),
    /// Coordinates that are not finite, or too large to be squared.
    #[error("the squared distance of two inputs is {squared:e}; it has to be at most 1e300")]
    Distance {
        /// It.
        squared: f64,
    },
    /// A response that is not finite, or too large to be squared.
    #[error("response {at} is {value:e}; it has to be at most 1e100 in size")]
    Response {
        /// Which, counted from 0.
        at: usize,
        /// Its value.
        value: f64,
    },
    /// Responses that are not one per observation.
    #[error("{given} responses for {expected} observations")]
    Length {
        /// How many there are.
        given: usize,
        /// How many there should be.
        expected: usize,
    },
    /// A known noise that is no variance.
    #[error("the variance of the noise is {value:e}; it has to be in [0, 1e20]")]
    Noise {
        /// It.
        value: f64,
    },
    /// Parameters or bounds that are far out, or an empty interval.
    #[error("the {name} is to be in [{least:e}, {most:e}]; that has to lie within [1e-20, 1e20]")]
    Bounds {
        /// Of which hyper-parameter.
        name: &'static str,
        /// The lower bound.
        least: f64,
        /// The upper bound.
        most: f64,
    },
    /// A search from nowhere.
    #[error("hyper-parameters are searched for from no start; at least one is needed")]
    NoStart,
}

/// A Gaussian process whose observations come one by one.
pub struct Gp<P: Points> {
    cpu: Cpu,
    design: Design<P>,
    likelihood: Likelihood,
    previous: Option<fit::Previous>,
}

impl<P: Points> Gp<P> {
    /// Before any observation.
    pub fn new(points: P, cpu: Cpu) -> Self {
        let (design, likelihood) = (Design::new(points), Likelihood::new(cpu));
        Self { cpu, design, likelihood, previous: None }
    }

    /// Adds an observation at x. Its response is given when fitting, because standardised responses
    /// change with every observation.
    pub fn observe(&mut self, x: P::Point) -> Result<(), Error> {
        self.design.observe(x)
    }

    /// Forgets all but the first observations, and the last optimum: the next trial's beginning.
    pub fn restart(&mut self, observations: usize) {
        self.design.truncate(observations);
        self.previous = None;
    }

    /// How many observations there are.
    pub fn observations(&self) -> usize {
        self.design.observations()
    }

    /// How many distinct inputs they have.
    pub fn inputs(&self) -> usize {
        self.design.inputs().len()
    }

    /// The posterior under the hyper-parameters of maximum likelihood; `responses` in order of
    /// observation.
    pub fn fit(
        &mut self,
        responses: &[f64],
        search: &Search,
        noise: Noise,
    ) -> Result<Posterior<'_, P>, Error> {
        let data = self.design.collapse(responses)?;
        let Self { cpu, design, likelihood, previous } = self;
        let (parameters, log_likelihood) =
            fit::fit(likelihood, design.squared(), &data, search, noise, previous)?;
        Ok(Posterior { cpu: *cpu, design, likelihood, parameters, log_likelihood })
    }

    /// The posterior under given hyper-parameters.
    pub fn posterior(
        &mut self,
        responses: &[f64],
        parameters: Parameters,
    ) -> Result<Posterior<'_, P>, Error> {
        let data = self.design.collapse(responses)?;
        let Self { cpu, design, likelihood, .. } = self;
        let Parameters { variance, length, noise } = parameters;
        parameters.check()?;
        let value = likelihood.value(design.squared(), &data, length, noise / variance)?;
        let log_likelihood = value.at(variance);
        Ok(Posterior { cpu: *cpu, design, likelihood, parameters, log_likelihood })
    }

    /// log p(responses) under given hyper-parameters, and its gradient by (log v, log l, log s).
    pub fn log_likelihood(
        &mut self,
        responses: &[f64],
        parameters: Parameters,
    ) -> Result<(f64, [f64; 3]), Error> {
        let data = self.design.collapse(responses)?;
        parameters.check()?;
        let Parameters { variance, length, noise } = parameters;
        let (squared, ratio) = (self.design.squared(), noise / variance);
        let value = self.likelihood.value(squared, &data, length, ratio)?;
        let traces = self.likelihood.traces(squared, &data, length, ratio);
        let gradient = value.gradient(&traces, variance);
        let by_variance = gradient.variance - gradient.ratio;
        Ok((value.at(variance), [by_variance, gradient.length, gradient.ratio]))
    }
}
