//! Local maximisation of a smooth function of two variables in a box.
//!
//! A quasi-Newton method with a trust region. Around the point u with gradient g, the gain of a
//! step d is modelled by g.d - d^T B d/2 with positive definite B, and the model is maximised
//! exactly over the part of the box within |d_i| <= radius. The step is taken if it gains at least
//! a tenth of what the model promises; otherwise the radius shrinks. B is updated by Powell's damped
//! BFGS formula (Nocedal and Wright, Numerical Optimization, procedure 18.2), which keeps it
//! positive definite where the function is not concave.
//!
//! Likelihoods have tails, as where the noise goes to 0, in which such a method goes on and on in
//! equal steps. There a leap to the end of the box is tried.
//!
//! It stops where the model promises at most [`TOLERANCE`], after [`STEPS`] evaluations, or where the
//! radius is below [`SMALLEST`]. There is no randomness and no clock.

use super::model::{Curvature, Maximum, Pair, Rectangle, larger};

/// A promised gain that is not worth a step, in units of the function.
pub(super) const TOLERANCE: f64 = 1e-8;

/// Evaluations per start.
const STEPS: usize = 60;

/// Radii: to begin with, at most, and where to give up.
const RADIUS: f64 = 1.0;
const LARGEST: f64 = 4.0;
const SMALLEST: f64 = 1e-7;

/// Steps to wait for after a leap that failed.
const PAUSE: usize = 3;

/// What is maximised.
pub(super) trait Objective {
    /// Why there is no value.
    type Error;

    /// The value at u.
    fn value(&mut self, u: Pair) -> Result<f64, Self::Error>;

    /// The gradient where the value was last asked for.
    fn gradient(&mut self) -> Pair;
}

/// Climbs from `start`. Gives up, without a result, where it comes close to one of the maxima that
/// are `known`: see [`Maximum::attracts`].
pub(super) fn maximise<O: Objective>(
    objective: &mut O,
    bounds: &Rectangle,
    start: Pair,
    curvature: Option<Curvature>,
    known: &[Maximum],
) -> Result<Option<Maximum>, O::Error> {
    let at = bounds.clamp(start);
    let value = objective.value(at)?;
    let gradient = objective.gradient();
    let curvature = curvature.unwrap_or(Curvature::for_unit_steps(gradient));
    let mut here = Maximum { at, value, curvature, gradient };
    let (mut radius, mut wait) = (RADIUS, 0);
    for _ in 1..STEPS {
        if known.iter().any(|maximum| maximum.attracts(&here)) {
            return Ok(None);
        }
        let short = here.step(bounds, radius);
        let promised = here.promise(short);
        if promised <= TOLERANCE || radius < SMALLEST {
            break;
        }
        let leap = if wait == 0 { here.leap(bounds, short) } else { None };
        let step = leap.unwrap_or(short);
        let at = bounds.clamp([here.at[0] + step[0], here.at[1] + step[1]]);
        let gain = objective.value(at).map_or(f64::NEG_INFINITY, |value| value - here.value);
        let length = larger(step[0].abs(), step[1].abs());
        if gain.is_nan() || gain < 0.1 * promised {
            if leap.is_some() {
                wait = PAUSE;
            } else {
                radius = 0.3 * length;
            }
            continue;
        }
        let gradient = objective.gradient();
        let taken = [at[0] - here.at[0], at[1] - here.at[1]];
        let fall = [here.gradient[0] - gradient[0], here.gradient[1] - gradient[1]];
        let curvature = here.curvature.updated(taken, fall);
        here = Maximum { at, value: here.value + gain, curvature, gradient };
        wait -= usize::from(wait > 0);
        if gain > 0.7 * promised && length > 0.9 * radius {
            radius = if 2.0 * radius < LARGEST { 2.0 * radius } else { LARGEST };
        }
    }
    Ok(Some(here))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function with its gradient; values that are not finite are errors.
    struct Known<F: Fn(Pair) -> (f64, Pair)> {
        function: F,
        gradient: Pair,
        evaluations: usize,
    }

    impl<F: Fn(Pair) -> (f64, Pair)> Objective for Known<F> {
        type Error = f64;

        fn value(&mut self, u: Pair) -> Result<f64, f64> {
            let (value, gradient) = (self.function)(u);
            (self.gradient, self.evaluations) = (gradient, self.evaluations + 1);
            if value.is_finite() { Ok(value) } else { Err(value) }
        }

        fn gradient(&mut self) -> Pair {
            self.gradient
        }
    }

    /// The end of a climb in [-5, 5]^2, and the number of evaluations.
    fn climb(function: impl Fn(Pair) -> (f64, Pair), start: Pair) -> (Maximum, usize) {
        let mut objective = Known { function, gradient: [0.0; 2], evaluations: 0 };
        let bounds = Rectangle { lower: [-5.0; 2], upper: [5.0; 2] };
        let found = maximise(&mut objective, &bounds, start, None, &[]).unwrap().unwrap();
        (found, objective.evaluations)
    }

    fn assert_at(found: Pair, expected: Pair, tolerance: f64) {
        let apart = larger((found[0] - expected[0]).abs(), (found[1] - expected[1]).abs());
        assert!(apart <= tolerance, "{found:?} instead of {expected:?}");
    }

    /// -(x - a)^2 - 10 (y - b)^2 - (x - a)(y - b).
    fn bowl(a: f64, b: f64) -> impl Fn(Pair) -> (f64, Pair) {
        move |[x, y]| {
            let (p, q) = (x - a, y - b);
            (-p * p - 10.0 * q * q - p * q, [-2.0 * p - q, -20.0 * q - p])
        }
    }

    #[test]
    fn inside_the_box() {
        let (found, evaluations) = climb(bowl(1.0, -2.0), [4.0, 4.0]);
        assert_at(found.at, [1.0, -2.0], 1e-3);
        assert!(found.value > -1e-7 && evaluations < 20, "{found:?} {evaluations}");
        // Rosenbrock's valley, upside down.
        let valley = |[x, y]: Pair| {
            let (p, q) = (1.0 - x, y - x * x);
            (-p * p - 100.0 * q * q, [2.0 * p + 400.0 * x * q, -200.0 * q])
        };
        let (found, evaluations) = climb(valley, [-1.2, 1.0]);
        assert!(found.value > -1e-6 && evaluations < STEPS, "{found:?} {evaluations}");
    }

    #[test]
    fn on_edges_and_corners() {
        // On x = 5 the best y solves -20 q - p = 0 with p = 5 - 7.
        assert_at(climb(bowl(7.0, 0.0), [0.0, 0.0]).0.at, [5.0, 0.1], 1e-4);
        assert_at(climb(bowl(9.0, -9.0), [0.0, 0.0]).0.at, [5.0, -5.0], 1e-12);
        let (found, _) = climb(|_| (1.0, [0.0, 0.0]), [9.0, 0.5]);
        assert_at(found.at, [5.0, 0.5], 0.0);
    }

    #[test]
    fn a_tail_is_leapt_over() {
        let tail =
            |[x, y]: Pair| (-libm::exp(2.0 * y) - x * x, [-2.0 * x, -2.0 * libm::exp(2.0 * y)]);
        let (found, evaluations) = climb(tail, [1.0, 0.0]);
        assert_at(found.at, [0.0, -5.0], 1e-3);
        assert!(evaluations < 12, "{evaluations}");
    }

    #[test]
    fn failures_are_stepped_around() {
        let half = |u: Pair| if u[0] > 2.1 { (f64::NAN, u) } else { bowl(2.0, 1.0)(u) };
        assert_at(climb(half, [-4.0, 0.0]).0.at, [2.0, 1.0], 1e-3);
        let mut objective =
            Known { function: |u| (f64::NAN, u), gradient: [0.0; 2], evaluations: 0 };
        let bounds = Rectangle { lower: [0.0; 2], upper: [1.0; 2] };
        assert!(maximise(&mut objective, &bounds, [0.5; 2], None, &[]).is_err());
    }

    #[test]
    fn a_known_maximum_is_not_climbed_again() {
        let (known, alone) = climb(bowl(1.0, -2.0), [4.0, 4.0]);
        let bounds = Rectangle { lower: [-5.0; 2], upper: [5.0; 2] };
        let mut objective = Known { function: bowl(1.0, -2.0), gradient: [0.0; 2], evaluations: 0 };
        let found = maximise(&mut objective, &bounds, [-4.0, 4.0], None, &[known]).unwrap();
        assert!(found.is_none() && objective.evaluations < alone);
    }
}
