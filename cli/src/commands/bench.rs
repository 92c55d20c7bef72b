//! `regretta bench`: what a trial costs on one core, beside the floor under it.

use std::time::Duration;

use clap::Args;
use serde::Serialize;
use study::prior::{Files, PriorSpec};
use worker::bench::{Case, Timing};
use worker::prior::{MemoryLimit, Prior};

use crate::exit::BadInput;
use crate::table::Table;

/// Measure the time of a trial on one core, beside its floor
///
/// The floor is the same random numbers drawn and the same sweeps over the prior's factor, alone.
/// Adaptive GP-UCB, squared-exponential kernel on [0, 1] with lengthscale 0.05, noise variance 0.01,
/// delta 0.1, every record column included.
#[derive(Args)]
#[command(after_help = "Examples:
  regretta bench
  regretta bench --only m1000 --seconds 10 --json")]
pub(crate) struct Arguments {
    /// Only this case
    #[arg(long, value_name = "CASE")]
    only: Option<String>,
    /// Seconds per case
    #[arg(long, default_value_t = 2.0, allow_negative_numbers = true)]
    seconds: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Name, M, N, T.
const CASES: [(&str, u32, u64, u32); 5] = [
    ("m1000", 1000, 1500, 100),
    ("m500", 500, 1000, 50),
    ("m162", 162, 1800, 100),
    ("n1000000", 1000, 1_000_000, 100),
    ("m8000", 8000, 1500, 100),
];

#[derive(Serialize)]
struct Row {
    case: &'static str,
    #[serde(rename = "M")]
    m: u32,
    #[serde(rename = "N")]
    n: u64,
    #[serde(rename = "T")]
    t: u32,
    rank: usize,
    ms_per_trial: f64,
    floor_ms: f64,
    times_floor: f64,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let wanted = |name: &str| arguments.only.as_deref().is_none_or(|only| only == name);
    let names = CASES.map(|(name, ..)| name).join(", ");
    if !CASES.iter().any(|&(name, ..)| wanted(name)) {
        let only = arguments.only.as_deref().unwrap_or_default();
        return Err(BadInput(format!("--only {only:?} is no case; use one of {names}")).into());
    }
    let budget = Duration::try_from_secs_f64(arguments.seconds).map_err(|_| {
        BadInput(format!("--seconds {} is no time; use a number from 0 on", arguments.seconds))
    })?;
    let mut rows = Vec::new();
    for (case, m, n, t) in CASES.into_iter().filter(|&(name, ..)| wanted(name)) {
        eprintln!("timing {case} ...");
        let prior = prior(m)?;
        let timing = worker::bench::time(&prior, Case { n, horizon: t }, budget);
        let Timing { trial: ms_per_trial, floor: floor_ms, times_floor } = timing;
        rows.push(Row { case, m, n, t, rank: prior.rank(), ms_per_trial, floor_ms, times_floor });
    }
    if arguments.json { super::print_json(&rows) } else { super::print(&text(&rows)) }
}

fn prior(points: u32) -> anyhow::Result<Prior> {
    let spec: PriorSpec = serde_json::from_value(serde_json::json!({
        "setting": "finite",
        "domain": { "kind": "grid", "points": points, "dimension": 1 },
        "kernel": { "kind": "squared-exponential", "lengthscale": 0.05 },
        "mean": { "kind": "zero" },
        "noise_variance": 0.01,
    }))?;
    let limit = MemoryLimit { bytes: 1 << 30, state_per_point: 0 };
    Ok(Prior::build(&spec, &Files::default(), limit)?)
}

fn text(rows: &[Row]) -> String {
    let mut table =
        Table::new(&["case", "M", "N", "T", "rank", "ms/trial", "floor ms", "times floor"]);
    for row in rows {
        table.row(vec![
            row.case.to_owned(),
            row.m.to_string(),
            row.n.to_string(),
            row.t.to_string(),
            row.rank.to_string(),
            format!("{:.3}", row.ms_per_trial),
            format!("{:.3}", row.floor_ms),
            format!("{:.2}", row.times_floor),
        ]);
    }
    table.to_string()
}
