//! Trials on real data: f is a row of the rewards, and of its prior nothing is known.

use study::cell::{Cell, Policy, Rival, Training};
use study::{Failure, Record};
use theory::Measurement;
use theory::measurement::AtTau;

use super::shuffle::Shuffle;
use super::tally::Tally;
use super::{Error, ascending, exploration_weights};
use crate::data::Rewards;
use crate::estimator::Rule;
use crate::gp::Distances;
use crate::method::estimate::Estimate;
use crate::method::plain::Plain;
use crate::method::responses::Responses;
use crate::method::tlsm_bo::{self, TlsmBo};
use crate::method::{Method, Stuck, Unable, niw, pem_bo};
use crate::random::{Key, Purpose, Stream};
use crate::simd::Cpu;

/// Runs the trials of one cell.
pub struct RowTrials<'a> {
    rewards: &'a Rewards,
    cell: Cell,
    seed: u64,
    checkpoints: &'a [u32],
    cpu: Cpu,
    /// Where a method has a kernel on the inputs.
    distances: Option<Distances>,
    zetas: Vec<f64>,
}

impl<'a> RowTrials<'a> {
    /// Checks that every trial of the cell can be run up to the last checkpoint.
    pub fn new(
        rewards: &'a Rewards,
        cell: Cell,
        seed: u64,
        checkpoints: &'a [u32],
        cpu: Cpu,
    ) -> Result<Self, Error> {
        let horizon = ascending(checkpoints)?;
        let points = rewards.size();
        if horizon as usize > points {
            return Err(Error::HorizonBeyondDomain { horizon, points });
        }
        if let Some(Training { n, .. }) = cell.policy.training()
            && n < u64::from(horizon) + 2
        {
            return Err(Error::TooFewFunctions { n, horizon });
        }
        let kernel =
            matches!(cell.policy, Policy::Rival { rival: Rival::Plain | Rival::TlsmBo, .. });
        let distances = if kernel { Some(super::distances(&rewards.points)?) } else { None };
        let zetas = exploration_weights(&cell.policy, horizon)?;
        Ok(Self { rewards, cell, seed, checkpoints, cpu, distances, zetas })
    }

    /// Runs the trial of a replicate, which is the number of a row.
    pub(crate) fn run(&self, replicate: u64, sink: &mut impl FnMut(Record)) {
        let cell = self.cell.id();
        let mut emit = |t, outcome| sink(Record { cell, replicate, t, outcome });
        let own = usize::try_from(replicate).ok().filter(|&row| row < self.rewards.functions());
        self.trial(own.expect("a plan has no more replicates than rows"), &mut emit);
    }

    fn open(&self, replicate: u64, purpose: Purpose) -> Stream {
        // Draws do not depend on N, so that portions are nested.
        let identity = self.cell.random_identity(study::cell::Dependence::Function);
        Stream::new(Key::new(self.seed, &identity, replicate, purpose))
    }

    fn trial(&self, own: usize, emit: &mut dyn FnMut(u32, Result<Measurement, Failure>)) {
        let replicate = own as u64;
        let f = self.rewards.row(own);
        let closed: Vec<bool> = f.iter().map(|value| value.is_nan()).collect();
        let mut tally = Tally::new(f.iter().copied());
        let mut noise = self.open(replicate, Purpose::Noise);
        let mut order = Shuffle::new(f.len(), self.open(replicate, Purpose::Policy));
        let training = self.training(replicate);
        tally.target = self.target(training.as_ref());
        let mut method = self.method(training, closed.clone(), replicate);
        let deviation = self.rewards.noise_variance.sqrt();
        let horizon = self.checkpoints.last().copied().unwrap_or(0);
        for t in 1..=horizon {
            let rule = self.rule(t, &tally);
            let next = match (&mut method, rule) {
                _ if tally.chosen.len() + closed.iter().filter(|&&not| not).count() == f.len() => {
                    None
                }
                (Some(method), Some(rule)) => Some(method.choose(&rule)),
                _ => std::iter::from_fn(|| order.draw()).find(|&point| !closed[point]),
            };
            // A row with missing rewards has fewer points than the domain.
            if let Some(point) = next {
                let y = f[point] + deviation * noise.normal();
                tally.observe(point, f[point], y);
                if let Some(Err(stuck)) = method.as_mut().map(|method| method.observe(&point, y)) {
                    tally.fail(match stuck {
                        Stuck::ZeroPivot => Failure::ZeroPivot { step: t },
                        Stuck::NoFit => Failure::NoFit { step: t },
                    });
                }
            }
            if self.checkpoints.binary_search(&t).is_ok() {
                let last = tally.chosen.last().copied().unwrap_or_default();
                let outcome = match tally.failure {
                    Some(failure) => Err(failure),
                    None => Ok(self.measure(t, f, last, &tally)),
                };
                emit(t, outcome);
            }
        }
    }

    /// The training rows, with entries taken away where the cell says so.
    fn training(&self, replicate: u64) -> Option<Responses> {
        let Training { n, estimator } = self.cell.policy.training()?;
        let mut stream = self.open(replicate, Purpose::Design);
        let mut rows = self.rewards.training(replicate as usize, n, &mut stream);
        if let Some(share) = estimator.missing() {
            rows.lose(share, &mut self.open(replicate, Purpose::EstimatorAxes));
        }
        Some(rows)
    }

    /// PI's target is the largest response of the training data (paper, appendix, "Experiments").
    fn target(&self, training: Option<&Responses>) -> Option<f64> {
        let gap = self.cell.policy.gap()?;
        Some(training?.largest() + gap)
    }

    fn method(
        &self,
        training: Option<Responses>,
        closed: Vec<bool>,
        replicate: u64,
    ) -> Option<Box<dyn Method<usize> + '_>> {
        let training = training?;
        let mut stream = self.open(replicate, Purpose::Estimator);
        let rival = match self.cell.policy {
            Policy::Rival { rival, .. } => Some(rival),
            _ => None,
        };
        if let (Some(Rival::Plain), Some(distances)) = (rival, &self.distances) {
            return Some(Box::new(Plain::new(distances, closed, &mut stream, self.cpu)));
        }
        if let (Some(Rival::TlsmBo), Some(distances)) = (rival, &self.distances) {
            let sample = tlsm_bo::sample(&training, &mut stream);
            return Some(Box::new(TlsmBo::new(distances, &sample, closed, &mut stream, self.cpu)));
        }
        let n = training.rows() as u64;
        let Some(whole) = training.complete(stream.below(1 << 62) as u64, self.cpu) else {
            return Some(Box::new(Unable(0)));
        };
        let estimate: Estimate = match rival {
            Some(Rival::Niw) => {
                let (mean, covariance) = whole.moments();
                niw::from_moments(&mean, &covariance, n)
            }
            None | Some(Rival::Box) => pem_bo::from_responses(&whole),
            Some(Rival::Plain | Rival::TlsmBo) => {
                unreachable!("trials have distances for a kernel")
            }
        };
        Some(Box::new(estimate.without(&closed)))
    }

    fn rule(&self, t: u32, tally: &Tally) -> Option<Rule<1>> {
        match tally.target {
            Some(target) => Some(Rule::Pi { target: [target] }),
            None => self.zetas.get(t as usize - 1).map(|&zeta| Rule::Ucb { zeta }),
        }
    }

    fn measure(&self, t: u32, f: &[f64], last: usize, tally: &Tally) -> Measurement {
        Measurement {
            t,
            x: Some(last as u32),
            y: tally.last_value,
            f: f[last],
            f_star: tally.f_star,
            x_star: Some(tally.x_star as u32),
            prior_known: false,
            f_range: tally.f_range,
            zeta: self.zetas.get(t as usize - 1).copied(),
            target: tally.target,
            best_sample_regret: tally.f_star - tally.f_max,
            simple_regret: tally.f_star - tally.f_at_y_max,
            cumulative_regret: tally.cumulative_regret,
            probe: None,
            expected: None,
            star: None,
            next: None,
            observed: None,
            k_xy: 0.0,
            star_seen: tally.star_value.is_some(),
            at_tau: UNKNOWN,
            y_max: tally.y_max,
            f_at_y_max: tally.f_at_y_max,
            f_max: tally.f_max,
            y_at_f_max: tally.y_at_f_max,
            information: None,
            information_determinant: None,
        }
    }
}

/// Stands where the prior is not known; records hold nulls.
const UNKNOWN: AtTau = AtTau {
    tau: 0,
    mean_star: 0.0,
    variance_star: 0.0,
    mean_tau: 0.0,
    variance_tau: 0.0,
    f_tau: 0.0,
    zeta: None,
    estimated: None,
    compact: None,
    star_seen: false,
};
