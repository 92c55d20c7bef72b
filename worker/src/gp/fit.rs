//! Hyper-parameters of maximum likelihood, from several starts.
//!
//! Where the noise is fitted, the search is over (log l, log r) with r = s/v, and v is the best one
//! for them within its bounds: see [`super::likelihood`]. Where the noise is known,
//! it is over (log l, log v).
//!
//! The first start is the last optimum, with the curvature found there, if there is one. The others
//! are points of a Kronecker sequence over the middle of the box, other points for every number of
//! observations; where they lead to an optimum that is known already, they are not followed to its
//! end.

use super::Error;
use super::cholesky::NotPositiveDefinite;
use super::data::Collapsed;
use super::likelihood::{Likelihood, Value};
use super::maximise::{Objective, maximise};
use super::model::{Curvature, Maximum, Pair, Rectangle};

/// Hyper-parameters of k(x, x') = v exp(-|x - x'|^2/(2 l^2)) and the noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// v.
    pub variance: f64,
    /// l.
    pub length: f64,
    /// s, the variance of the noise.
    pub noise: f64,
}

/// The smallest variance of known noise, for responses of variance 1. A noise that is known to be
/// less, or 0, is raised to it: it is the jitter that keeps kernel matrices positive definite.
pub const NOISE_FLOOR: f64 = 1e-8;

/// Least and largest values of each hyper-parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Of v.
    pub variance: [f64; 2],
    /// Of l.
    pub length: [f64; 2],
    /// Of s/v where s is fitted. The least is the jitter that keeps kernel matrices positive definite.
    pub ratio: [f64; 2],
}

/// Where hyper-parameters have to be, so that nothing overflows.
const RANGE: [f64; 2] = [1e-20, 1e20];

fn check(name: &'static str, least: f64, most: f64) -> Result<(), Error> {
    let fine = least >= RANGE[0] && least <= most && most <= RANGE[1];
    if fine { Ok(()) } else { Err(Error::Bounds { name, least, most }) }
}

impl Parameters {
    /// Whether all are within [`RANGE`].
    pub(super) fn check(&self) -> Result<(), Error> {
        check("variance", self.variance, self.variance)?;
        check("length", self.length, self.length)?;
        check("noise", self.noise, self.noise)
    }
}

impl Bounds {
    /// For responses of variance 1 and inputs with these distances between neighbours and across:
    /// v in [1e-3, 1e4], l in [nearest/4, 10 farthest] and s/v in [1e-10, 1e4].
    pub fn new(nearest: f64, farthest: f64) -> Self {
        let length = [0.25 * nearest, 10.0 * farthest];
        Self { variance: [1e-3, 1e4], length, ratio: [1e-10, 1e4] }
    }

    /// Whether every interval is within [`RANGE`] and not empty.
    fn check(&self) -> Result<(), Error> {
        let named = [("variance", self.variance), ("length", self.length), ("ratio", self.ratio)];
        for (name, [least, most]) in named {
            check(name, least, most)?;
        }
        Ok(())
    }

    /// The v within its bounds that is next to the given one.
    fn clamp(&self, variance: f64) -> f64 {
        let [least, most] = self.variance;
        if variance > most {
            most
        } else if variance >= least {
            variance
        } else {
            least
        }
    }

    fn rectangle(&self, noise: Noise) -> Rectangle {
        let length = self.length.map(libm::log);
        let second = match noise {
            Noise::Fitted => self.ratio.map(libm::log),
            Noise::Known(_) => self.variance.map(libm::log),
        };
        Rectangle { lower: [length[0], second[0]], upper: [length[1], second[1]] }
    }
}

/// What is known about the noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// Its variance is a hyper-parameter.
    Fitted,
    /// Its variance, in units of the responses; at least [`NOISE_FLOOR`] is used.
    Known(f64),
}

impl Noise {
    fn same_kind(self, other: Self) -> bool {
        matches!(self, Self::Fitted) == matches!(other, Self::Fitted)
    }
}

/// How hyper-parameters are searched for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// Where.
    pub bounds: Bounds,
    /// From how many starts, the last optimum included; at least one.
    pub starts: usize,
}

/// An optimum, kept as the next fit's first start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Previous {
    parameters: Parameters,
    noise: Noise,
    curvature: Curvature,
}

/// The log likelihood of (log l, log r) or (log l, log v).
struct Profile<'a> {
    likelihood: &'a mut Likelihood,
    squared: &'a [f64],
    data: &'a Collapsed,
    bounds: Bounds,
    noise: Noise,
    last: Option<Evaluated>,
}

/// Where the value was last asked for.
#[derive(Clone, Copy)]
struct Evaluated {
    value: Value,
    parameters: Parameters,
}

impl Profile<'_> {
    fn evaluate(&mut self, u: Pair) -> Result<Evaluated, NotPositiveDefinite> {
        let (length, second) = (libm::exp(u[0]), libm::exp(u[1]));
        let ratio = match self.noise {
            Noise::Fitted => second,
            Noise::Known(noise) => noise / second,
        };
        let value = self.likelihood.value(self.squared, self.data, length, ratio)?;
        let variance = match self.noise {
            Noise::Fitted => self.bounds.clamp(value.best_variance()),
            Noise::Known(_) => second,
        };
        let noise = ratio * variance;
        Ok(Evaluated { value, parameters: Parameters { variance, length, noise } })
    }
}

impl Objective for Profile<'_> {
    type Error = NotPositiveDefinite;

    fn value(&mut self, u: Pair) -> Result<f64, NotPositiveDefinite> {
        self.last = None;
        let found = self.evaluate(u)?;
        self.last = Some(found);
        Ok(found.value.at(found.parameters.variance))
    }

    fn gradient(&mut self) -> Pair {
        let Some(Evaluated { value, parameters }) = self.last else {
            return [0.0, 0.0];
        };
        let (squared, data) = (self.squared, self.data);
        let traces = self.likelihood.traces(squared, data, parameters.length, value.ratio());
        let gradient = value.gradient(&traces, parameters.variance);
        let second = match self.noise {
            Noise::Fitted => gradient.ratio,
            Noise::Known(_) => gradient.variance - gradient.ratio,
        };
        [gradient.length, second]
    }
}

/// The best hyper-parameters and their log likelihood; C is factorised there afterwards.
pub(super) fn fit(
    likelihood: &mut Likelihood,
    squared: &[f64],
    data: &Collapsed,
    search: &Search,
    noise: Noise,
    previous: &mut Option<Previous>,
) -> Result<(Parameters, f64), Error> {
    let Search { bounds, starts } = *search;
    bounds.check()?;
    let noise = match noise {
        Noise::Known(s) if !(0.0..=RANGE[1]).contains(&s) => {
            return Err(Error::Noise { value: s });
        }
        Noise::Known(s) if s < NOISE_FLOOR => Noise::Known(NOISE_FLOOR),
        noise => noise,
    };
    let rectangle = bounds.rectangle(noise);
    let mut profile = Profile { likelihood, squared, data, bounds, noise, last: None };
    let mut maxima: Vec<Maximum> = vec![];
    let mut failure = None;
    for (start, curvature) in all_starts(&rectangle, starts, data.observations, noise, *previous) {
        match maximise(&mut profile, &rectangle, start, curvature, &maxima) {
            Ok(found) => maxima.extend(found),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    let better = |a: Maximum, b: Maximum| if b.value > a.value { b } else { a };
    let best = match (maxima.into_iter().reduce(better), failure) {
        (Some(best), _) => best,
        (None, Some(error)) => return Err(error.into()),
        (None, None) => return Err(Error::NoStart),
    };
    let Evaluated { value, parameters } = profile.evaluate(best.at)?;
    *previous = Some(Previous { parameters, noise, curvature: best.curvature });
    Ok((parameters, value.at(parameters.variance)))
}

fn all_starts(
    rectangle: &Rectangle,
    starts: usize,
    observations: usize,
    noise: Noise,
    previous: Option<Previous>,
) -> impl Iterator<Item = (Pair, Option<Curvature>)> {
    let warm = previous.map(|Previous { parameters: p, noise: before, curvature }| {
        let second = match noise {
            Noise::Fitted => p.noise / p.variance,
            Noise::Known(_) => p.variance,
        };
        let curvature = before.same_kind(noise).then_some(curvature);
        ([libm::log(p.length), libm::log(second)], curvature)
    });
    let rectangle = *rectangle;
    let fresh = starts.saturating_sub(usize::from(warm.is_some()));
    let first = observations * starts;
    warm.into_iter()
        .take(starts)
        .chain((0..fresh).map(move |i| (spread(&rectangle, noise, first + i), None)))
}

/// Point i of the Kronecker sequence of the plastic number, over the middle four fifths of log l and
/// over r from 1e-5 to 1, or v from 0.1 to 10.
fn spread(rectangle: &Rectangle, noise: Noise, i: usize) -> Pair {
    let part = |step: f64| {
        let turned = 0.5 + step * i as f64;
        turned - turned.floor()
    };
    let length = 0.1 + 0.8 * part(0.7548776662466927);
    let second = match noise {
        Noise::Fitted => [-5.0, 0.0],
        Noise::Known(_) => [-1.0, 1.0],
    };
    let second = second[0] + (second[1] - second[0]) * part(0.5698402909980532);
    let (lower, upper) = (rectangle.lower[0], rectangle.upper[0]);
    rectangle.clamp([lower + (upper - lower) * length, second * std::f64::consts::LN_10])
}
