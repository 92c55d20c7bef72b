//! Methods of Bayesian optimisation that run one trial at a time, one file each.
//!
//! A [`Method`] is told what was observed, says what it believes of f, and takes the next point. Points
//! are indices into a finite domain, or coordinates in a box: `Method<usize>` and `Method<[f64]>`.
//! PEM-BO and the known prior on a Gaussian finite domain have faster forms of their own, in lockstep
//! (see [`crate::estimator`]); [`Each`] lets a `Method<usize>` take part there.
//!
//! `docs/methods.md` shows how one of one's own is added.

pub(crate) mod anywhere;
pub(crate) mod box_bo;
pub(crate) mod estimate;
pub(crate) mod linear;
pub(crate) mod niw;
pub(crate) mod pem_bo;
pub(crate) mod plain;
pub(crate) mod responses;
pub(crate) mod tlsm_bo;

use crate::estimator::{Estimator, Observation, Rule, Step};
use crate::random::{Purpose, Stream};

/// What a method believes of f at a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prediction {
    /// The mean.
    pub(crate) mean: f64,
    /// The variance that the acquisition function uses.
    pub(crate) variance: f64,
}

/// Why a method cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stuck {
    /// A pivot is zero to working accuracy.
    ZeroPivot,
    /// No kernel could be fitted.
    NoFit,
}

/// A method, in the midst of one trial.
pub(crate) trait Method<P: ?Sized + ToOwned> {
    /// Takes in y at a point.
    fn observe(&mut self, at: &P, y: f64) -> Result<(), Stuck>;

    /// What it believes at an unobserved point.
    fn predict(&self, at: &P) -> Prediction;

    /// The point with the largest acquisition value among those that may still be taken.
    fn choose(&mut self, rule: &Rule<1>) -> P::Owned;
}

/// The unobserved index with the largest acquisition value, the first on ties.
pub(crate) fn best(
    observed: &[bool],
    rule: &Rule<1>,
    predict: impl Fn(usize) -> Prediction,
) -> usize {
    let mut best = (f64::NEG_INFINITY, 0);
    let mut found = false;
    for i in (0..observed.len()).filter(|&i| !observed[i]) {
        let Prediction { mean, variance } = predict(i);
        let value = rule.value(0, mean, variance);
        if !found || value > best.0 {
            best = (value, i);
            found = true;
        }
    }
    best.1
}

/// Draws a method from a trial's stream.
pub(crate) type Draw<'p> = Box<dyn Fn(&mut Stream) -> Box<dyn Method<usize> + 'p> + 'p>;

/// A method for each trial of a lockstep group.
pub(crate) struct Each<'p, const L: usize> {
    draw: Draw<'p>,
    lanes: [Box<dyn Method<usize> + 'p>; L],
}

impl<'p, const L: usize> Each<'p, L> {
    /// Draws each lane's method from its own stream.
    pub(crate) fn new(draw: Draw<'p>, mut streams: [Stream; L]) -> Self {
        let lanes = std::array::from_fn(|lane| draw(&mut streams[lane]));
        Self { draw, lanes }
    }

    /// A lane's rule alone.
    fn alone(rule: &Rule<L>, lane: usize) -> Rule<1> {
        match rule {
            Rule::Ucb { zeta } => Rule::Ucb { zeta: *zeta },
            Rule::Pi { target } => Rule::Pi { target: [target[lane]] },
        }
    }
}

impl<const L: usize> Estimator<L> for Each<'_, L> {
    fn redraw(&mut self, open: &dyn Fn(Purpose) -> [Stream; L]) {
        for (lane, stream) in self.lanes.iter_mut().zip(&mut open(Purpose::Estimator)) {
            *lane = (self.draw)(stream);
        }
    }

    fn choose(&mut self, rule: &Rule<L>) -> [usize; L] {
        std::array::from_fn(|lane| self.lanes[lane].choose(&Self::alone(rule, lane)))
    }

    fn observe(&mut self, seen: &Observation<'_, L>, rule: Option<&Rule<L>>) -> Step<L> {
        let stuck: [Option<Stuck>; L] = std::array::from_fn(|lane| {
            self.lanes[lane].observe(&seen.at.points[lane], seen.values[lane]).err()
        });
        Step {
            next: rule.map_or([0; L], |rule| self.choose(rule)),
            zero_pivot: stuck.map(|stuck| stuck == Some(Stuck::ZeroPivot)),
            no_fit: stuck.map(|stuck| stuck == Some(Stuck::NoFit)),
        }
    }

    fn mean(&self, lane: usize, point: usize) -> f64 {
        self.lanes[lane].predict(&point).mean
    }

    fn variance(&self, lane: usize, point: usize) -> f64 {
        self.lanes[lane].predict(&point).variance
    }
}

/// Stands for a method whose training data could not be used: it fails at its first observation, at a
/// point that is always there.
pub(crate) struct Unable<O>(pub(crate) O);

impl<P: ?Sized + ToOwned> Method<P> for Unable<P::Owned>
where
    P::Owned: Clone,
{
    fn observe(&mut self, _: &P, _: f64) -> Result<(), Stuck> {
        Err(Stuck::NoFit)
    }

    fn predict(&self, _: &P) -> Prediction {
        Prediction { mean: 0.0, variance: 0.0 }
    }

    fn choose(&mut self, _: &Rule<1>) -> P::Owned {
        self.0.clone()
    }
}
