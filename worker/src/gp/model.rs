//! The local model of a maximisation in two variables: value, gradient g and curvature B, by which
//! a step d gains g.d - d^T B d/2.

use super::maximise::TOLERANCE;

/// Steps that are longer than one and gain less than the other are in a tail.
const TAIL_STEP: f64 = 0.4;
const TAIL_GAIN: f64 = 0.1;

/// The least curvature that is guessed.
const FLAT: f64 = 1e-5;

/// A point, a step, or a gradient.
pub(super) type Pair = [f64; 2];

/// lower_i <= u_i <= upper_i.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rectangle {
    pub(super) lower: Pair,
    pub(super) upper: Pair,
}

impl Rectangle {
    pub(super) fn clamp(&self, u: Pair) -> Pair {
        [0, 1].map(|i| clamp(u[i], self.lower[i], self.upper[i]))
    }
}

/// A symmetric matrix: (0, 0), (0, 1), (1, 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Curvature(pub(super) [f64; 3]);

/// A point with what is known about its surroundings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Maximum {
    pub(super) at: Pair,
    pub(super) value: f64,
    pub(super) curvature: Curvature,
    pub(super) gradient: Pair,
}

impl Maximum {
    /// Gain of a step, as modelled.
    pub(super) fn promise(&self, d: Pair) -> f64 {
        dot(self.gradient, d) - 0.5 * dot(d, self.curvature.times(d))
    }

    /// The best step within the box and the radius, by the model.
    pub(super) fn step(&self, bounds: &Rectangle, radius: f64) -> Pair {
        let lower = [0, 1].map(|i| larger(bounds.lower[i] - self.at[i], -radius));
        let upper = [0, 1].map(|i| -larger(self.at[i] - bounds.upper[i], -radius));
        let free = self.curvature.solve(self.gradient);
        if (0..2).all(|i| lower[i] <= free[i] && free[i] <= upper[i]) {
            return free;
        }
        // A concave model has its maximum on an edge if it has none inside.
        let [b00, b01, b11] = self.curvature.0;
        let g = self.gradient;
        let mut best = [0.0, 0.0];
        for end in [lower, upper] {
            let second = (g[1] - b01 * end[0]) / b11;
            let first = (g[0] - b01 * end[1]) / b00;
            let edges = [
                [end[0], clamp(second, lower[1], upper[1])],
                [clamp(first, lower[0], upper[0]), end[1]],
            ];
            for edge in edges {
                if self.promise(edge) > self.promise(best) {
                    best = edge;
                }
            }
        }
        best
    }

    /// A step to the end of the box in every direction in which the function tails off: the model
    /// goes far for a small gain, and would go on so, a unit at a time.
    pub(super) fn leap(&self, bounds: &Rectangle, step: Pair) -> Option<Pair> {
        let [b00, _, b11] = self.curvature.0;
        let tails = [(0, b00), (1, b11)].map(|(i, b)| {
            let slope = self.gradient[i].abs();
            slope > TAIL_STEP * b && slope * slope < 2.0 * TAIL_GAIN * b
        });
        let end = |i: usize| (if self.gradient[i] > 0.0 { bounds.upper } else { bounds.lower })[i];
        let leap = [0, 1].map(|i| if tails[i] { end(i) - self.at[i] } else { step[i] });
        (leap != step).then_some(leap)
    }

    /// Whether a climb that has come to `here` is on its way to this maximum: it is near and below,
    /// by about what the curvature of this maximum says.
    pub(super) fn attracts(&self, here: &Self) -> bool {
        let d = [here.at[0] - self.at[0], here.at[1] - self.at[1]];
        let near = d[0].abs() <= 1.0 && d[1].abs() <= 1.0;
        let (below, expected) = (self.value - here.value, -self.promise(d));
        near && below >= 0.0
            && below >= 0.5 * expected
            && below <= 2.0 * expected + TOLERANCE
            && dot(here.gradient, d) <= 0.0
    }
}

impl Curvature {
    /// A guess by which the best step has length 1 in either direction, as it has in a tail.
    pub(super) fn for_unit_steps(gradient: Pair) -> Self {
        let [first, second] = gradient.map(|g| larger(g.abs(), FLAT));
        Self([first, 0.0, second])
    }

    fn times(&self, d: Pair) -> Pair {
        let [b00, b01, b11] = self.0;
        [b00 * d[0] + b01 * d[1], b01 * d[0] + b11 * d[1]]
    }

    fn solve(&self, g: Pair) -> Pair {
        let [b00, b01, b11] = self.0;
        let determinant = b00 * b11 - b01 * b01;
        [(b11 * g[0] - b01 * g[1]) / determinant, (b00 * g[1] - b01 * g[0]) / determinant]
    }

    /// After a step `s` over which the gradient fell by `y`.
    pub(super) fn updated(&self, s: Pair, y: Pair) -> Self {
        let bs = self.times(s);
        let (sbs, sy) = (dot(s, bs), dot(s, y));
        let theta = if sy >= 0.2 * sbs { 1.0 } else { 0.8 * sbs / (sbs - sy) };
        let y = [0, 1].map(|i| theta * y[i] + (1.0 - theta) * bs[i]);
        let sy = dot(s, y);
        let entry = |i: usize, j: usize| y[i] * y[j] / sy - bs[i] * bs[j] / sbs;
        let [b00, b01, b11] = self.0;
        let new = [b00 + entry(0, 0), b01 + entry(0, 1), b11 + entry(1, 1)];
        // Rounding may make a nearly singular matrix indefinite; then it stays as it was.
        let definite = new[0] > 0.0 && new[0] * new[2] - new[1] * new[1] > 1e-12 * new[0] * new[2];
        if definite && new.iter().all(|b| b.is_finite()) { Self(new) } else { *self }
    }
}

fn dot(a: Pair, b: Pair) -> f64 {
    a[0] * b[0] + a[1] * b[1]
}

pub(super) fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

fn clamp(value: f64, lower: f64, upper: f64) -> f64 {
    if value > upper {
        upper
    } else if value >= lower {
        value
    } else {
        lower
    }
}
