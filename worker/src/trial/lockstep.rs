//! A lockstep group: `L` trials of one cell, step by step.

mod measure;

use study::Failure;
use study::cell::Policy;
use theory::{Measurement, PANEL};

use super::determinant::{Determinant, EVERY};
use super::shuffle::Shuffle;
use super::step::{Estimated, Step};
use super::tally::Tally;
use super::truth::unobserved;
use super::{Trials, draw};
use crate::estimator::{Estimator, Observation, Rule};
use crate::posterior::{Located, Posterior, TOGETHER};
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
    /// Evaluations that the true posterior and the tally do not know yet.
    steps: Vec<Step<L>>,
    /// Room of points that are no longer needed.
    spare: Vec<Located<L>>,
    tally: [Tally; L],
    star: Located<L>,
    /// Where Lemma 1 is probed; of no meaning in lanes where no unobserved point is left.
    probe: Located<L>,
    probe_left: [bool; L],
    /// Points in a random order: those of a design, or candidates for the probe.
    order: [Shuffle; L],
}

/// What a group leaves to the next one.
struct Room<'a, const L: usize> {
    posterior: Posterior<'a, L>,
    f: Buffer,
    spare: Vec<Located<L>>,
}

impl<'a, const L: usize> Lockstep<'a, L> {
    /// Draws the functions and the estimators of a first group.
    pub(super) fn new(trials: &'a Trials<'a>, replicates: [u64; L]) -> Self {
        let open = |purpose| draw::open(trials, replicates, purpose);
        let estimator = draw::estimator(trials, &open);
        let f = Buffer::zeros(trials.prior.factor.panels() * PANEL * L);
        let posterior = Posterior::new(trials.prior, trials.gram.as_ref(), trials.cpu);
        let room = Room { posterior, f, spare: Vec::new() };
        Self::begin(trials, estimator, room, replicates, &open)
    }

    /// Draws those of another group, in the same room.
    pub(super) fn next(mut self, replicates: [u64; L]) -> Self {
        let open = |purpose| draw::open(self.trials, replicates, purpose);
        if let Some(estimator) = &mut self.estimator {
            estimator.redraw(&open);
        }
        self.posterior.clear();
        self.spare.extend([self.star, self.probe]);
        let room = Room { posterior: self.posterior, f: self.f, spare: self.spare };
        Self::begin(self.trials, self.estimator, room, replicates, &open)
    }

    fn begin(
        trials: &'a Trials<'a>,
        estimator: Option<Box<dyn Estimator<L> + 'a>>,
        room: Room<'a, L>,
        replicates: [u64; L],
        open: &dyn Fn(Purpose) -> [Stream; L],
    ) -> Self {
        let Room { posterior, mut f, mut spare } = room;
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
        let mut locate = |points| posterior.locate_in(spare.pop(), points);
        Self {
            trials,
            estimator,
            star: locate(std::array::from_fn(|lane| tally[lane].x_star)),
            probe: locate(probes),
            probe_left: [probing; L],
            posterior,
            f,
            noise: open(Purpose::Noise),
            steps: Vec::new(),
            spare,
            tally,
            order,
        }
    }

    /// Runs to the last checkpoint and hands over each lane's outcome at every checkpoint.
    pub(super) fn run(&mut self, emit: &mut impl FnMut(usize, u32, Result<Measurement, Failure>)) {
        let horizon = self.trials.checkpoints.last().copied().unwrap_or(0);
        // A known prior's choices need the true posterior, which then goes by weights.
        let together = if self.trials.gram.is_some() { TOGETHER } else { 1 };
        let mut ahead = self.first_choice().map(|points| self.place(points));
        for t in 1..=horizon {
            let here =
                ahead.expect("a cell is refused where a choice before its horizon is missing");
            self.evaluate(t, here);
            let checkpoint = self.trials.checkpoints.binary_search(&t).is_ok();
            let due = checkpoint || self.steps.len() == together;
            if due {
                self.account();
            }
            let next = self.condition(t);
            ahead = next.map(|points| self.place(points));
            if due {
                self.take_failures(self.steps[self.steps.len() - 1].failures);
            }
            if checkpoint {
                self.extend_determinants();
                let Step { mut here, values, .. } = self.steps.pop().expect("t was evaluated");
                self.posterior.advance(&mut [&mut here]);
                if let Some(ahead) = &mut ahead {
                    self.posterior.solve(&mut [ahead]);
                }
                for lane in 0..L {
                    let outcome = match self.tally[lane].failure {
                        Some(failure) => Err(failure),
                        None => self.measure(lane, t, &here, values[lane], ahead.as_ref()),
                    };
                    emit(lane, t, outcome);
                }
                self.spare.push(here);
            }
            if due {
                self.spare.extend(self.steps.drain(..).map(|step| step.here));
            }
        }
    }

    fn place(&mut self, points: [usize; L]) -> Located<L> {
        self.posterior.place(self.spare.pop(), points)
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

    /// Observes y_t at each lane's point.
    fn evaluate(&mut self, t: u32, here: Located<L>) {
        let scale = self.trials.prior.noise_variance.sqrt();
        let values = std::array::from_fn(|lane| {
            self.f[here.points[lane] * L + lane] + scale * self.noise[lane].normal()
        });
        let policy = &self.trials.cell.policy;
        let estimator = self.estimator.as_ref().filter(|_| policy.estimates());
        let estimated = estimator.map(|estimator| {
            std::array::from_fn(|lane| {
                let (point, star) = (here.points[lane], self.tally[lane].x_star);
                Estimated {
                    mean: estimator.mean(lane, point),
                    variance: estimator.variance(lane, point),
                    mean_star: estimator.mean(lane, star),
                    variance_star: estimator.variance(lane, star),
                }
            })
        });
        self.steps.push(Step { t, here, values, estimated, failures: [None; L] });
    }

    /// Brings the true posterior, the tally and the probes up to date with all evaluations.
    fn account(&mut self) {
        let mut steps = std::mem::take(&mut self.steps);
        let mut here: Vec<_> = steps.iter_mut().map(|step| &mut step.here).collect();
        self.posterior.solve(&mut here);
        for i in 0..steps.len() {
            let [step, later @ ..] = &mut steps[i..] else { unreachable!("i is below the length") };
            self.observe(step, later);
            self.take_failures(step.failures);
        }
        self.steps = steps;
    }

    /// Takes in one evaluation; the points of later ones learn of it.
    fn observe(&mut self, step: &mut Step<L>, later: &mut [Step<L>]) {
        let prior = self.trials.prior;
        let noise = prior.noise_variance;
        let (mut surprise, mut predictive) = ([0.0; L], [1.0; L]);
        for lane in 0..L {
            let (point, y) = (step.here.points[lane], step.values[lane]);
            let truth = unobserved(prior, &step.here, lane);
            if self.tally[lane].is_tau(truth.variance) {
                self.tally[lane].at_tau = Some(self.snapshot(lane, step, truth));
            }
            self.tally[lane].observe(point, self.f[point * L + lane], y);
            surprise[lane] = y - truth.mean;
            if self.sound(truth.variance + noise) {
                predictive[lane] = truth.variance + noise;
            } else {
                self.tally[lane].fail(Failure::AccuracyFloor { step: step.t });
            }
            let tally = &mut self.tally[lane];
            tally.k_xy += surprise[lane] * surprise[lane] / predictive[lane];
            if noise > 0.0 {
                tally.information += 0.5 * libm::log1p(truth.variance / noise);
            }
        }
        self.posterior.observe(&mut step.here, &surprise, &predictive);
        let tracked = [&mut self.star, &mut self.probe].into_iter();
        let mut following: Vec<_> =
            tracked.chain(later.iter_mut().map(|step| &mut step.here)).collect();
        self.posterior.advance(&mut following);
        self.renew_probes(&step.here.points);
    }

    /// Conditions the estimator on y_t and returns the points of evaluation t + 1, if there is one.
    fn condition(&mut self, t: u32) -> Option<[usize; L]> {
        let exhausted = t as usize == self.trials.prior.factor.rows();
        let rule = self.rule(t + 1).filter(|_| !exhausted);
        let mut chosen = None;
        if let Some(estimator) = &mut self.estimator {
            let step = self.steps.last_mut().expect("t was evaluated");
            let seen = Observation { at: &step.here, values: &step.values, truth: &self.posterior };
            let conditioned = estimator.observe(&seen, rule.as_ref());
            for lane in 0..L {
                if conditioned.zero_pivot[lane] {
                    step.failures[lane] = Some(Failure::ZeroPivot { step: t });
                } else if conditioned.no_fit[lane] {
                    step.failures[lane] = Some(Failure::NoFit { step: t });
                }
            }
            chosen = rule.map(|_| conditioned.next);
        }
        match self.trials.cell.policy {
            Policy::Fixed(_) | Policy::Random if !exhausted => self.draw_order(),
            _ => chosen,
        }
    }

    /// Takes in why estimators failed at a step that is accounted for.
    fn take_failures(&mut self, failures: [Option<Failure>; L]) {
        for (tally, failure) in self.tally.iter_mut().zip(failures) {
            failure.into_iter().for_each(|failure| tally.fail(failure));
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
}
