//! What a study will cost, from a few trials of some of its cells.

use std::time::{Duration, Instant};

use study::Batch;
use study::plan::{Plan, PlannedCell};
use worker::Cpu;
use worker::problem::Problem;
use worker::trial::LANES;

use crate::exit::BadInput;
use crate::load::Loaded;

/// Cells that are timed; others are taken to cost what the timed ones cost on average.
const TIMED_CELLS: usize = 24;

/// Time that all of it may take, roughly.
const BUDGET: Duration = Duration::from_secs(4);

/// What a trial costs.
pub(crate) struct Calibration {
    /// Seconds of one core, for each cell of the plan.
    pub(crate) seconds: Vec<f64>,
    /// Bytes of an encoded record, on average.
    pub(crate) record_bytes: f64,
}

impl Calibration {
    /// Seconds of one core for all trials.
    pub(crate) fn total(&self, plan: &Plan) -> f64 {
        self.seconds.iter().sum::<f64>() * plan.replicates.max() as f64
    }
}

/// Times a spread of cells, each long enough to be told from noise.
pub(crate) fn calibrate(loaded: &Loaded) -> anyhow::Result<Calibration> {
    let plan = &loaded.plan;
    let step = plan.cells.len().div_ceil(TIMED_CELLS).max(1);
    let timed: Vec<usize> = (0..plan.cells.len()).step_by(step).collect();
    let each = BUDGET / timed.len().max(1) as u32;
    let mut seconds = vec![f64::NAN; plan.cells.len()];
    let (mut bytes, mut records) = (0, 0);
    let mut last: Option<(usize, Problem)> = None;
    let mut order = timed;
    order.sort_by_key(|&cell| plan.cells[cell].prior);
    for index in order {
        let cell = &plan.cells[index];
        let prior = match last.take() {
            Some((held, prior)) if held == cell.prior => prior,
            _ => loaded.prior(&plan.priors[cell.prior])?,
        };
        let (cost, batch) = time(&prior, plan, cell, each)?;
        seconds[index] = cost;
        bytes += batch.encode().len();
        records += batch.len();
        last = Some((cell.prior, prior));
    }
    let known: Vec<f64> = seconds.iter().copied().filter(|cost| !cost.is_nan()).collect();
    let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
    seconds.iter_mut().filter(|cost| cost.is_nan()).for_each(|cost| *cost = mean);
    Ok(Calibration { seconds, record_bytes: bytes as f64 / records.max(1) as f64 })
}

/// Seconds per trial of a cell, and some of its records.
fn time(
    problem: &Problem,
    plan: &Plan,
    cell: &PlannedCell,
    budget: Duration,
) -> anyhow::Result<(f64, Batch)> {
    let trials = problem
        .trials(cell.cell, plan.study.seed, &cell.checkpoints, Cpu::detect())
        .map_err(|error| BadInput(format!("{}: {error}", plan.study.file)))?;
    let mut batch = Batch::new(cell.id);
    let (begin, mut done) = (Instant::now(), 0);
    let most = plan.replicates.max();
    while done < most && (done == 0 || begin.elapsed() < budget) {
        let end = most.min(done + if trials.lanes() == 1 { 1 } else { LANES as u64 });
        let mut keep = |record| {
            if batch.len() < 4096 {
                batch.push(&record);
            }
        };
        trials.run(done..end, &mut keep);
        done = end;
    }
    Ok((begin.elapsed().as_secs_f64() / done.max(1) as f64, batch))
}
