//! What is optimised, in any setting, and the trials on it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use study::cell::{Cell, CellId};
use study::prior::{Files, PriorSpec, Setting};
use study::{Failure, Record};
use theory::information;

use crate::compact::prior::CompactPrior;
use crate::data::{Normality, Rewards};
use crate::prior::{MemoryLimit, Points, Prior};
use crate::simd::Cpu;
use crate::trial::{self, CompactTrials, RowTrials, Trials};

/// A prior, or data in place of one.
#[derive(Debug)]
pub enum Problem {
    /// On the points of a finite domain.
    Finite(Prior),
    /// On a box.
    Compact(Box<CompactPrior>),
    /// Rows of real data.
    Data(Rewards),
}

/// Why a problem cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// A finite prior.
    #[error(transparent)]
    Finite(#[from] crate::prior::Error),
    /// A compact prior.
    #[error(transparent)]
    Compact(#[from] crate::compact::prior::Error),
    /// Data.
    #[error(transparent)]
    Data(#[from] study::prior::Invalid),
}

impl Problem {
    /// Checks the specification and builds what it says within the memory limit.
    pub fn build(spec: &PriorSpec, files: &Files, limit: MemoryLimit) -> Result<Self, Error> {
        Ok(match spec.setting {
            Setting::Finite => Self::Finite(Prior::build(spec, files, limit)?),
            Setting::Compact => {
                Self::Compact(Box::new(CompactPrior::build(spec, files, Cpu::detect())?))
            }
            Setting::Data => Self::Data(Rewards::build(spec, files)?),
        })
    }

    /// The points: of the domain, or of the training design in the compact setting.
    pub fn points(&self) -> &Points {
        match self {
            Self::Finite(prior) => &prior.points,
            Self::Compact(prior) => &prior.points,
            Self::Data(rewards) => &rewards.points,
        }
    }

    /// The mean at every point.
    pub fn mean(&self) -> Vec<f64> {
        match self {
            Self::Finite(prior) => prior.mean.clone(),
            Self::Compact(prior) => vec![0.0; prior.points.size()],
            Self::Data(rewards) => rewards.column_means(),
        }
    }

    /// M.
    pub fn size(&self) -> usize {
        self.points().size()
    }

    /// r, or K in the compact setting; 0 for data.
    pub fn rank(&self) -> usize {
        match self {
            Self::Finite(prior) => prior.rank(),
            Self::Compact(prior) => prior.basis(),
            Self::Data(_) => 0,
        }
    }

    /// c >= max k(x, x); 0 for data, of which none is known.
    pub fn c(&self) -> f64 {
        match self {
            Self::Finite(prior) => prior.c,
            Self::Compact(prior) => prior.c,
            Self::Data(_) => 0.0,
        }
    }

    /// sigma^2.
    pub fn noise_variance(&self) -> f64 {
        match self {
            Self::Finite(prior) => prior.noise_variance,
            Self::Compact(prior) => prior.noise_variance,
            Self::Data(rewards) => rewards.noise_variance,
        }
    }

    /// The finite prior, where it is one.
    pub fn finite(&self) -> Option<&Prior> {
        match self {
            Self::Finite(prior) => Some(prior),
            Self::Compact(_) | Self::Data(_) => None,
        }
    }

    /// The lower and the upper end of rho_t for t = 1 ..= `horizon`; empty where it is not known.
    pub fn information(&self, horizon: u32) -> Vec<(f64, f64)> {
        match self {
            Self::Finite(prior) => {
                let horizon = (horizon as usize).min(prior.size());
                information::bracket(&prior.factor, prior.white, prior.noise_variance, horizon)
                    .map(|found| found.bounds().iter().map(|b| (b.lo, b.hi)).collect())
                    .unwrap_or_default()
            }
            Self::Compact(prior) => prior.information(Cpu::detect(), horizon),
            Self::Data(_) => Vec::new(),
        }
    }

    /// How far the columns of real data are from normal.
    pub fn normality(&self) -> Option<Normality> {
        match self {
            Self::Data(rewards) => Some(rewards.normality()),
            Self::Finite(_) | Self::Compact(_) => None,
        }
    }

    /// Checks that every trial of a cell can be run up to the last checkpoint.
    pub fn trials<'a>(
        &'a self,
        cell: Cell,
        seed: u64,
        checkpoints: &'a [u32],
        cpu: Cpu,
    ) -> Result<Runs<'a>, trial::Error> {
        Ok(match self {
            Self::Finite(prior) => Runs::Finite(Trials::new(prior, cell, seed, checkpoints, cpu)?),
            Self::Compact(prior) => {
                let trials = CompactTrials::new(prior, cell, seed, checkpoints, cpu)?;
                Runs::Compact(trials, checkpoints, cell.id())
            }
            Self::Data(rewards) => {
                let trials = RowTrials::new(rewards, cell, seed, checkpoints, cpu)?;
                Runs::Data(trials, checkpoints, cell.id())
            }
        })
    }
}

/// The trials of one cell, in any setting.
pub enum Runs<'a> {
    /// On the points of a finite domain.
    Finite(Trials<'a>),
    /// On a box.
    Compact(CompactTrials<'a>, &'a [u32], CellId),
    /// On rows of real data.
    Data(RowTrials<'a>, &'a [u32], CellId),
}

impl Runs<'_> {
    /// Runs replicates, given in ascending order, and hands over their records, in order of replicate
    /// and checkpoint.
    pub fn run(&self, replicates: impl IntoIterator<Item = u64>, sink: &mut impl FnMut(Record)) {
        self.run_all(&mut replicates.into_iter(), sink);
    }

    /// The same for any replicates and any sink: one copy of the code, in this crate and as fast as it is compiled.
    fn run_all(&self, replicates: &mut dyn Iterator<Item = u64>, sink: &mut dyn FnMut(Record)) {
        match self {
            Self::Finite(trials) => trials.run_all(replicates, sink),
            Self::Compact(trials, checkpoints, cell) => {
                for replicate in replicates {
                    let run = |out: &mut Vec<Record>| trials.run(replicate, &mut |r| out.push(r));
                    caught(run, checkpoints, *cell, replicate).into_iter().for_each(&mut *sink);
                }
            }
            Self::Data(trials, checkpoints, cell) => {
                for replicate in replicates {
                    let run = |out: &mut Vec<Record>| trials.run(replicate, &mut |r| out.push(r));
                    caught(run, checkpoints, *cell, replicate).into_iter().for_each(&mut *sink);
                }
            }
        }
    }

    /// How many trials run in lockstep.
    pub fn lanes(&self) -> usize {
        match self {
            Self::Finite(trials) => trials.lanes(),
            Self::Compact(..) | Self::Data(..) => 1,
        }
    }

    /// The trials on a finite domain, where these are such.
    pub fn finite(&self) -> Option<&Trials<'_>> {
        match self {
            Self::Finite(trials) => Some(trials),
            Self::Compact(..) | Self::Data(..) => None,
        }
    }
}

/// The records of a trial, or of its panic.
fn caught(
    run: impl Fn(&mut Vec<Record>),
    checkpoints: &[u32],
    cell: CellId,
    replicate: u64,
) -> Vec<Record> {
    let mut records = Vec::new();
    if catch_unwind(AssertUnwindSafe(|| run(&mut records))).is_err() {
        let failed = |&t: &u32| Record { cell, replicate, t, outcome: Err(Failure::Panicked) };
        return checkpoints.iter().map(failed).collect();
    }
    records
}
