//! Sampled trials again, on all cores.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use analysis::dataset::Dataset;
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use study::Batch;
use study::plan::PlannedCell;
use worker::Cpu;
use worker::problem::Problem;
use worker::trial::LANES;

use super::difference::{Difference, differences};
use super::sample::{Sample, replicates};
use crate::exit::BadInput;
use crate::load::Loaded;

/// Trials of a job: some lockstep groups, so that what a cell needs is made once for all of them.
const TRIALS: usize = 8 * LANES;

/// Some sampled trials of one cell.
struct Job<'a> {
    planned: &'a PlannedCell,
    checkpoints: &'a [u32],
    replicates: Vec<u64>,
    stored: Batch,
}

/// What the threads share.
struct Work<'a> {
    loaded: &'a Loaded,
    study: &'a str,
    jobs: Vec<Job<'a>>,
    next: AtomicUsize,
    /// Priors in use, so that memory follows threads and not the size of the study.
    priors: Vec<Mutex<Weak<Problem>>>,
    bar: ProgressBar,
}

/// Computes the sampled trials again and returns every value that differs.
pub(super) fn recompute(
    dataset: &Dataset,
    loaded: &Loaded,
    sample: &Sample,
) -> anyhow::Result<Vec<Difference>> {
    let bar = ProgressBar::new(sample.trials());
    let style =
        ProgressStyle::with_template("recomputing {bar:30} {pos} of {len} trials, {eta} left");
    bar.set_style(style?.progress_chars("━╸ "));
    let work = Work {
        loaded,
        study: &dataset.manifest.study,
        jobs: jobs(dataset, loaded, sample)?,
        next: AtomicUsize::new(0),
        priors: loaded.plan.priors.iter().map(|_| Mutex::default()).collect(),
        bar,
    };
    let threads = crate::commands::workers(None)?.min(work.jobs.len().max(1));
    let found = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(|| work.run())).collect();
        let ended = threads.into_iter().map(|thread| match thread.join() {
            Ok(found) => found,
            Err(panic) => resume_unwind(panic),
        });
        ended.collect::<anyhow::Result<Vec<_>>>()
    });
    work.bar.finish_and_clear();
    let mut found: Vec<(usize, Difference)> = found?.into_iter().flatten().collect();
    // The sort is stable: within a job differences are in order already.
    found.sort_by_key(|(job, _)| *job);
    Ok(found.into_iter().map(|(_, difference)| difference).collect())
}

/// The jobs, those of one prior together.
fn jobs<'a>(
    dataset: &'a Dataset,
    loaded: &'a Loaded,
    sample: &Sample,
) -> anyhow::Result<Vec<Job<'a>>> {
    let mut jobs = Vec::new();
    for batch in &sample.cells {
        let planned =
            loaded.plan.cell(batch.cell()).context("the study has the dataset's cells")?;
        let held = dataset.cells.iter().find(|cell| cell.id == batch.cell());
        let checkpoints = &held.context("a sampled cell is one of the dataset")?.checkpoints;
        let mut row = 0;
        for chosen in replicates(batch).chunks(TRIALS) {
            let last = chosen[chosen.len() - 1];
            let end = batch.replicates().partition_point(|&replicate| replicate <= last);
            let stored = batch.slice(row..end);
            jobs.push(Job { planned, checkpoints, replicates: chosen.to_vec(), stored });
            row = end;
        }
    }
    jobs.sort_by_key(|job| job.planned.prior);
    Ok(jobs)
}

impl Work<'_> {
    /// Takes jobs until none is left, or until one cannot be done.
    fn run(&self) -> anyhow::Result<Vec<(usize, Difference)>> {
        let mut found = Vec::new();
        let mut held: Option<(usize, Arc<Problem>)> = None;
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = self.jobs.get(at) else { return Ok(found) };
            let prior = match held.take() {
                Some((index, prior)) if index == job.planned.prior => prior,
                _ => self.prior(job.planned.prior).inspect_err(|_| self.stop())?,
            };
            let recomputed = self.compute(job, &prior).inspect_err(|_| self.stop())?;
            let new = differences(self.study, &job.stored, &recomputed);
            found.extend(new.into_iter().map(|difference| (at, difference)));
            self.bar.inc(job.replicates.len() as u64);
            held = Some((job.planned.prior, prior));
        }
    }

    fn stop(&self) {
        self.next.store(self.jobs.len(), Ordering::Relaxed);
    }

    fn compute(&self, job: &Job<'_>, prior: &Problem) -> anyhow::Result<Batch> {
        let plan = &self.loaded.plan;
        let (cell, seed) = (job.planned.cell, plan.study.seed);
        let trials = prior.trials(cell, seed, job.checkpoints, Cpu::detect());
        let trials = trials.map_err(|error| BadInput(format!("{}: {error}", plan.study.file)))?;
        let mut batch = Batch::new(job.planned.id);
        trials.run(job.replicates.iter().copied(), &mut |record| batch.push(&record));
        Ok(batch)
    }

    /// The prior that another thread has, or a new one; threads that want the same wait for it.
    fn prior(&self, index: usize) -> anyhow::Result<Arc<Problem>> {
        let mut slot = self.priors[index].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(prior) = slot.upgrade() {
            return Ok(prior);
        }
        let prior = Arc::new(self.loaded.prior(&self.loaded.plan.priors[index])?);
        *slot = Arc::downgrade(&prior);
        Ok(prior)
    }
}
