//! What trials need and what takes long to make, made once: plans, priors, and the counters of cells.
//!
//! Threads that want the same prior wait for the one that builds it. Priors are kept as long as they
//! fit in the memory that one may take; a shard holds on to its own, so that memory follows slots and
//! not the size of a study.

use std::sync::Arc;

use proto::convert::Lease;
use study::plan::PlannedCell;
use study::prior::{Files, Setting};
use study::tally::Counter;
use study::{CellId, Digest, Plan, rows};

use super::recent::Shelf;
use crate::prior::MemoryLimit;
use crate::problem::{Problem, Runs};
use crate::simd::Cpu;

/// Counters that are kept.
const COUNTERS: u64 = 1024;

/// A study that this worker knows: its plan, and the files that its priors name.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) plan: Plan,
    pub(super) revision: [u8; 32],
    files: Files,
    /// The longest horizon of every prior's cells.
    horizons: Vec<u32>,
}

impl Known {
    /// A plan with its files.
    pub(super) fn new(plan: Plan, files: Files) -> Self {
        let mut horizons = vec![0; plan.priors.len()];
        for cell in &plan.cells {
            let last = cell.checkpoints.last().copied().unwrap_or_default();
            horizons[cell.prior] = last.max(horizons[cell.prior]);
        }
        Self { revision: plan.revision(), plan, files, horizons }
    }
}

/// A prior, and what is known of its information gain.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) problem: Problem,
    /// rho_t, lower and upper end.
    information: Vec<(f64, f64)>,
}

impl Ready {
    /// Its largest structures: the factor, and what there is per point.
    fn bytes(&self) -> u64 {
        8 * self.problem.size() as u64 * (self.problem.rank() as u64 + 8)
    }
}

/// What the trials of a cell need.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) known: Arc<Known>,
    pub(super) cell: PlannedCell,
    pub(super) ready: Arc<Ready>,
    pub(super) counter: Arc<Counter>,
    pub(super) cpu: Cpu,
}

impl Setup {
    /// The trials of the cell.
    pub(super) fn trials(&self) -> Result<Runs<'_>, crate::trial::Error> {
        let PlannedCell { cell, checkpoints, .. } = &self.cell;
        let seed = self.known.plan.study.seed;
        self.ready.problem.trials(*cell, seed, checkpoints, self.cpu)
    }
}

/// What has been made.
#[derive(Debug)]
pub(super) struct Library {
    memory: MemoryLimit,
    cpu: Cpu,
    /// By what the prior's values depend on, and the longest horizon; a failure is kept too.
    priors: Shelf<[u8; 32], Result<Arc<Ready>, String>>,
    /// By plan and cell.
    counters: Shelf<([u8; 32], CellId), Arc<Counter>>,
}

impl Library {
    /// Nothing yet.
    pub(super) fn new(memory: MemoryLimit, cpu: Cpu) -> Self {
        let (priors, counters) = (Shelf::new(memory.bytes), Shelf::new(COUNTERS));
        Self { memory, cpu, priors, counters }
    }

    /// What the trials of a lease need, or why they cannot be run here.
    pub(super) fn setup(&self, known: &Arc<Known>, lease: &Lease) -> Result<Setup, String> {
        let plan = &known.plan;
        let missing = || format!("the study has no cell {}", lease.cell);
        let cell = plan.cell(lease.cell).ok_or_else(missing)?.clone();
        let most = plan.replicates.max();
        if lease.replicates.end > most {
            return Err(format!("the study has {most} replicates, not {}", lease.replicates.end));
        }
        let ready = self.ready(known, cell.prior)?;
        let counter = self.counter(known, &cell, &ready);
        let setup = Setup { known: Arc::clone(known), cell, ready, counter, cpu: self.cpu };
        setup.trials().map_err(|error| error.to_string())?;
        Ok(setup)
    }

    fn ready(&self, known: &Known, prior: usize) -> Result<Arc<Ready>, String> {
        let (spec, horizon) = (&known.plan.priors[prior].spec, known.horizons[prior]);
        let mut key = Digest::new();
        spec.feed(&known.files, &mut key);
        key.u64(horizon.into());
        let bytes =
            |built: &Result<Arc<Ready>, String>| built.as_ref().map_or(1, |ready| ready.bytes());
        self.priors.get(key.finish(), bytes, || {
            tracing::debug!(horizon, "builds a prior");
            let built = Problem::build(spec, &known.files, self.memory);
            let problem = built.map_err(|error| error.to_string())?;
            if horizon as usize > problem.size() && spec.setting != Setting::Compact {
                return Err(format!("T = {horizon} is more than the domain's points"));
            }
            let information = problem.information(horizon);
            Ok(Arc::new(Ready { problem, information }))
        })
    }

    fn counter(&self, known: &Known, cell: &PlannedCell, ready: &Ready) -> Arc<Counter> {
        self.counters.get(
            (known.revision, cell.id),
            |_| 1,
            || {
                let rows = rows::rows(&known.plan.study, &cell.cell);
                let rho = |t: u32| ready.information.get(t as usize - 1).copied();
                Arc::new(Counter::new(&rows, &cell.cell, ready.problem.c(), rho))
            },
        )
    }
}
