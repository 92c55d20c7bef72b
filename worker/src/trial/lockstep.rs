//! A lockstep group: `L` trials of one cell, step by step.

use study::Failure;
use study::cell::Policy;
use theory::measurement::{AtTau, Deviation, EstimatedAtTau};
use theory::{Measurement, PANEL};

use super::determinant::{Determinant, EVERY};
use super::shuffle::Shuffle;
use super::tally::Tally;
use super::truth::{Truth, observed, unobserved};
use super::{Trials, draw};
use crate::estimator::{Estimator, Observation, Rule};
use crate::posterior::{Located, Posterior};
use crate::prior::ACCURACY_FLOOR;
use crate::random::{Purpose, Stream};
use crate::simd::Buffer;

/// The state of a group before its next step.
pub(super) struct Lockstep<'a, const L: usize> {
    trials: &'a Trials<'a>,
    estimator: Option<Box<dyn Estimator<L> + 'a>>,
    posterior: Posterior<'a, L>,
    /// f, entry (i, lane) at `i * L + lane`.
    f: Buffer,
    noise: [Stream; L],
    tally: [Tally; L],
    star: Located<L>,
    /// Where Lemma 1 is probed; of no meaning in lanes where no unobserved point is left.
    probe: Located<L>,
    probe_left: [bool; L],
    /// Points in a random order: those of a design, or candidates for the probe.
    order: [Shuffle; L],
}

impl<'a, const L: usize> Lockstep<'a, L> {
    /// Draws the functions and the estimators of a first group.
    pub(super) fn new(trials: &'a Trials<'a>, replicates: [u64; L]) -> Self {
        let open = |purpose| draw::open(trials, replicates, purpose);
        let estimator = draw::estimator(trials, &open);
        let f = Buffer::zeros(trials.prior.factor.panels() * PANEL * L);
        let posterior = Posterior::new(trials.prior, trials.gram.as_ref(), trials.cpu);
        Self::begin(trials, estimator, posterior, f, replicates, &open)
    }

    /// Draws those of another group, in the same room.
    pub(super) fn next(mut self, replicates: [u64; L]) -> Self {
        let open = |purpose| draw::open(self.trials, replicates, purpose);
        if let Some(estimator) = &mut self.estimator {
            estimator.redraw(&open);
        }
        self.posterior.clear();
        Self::begin(self.trials, self.estimator, self.posterior, self.f, replicates, &open)
    }

    fn begin(
        trials: &'a Trials<'a>,
        estimator: Option<Box<dyn Estimator<L> + 'a>>,
        posterior: Posterior<'a, L>,
        mut f: Buffer,
        replicates: [u64; L],
        open: &dyn Fn(Purpose) -> [Stream; L],
    ) -> Self {
        let prior = trials.prior;
        draw::functions(trials, open(Purpose::Function), &mut f);
        let mut tally: [Tally; L] =
            std::array::from_fn(|lane| Tally::new((0..prior.size()).map(|i| f[i * L + lane])));
        for (tally, replicate) in tally.iter_mut().zip(replicates) {
            tally.target = trials.cell.policy.gap().map(|gap| tally.f_star + gap);
            tally.determinant = replicate.is_multiple_of(EVERY).then(Determinant::default);
        }
        let order = match trials.cell.policy {
            Policy::Fixed(_) => Purpose::Design,
            Policy::Random => Purpose::Policy,
            _ => Purpose::Probe,
        };
        let mut order = open(order).map(|stream| Shuffle::new(prior.size(), stream));
        let probing = trials.cell.policy.estimates();
        let probes = std::array::from_fn(|lane| {
            if probing { order[lane].draw().expect("a domain has at least one point") } else { 0 }
        });
        Self {
            trials,
            estimator,
            star: posterior.locate(std::array::from_fn(|lane| tally[lane].x_star)),
            probe: posterior.locate(probes),
            probe_left: [probing; L],
            posterior,
            f,
            noise: open(Purpose::Noise),
            tally,
            order,
        }
    }

    /// Runs to the last checkpoint and hands over each lane's outcome at every checkpoint.
    pub(super) fn run(&mut self, emit: &mut impl FnMut(usize, u32, Result<Measurement, Failure>)) {
        let horizon = self.trials.checkpoints.last().copied().unwrap_or(0);
        let mut ahead = self.first_choice().map(|points| self.posterior.locate(points));
        let mut spare = None;
        for t in 1..=horizon {
            let mut here =
                ahead.expect("a cell is refused where a choice before its horizon is missing");
            let values = self.observe(t, &mut here);
            let next = self.condition(t, &here, &values);
            self.renew_probes(&here.points);
            ahead = next.map(|points| self.posterior.locate_in(spare, points));
            if self.trials.checkpoints.binary_search(&t).is_ok() {
                self.posterior.advance([&mut here]);
                self.extend_determinants();
                for lane in 0..L {
                    let outcome = match self.tally[lane].failure {
                        Some(failure) => Err(failure),
                        None => self.measure(lane, t, &here, values[lane], ahead.as_ref()),
                    };
                    emit(lane, t, outcome);
                }
            }
            spare = Some(here);
        }
    }

    fn extend_determinants(&mut self) {
        let Trials { prior, cpu, .. } = *self.trials;
        for Tally { determinant, chosen, .. } in &mut self.tally {
            if let Some(determinant) = determinant {
                determinant.extend(prior, cpu, chosen);
            }
        }
    }

    /// The rule by which evaluation t is chosen.
    fn rule(&self, t: u32) -> Option<Rule<L>> {
        match self.trials.cell.policy {
            Policy::Fixed(_) | Policy::Random => None,
            policy => match policy.gap() {
                Some(gap) => {
                    let target = std::array::from_fn(|lane| self.tally[lane].f_star + gap);
                    Some(Rule::Pi { target })
                }
                None => self.trials.zetas.get(t as usize - 1).map(|&zeta| Rule::Ucb { zeta }),
            },
        }
    }

    fn first_choice(&mut self) -> Option<[usize; L]> {
        match (self.rule(1), &mut self.estimator) {
            (Some(rule), Some(estimator)) => Some(estimator.choose(&rule)),
            _ => self.draw_order(),
        }
    }

    /// The next points of a random order. A fixed design keeps its probe for the very end.
    fn draw_order(&mut self) -> Option<[usize; L]> {
        let mut points = [0; L];
        for (lane, point) in points.iter_mut().enumerate() {
            let last = self.probe_left[lane].then_some(self.probe.points[lane]);
            *point = self.order[lane].draw().or(last)?;
        }
        Some(points)
    }

    /// Observes y_t at each lane's point and brings everything but the estimator up to date.
    fn observe(&mut self, t: u32, here: &mut Located<L>) -> [f64; L] {
        let prior = self.trials.prior;
        let noise = prior.noise_variance;
        let mut values = [0.0; L];
        let (mut surprise, mut predictive) = ([0.0; L], [1.0; L]);
        for lane in 0..L {
            let point = here.points[lane];
            let truth = unobserved(prior, here, lane);
            if self.tally[lane].is_tau(truth.variance) {
                self.tally[lane].at_tau = Some(self.snapshot(lane, t, point, truth));
            }
            let f = self.f[point * L + lane];
            let y = f + noise.sqrt() * self.noise[lane].normal();
            let tally = &mut self.tally[lane];
            tally.observe(point, f, y);
            values[lane] = y;
            surprise[lane] = y - truth.mean;
            if self.sound(truth.variance + noise) {
                predictive[lane] = truth.variance + noise;
            } else {
                self.tally[lane].fail(Failure::AccuracyFloor { step: t });
            }
            let tally = &mut self.tally[lane];
            tally.k_xy += surprise[lane] * surprise[lane] / predictive[lane];
            if noise > 0.0 {
                tally.information += 0.5 * libm::log1p(truth.variance / noise);
            }
        }
        self.posterior.observe(here, &surprise, &predictive);
        self.posterior.advance([&mut self.star, &mut self.probe]);
        values
    }

    /// The proof's quantities where tau is t (given t - 1 observations).
    fn snapshot(&self, lane: usize, t: u32, point: usize, truth: Truth) -> AtTau {
        let prior = self.trials.prior;
        let tally = &self.tally[lane];
        let star = self.truth_at_star(lane);
        let policy = &self.trials.cell.policy;
        let estimated = self.estimator.as_ref().and_then(|estimator| {
            if policy.training().is_none() {
                return Some(EstimatedAtTau {
                    mean_star: star.mean,
                    variance_star: star.variance + prior.noise_variance,
                    mean_tau: truth.mean,
                    variance_tau: truth.variance + prior.noise_variance,
                });
            }
            if !policy.estimates() {
                return None;
            }
            // At an observed point the estimator interpolates.
            let (mean_star, variance_star) = match tally.star_value {
                Some(y) => (y, 0.0),
                None => {
                    (estimator.mean(lane, tally.x_star), estimator.variance(lane, tally.x_star))
                }
            };
            Some(EstimatedAtTau {
                mean_star,
                variance_star,
                mean_tau: estimator.mean(lane, point),
                variance_tau: estimator.variance(lane, point),
            })
        });
        AtTau {
            tau: t,
            mean_star: star.mean,
            variance_star: star.variance,
            mean_tau: truth.mean,
            variance_tau: truth.variance,
            f_tau: self.f[point * L + lane],
            zeta: self.trials.zetas.get(t as usize - 1).copied(),
            estimated,
            compact: None,
            star_seen: tally.star_value.is_some(),
        }
    }

    /// Conditions the estimator on y_t and returns the points of evaluation t + 1, if there is one.
    fn condition(&mut self, t: u32, at: &Located<L>, values: &[f64; L]) -> Option<[usize; L]> {
        let exhausted = t as usize == self.trials.prior.factor.rows();
        let rule = self.rule(t + 1).filter(|_| !exhausted);
        let mut chosen = None;
        if let Some(estimator) = &mut self.estimator {
            let seen = Observation { at, values, truth: &self.posterior };
            let step = estimator.observe(&seen, rule.as_ref());
            for (tally, zero_pivot) in self.tally.iter_mut().zip(step.zero_pivot) {
                if zero_pivot {
                    tally.fail(Failure::ZeroPivot { step: t });
                }
            }
            for (tally, no_fit) in self.tally.iter_mut().zip(step.no_fit) {
                if no_fit {
                    tally.fail(Failure::NoFit { step: t });
                }
            }
            chosen = rule.map(|_| step.next);
        }
        match self.trials.cell.policy {
            Policy::Fixed(_) | Policy::Random if !exhausted => self.draw_order(),
            _ => chosen,
        }
    }

    /// A probe that has just been observed gives way to the next unobserved point of its random order,
    /// which is uniform over the unobserved points and independent of all else.
    fn renew_probes(&mut self, points: &[usize; L]) {
        for lane in 0..L {
            if !self.probe_left[lane] || self.probe.points[lane] != points[lane] {
                continue;
            }
            let chosen = &self.tally[lane].chosen;
            let order = &mut self.order[lane];
            match std::iter::from_fn(|| order.draw()).find(|point| !chosen.contains(point)) {
                Some(point) => {
                    self.posterior.relocate(&mut self.probe, lane, point);
                }
                None => self.probe_left[lane] = false,
            }
        }
    }

    /// What the record of checkpoint t holds. A failure to measure is this record's alone, so that
    /// later ones do not depend on which checkpoints came before.
    fn measure(
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
    fn sound(&self, variance: f64) -> bool {
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
}
