//! What a replayed trial prints: as JSON, and for people.

use std::fmt::Write;
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value, json};
use study::Record;
use study::record::{self, COLUMNS, cell_columns};

use super::Trial;
use super::claims::{Result as Judged, Tested};
use crate::table::{Table, significant};

/// The whole trial.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    address: String,
    study: String,
    name: &'a str,
    seed: u64,
    cell: String,
    replicate: u64,
    label: String,
    parameters: Map<String, Value>,
    prior: Value,
    /// One per checkpoint, with the columns of the dataset.
    records: Vec<Map<String, Value>>,
    /// What the trial says of every claim, violations first.
    claims: &'a [Tested],
}

impl<'a> Report<'a> {
    pub(super) fn new(trial: &'a Trial<'_>, claims: &'a [Tested]) -> anyhow::Result<Self> {
        let plan = &trial.loaded.plan;
        Ok(Self {
            address: trial.address.to_string(),
            study: plan.id.to_string(),
            name: &plan.study.name,
            seed: plan.study.seed,
            cell: trial.cell.id.to_string(),
            replicate: trial.address.replicate,
            label: plan.label(trial.cell),
            parameters: parameters(trial),
            prior: prior(trial)?,
            records: trial.records.iter().map(|record| row(trial, record)).collect(),
            claims,
        })
    }
}

/// The cell's own columns, swept keys, and what is no column.
pub(super) fn parameters(trial: &Trial<'_>) -> Map<String, Value> {
    let cell = &trial.cell.cell;
    let mut map: Map<String, Value> = cell_columns(cell)
        .into_iter()
        .map(|(name, value)| (name.to_owned(), json(value)))
        .collect();
    map.insert("gap".to_owned(), cell.policy.gap().into());
    map.insert("noise_variance".to_owned(), cell.noise_variance.into());
    for (key, value) in &trial.loaded.plan.priors[trial.cell.prior].swept {
        let value = match value {
            study::plan::Scalar::Integer(value) => (*value).into(),
            study::plan::Scalar::Float(value) => (*value).into(),
            study::plan::Scalar::Text(value) => value.as_str().into(),
        };
        map.insert(key.clone(), value);
    }
    map
}

/// The prior as built, and as the study file gives it.
pub(super) fn prior(trial: &Trial<'_>) -> anyhow::Result<Value> {
    let prior = &trial.prior;
    Ok(json!({
        "M": prior.size(),
        "d": prior.points().dimension(),
        "rank": prior.rank(),
        "white": prior.finite().map_or(0.0, |prior| prior.white),
        "noise_variance": prior.noise_variance(),
        "c": prior.c(),
        "residual": prior.finite().map_or(0.0, |prior| prior.residual),
        "spec": serde_json::to_value(&trial.loaded.plan.priors[trial.cell.prior].spec)?,
    }))
}

/// A record with the names of the dataset's columns; null where there is no value.
fn row(trial: &Trial<'_>, record: &Record) -> Map<String, Value> {
    let mut row = Map::new();
    let mut set = |name: &str, value: Value| _ = row.insert(name.to_owned(), value);
    set("study", trial.loaded.plan.id.to_string().into());
    set("cell", record.cell.to_string().into());
    set("replicate", record.replicate.into());
    set("status", record.status().into());
    for (name, value) in cell_columns(&trial.cell.cell) {
        set(name, json(value));
    }
    set("t", record.t.into());
    for column in COLUMNS {
        let value = record.outcome.as_ref().map_or(Value::Null, |m| json((column.value)(m)));
        set(column.name, value);
    }
    row
}

fn json(value: record::Value) -> Value {
    match value {
        record::Value::Null => Value::Null,
        record::Value::Bool(flag) => flag.into(),
        record::Value::Integer(number) => number.into(),
        record::Value::Float(number) if number.is_finite() => number.into(),
        // JSON has no infinity.
        record::Value::Float(number) => number.to_string().into(),
        record::Value::Text(text) => text.into(),
    }
}

/// The columns that people look at first.
const SHOWN: [&str; 14] = [
    "x",
    "y",
    "f",
    "zeta",
    "target",
    "best_sample_regret",
    "simple_regret",
    "cumulative_regret",
    "error_probe",
    "ratio_probe",
    "k_xy",
    "information",
    "tau",
    "k_min",
];

/// The trial for people.
pub(super) fn words(
    trial: &Trial<'_>,
    report: &Report<'_>,
    claims: &[Tested],
    trace: Option<&Path>,
) -> String {
    let prior = &trial.prior;
    let mut text = format!(
        "trial {} of study \"{}\", seed {}\ncell   {}\nprior  M = {} points in dimension {}, rank {}, w = {}, \
         sigma^2 = {}, c = {}\n",
        report.address,
        report.name,
        report.seed,
        report.label,
        prior.size(),
        prior.points().dimension(),
        prior.rank(),
        significant(prior.finite().map_or(0.0, |prior| prior.white), 6),
        significant(prior.noise_variance(), 6),
        significant(prior.c(), 6),
    );
    if let Some(m) = trial.records.iter().find_map(|record| record.outcome.as_ref().ok()) {
        let (f_star, range) = (significant(m.f_star, 6), significant(m.f_range, 6));
        let at = m.x_star.map_or(String::new(), |x_star| format!(" at x* = {x_star}"));
        _ = writeln!(text, "f      max f = {f_star}{at}, max f - min f = {range}");
    }
    _ = write!(text, "\n{}{}\n{}", checkpoints(trial), failures(trial), judged(claims));
    if let Some(dir) = trace {
        _ = write!(text, "\ntrace in {}", dir.display());
    }
    text
}

/// Why there is no measurement, a line per checkpoint.
fn failures(trial: &Trial<'_>) -> String {
    let mut text = String::new();
    for record in &trial.records {
        if let Err(failure) = &record.outcome {
            _ = writeln!(text, "failed at t = {}: {failure}", record.t);
        }
    }
    text
}

/// A row per checkpoint; columns without any value are left out.
fn checkpoints(trial: &Trial<'_>) -> Table {
    let measured = || trial.records.iter().filter_map(|record| record.outcome.as_ref().ok());
    let columns: Vec<&record::Column> = SHOWN
        .iter()
        .filter_map(|name| COLUMNS.iter().find(|column| column.name == *name))
        .filter(|column| measured().any(|m| (column.value)(m) != record::Value::Null))
        .collect();
    let mut head = vec!["t"];
    head.extend(columns.iter().map(|column| column.name));
    let mut table = Table::new(&head);
    for record in &trial.records {
        let mut row = vec![record.t.to_string()];
        match &record.outcome {
            Ok(m) => row.extend(columns.iter().map(|column| short((column.value)(m)))),
            Err(_) => row.push("failed".to_owned()),
        }
        table.row(row);
    }
    table
}

fn short(value: record::Value) -> String {
    match value {
        record::Value::Null => "-".to_owned(),
        record::Value::Bool(flag) => flag.to_string(),
        record::Value::Integer(number) => number.to_string(),
        record::Value::Float(number) => significant(number, 6),
        record::Value::Text(text) => text.to_owned(),
    }
}

fn judged(claims: &[Tested]) -> String {
    let count = |result| claims.iter().filter(|row| row.result == result).count();
    let mut text =
        format!("claims: {} violated, {} hold", count(Judged::Violated), count(Judged::Holds));
    if count(Judged::DependsOnRho) > 0 {
        _ = write!(text, ", {} depend on where in its bracket rho is", count(Judged::DependsOnRho));
    }
    if claims.is_empty() {
        return text + "\n";
    }
    let mut table = Table::new(&["claim", "constants", "at", "delta", "t", "outcome"]);
    for row in one_line_each(claims) {
        table.row(row.to_vec());
    }
    format!("{text}\n\n{table}")
}

/// The rows for people: those that differ in t alone are one.
fn one_line_each(claims: &[Tested]) -> Vec<[String; 6]> {
    let mut lines: Vec<[String; 6]> = Vec::new();
    for row in claims {
        let line = [
            row.claim.to_owned(),
            row.constants.unwrap_or("-").to_owned(),
            row.at.clone().unwrap_or_else(|| "-".to_owned()),
            row.delta.map_or_else(|| "-".to_owned(), |delta| delta.to_string()),
            row.t.to_string(),
            row.result.name().to_owned(),
        ];
        let alike = |other: &&mut [String; 6]| [0, 1, 2, 3, 5].iter().all(|&i| other[i] == line[i]);
        match lines.iter_mut().find(alike) {
            Some(other) => _ = write!(other[4], ", {}", row.t),
            None => lines.push(line),
        }
    }
    lines
}
