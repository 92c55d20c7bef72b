//! `regretta plan`: what a study will run, what it will cost, and what it could show.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use coordinator::server::{DEFAULT_STUDY_MEMORY, study_memory};
use serde::Serialize;
use study::plan::Size;
use study::rows::rows;
use theory::evidence::Mixture;

use crate::calibration::calibrate;
use crate::existing::{self, Existing};
use crate::exit::BadInput;
use crate::load::{Loaded, load};
use crate::place::folder;
use crate::table::{Table, significant};
use crate::text;

/// Print what a study will run, cost and be able to show
///
/// Cells, trials, time (from a few trials of some cells), bytes, the least number of trials that could
/// confirm each row, and what the output folder already holds. Nothing is written.
#[derive(Args)]
#[command(after_help = "Examples:
  regretta plan study.toml
  regretta plan study.toml --out results/lemma1 --json")]
pub(crate) struct Arguments {
    /// The study file
    study: PathBuf,
    /// The output folder [default: results/NAME]
    #[arg(long, value_name = "DIR", value_parser = folder)]
    out: Option<PathBuf>,
    /// Cores that will compute [default: all of this machine]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Bytes of sealed Parquet per byte of streamed records, measured on records of random numbers.
const SEALED_SHARE: f64 = 1.0;

#[derive(Serialize)]
struct Report {
    study: String,
    name: String,
    out: PathBuf,
    cells: Vec<CellRow>,
    trials: u128,
    records: u128,
    workers: usize,
    seconds: f64,
    bytes: f64,
    peak_bytes: f64,
    rows: u64,
    evidence: f64,
    /// Bytes that a coordinator sets aside for the study.
    study_memory: u64,
    /// Whether a coordinator takes it that has no other studies and the default budget.
    fits_default: bool,
    power: Vec<Power>,
    existing: Option<Existing>,
}

#[derive(Serialize)]
struct CellRow {
    cell: String,
    label: String,
    checkpoints: usize,
    trials: u64,
    rows: usize,
    ms_per_trial: f64,
}

/// Rows of one budget.
#[derive(Clone, Serialize)]
struct Power {
    claim: String,
    budget: f64,
    rows: u64,
    /// The least number of trials, none of them a violation, that confirms; null for budget 0.
    least_n: Option<u64>,
    reachable: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let loaded = load(&arguments.study)?;
    let report = report(&loaded, arguments)?;
    if arguments.json { super::print_json(&report) } else { super::print(&text(&report)) }
}

fn report(loaded: &Loaded, arguments: &Arguments) -> anyhow::Result<Report> {
    let plan = &loaded.plan;
    let out = loaded.out(arguments.out.as_deref());
    let existing = existing::look(&out, plan)?;
    let calibration = calibrate(loaded)?;
    let workers = super::workers(arguments.workers)?;
    let cell = |(cell, seconds): (&study::plan::PlannedCell, &f64)| CellRow {
        cell: cell.id.to_string(),
        label: plan.label(cell),
        checkpoints: cell.checkpoints.len(),
        trials: plan.replicates.max(),
        rows: rows(&plan.study, &cell.cell).len(),
        ms_per_trial: seconds * 1e3,
    };
    let per_trial: u128 = plan.cells.iter().map(|cell| cell.checkpoints.len() as u128).sum();
    let records = per_trial * u128::from(plan.replicates.max());
    let kept = if plan.study.detail == study::plan::Detail::Summary { 0.02 } else { 1.0 };
    let definition = &loaded.definition;
    let size = Size::read(&definition.file_name, &definition.text);
    let study_memory = study_memory(&size.map_err(|error| BadInput(error.to_string()))?);
    let bytes = records as f64 * calibration.record_bytes * kept;
    Ok(Report {
        study: plan.id.to_string(),
        name: plan.study.name.clone(),
        out,
        cells: plan.cells.iter().zip(&calibration.seconds).map(cell).collect(),
        trials: plan.trials(),
        records,
        workers,
        seconds: calibration.total(plan) / workers as f64,
        bytes: bytes * SEALED_SHARE,
        peak_bytes: bytes * (1.0 + SEALED_SHARE),
        rows: plan.rows,
        evidence: plan.evidence,
        study_memory,
        fits_default: study_memory <= DEFAULT_STUDY_MEMORY,
        power: power(loaded),
        existing,
    })
}

/// Least numbers of trials, by claim and budget.
fn power(loaded: &Loaded) -> Vec<Power> {
    let plan = &loaded.plan;
    let mut counts: BTreeMap<(String, u64), u64> = BTreeMap::new();
    for cell in &plan.cells {
        for row in rows(&plan.study, &cell.cell) {
            *counts.entry((row.claim.id.to_owned(), row.budget.to_bits())).or_default() += 1;
        }
    }
    let ln_evidence = libm::log(plan.evidence);
    let mut known: BTreeMap<u64, Option<u64>> = BTreeMap::new();
    let power = |((claim, bits), rows): ((String, u64), u64)| {
        let budget = f64::from_bits(bits);
        let least_n = *known.entry(bits).or_insert_with(|| {
            let mixture = Mixture::new(budget, plan.study.alpha, plan.study.n_opt);
            mixture.least_n_to_confirm(ln_evidence)
        });
        let reachable = least_n.is_some_and(|least| least <= plan.replicates.max());
        Power { claim, budget, rows, least_n, reachable }
    };
    counts.into_iter().map(power).collect()
}

fn text(report: &Report) -> String {
    let mut text =
        format!("study {} ({}) -> {}\n\n", report.name, report.study, report.out.display());
    text.push_str(&cells(report).to_string());
    _ = write!(
        text,
        "\n{} cells, {} trials, {} records\n\
         time   about {} on {} {}\n\
         disk   about {}, at the peak {}\n\
         memory {}\n",
        report.cells.len(),
        text::count(report.trials),
        text::count(report.records),
        text::duration(report.seconds),
        report.workers,
        if report.workers == 1 { "core" } else { "cores" },
        text::bytes(report.bytes),
        text::bytes(report.peak_bytes),
        memory(report),
    );
    _ = write!(
        text,
        "\n{} verdict rows; a row is decided at E >= {}. Trials without a violation that confirm:\n\n",
        text::count(report.rows.into()),
        significant(report.evidence, 6)
    );
    text.push_str(&power_table(report).to_string());
    match &report.existing {
        None => _ = write!(text, "\n{} holds nothing yet\n", report.out.display()),
        Some(existing) => _ = write!(text, "\n{existing}\n"),
    }
    text
}

fn memory(report: &Report) -> String {
    let bytes = text::bytes(report.study_memory as f64);
    if report.fits_default {
        return format!("at most {bytes} in the coordinator");
    }
    let needed = report.study_memory.div_ceil(1 << 20);
    format!(
        "at most {bytes} in the coordinator, over its default: start it with --study-memory {needed}"
    )
}

/// Cells that are listed before the rest is counted.
const LISTED: usize = 40;

fn cells(report: &Report) -> Table {
    let mut table = Table::new(&["cell", "checkpoints", "trials", "rows", "ms/trial", "id"]);
    for cell in report.cells.iter().take(LISTED) {
        table.row(vec![
            cell.label.clone(),
            cell.checkpoints.to_string(),
            text::count(cell.trials.into()),
            cell.rows.to_string(),
            significant(cell.ms_per_trial, 3),
            cell.cell.clone(),
        ]);
    }
    if report.cells.len() > LISTED {
        table.row(vec![format!("... and {} more", report.cells.len() - LISTED)]);
    }
    table
}

fn power_table(report: &Report) -> Table {
    let mut table = Table::new(&["claim", "budget", "rows", "least n", ""]);
    for row in &report.power {
        let reach = match (row.least_n, row.reachable) {
            (None, _) => "never confirmed, refuted by one violation",
            (_, true) => "",
            (_, false) => "more than planned",
        };
        table.row(vec![
            row.claim.clone(),
            significant(row.budget, 4),
            text::count(row.rows.into()),
            row.least_n.map_or_else(|| "-".to_owned(), |n| text::count(n.into())),
            reach.to_owned(),
        ]);
    }
    table
}

/// The folder in which a run keeps its ledger.
pub(crate) fn ledger(out: &Path) -> PathBuf {
    out.join(".regretta")
}
