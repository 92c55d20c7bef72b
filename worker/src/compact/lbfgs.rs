//! Minimisation by L-BFGS (Liu and Nocedal 1989) with a weak Wolfe line search by bisection
//! (Lewis and Overton 2013). Every accepted step lowers the value.

use std::collections::VecDeque;

use theory::dense::dot;

/// Pairs of steps and changes of gradient that are remembered.
const MEMORY: usize = 30;
/// The fraction of the promised decrease that a step must bring.
const DECREASE: f64 = 1e-4;
/// The fraction of the slope that may remain after a step.
const CURVATURE: f64 = 0.9;
/// Evaluations per line search.
const TRIALS: usize = 25;
/// Iterations over which the relative change is measured.
const WINDOW: usize = 10;

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stopping {
    /// Iterations at most.
    pub(super) iterations: usize,
    /// Stops where ten iterations lower the value by less than this fraction of it.
    pub(super) tolerance: f64,
}

/// Where the minimisation ended.
pub(super) struct Minimum {
    pub(super) at: Vec<f64>,
    /// The value at the start and after every iteration.
    pub(super) values: Vec<f64>,
}

/// A point with its value and gradient.
struct Place {
    at: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

/// One remembered step s, the change of gradient y, and 1/(s . y).
struct Pair {
    step: Vec<f64>,
    change: Vec<f64>,
    inverse: f64,
}

/// Minimises; `f` writes the gradient and returns the value, or infinity where there is none.
pub(super) fn minimise(
    start: Vec<f64>,
    stopping: Stopping,
    mut f: impl FnMut(&[f64], &mut [f64]) -> f64,
) -> Minimum {
    let mut gradient = vec![0.0; start.len()];
    let value = f(&start, &mut gradient);
    let mut place = Place { at: start, value, gradient };
    let mut values = vec![value];
    let mut pairs = VecDeque::with_capacity(MEMORY);
    while values.len() <= stopping.iterations && !settled(&values, stopping.tolerance) {
        let direction = direction(&place.gradient, &pairs);
        let Some(next) = search(&place, &direction, first_step(&place, &pairs), &mut f) else {
            if pairs.is_empty() {
                break;
            }
            pairs.clear();
            continue;
        };
        remember(&mut pairs, &place, &next);
        place = next;
        values.push(place.value);
    }
    Minimum { at: place.at, values }
}

fn settled(values: &[f64], tolerance: f64) -> bool {
    let last = values[values.len() - 1];
    let before = values.len().checked_sub(WINDOW + 1).map(|at| values[at]);
    last == 0.0 || before.is_some_and(|before| before - last <= tolerance * before)
}

/// Without memory the gradient has no scale: a first step of length one at most.
fn first_step(place: &Place, pairs: &VecDeque<Pair>) -> f64 {
    let length = dot(&place.gradient, &place.gradient).sqrt();
    if pairs.is_empty() && length > 1.0 { 1.0 / length } else { 1.0 }
}

/// Minus the inverse Hessian times the gradient, by the two-loop recursion.
fn direction(gradient: &[f64], pairs: &VecDeque<Pair>) -> Vec<f64> {
    let mut out: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut factors = Vec::with_capacity(pairs.len());
    for pair in pairs.iter().rev() {
        let factor = pair.inverse * dot(&pair.step, &out);
        add(&mut out, -factor, &pair.change);
        factors.push(factor);
    }
    if let Some(last) = pairs.back() {
        let scale = 1.0 / (last.inverse * dot(&last.change, &last.change));
        out.iter_mut().for_each(|entry| *entry *= scale);
    }
    for (pair, factor) in pairs.iter().zip(factors.into_iter().rev()) {
        let correction = pair.inverse * dot(&pair.change, &out);
        add(&mut out, factor - correction, &pair.step);
    }
    out
}

fn add(to: &mut [f64], factor: f64, of: &[f64]) {
    to.iter_mut().zip(of).for_each(|(a, &b)| *a += factor * b);
}

fn remember(pairs: &mut VecDeque<Pair>, from: &Place, to: &Place) {
    let difference = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>();
    let step = difference(&to.at, &from.at);
    let change = difference(&to.gradient, &from.gradient);
    let product = dot(&step, &change);
    if product > 0.0 && (1.0 / product).is_finite() {
        if pairs.len() == MEMORY {
            pairs.pop_front();
        }
        pairs.push_back(Pair { step, change, inverse: 1.0 / product });
    }
}

/// A step along the direction that lowers value and slope enough; where none of the trials does both,
/// the last that lowers the value enough.
fn search(
    from: &Place,
    direction: &[f64],
    first: f64,
    f: &mut impl FnMut(&[f64], &mut [f64]) -> f64,
) -> Option<Place> {
    let slope = dot(&from.gradient, direction);
    if !(slope < 0.0 && slope.is_finite()) {
        return None;
    }
    let (mut short, mut long, mut step) = (0.0, f64::INFINITY, first);
    let mut found = None;
    for _ in 0..TRIALS {
        let mut at = from.at.clone();
        add(&mut at, step, direction);
        let mut gradient = vec![0.0; at.len()];
        let value = f(&at, &mut gradient);
        // Written so that a value that is not a number is refused.
        let lower = value <= from.value + DECREASE * step * slope && value < from.value;
        if lower {
            let flat = dot(&gradient, direction) >= CURVATURE * slope;
            found = Some(Place { at, value, gradient });
            if flat {
                break;
            }
            short = step;
        } else {
            long = step;
        }
        step = if long.is_finite() { 0.5 * (short + long) } else { 2.0 * short };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const STOPPING: Stopping = Stopping { iterations: 500, tolerance: 1e-12 };

    #[test]
    fn rosenbrock_valleys_are_followed_to_their_end() {
        let mut calls = 0;
        let found = minimise(vec![-1.2, 1.0, -1.2, 1.0], STOPPING, |x, g| {
            calls += 1;
            g.fill(0.0);
            x.chunks(2).zip(g.chunks_mut(2)).fold(0.0, |sum, (x, g)| {
                let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
                g[0] = -2.0 * a - 400.0 * x[0] * b;
                g[1] = 200.0 * b;
                sum + a * a + 100.0 * b * b
            })
        });
        assert!(found.at.iter().all(|x| (x - 1.0).abs() < 1e-6), "{:?}", found.at);
        assert!(found.values.windows(2).all(|w| w[1] < w[0]));
        assert!(calls < 120, "{calls}");
    }

    #[test]
    fn a_start_at_the_minimum_stays() {
        let found = minimise(vec![0.0], STOPPING, |x, g| {
            g[0] = 2.0 * x[0];
            x[0] * x[0]
        });
        assert_eq!((found.at, found.values), (vec![0.0], vec![0.0]));
    }

    #[test]
    fn places_without_a_value_are_backed_away_from() {
        // -log x + x, defined for x > 0 only, from a start where the first step overshoots.
        let found = minimise(vec![0.01], STOPPING, |x, g| {
            g[0] = 1.0 - 1.0 / x[0];
            if x[0] > 0.0 { x[0] - libm::log(x[0]) } else { f64::INFINITY }
        });
        assert!((found.at[0] - 1.0).abs() < 1e-5);
    }
}
