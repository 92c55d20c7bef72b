//! The trial: a pure function of (study seed, cell, replicate).
//!
//! A function f is drawn from the prior, estimators are drawn from their law, T points are chosen and
//! observed one after the other, and at every checkpoint what the claims need is measured. Trials of a
//! cell run in lockstep groups that share the sweeps over the prior's factor; no trial's bits depend
//! on the group that it ran in, on the CPU, or on how many steps follow a checkpoint.

mod compact;
mod determinant;
mod draw;
mod lockstep;
mod rows;
mod shuffle;
mod step;
mod tally;
mod trace;
mod truth;

use std::panic::{AssertUnwindSafe, catch_unwind};

use study::cell::{Cell, Estimator, Policy, Rival, RivalRule, Training};
use study::{Failure, Record};
use theory::theorem2;

use crate::gp::Distances;
use crate::method::box_bo;
use crate::posterior::Gram;
use crate::prior::{Points, Prior};
use crate::simd::Cpu;
use lockstep::Lockstep;

pub use compact::CompactTrials;
pub use rows::RowTrials;
pub use trace::{Belief, Trace, Traced};

/// Trials per lockstep group, unless the domain is too large for that many.
pub const LANES: usize = 8;

/// Memory that a lockstep group may take before trials run one at a time.
const GROUP_BYTES: usize = 256 << 20;

/// Doubles per point and trial that the estimator and the function take.
const DOUBLES_PER_POINT: usize = 24;

/// Memory that a single trial may take.
const TRIAL_BYTES: f64 = 16.0 * 1024.0 * 1024.0 * 1024.0;

/// A cell that cannot be run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// More evaluations than points.
    #[error(
        "T = {horizon} is more than the domain's M = {points} points; evaluated points are not chosen again, use T <= {points}"
    )]
    HorizonBeyondDomain {
        /// The largest checkpoint.
        horizon: u32,
        /// M.
        points: usize,
    },
    /// No checkpoint, or checkpoints out of order.
    #[error("checkpoints {0:?} are not an ascending list of whole numbers from 1 on")]
    Checkpoints(Vec<u32>),
    /// k_hat_T needs N - T - 1 > 0.
    #[error("N = {n} training functions are too few for T = {horizon} evaluations; use N >= {}", horizon + 2)]
    TooFewFunctions {
        /// N.
        n: u64,
        /// The largest checkpoint.
        horizon: u32,
    },
    /// zeta_t is not a real number.
    #[error(
        "zeta_{step} of GP-UCB does not exist for N = {n}, delta = {delta}: N - t must exceed 4 log(6/delta); use N >= {least}, as Theorem 2 asks"
    )]
    NoExplorationWeight {
        /// The evaluation.
        step: u32,
        /// N.
        n: u64,
        /// delta.
        delta: f64,
        /// The least N of the theorem.
        least: u64,
    },
    /// PI's target has to be at least max f.
    #[error(
        "pi_gap = {0} must be a finite number that is not negative: PI's target is an upper bound of f"
    )]
    Gap(f64),
    /// A trial does not fit in memory.
    #[error(
        "a trial on M = {points} points needs {gibibytes:.0} GiB, more than 16 GiB; use fewer points, or \
         the estimator \"wishart\" in place of an oracle"
    )]
    OutOfMemory {
        /// M.
        points: usize,
        /// What it needs.
        gibibytes: f64,
    },
    /// Too many points for a method with a kernel.
    #[error(
        "M = {points} points are too many for a method that keeps the distances between all; use at most {MOST_DISTANCES}"
    )]
    TooManyPoints {
        /// M.
        points: usize,
    },
    /// Inputs that a kernel cannot take.
    #[error("the inputs have no kernel: {0}; rescale them")]
    Inputs(String),
    /// The cell's noise is not that of the prior.
    #[error("the cell's noise variance {cell} is not the prior's {prior}")]
    OtherPrior {
        /// In the cell.
        cell: f64,
        /// In the prior.
        prior: f64,
    },
}

/// Runs the trials of one cell.
pub struct Trials<'a> {
    prior: &'a Prior,
    cell: Cell,
    seed: u64,
    checkpoints: &'a [u32],
    cpu: Cpu,
    /// Where points are located by it.
    gram: Option<Gram>,
    /// Where a method has a kernel on the inputs.
    distances: Option<Distances>,
    /// zeta_t for t = 1..=T+1; empty where the policy has none, shorter where the last does not exist.
    zetas: Vec<f64>,
}

impl<'a> Trials<'a> {
    /// Checks that every trial of the cell can be run up to the last checkpoint.
    pub fn new(
        prior: &'a Prior,
        cell: Cell,
        seed: u64,
        checkpoints: &'a [u32],
        cpu: Cpu,
    ) -> Result<Self, Error> {
        let horizon = ascending(checkpoints)?;
        let points = prior.factor.rows();
        if horizon as usize > points {
            return Err(Error::HorizonBeyondDomain { horizon, points });
        }
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
            return Err(Error::OtherPrior {
                cell: cell.noise_variance,
                prior: prior.noise_variance,
            });
        }
        let bytes = trial_bytes(prior, &cell.policy, horizon);
        if bytes > TRIAL_BYTES {
            return Err(Error::OutOfMemory { points, gibibytes: bytes / TRIAL_BYTES * 16.0 });
        }
        let zetas = exploration_weights(&cell.policy, horizon)?;
        // The known prior's posterior over the whole domain needs directions.
        let known = matches!(cell.policy, Policy::KnownUcb { .. } | Policy::KnownPi { .. });
        let gram = if known { None } else { Gram::new(prior, cpu) };
        let kernel =
            matches!(cell.policy, Policy::Rival { rival: Rival::Plain | Rival::TlsmBo, .. });
        let distances = if kernel { Some(distances(&prior.points)?) } else { None };
        Ok(Self { prior, cell, seed, checkpoints, cpu, gram, distances, zetas })
    }

    /// Runs replicates, given in ascending order, and hands over their records, in order of replicate
    /// and checkpoint.
    pub fn run(&self, replicates: impl IntoIterator<Item = u64>, sink: &mut impl FnMut(Record)) {
        self.run_all(&mut replicates.into_iter(), sink);
    }

    /// The same for any replicates and any sink: one copy of the code, in this crate and as fast as it is compiled.
    pub(crate) fn run_all(
        &self,
        replicates: &mut dyn Iterator<Item = u64>,
        sink: &mut dyn FnMut(Record),
    ) {
        if self.lanes() == 1 {
            self.run_in_lanes::<1>(replicates, sink);
        } else {
            self.run_in_lanes::<LANES>(replicates, sink);
        }
    }

    /// [`Self::run`], one trial at a time.
    pub fn run_alone(
        &self,
        replicates: impl IntoIterator<Item = u64>,
        sink: &mut impl FnMut(Record),
    ) {
        self.run_in_lanes::<1>(&mut replicates.into_iter(), sink);
    }

    /// How many trials run in lockstep: fewer where the domain is large, and one for the oracles.
    pub fn lanes(&self) -> usize {
        let oracle = self.cell.policy.training().is_some_and(|t| t.estimator != Estimator::Wishart)
            || matches!(self.cell.policy, Policy::Rival { rival: Rival::Plain, .. });
        let (points, rank) = (self.prior.factor.rows(), self.prior.factor.rank());
        let bytes = LANES * 8 * (points * DOUBLES_PER_POINT + rank * rank);
        if oracle || bytes > GROUP_BYTES { 1 } else { LANES }
    }

    fn run_in_lanes<const L: usize>(
        &self,
        replicates: &mut dyn Iterator<Item = u64>,
        sink: &mut dyn FnMut(Record),
    ) {
        let mut group: Option<Lockstep<'_, L>> = None;
        let mut records = Vec::new();
        loop {
            let live: Vec<u64> = (&mut *replicates).take(L).collect();
            let Some(&last) = live.last() else { return };
            // Lanes beyond the last replicate repeat it; their records are dropped.
            let lanes = std::array::from_fn(|lane| live.get(lane).copied().unwrap_or(last));
            let spare = group.take();
            let run = AssertUnwindSafe(|| self.run_group(spare, lanes, live.len(), &mut records));
            match catch_unwind(run) {
                Ok(ran) => group = Some(ran),
                Err(_) if L > 1 => {
                    records.clear();
                    self.run_in_lanes::<1>(&mut live.into_iter(), sink);
                }
                Err(_) => {
                    records.clear();
                    records.extend(self.checkpoints.iter().map(|&t| Record {
                        cell: self.cell.id(),
                        replicate: last,
                        t,
                        outcome: Err(Failure::Panicked),
                    }));
                }
            }
            records.sort_by_key(|record| record.replicate);
            records.drain(..).for_each(&mut *sink);
        }
    }

    /// Runs one group in the room of another, and collects the records of its live lanes.
    fn run_group<'t, const L: usize>(
        &'t self,
        spare: Option<Lockstep<'t, L>>,
        lanes: [u64; L],
        live: usize,
        records: &mut Vec<Record>,
    ) -> Lockstep<'t, L> {
        let id = self.cell.id();
        let mut group = match spare {
            None => Lockstep::new(self, lanes),
            Some(group) => group.next(lanes),
        };
        group.run(&mut |lane, t, outcome| {
            if lane < live {
                records.push(Record { cell: id, replicate: lanes[lane], t, outcome });
            }
        });
        group
    }
}

/// The last of checkpoints that ascend from 1 on.
fn ascending(checkpoints: &[u32]) -> Result<u32, Error> {
    let ascending = checkpoints.windows(2).all(|pair| pair[0] < pair[1]);
    match (checkpoints.first(), checkpoints.last()) {
        (Some(&first), Some(&last)) if first > 0 && ascending => Ok(last),
        _ => Err(Error::Checkpoints(checkpoints.to_vec())),
    }
}

/// Distances between all points, for methods with a kernel on them.
fn distances(points: &Points) -> Result<Distances, Error> {
    let size = points.size();
    if size > MOST_DISTANCES {
        return Err(Error::TooManyPoints { points: size });
    }
    let coordinates: Vec<f64> = points.iter().flatten().copied().collect();
    Distances::new(points.dimension(), &coordinates)
        .map_err(|error| Error::Inputs(error.to_string()))
}

/// The most points for which all distances are kept: half a gibibyte.
const MOST_DISTANCES: usize = 8192;

/// Bytes of one trial's largest structures.
fn trial_bytes(prior: &Prior, policy: &Policy, horizon: u32) -> f64 {
    let (points, rank) = (prior.size() as f64, prior.rank() as f64);
    let oracle = match policy.training() {
        Some(Training { estimator: Estimator::Dense, .. }) => 4.0 * points * points,
        Some(Training { estimator: Estimator::Simulated | Estimator::Completed { .. }, n }) => {
            points * (points + n as f64)
        }
        _ => 0.0,
    };
    let state = points * DOUBLES_PER_POINT as f64 + rank * (rank + 2.0 * f64::from(horizon));
    8.0 * (state + oracle)
}

/// zeta_1..=zeta_{T+1}, the last only where it exists.
fn exploration_weights(policy: &Policy, horizon: u32) -> Result<Vec<f64>, Error> {
    let mut weights = Vec::new();
    for step in 1..=horizon + 1 {
        let weight = match *policy {
            // As in the paper's experiments (appendix): others have the same zeta_t as PEM-BO.
            Policy::PemUcb { training, delta, constants }
            | Policy::Rival { training, rule: RivalRule::Ucb { delta, constants }, .. } => {
                theorem2::zeta(training.n, step, delta, constants.form())
            }
            Policy::KnownUcb { delta } => Some(theorem2::zeta_known_prior(delta)),
            Policy::Rival { training, rule: RivalRule::Weight(weight), .. } => {
                (training.n > u64::from(step)).then(|| box_bo::weight(weight, training.n, step))
            }
            _ => return Ok(weights),
        };
        match (weight, policy.training(), policy.delta()) {
            (Some(weight), ..) => weights.push(weight),
            (None, Some(Training { n, .. }), Some(delta)) if step <= horizon => {
                let least = theorem2::least_n(horizon, delta);
                return Err(Error::NoExplorationWeight { step, n, delta: delta.get(), least });
            }
            (None, ..) => {}
        }
    }
    Ok(weights)
}

#[cfg(test)]
mod tests {
    use super::*;
    use study::cell::{Ground, PolicyConstants};
    use theory::{Delta, Factor};

    fn prior() -> Prior {
        Prior::from_factor(Factor::from_columns(12, &[vec![1.0; 12]]), 0.0, 0.1)
    }

    fn refusal(policy: Policy, checkpoints: &[u32]) -> String {
        let prior = prior();
        let cell = Cell { shape: [0; 32], noise_variance: 0.1, ground: Ground::Finite, policy };
        let Err(error) = Trials::new(&prior, cell, 1, checkpoints, Cpu::detect()) else {
            panic!("{policy:?} at {checkpoints:?} should be refused");
        };
        error.to_string()
    }

    fn training(n: u64) -> Training {
        Training { n, estimator: Estimator::Wishart }
    }

    #[test]
    fn what_cannot_run_is_refused_with_what_would_be_valid() {
        let fixed = Policy::Fixed(training(100));
        assert!(refusal(fixed, &[13]).contains("T = 13 is more than the domain's M = 12 points"));
        assert!(refusal(fixed, &[]).contains("not an ascending list"));
        assert!(refusal(fixed, &[0, 3]).contains("not an ascending list"));
        assert!(refusal(fixed, &[3, 3]).contains("not an ascending list"));
        let few = refusal(Policy::Fixed(training(11)), &[10]);
        assert!(few.contains("N = 11") && few.contains("use N >= 12"), "{few}");
        let delta = Delta::new(0.1).unwrap();
        let constants = PolicyConstants::Printed;
        let ucb = refusal(Policy::PemUcb { training: training(20), delta, constants }, &[10]);
        assert!(ucb.contains("zeta_4") && ucb.contains("use N >= 29"), "{ucb}");
        for gap in [-0.5, f64::NAN, f64::INFINITY] {
            let pi = refusal(Policy::PemPi { training: training(20), gap }, &[10]);
            assert!(pi.contains(&format!("pi_gap = {gap}")), "{pi}");
        }
        let prior = prior();
        let cell = Cell {
            shape: [0; 32],
            noise_variance: 0.2,
            ground: Ground::Finite,
            policy: Policy::Random,
        };
        assert!(Trials::new(&prior, cell, 1, &[1], Cpu::detect()).is_err());
    }

    #[test]
    fn an_oracle_that_does_not_fit_is_refused() {
        let prior = Prior::from_factor(Factor::from_columns(100_000, &[]), 1.0, 0.1);
        let dense = Training { n: 10, estimator: Estimator::Dense };
        let cell = Cell {
            shape: [0; 32],
            noise_variance: 0.1,
            ground: Ground::Finite,
            policy: Policy::Fixed(dense),
        };
        let error = Trials::new(&prior, cell, 1, &[1], Cpu::detect()).err().unwrap().to_string();
        assert!(error.contains("M = 100000") && error.contains("wishart"), "{error}");
    }

    /// A prior with more means than points makes every trial panic.
    #[test]
    fn a_panic_is_a_failed_record_of_its_trial() {
        let prior = Prior { mean: vec![0.0; 40], ..prior() };
        let cell = Cell {
            shape: [0; 32],
            noise_variance: 0.1,
            ground: Ground::Finite,
            policy: Policy::Random,
        };
        let trials = Trials::new(&prior, cell, 1, &[1, 2], Cpu::detect()).unwrap();
        let mut records = Vec::new();
        trials.run(0..3, &mut |record| records.push(record));
        let addresses: Vec<(u64, u32)> = records.iter().map(|r| (r.replicate, r.t)).collect();
        assert_eq!(addresses, [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (2, 2)]);
        assert!(records.iter().all(|record| record.status() == "panicked"));
    }

    #[test]
    fn lanes_shrink_as_the_domain_grows() {
        let lanes = |rows: usize| {
            let prior = Prior::from_factor(Factor::from_columns(rows, &[]), 1.0, 0.1);
            let cell = Cell {
                shape: [0; 32],
                noise_variance: 0.1,
                ground: Ground::Finite,
                policy: Policy::Random,
            };
            Trials::new(&prior, cell, 1, &[1], Cpu::detect()).unwrap().lanes()
        };
        assert_eq!((lanes(1000), lanes(1_000_000)), (LANES, 1));
    }
}
