//! Trials of the compact setting: f = Phi(x)^T W on a box, points anywhere in it.

use study::cell::{Cell, Dependence, Estimator, Policy, Rival, Training};
use study::{Failure, Record};
use theory::Measurement;
use theory::measurement::{AtTau, CompactNoise, Deviation, EstimatedAtTau, Expected};

use super::tally::Tally;
use super::{Error, ascending, exploration_weights};
use crate::compact::acquisition::{self, Acquisition, Belief};
use crate::compact::belief::{Moments, Weights};
use crate::compact::conditioned::Conditioned;
use crate::compact::domain::Domain;
use crate::compact::maximise::{Effort, Search};
use crate::compact::prior::CompactPrior;
use crate::estimator::{PIVOT_FLOOR, Rule};
use crate::method::{Method, Stuck};
use crate::prior::ACCURACY_FLOOR;
use crate::random::{Key, Purpose, Stream};
use crate::simd::Cpu;

mod draw;

/// Where methods with a kernel look first; the features' own search would cost them more.
const KERNEL_EFFORT: Effort = Effort { candidates: 256, starts: 8 };

/// f may exceed the maximum that was found by this fraction of its range: the ascents' rounding.
const MISSED: f64 = 1e-9;

/// Runs the trials of one cell.
pub struct CompactTrials<'a> {
    prior: &'a CompactPrior,
    cell: Cell,
    seed: u64,
    checkpoints: &'a [u32],
    cpu: Cpu,
    zetas: Vec<f64>,
    kernel_search: Search,
}

/// A point, and what is known of it.
struct Place {
    x: Vec<f64>,
    phi: Vec<f64>,
    /// sigma_bar^2, where features are given.
    noise: f64,
}

/// A trial before its next evaluation.
struct State<'a> {
    f: Vec<f64>,
    truth: Weights,
    /// What the estimators are expected to be, where that is known.
    expected: Option<Conditioned>,
    method: Option<Box<dyn Method<[f64]> + 'a>>,
    tally: Tally,
    star: Place,
    probe: Place,
    design: Stream,
    noise: Stream,
}

impl<'a> CompactTrials<'a> {
    /// Checks that every trial of the cell can be run up to the last checkpoint.
    pub fn new(
        prior: &'a CompactPrior,
        cell: Cell,
        seed: u64,
        checkpoints: &'a [u32],
        cpu: Cpu,
    ) -> Result<Self, Error> {
        let horizon = ascending(checkpoints)?;
        if let Some(Training { n, .. }) = cell.policy.training()
            && n < u64::from(horizon) + 2
        {
            return Err(Error::TooFewFunctions { n, horizon });
        }
        if let Some(gap) = cell.policy.gap()
            && !(0.0..f64::INFINITY).contains(&gap)
        {
            return Err(Error::Gap(gap));
        }
        if cell.noise_variance != prior.noise_variance {
            let (cell, prior) = (cell.noise_variance, prior.noise_variance);
            return Err(Error::OtherPrior { cell, prior });
        }
        let zetas = exploration_weights(&cell.policy, horizon)?;
        let dimension = prior.points.dimension();
        let scales = vec![0.2; dimension];
        let kernel_search = Search::new(Domain::unit(dimension), scales, KERNEL_EFFORT);
        Ok(Self { prior, cell, seed, checkpoints, cpu, zetas, kernel_search })
    }

    /// Runs the trial of a replicate.
    pub(crate) fn run(&self, replicate: u64, sink: &mut impl FnMut(Record)) {
        let cell = self.cell.id();
        self.trial(replicate, &mut |t, outcome| sink(Record { cell, replicate, t, outcome }));
    }

    fn open(&self, replicate: u64, purpose: Purpose) -> Stream {
        let dependence = match purpose {
            Purpose::Estimator | Purpose::EstimatorAxes | Purpose::EstimatorSteps => {
                Dependence::Estimator
            }
            _ => Dependence::Function,
        };
        let identity = self.cell.random_identity(dependence);
        Stream::new(Key::new(self.seed, &identity, replicate, purpose))
    }

    /// Whether the estimators are those of Lemma 3, on the prior's own features.
    fn given(&self) -> bool {
        let route = self.cell.policy.training().map(|training| training.estimator);
        let own = matches!(route, Some(Estimator::Wishart | Estimator::Simulated));
        self.prior.given.is_some() && self.cell.policy.estimates() && own
    }

    fn begin(&self, replicate: u64) -> State<'_> {
        let prior = self.prior;
        let mut stream = self.open(replicate, Purpose::Function);
        let f: Vec<f64> =
            prior.variances.iter().map(|variance| variance.sqrt() * stream.normal()).collect();
        let extreme = |sign: f64| {
            let weights: Vec<f64> = f.iter().map(|w| sign * w).collect();
            let belief = Belief::certain(&weights);
            let rule = acquisition::Rule::Mean;
            prior.search.maximise(&Acquisition::new(self.cpu, &prior.cosines, &belief, rule), &[])
        };
        let (star, low) = (extreme(1.0), extreme(-1.0));
        let mut tally = Tally::of_range(star.value, star.value + low.value);
        tally.target = self.cell.policy.gap().map(|gap| star.value + gap);
        let mut probe = self.open(replicate, Purpose::Probe);
        let given = prior.given.as_ref().filter(|_| self.given());
        State {
            f,
            truth: Weights::independent(&prior.variances),
            expected: given
                .map(|given| Conditioned::new(given.estimate.clone(), 0.0, PIVOT_FLOOR * prior.c)),
            method: draw::method(self, replicate),
            tally,
            star: self.place(star.at),
            probe: self.place((0..prior.points.dimension()).map(|_| probe.uniform()).collect()),
            design: self.open(
                replicate,
                if matches!(self.cell.policy, Policy::Fixed(_)) {
                    Purpose::Design
                } else {
                    Purpose::Policy
                },
            ),
            noise: self.open(replicate, Purpose::Noise),
        }
    }

    fn place(&self, x: Vec<f64>) -> Place {
        let phi = self.prior.phi(self.cpu, &x);
        let sigma_bar = |given: &crate::compact::prior::Given| {
            given.sigma_bar2(self.prior.noise_variance, &phi)
        };
        let noise = self.prior.given.as_ref().map_or(self.prior.noise_variance, sigma_bar);
        Place { x, phi, noise }
    }

    fn trial(&self, replicate: u64, emit: &mut dyn FnMut(u32, Result<Measurement, Failure>)) {
        let mut state = self.begin(replicate);
        let horizon = self.checkpoints.last().copied().unwrap_or(0);
        let mut ahead = self.choose(&mut state, 1);
        for t in 1..=horizon {
            let Some(here) = ahead else { return };
            let y = self.observe(&mut state, t, &here);
            ahead = self.choose(&mut state, t + 1);
            if self.checkpoints.binary_search(&t).is_ok() {
                let outcome = match state.tally.failure {
                    Some(failure) => Err(failure),
                    None => self.measure(&state, t, &here, y, ahead.as_ref()),
                };
                emit(t, outcome);
            }
        }
    }

    /// The point of evaluation t; `None` where its exploration weight does not exist.
    fn choose(&self, state: &mut State<'_>, t: u32) -> Option<Place> {
        let rule = match state.tally.target {
            Some(target) => Some(Rule::Pi { target: [target] }),
            None => self.zetas.get(t as usize - 1).map(|&zeta| Rule::Ucb { zeta }),
        };
        let x = match (self.cell.policy, &mut state.method, rule) {
            (Policy::Fixed(_) | Policy::Random, ..) => {
                (0..self.prior.points.dimension()).map(|_| state.design.uniform()).collect()
            }
            // After a failure nothing that is chosen means anything.
            (_, _, Some(_)) if state.tally.failure.is_some() => state.star.x.clone(),
            (_, Some(method), Some(rule)) => method.choose(&rule),
            _ => return None,
        };
        Some(self.place(x))
    }

    /// Observes y_t and brings everything up to date.
    fn observe(&self, state: &mut State<'_>, t: u32, here: &Place) -> f64 {
        let noise = self.prior.noise_variance;
        let truth = state.truth.at(&here.phi);
        if state.tally.is_tau(truth.variance) {
            state.tally.at_tau = Some(self.snapshot(state, t, here, truth));
        }
        let f = theory::dense::dot(&here.phi, &state.f);
        let y = f + noise.sqrt() * state.noise.normal();
        if f > state.tally.f_star + MISSED * state.tally.f_range {
            state.tally.fail(Failure::MissedMaximum { step: t });
        }
        // An evaluation at the maximum itself may exceed it by rounding.
        let f = if f > state.tally.f_star { state.tally.f_star } else { f };
        state.tally.observe(t as usize, f, y);
        let predictive = truth.variance + noise;
        if predictive >= ACCURACY_FLOOR * self.prior.c {
            let surprise = y - truth.mean;
            state.tally.k_xy += surprise * surprise / predictive;
            if noise > 0.0 {
                state.tally.information += 0.5 * libm::log1p(truth.variance / noise);
            }
        } else {
            state.tally.fail(Failure::AccuracyFloor { step: t });
        }
        state.truth.condition(&here.phi, y, noise, 0.0);
        state.expected = state
            .expected
            .take()
            .and_then(|mut expected| expected.observe(&here.phi, y).is_ok().then_some(expected));
        if state.tally.failure.is_none()
            && let Some(Err(stuck)) = state.method.as_mut().map(|m| m.observe(&here.x, y))
        {
            state.tally.fail(match stuck {
                Stuck::ZeroPivot => Failure::ZeroPivot { step: t },
                Stuck::NoFit => Failure::NoFit { step: t },
            });
        }
        y
    }

    /// The proof's quantities where tau is t (given t - 1 observations).
    fn snapshot(&self, state: &State<'_>, t: u32, here: &Place, truth: Moments) -> AtTau {
        let star = state.truth.at(&state.star.phi);
        let estimated = state.method.as_ref().filter(|_| self.given()).map(|method| {
            let (at_star, at_tau) = (method.predict(&state.star.x), method.predict(&here.x));
            EstimatedAtTau {
                mean_star: at_star.mean,
                variance_star: at_star.variance,
                mean_tau: at_tau.mean,
                variance_tau: at_tau.variance,
            }
        });
        AtTau {
            tau: t,
            mean_star: star.mean,
            variance_star: star.variance,
            mean_tau: truth.mean,
            variance_tau: truth.variance,
            f_tau: theory::dense::dot(&here.phi, &state.f),
            zeta: self.zetas.get(t as usize - 1).copied(),
            estimated,
            compact: self
                .given()
                .then_some(CompactNoise { star: state.star.noise, tau: here.noise }),
            star_seen: false,
        }
    }

    /// What the estimators of the paper's section 4.2 are expected to be at the probe, which Lemma 3 claims to be mu_t
    /// and k_t + sigma_bar^2. Of t evaluations at s points the estimate of the variance has the factor (N-1)/(N-1-t),
    /// where (N-1)/(N-1-s) would be unbiased (docs/mathematics.md, "Bias").
    fn expected(&self, state: &State<'_>, t: u32) -> Option<Expected> {
        let belief = state.expected.as_ref()?;
        let n = self.cell.policy.training()?.n;
        let (truth, expected) = (state.truth.at(&state.probe.phi), belief.at(&state.probe.phi));
        let scale = truth.variance + state.probe.noise;
        let repeated = (n - 1 - belief.places() as u64) as f64 / (n - 1 - u64::from(t)) as f64;
        Some(Expected {
            signed: (expected.mean - truth.mean) / scale.sqrt(),
            ratio: repeated * expected.variance / scale,
        })
    }

    fn measure(
        &self,
        state: &State<'_>,
        t: u32,
        here: &Place,
        y: f64,
        ahead: Option<&Place>,
    ) -> Result<Measurement, Failure> {
        let tally = &state.tally;
        let mut measured = Deviations::default();
        if self.given() {
            let at = |place: &Place| self.deviation(state, t, place);
            measured.probe = Some(at(&state.probe)?);
            measured.star = Some(at(&state.star)?);
            measured.next = ahead.map(at).transpose()?;
            let truth = state.truth.at(&here.phi);
            let scale = truth.variance + here.noise;
            if scale >= ACCURACY_FLOOR * self.prior.c {
                // The estimators interpolate.
                measured.observed = Some(Deviation::new(y - truth.mean, 0.0, scale));
            }
            measured.expected = self.expected(state, t);
        }
        let noisy = self.prior.noise_variance > 0.0;
        Ok(Measurement {
            t,
            x: None,
            y,
            f: theory::dense::dot(&here.phi, &state.f),
            f_star: tally.f_star,
            x_star: None,
            prior_known: true,
            f_range: tally.f_range,
            zeta: self.zetas.get(t as usize - 1).copied(),
            target: tally.target,
            best_sample_regret: tally.f_star - tally.f_max,
            simple_regret: tally.f_star - tally.f_at_y_max,
            cumulative_regret: tally.cumulative_regret,
            probe: measured.probe,
            expected: measured.expected,
            star: measured.star,
            next: measured.next,
            observed: measured.observed,
            k_xy: tally.k_xy,
            star_seen: false,
            at_tau: tally.at_tau.expect("the first observation is tau until another is"),
            y_max: tally.y_max,
            f_at_y_max: tally.f_at_y_max,
            f_max: tally.f_max,
            y_at_f_max: tally.y_at_f_max,
            information: noisy.then_some(tally.information),
            information_determinant: None,
        })
    }

    /// Lemma 3's statistics at an unobserved point.
    fn deviation(&self, state: &State<'_>, t: u32, place: &Place) -> Result<Deviation, Failure> {
        let truth = state.truth.at(&place.phi);
        let scale = truth.variance + place.noise;
        if scale < ACCURACY_FLOOR * self.prior.c {
            return Err(Failure::AccuracyFloor { step: t });
        }
        let method = state.method.as_ref().expect("estimates come from a method");
        let estimate = method.predict(&place.x);
        Ok(Deviation::new(estimate.mean - truth.mean, estimate.variance, scale))
    }

    /// Who runs beside the paper's method.
    fn rival(&self) -> Option<Rival> {
        match self.cell.policy {
            Policy::Rival { rival, .. } => Some(rival),
            _ => None,
        }
    }
}

/// What is measured of the estimators.
#[derive(Default)]
struct Deviations {
    probe: Option<Deviation>,
    star: Option<Deviation>,
    next: Option<Deviation>,
    observed: Option<Deviation>,
    expected: Option<Expected>,
}
