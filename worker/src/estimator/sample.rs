//! An estimator held as an explicit mean vector and M x M covariance matrix: what the two oracles
//! have in common once their matrix is drawn.

use super::{Estimator, Observation, PIVOT_FLOOR, Rule, Step};
use crate::random::{Purpose, Stream};

/// mu_hat_t, and k_hat minus its projection on the observed points, unscaled.
pub(crate) struct Sample {
    mean: Vec<f64>,
    /// Row-major M x M.
    covariance: Vec<f64>,
    /// Variances before any observation, against which pivots are judged.
    usual: Vec<f64>,
    observed: Vec<bool>,
    /// N - 1.
    n: u64,
    t: u64,
}

impl Sample {
    /// Takes mu_hat and k_hat from N training functions.
    pub(super) fn new(mean: Vec<f64>, covariance: Vec<f64>, usual: Vec<f64>, n_train: u64) -> Self {
        let observed = vec![false; mean.len()];
        Self { mean, covariance, usual, observed, n: n_train - 1, t: 0 }
    }
}

impl Sample {
    /// mu_hat and k_hat.
    pub(crate) fn moments(&self) -> (&[f64], &[f64]) {
        (&self.mean, &self.covariance)
    }

    /// k_hat_t = (N-1)/(N-t-1) times what is left of k_hat (paper, section 4.1).
    fn variance(&self, point: usize) -> f64 {
        let left = self.covariance[point * self.mean.len() + point];
        let left = if left > 0.0 { left } else { 0.0 };
        left * self.n as f64 / (self.n - self.t) as f64
    }

    fn choose<const L: usize>(&self, lane: usize, rule: &Rule<L>) -> usize {
        let mut best = (f64::NEG_INFINITY, 0);
        for i in (0..self.mean.len()).filter(|&i| !self.observed[i]) {
            let value = rule.value(lane, self.mean[i], self.variance(i));
            if value > best.0 {
                best = (value, i);
            }
        }
        best.1
    }

    /// Conditions on y at point p; `false` where the pivot is too small to divide by.
    fn observe(&mut self, p: usize, y: f64) -> bool {
        let size = self.mean.len();
        let column: Vec<f64> = (0..size).map(|i| self.covariance[i * size + p]).collect();
        let sound = column[p] > PIVOT_FLOOR * self.usual[p];
        if sound {
            let gain = (y - self.mean[p]) / column[p];
            for i in 0..size {
                self.mean[i] += column[i] * gain;
                let factor = column[i] / column[p];
                let row = &mut self.covariance[i * size..(i + 1) * size];
                for (entry, other) in row.iter_mut().zip(&column) {
                    *entry -= factor * other;
                }
            }
        }
        self.observed[p] = true;
        self.t += 1;
        sound
    }
}

/// Draws a sample from a trial's stream.
pub(crate) type Draw<'p> = Box<dyn Fn(&mut Stream) -> Sample + 'p>;

/// One sample per lane.
pub(crate) struct Samples<'p, const L: usize> {
    draw: Draw<'p>,
    lanes: [Sample; L],
}

impl<'p, const L: usize> Samples<'p, L> {
    /// Draws each lane's sample from its own stream.
    pub(crate) fn new(draw: Draw<'p>, mut streams: [Stream; L]) -> Self {
        let lanes = std::array::from_fn(|lane| draw(&mut streams[lane]));
        Self { draw, lanes }
    }
}

impl<const L: usize> Estimator<L> for Samples<'_, L> {
    fn redraw(&mut self, open: &dyn Fn(Purpose) -> [Stream; L]) {
        for (lane, stream) in self.lanes.iter_mut().zip(&mut open(Purpose::Estimator)) {
            *lane = (self.draw)(stream);
        }
    }

    fn choose(&mut self, rule: &Rule<L>) -> [usize; L] {
        std::array::from_fn(|lane| self.lanes[lane].choose(lane, rule))
    }

    fn observe(&mut self, seen: &Observation<'_, L>, rule: Option<&Rule<L>>) -> Step<L> {
        let zero_pivot = std::array::from_fn(|lane| {
            !self.lanes[lane].observe(seen.at.points[lane], seen.values[lane])
        });
        let next = rule.map_or([0; L], |rule| self.choose(rule));
        Step { next, zero_pivot, no_fit: [false; L] }
    }

    fn mean(&self, lane: usize, point: usize) -> f64 {
        self.lanes[lane].mean[point]
    }

    fn variance(&self, lane: usize, point: usize) -> f64 {
        self.lanes[lane].variance(point)
    }
}
