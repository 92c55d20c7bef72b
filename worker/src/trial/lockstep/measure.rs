//! What a lane's record holds, and the proof's quantities at tau.

use study::Failure;
use theory::Measurement;
use theory::measurement::{AtTau, Deviation, EstimatedAtTau};

use super::super::determinant::Determinant;
use super::super::step::{Estimated, Step};
use super::super::truth::{Truth, observed, unobserved};
use super::Lockstep;
use crate::posterior::Located;
use crate::prior::ACCURACY_FLOOR;

impl<const L: usize> Lockstep<'_, L> {
    /// What the record of checkpoint t holds. A failure to measure is this record's alone, so that
    /// later ones do not depend on which checkpoints came before.
    pub(super) fn measure(
        &self,
        lane: usize,
        t: u32,
        here: &Located<L>,
        y: f64,
        ahead: Option<&Located<L>>,
    ) -> Result<Measurement, Failure> {
        let prior = self.trials.prior;
        let seen = observed(prior, here, lane, y);
        let (mut probe, mut star, mut next, mut at_seen) = (None, None, None, None);
        if self.trials.cell.policy.estimates() {
            if self.probe_left[lane] {
                let truth = unobserved(prior, &self.probe, lane);
                probe = Some(self.deviation(lane, t, self.probe.points[lane], truth)?);
            }
            if self.tally[lane].star_value.is_none() {
                let truth = unobserved(prior, &self.star, lane);
                star = Some(self.deviation(lane, t, self.star.points[lane], truth)?);
            }
            if let Some(ahead) = ahead {
                let truth = unobserved(prior, ahead, lane);
                next = Some(self.deviation(lane, t, ahead.points[lane], truth)?);
            }
            let scale = seen.variance + prior.noise_variance;
            if self.sound(scale) {
                // mu_hat_t(x_t) = y_t and k_hat_t(x_t) = 0.
                at_seen = Some(Deviation::new(y - seen.mean, 0.0, scale));
            }
        }
        let tally = &self.tally[lane];
        let point = here.points[lane];
        Ok(Measurement {
            t,
            x: Some(point as u32),
            y,
            f: self.f[point * L + lane],
            f_star: tally.f_star,
            x_star: Some(tally.x_star as u32),
            prior_known: true,
            f_range: tally.f_range,
            zeta: self.trials.zetas.get(t as usize - 1).copied(),
            target: tally.target,
            best_sample_regret: tally.f_star - tally.f_max,
            simple_regret: tally.f_star - tally.f_at_y_max,
            cumulative_regret: tally.cumulative_regret,
            probe,
            expected: None,
            star,
            next,
            observed: at_seen,
            k_xy: tally.k_xy,
            star_seen: tally.star_value.is_some(),
            at_tau: tally.at_tau.expect("the first observation is tau until another is"),
            y_max: tally.y_max,
            f_at_y_max: tally.f_at_y_max,
            f_max: tally.f_max,
            y_at_f_max: tally.y_at_f_max,
            information: (prior.noise_variance > 0.0).then_some(tally.information),
            information_determinant: tally.determinant.as_ref().and_then(Determinant::value),
        })
    }

    /// Lemma 1's statistics at an unobserved point of a cell with training data.
    fn deviation(
        &self,
        lane: usize,
        t: u32,
        point: usize,
        truth: Truth,
    ) -> Result<Deviation, Failure> {
        let scale = truth.variance + self.trials.prior.noise_variance;
        if !self.sound(scale) {
            return Err(Failure::AccuracyFloor { step: t });
        }
        let estimator = self.estimator.as_ref().expect("training data have an estimator");
        let shift = estimator.mean(lane, point) - truth.mean;
        Ok(Deviation::new(shift, estimator.variance(lane, point), scale))
    }

    /// Whether a predictive variance is not below the accuracy floor.
    pub(super) fn sound(&self, variance: f64) -> bool {
        variance >= ACCURACY_FLOOR * self.trials.prior.c
    }

    /// mu_t and k_t at x*, observed or not.
    fn truth_at_star(&self, lane: usize) -> Truth {
        let prior = self.trials.prior;
        match self.tally[lane].star_value {
            Some(y) => observed(prior, &self.star, lane, y),
            None => unobserved(prior, &self.star, lane),
        }
    }

    /// The proof's quantities where tau is t (given t - 1 observations).
    pub(super) fn snapshot(&self, lane: usize, step: &Step<L>, truth: Truth) -> AtTau {
        let prior = self.trials.prior;
        let tally = &self.tally[lane];
        let star = self.truth_at_star(lane);
        let known = self.trials.cell.policy.training().is_none();
        let estimated = if known && self.estimator.is_some() {
            Some(EstimatedAtTau {
                mean_star: star.mean,
                variance_star: star.variance + prior.noise_variance,
                mean_tau: truth.mean,
                variance_tau: truth.variance + prior.noise_variance,
            })
        } else {
            step.estimated.map(|estimated| {
                let Estimated { mean, variance, mean_star, variance_star } = estimated[lane];
                // At an observed point the estimator interpolates.
                let (mean_star, variance_star) =
                    tally.star_value.map_or((mean_star, variance_star), |y| (y, 0.0));
                EstimatedAtTau { mean_star, variance_star, mean_tau: mean, variance_tau: variance }
            })
        };
        AtTau {
            tau: step.t,
            mean_star: star.mean,
            variance_star: star.variance,
            mean_tau: truth.mean,
            variance_tau: truth.variance,
            f_tau: self.f[step.here.points[lane] * L + lane],
            zeta: self.trials.zetas.get(step.t as usize - 1).copied(),
            estimated,
            compact: None,
            star_seen: tally.star_value.is_some(),
        }
    }
}
