//! Ascent inside a box: BFGS on the coordinates that are free to move, steps projected onto the box,
//! backtracking until the value rises enough (Bertsekas 1982, Kim, Sra and Dhillon 2010).

use super::domain::Domain;
use super::maximise::Objective;

/// Steps at most.
const STEPS: usize = 100;
/// Trials of a step length at most.
const TRIALS: usize = 30;
/// The fraction of the promised rise that a step must bring.
const RISE: f64 = 1e-4;
/// Ascent ends where twice the expected rise is below this fraction of the value.
const PRECISION: f64 = 1e-14;
/// The first step, in lengths on which the objective varies.
const FIRST: f64 = 0.2;
/// The longest step that is tried where curvature is not known.
const LONGEST: f64 = 1.0;

/// The least cosine between a step and the fall of the gradient that curvature is learnt from.
const FLAT: f64 = 1e-10;

/// One ascent and its room.
pub(super) struct Ascent<'a> {
    domain: &'a Domain,
    /// Along each axis, the length on which the objective varies.
    scales: &'a [f64],
    at: Vec<f64>,
    gradient: Vec<f64>,
    next: Vec<f64>,
    next_gradient: Vec<f64>,
    direction: Vec<f64>,
    step: Vec<f64>,
    change: Vec<f64>,
    free: Vec<bool>,
    /// The negated inverse Hessian, d x d; meaningless while `known` is false.
    inverse: Vec<f64>,
    known: bool,
    /// The length of the next step while curvature is not known.
    length: f64,
    value: f64,
}

impl<'a> Ascent<'a> {
    pub(super) fn new(domain: &'a Domain, scales: &'a [f64]) -> Self {
        let d = domain.dimension();
        let zeros = || vec![0.0; d];
        Self {
            domain,
            scales,
            at: zeros(),
            gradient: zeros(),
            next: zeros(),
            next_gradient: zeros(),
            direction: zeros(),
            step: zeros(),
            change: zeros(),
            free: vec![false; d],
            inverse: vec![0.0; d * d],
            known: false,
            length: FIRST,
            value: 0.0,
        }
    }

    /// Climbs from a start; the place reached is [`Self::place`].
    pub(super) fn climb(&mut self, objective: &impl Objective, start: &[f64]) -> f64 {
        for (j, (at, &x)) in self.at.iter_mut().zip(start).enumerate() {
            *at = self.domain.clamped(j, x);
        }
        self.value = objective.value_and_gradient(&self.at, &mut self.gradient);
        self.forget(FIRST);
        for _ in 0..STEPS {
            self.release();
            let rise = self.aim();
            if rise.is_nan() || rise <= PRECISION * self.value.abs() {
                break;
            }
            if self.advance(objective) {
                continue;
            }
            if !self.known {
                break;
            }
            self.forget(FIRST);
        }
        self.value
    }

    pub(super) fn place(&self) -> &[f64] {
        &self.at
    }

    fn forget(&mut self, length: f64) {
        self.known = false;
        self.length = if length < LONGEST { length } else { LONGEST };
    }

    /// Decides which coordinates may move; where that changes, so does the Hessian that matters.
    fn release(&mut self) {
        let mut changed = false;
        for j in 0..self.at.len() {
            let free = !self.domain.pinned(j, self.at[j], self.gradient[j]);
            changed |= free != self.free[j];
            self.free[j] = free;
        }
        if changed {
            self.forget(FIRST);
        }
    }

    /// Sets the direction and returns the rise that it promises to first order.
    fn aim(&mut self) -> f64 {
        if self.known {
            self.newton();
            let rise = dot(&self.direction, &self.gradient);
            if rise > 0.0 {
                return rise;
            }
            self.forget(FIRST);
        }
        self.steepest();
        dot(&self.direction, &self.gradient)
    }

    fn newton(&mut self) {
        let d = self.at.len();
        for (j, row) in self.inverse.chunks_exact(d).enumerate() {
            let sum = (0..d)
                .filter(|&i| self.free[i])
                .fold(0.0, |sum, i| sum + row[i] * self.gradient[i]);
            self.direction[j] = if self.free[j] { sum } else { 0.0 };
        }
    }

    /// Along the gradient in units of the scales, over the next length.
    fn steepest(&mut self) {
        for (j, entry) in self.direction.iter_mut().enumerate() {
            *entry = if self.free[j] { self.gradient[j] * self.scales[j] } else { 0.0 };
        }
        let norm = dot(&self.direction, &self.direction).sqrt();
        for (entry, scale) in self.direction.iter_mut().zip(self.scales) {
            *entry = if norm > 0.0 { *entry / norm * self.length * scale } else { 0.0 };
        }
    }

    /// Takes the longest step along the direction that raises the value enough; false where none does.
    fn advance(&mut self, objective: &impl Objective) -> bool {
        let mut t = 1.0;
        for _ in 0..TRIALS {
            for j in 0..self.at.len() {
                self.next[j] = self.domain.clamped(j, self.at[j] + t * self.direction[j]);
                self.step[j] = self.next[j] - self.at[j];
            }
            let promised = dot(&self.step, &self.gradient);
            if promised.is_nan() || promised <= 0.0 {
                return false;
            }
            let value = objective.value_and_gradient(&self.next, &mut self.next_gradient);
            if value.is_finite() && value >= self.value + RISE * promised {
                let risen = value > self.value;
                self.accept(value);
                return risen;
            }
            t *= shorter(promised, value - self.value);
        }
        false
    }

    fn accept(&mut self, value: f64) {
        for j in 0..self.at.len() {
            let change = self.gradient[j] - self.next_gradient[j];
            self.change[j] = if self.free[j] { change } else { 0.0 };
        }
        std::mem::swap(&mut self.at, &mut self.next);
        std::mem::swap(&mut self.gradient, &mut self.next_gradient);
        self.value = value;
        self.learn();
    }

    /// The BFGS update of the inverse from the last step s and the fall y of the gradient along it:
    /// (I - s y^T/sy) H (I - y s^T/sy) + s s^T/sy.
    fn learn(&mut self) {
        let curvature = dot(&self.step, &self.change);
        let change = dot(&self.change, &self.change).sqrt();
        let length = dot(&self.step, &self.step).sqrt();
        if curvature.is_nan() || curvature <= FLAT * change * length {
            let scaled = self
                .step
                .iter()
                .zip(self.scales)
                .fold(0.0, |sum, (s, scale)| sum + (s / scale) * (s / scale));
            self.forget(2.0 * scaled.sqrt());
            return;
        }
        let d = self.at.len();
        if !self.known {
            self.scale_inverse(curvature);
        }
        // direction <- H y, which is not needed any more.
        for (j, row) in self.inverse.chunks_exact(d).enumerate() {
            self.direction[j] = dot(row, &self.change);
        }
        let along = 1.0 + dot(&self.direction, &self.change) / curvature;
        for i in 0..d {
            for j in 0..d {
                let (s, h) = (&self.step, &self.direction);
                self.inverse[i * d + j] +=
                    (along * (s[i] * s[j]) - (h[i] * s[j] + s[i] * h[j])) / curvature;
            }
        }
    }

    /// A diagonal of squared scales, as long as the first step says.
    fn scale_inverse(&mut self, curvature: f64) {
        let scaled = self
            .change
            .iter()
            .zip(self.scales)
            .fold(0.0, |sum, (y, scale)| sum + (y * scale) * (y * scale));
        let d = self.at.len();
        self.inverse.fill(0.0);
        for j in 0..d {
            self.inverse[j * d + j] = curvature / scaled * (self.scales[j] * self.scales[j]);
        }
        self.known = true;
    }
}

/// The factor by which to shorten a step: where the parabola through its outcome peaks, within limits.
fn shorter(promised: f64, risen: f64) -> f64 {
    let peak = 0.5 * promised / (promised - risen);
    if peak > 0.1 && peak < 0.5 {
        peak
    } else if peak >= 0.5 {
        0.5
    } else {
        0.1
    }
}

#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).fold(0.0, |sum, (x, y)| sum + x * y)
}
