//! Features learnt from training data (paper, section 5): a network of one hidden layer of cosines with
//! a linear output of its own for every function, trained on the squared error of the whole data set.
//!
//! Frequencies and phases are found by L-BFGS, output weights are eliminated (variable projection). The
//! start is a set of random Fourier features of a squared-exponential kernel (Rahimi and Recht 2007). Its
//! lengthscale is the median distance between inputs, or the power of one half times it that fits best.
//! Inputs are standardised inside, so that the result does not depend on their units.

#[cfg(test)]
mod tests;

use super::dataset::Dataset;
use super::features::{Cosines, Invalid};
use super::lbfgs::{Stopping, minimise};
use super::loss::Loss;
use super::panels::Panels;
use crate::random::Stream;
use crate::simd::Cpu;

/// Inputs whose distances the median is taken of.
const DISTANCES: usize = 256;
/// Lengthscales tried at the start: the median distance over 1, 2, 4, ..
const LENGTHSCALES: usize = 5;

/// How features are learnt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// K.
    pub features: usize,
    /// Iterations at most.
    pub iterations: usize,
    /// Learning ends where ten iterations lower the loss by less than this fraction of it.
    pub tolerance: f64,
    /// The penalty on output weights, relative to the mean square that their features have.
    pub ridge: f64,
}

impl Options {
    /// What is good for smooth functions.
    pub fn new(features: usize) -> Self {
        Self { features, iterations: 400, tolerance: 1e-3, ridge: 1e-8 }
    }
}

/// Data or options that nothing can be learnt with.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// K > M: the features' weights are not determined.
    #[error(
        "{features} features cannot be learnt from {points} points: at least as many are needed"
    )]
    TooFewPoints {
        /// K.
        features: usize,
        /// M.
        points: usize,
    },
    /// K = 0.
    #[error("at least one feature must be learnt")]
    NoFeatures,
    /// The penalty is not positive.
    #[error("ridge {ridge} must be positive and finite")]
    Ridge {
        /// The penalty given.
        ridge: f64,
    },
    /// Features at the start are dependent beyond what the ridge mends, or the data overflow.
    #[error("the loss at the start is not finite: a larger ridge or smaller data are needed")]
    NoStart,
    /// Learning left the range of doubles.
    #[error("learnt features are not valid: {0}")]
    Diverged(#[from] Invalid),
}

/// Features and how they were found.
#[derive(Clone, Debug, PartialEq)]
pub struct Learnt {
    /// The features.
    pub cosines: Cosines,
    /// The loss of the random features at the start, and after every iteration: the squared error of all
    /// functions, penalty included, over the sum of squares of their responses.
    pub losses: Vec<f64>,
}

impl Learnt {
    /// The loss at the end.
    pub fn loss(&self) -> f64 {
        self.losses[self.losses.len() - 1]
    }

    /// Iterations done.
    pub fn iterations(&self) -> usize {
        self.losses.len() - 1
    }
}

/// Learns K features; the random start is drawn from the stream.
pub fn learn(
    cpu: Cpu,
    data: &Dataset<'_>,
    options: &Options,
    stream: &mut Stream,
) -> Result<Learnt, Error> {
    let (features, points, d) = (options.features, data.points(), data.dimension());
    check(options, points)?;
    let units = Units::of(data);
    let inputs = units.standardised(data);
    let lengthscale = median_distance(&inputs, d);
    let columns = Panels::from_rows(&inputs, d).transpose();
    let responses = Panels::from_rows(data.responses(), points);
    let mut loss = Loss::new(cpu, features, options.ridge, columns, responses);
    let start = start(&mut loss, &Cosines::still(features, d), lengthscale, stream)?;
    let stopping = Stopping { iterations: options.iterations, tolerance: options.tolerance };
    let found =
        minimise(start, stopping, |parameters, gradient| loss.evaluate(parameters, gradient));
    let mut cosines = Cosines::still(features, d);
    cosines.set_parameters(&found.at);
    Ok(Learnt { cosines: units.restored(&cosines)?, losses: found.values })
}

fn check(options: &Options, points: usize) -> Result<(), Error> {
    let Options { features, ridge, .. } = *options;
    if features == 0 {
        return Err(Error::NoFeatures);
    }
    if features > points {
        return Err(Error::TooFewPoints { features, points });
    }
    if !(ridge > 0.0 && ridge.is_finite()) {
        return Err(Error::Ridge { ridge });
    }
    Ok(())
}

/// The parameters of the best of a few sets of random Fourier features.
fn start(
    loss: &mut Loss,
    still: &Cosines,
    lengthscale: f64,
    stream: &mut Stream,
) -> Result<Vec<f64>, Error> {
    let draws = draw(still, stream);
    let mut unused = draws.clone();
    let frequencies = still.dimension() * still.padded();
    let mut best = (f64::INFINITY, draws.clone());
    for halvings in 0..LENGTHSCALES {
        let scale = f64::from(1_u32 << halvings) / lengthscale;
        let mut parameters = draws.clone();
        parameters[..frequencies].iter_mut().for_each(|w| *w *= scale);
        let value = loss.evaluate(&parameters, &mut unused);
        if value < best.0 {
            best = (value, parameters);
        }
    }
    if best.0.is_finite() { Ok(best.1) } else { Err(Error::NoStart) }
}

/// Standard normal frequencies and phases uniform on the circle.
fn draw(still: &Cosines, stream: &mut Stream) -> Vec<f64> {
    const STEPS: usize = 1 << 52;
    let (d, padded) = (still.dimension(), still.padded());
    let mut parameters = vec![0.0; still.parameters().len()];
    for k in 0..still.count() {
        for j in 0..d {
            parameters[j * padded + k] = stream.normal();
        }
        let turn = stream.below(STEPS) as f64 / STEPS as f64;
        parameters[d * padded + k] = std::f64::consts::TAU * turn;
    }
    parameters
}

/// The median distance between the first inputs, or 1 where most of them coincide.
fn median_distance(inputs: &[f64], d: usize) -> f64 {
    let points: Vec<&[f64]> = inputs.chunks_exact(d).take(DISTANCES).collect();
    let mut squares = Vec::with_capacity(points.len() * points.len() / 2);
    for (i, a) in points.iter().enumerate() {
        for b in &points[..i] {
            squares.push(a.iter().zip(*b).fold(0.0, |sum, (a, b)| sum + (a - b) * (a - b)));
        }
    }
    squares.sort_by(f64::total_cmp);
    let median = squares.get(squares.len() / 2).map_or(1.0, |square| square.sqrt());
    if median > 0.0 { median } else { 1.0 }
}

/// Mean and standard deviation of every coordinate.
struct Units {
    mean: Vec<f64>,
    deviation: Vec<f64>,
}

impl Units {
    fn of(data: &Dataset<'_>) -> Self {
        let (d, m) = (data.dimension(), data.points() as f64);
        let column = |j: usize| data.inputs().iter().skip(j).step_by(d);
        let mean: Vec<f64> = (0..d).map(|j| column(j).fold(0.0, |sum, x| sum + x) / m).collect();
        let deviation = (0..d)
            .map(|j| {
                let squares = column(j).fold(0.0, |sum, x| sum + (x - mean[j]) * (x - mean[j]));
                // A coordinate that never changes says nothing: any unit will do.
                if squares > 0.0 { (squares / m).sqrt() } else { 1.0 }
            })
            .collect();
        Self { mean, deviation }
    }

    fn standardised(&self, data: &Dataset<'_>) -> Vec<f64> {
        let d = self.mean.len();
        let inputs = data.inputs().iter().enumerate();
        inputs.map(|(at, x)| (x - self.mean[at % d]) / self.deviation[at % d]).collect()
    }

    /// The same functions of the inputs as they were: w_j/s_j, and b - sum_j w_j m_j/s_j.
    fn restored(&self, cosines: &Cosines) -> Result<Cosines, Invalid> {
        let (count, d) = (cosines.count(), cosines.dimension());
        let (mut frequencies, mut phases) = (Vec::with_capacity(count * d), Vec::new());
        for k in 0..count {
            let mut phase = cosines.phase(k);
            for j in 0..d {
                let frequency = cosines.frequency(k, j) / self.deviation[j];
                phase -= frequency * self.mean[j];
                frequencies.push(frequency);
            }
            phases.push(phase);
        }
        Cosines::new(&frequencies, &phases, d)
    }
}
