//! The trace: what is needed to check a trial by hand, as CSV.
//!
//! Numbers are written in the shortest form from which the same bits are read back.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};
use study::Record;
use worker::prior::Prior;
use worker::trial::{Belief, Trace, Traced};

use super::{Trial, report, trials};
use crate::exit::BadInput;

/// Rows of estimator.csv up to which every point is listed; beyond, those that the trial looked at.
const MOST_ROWS: usize = 500_000;

/// Entries of F up to which it is written.
const MOST_ENTRIES: usize = 4_000_000;

/// Refuses a folder that holds something.
pub(super) fn refuse_full(dir: &Path) -> Result<(), BadInput> {
    let full = match std::fs::read_dir(dir) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => dir.exists(),
    };
    if !full {
        return Ok(());
    }
    let dir = dir.display();
    Err(BadInput(format!("{dir} exists and is not an empty folder; give --trace a new one")))
}

/// Writes the trace of a trial.
pub(super) fn write(trial: &Trial<'_>, dir: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir)
        .map_err(|error| BadInput(format!("cannot create {}: {error}", dir.display())))?;
    let horizon = trial.cell.checkpoints.last().copied().unwrap_or(0);
    let every: Vec<u32> = (1..=horizon).collect();
    let runs = trials(trial.loaded, trial.cell, &trial.prior, &every)?;
    let (Some(trials), Some(prior)) = (runs.finite(), trial.prior.finite()) else {
        anyhow::bail!("only trials on a finite domain are traced");
    };
    let mut trace = trials.trace(trial.address.replicate);
    domain(prior, &trace, dir)?;
    let has_factor = prior.size().saturating_mul(prior.rank()) <= MOST_ENTRIES;
    if has_factor {
        factor(prior, dir)?;
    }
    let all = prior.size().saturating_mul(every.len() + 1) <= MOST_ROWS;
    let points = if all { (0..prior.size()).collect() } else { looked_at(&trace) };
    let estimated = trace.estimate(0).is_some();
    let steps = walk(&mut trace, &points, estimated, dir)?;
    let summary = summary(trial, &trace, steps, [has_factor, all, estimated])?;
    let text = serde_json::to_string_pretty(&summary)? + "\n";
    std::fs::write(dir.join("trace.json"), text).context("cannot write trace.json")
}

fn summary(
    trial: &Trial<'_>,
    trace: &Trace<'_>,
    steps: usize,
    [has_factor, all, estimated]: [bool; 3],
) -> anyhow::Result<Value> {
    let plan = &trial.loaded.plan;
    let failed = trace.records().iter().find(|record| record.outcome.is_err());
    let mut files = json!({
        "domain.csv": "every point: index, coordinates x0.., prior mean mu, the trial's f",
        "steps.csv": "evaluation t: x, y, f, and before it mu and k (mu_{t-1}, k_{t-1}), mu_hat and k_hat at x, \
            the acquisition value there, and the pivot (N - t) k_hat",
        "true.csv": "mu_t and k_t given t observations, noise left out of k",
    });
    if has_factor {
        files["factor.csv"] = "rows of F: k = F F^T + w I".into();
    }
    if estimated {
        files["estimator.csv"] =
            "mu_hat_t and k_hat_t given t observations; with method known-prior mu_t and \
            k_t + sigma^2"
                .into();
    }
    Ok(json!({
        "address": trial.address.to_string(),
        "study": plan.id.to_string(),
        "name": plan.study.name,
        "seed": plan.study.seed,
        "cell": trial.cell.id.to_string(),
        "replicate": trial.address.replicate,
        "label": plan.label(trial.cell),
        "N": trial.cell.cell.policy.training().map(|training| training.n),
        "sigma^2": trial.prior.noise_variance(),
        "c": trial.prior.c(),
        "rank": trial.prior.rank(),
        "w": trial.prior.finite().map_or(0.0, |prior| prior.white),
        "parameters": report::parameters(trial),
        "prior": report::prior(trial)?,
        "x_star": trace.x_star(),
        "f_star": trace.f()[trace.x_star()],
        "steps": steps,
        "failure": failed.map(|record: &Record| json!({ "t": record.t, "status": record.status() })),
        "points": if all { "all" } else { "x_1.., x*" },
        "files": files,
    }))
}

/// Goes through the steps and writes what is known before, between and after them.
fn walk(
    trace: &mut Trace<'_>,
    points: &[usize],
    estimated: bool,
    dir: &Path,
) -> anyhow::Result<usize> {
    let mut truth = Csv::create(dir, "true.csv", "t,index,mu,k")?;
    let mut estimator = None;
    if estimated {
        estimator = Some(Csv::create(dir, "estimator.csv", "t,index,mu_hat,k_hat")?);
    }
    let head = "t,x,y,f,zeta,target,mu,k,mu_hat,k_hat,acquisition,pivot";
    let mut steps = Csv::create(dir, "steps.csv", head)?;
    let mut t = 0;
    loop {
        for &point in points {
            let Belief { mean, variance } = trace.truth(point);
            truth.row(&[t.to_string(), point.to_string()], &[Some(mean), Some(variance)])?;
            if let (Some(file), Some(e)) = (&mut estimator, trace.estimate(point)) {
                let values = [Some(e.mean), Some(e.variance)];
                file.row(&[t.to_string(), point.to_string()], &values)?;
            }
        }
        let Some(step) = trace.advance() else { break };
        t += 1;
        one_step(&mut steps, &step)?;
    }
    truth.end()?;
    steps.end()?;
    if let Some(file) = estimator {
        file.end()?;
    }
    Ok(t)
}

fn one_step(file: &mut Csv, step: &Traced) -> anyhow::Result<()> {
    let Traced { t, x, y, f, zeta, target, truth, estimate, acquisition, pivot } = *step;
    let values = [
        Some(y),
        Some(f),
        zeta,
        target,
        Some(truth.mean),
        Some(truth.variance),
        estimate.map(|e| e.mean),
        estimate.map(|e| e.variance),
        acquisition,
        pivot,
    ];
    file.row(&[t.to_string(), x.to_string()], &values)
}

/// The trial's points and x*, ascending.
fn looked_at(trace: &Trace<'_>) -> Vec<usize> {
    let measured = trace.records().iter().filter_map(|record| record.outcome.as_ref().ok());
    let mut points: Vec<usize> = measured.filter_map(|m| m.x).map(|x| x as usize).collect();
    points.push(trace.x_star());
    points.sort_unstable();
    points.dedup();
    points
}

fn domain(prior: &Prior, trace: &Trace<'_>, dir: &Path) -> anyhow::Result<()> {
    let axes = numbered("x", prior.points.dimension());
    let mut file = Csv::create(dir, "domain.csv", &format!("index{axes},mu,f"))?;
    for (index, point) in prior.points.iter().enumerate() {
        let mut values: Vec<Option<f64>> = point.iter().copied().map(Some).collect();
        values.extend([Some(prior.mean[index]), Some(trace.f()[index])]);
        file.row(&[index.to_string()], &values)?;
    }
    file.end()
}

fn factor(prior: &Prior, dir: &Path) -> anyhow::Result<()> {
    let columns = numbered("F", prior.rank());
    let mut file = Csv::create(dir, "factor.csv", &format!("index{columns}"))?;
    for index in 0..prior.size() {
        let values: Vec<Option<f64>> = prior.factor.row(index).map(Some).collect();
        file.row(&[index.to_string()], &values)?;
    }
    file.end()
}

/// `,x0,x1` and so on.
fn numbered(name: &str, count: usize) -> String {
    let columns: Vec<String> = (0..count).map(|k| format!(",{name}{k}")).collect();
    columns.concat()
}

/// A CSV file; an empty field where there is no value.
struct Csv {
    out: BufWriter<File>,
}

impl Csv {
    fn create(dir: &Path, name: &str, head: &str) -> anyhow::Result<Self> {
        let path = dir.join(name);
        let file =
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut out = BufWriter::new(file);
        writeln!(out, "{head}")?;
        Ok(Self { out })
    }

    fn row(&mut self, keys: &[String], values: &[Option<f64>]) -> anyhow::Result<()> {
        write!(self.out, "{}", keys.join(","))?;
        for value in values {
            match value {
                Some(value) => write!(self.out, ",{value:?}")?,
                None => write!(self.out, ",")?,
            }
        }
        Ok(writeln!(self.out)?)
    }

    fn end(mut self) -> anyhow::Result<()> {
        Ok(self.out.flush()?)
    }
}
