//! What one trial has seen so far: regrets, the largest values, tau and its snapshot.

use study::Failure;
use theory::measurement::AtTau;

use super::determinant::Determinant;

/// Running quantities of one trial.
pub(super) struct Tally {
    pub(super) f_star: f64,
    pub(super) x_star: usize,
    pub(super) f_range: f64,
    pub(super) target: Option<f64>,
    /// y at x*, once x* has been observed.
    pub(super) star_value: Option<f64>,
    pub(super) cumulative_regret: f64,
    pub(super) y_max: f64,
    pub(super) f_at_y_max: f64,
    pub(super) f_max: f64,
    pub(super) y_at_f_max: f64,
    pub(super) k_xy: f64,
    pub(super) information: f64,
    /// In a share of the replicates.
    pub(super) determinant: Option<Determinant>,
    pub(super) at_tau: Option<AtTau>,
    pub(super) chosen: Vec<usize>,
    /// The last observation.
    pub(super) last_value: f64,
    pub(super) failure: Option<Failure>,
}

impl Tally {
    /// Looks f over: its maximum (first on ties) and its range.
    pub(super) fn new(f: impl Iterator<Item = f64>) -> Self {
        let (mut f_star, mut x_star, mut f_min) = (f64::NEG_INFINITY, 0, f64::INFINITY);
        for (i, value) in f.enumerate() {
            if value > f_star {
                (f_star, x_star) = (value, i);
            }
            if value < f_min {
                f_min = value;
            }
        }
        Self {
            f_star,
            x_star,
            f_range: f_star - f_min,
            target: None,
            star_value: None,
            cumulative_regret: 0.0,
            y_max: f64::NEG_INFINITY,
            f_at_y_max: f64::NEG_INFINITY,
            f_max: f64::NEG_INFINITY,
            y_at_f_max: f64::NEG_INFINITY,
            k_xy: 0.0,
            information: 0.0,
            determinant: None,
            at_tau: None,
            chosen: Vec::new(),
            last_value: 0.0,
            failure: None,
        }
    }

    /// For a function on a box, whose maximum and range were found by search.
    pub(super) fn of_range(f_star: f64, f_range: f64) -> Self {
        let tally = Self::new(std::iter::empty());
        Self { f_star, x_star: usize::MAX, f_range, ..tally }
    }

    /// Takes in an observation y of f at `point`.
    pub(super) fn observe(&mut self, point: usize, f: f64, y: f64) {
        self.chosen.push(point);
        self.last_value = y;
        self.cumulative_regret += self.f_star - f;
        if y > self.y_max {
            (self.y_max, self.f_at_y_max) = (y, f);
        }
        if f > self.f_max {
            (self.f_max, self.y_at_f_max) = (f, y);
        }
        if point == self.x_star {
            self.star_value = Some(y);
        }
    }

    /// Whether k_{t-1}(x_t) is the smallest so far, the first on ties: whether tau is t.
    pub(super) fn is_tau(&self, variance: f64) -> bool {
        self.at_tau.is_none_or(|best| variance < best.variance_tau)
    }

    /// The first failure stays.
    pub(super) fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }
}
