//! What the page shows of a study, section by section, as JSON.

use std::collections::{BTreeMap, HashMap};

use proto::v1::{CellStatus, RowStatus, StudyStatus};
use serde::Serialize;

use super::coverage::View;
use super::groups::by_numbers;
use super::verdicts::{Count, Verdict, coverage};
use crate::text;

/// Cells with a bar of their own; of more, those with work or failures come first.
const MOST_CELLS: usize = 120;

/// Workers that are listed.
const MOST_WORKERS: usize = 100;

/// Quarantined ranges that are listed.
const MOST_QUARANTINED: usize = 20;

#[derive(Serialize)]
struct Head<'a> {
    name: &'a str,
    state: &'static str,
    done: u64,
    planned: u64,
    failures: u64,
    rate: f64,
    seconds_left: Option<f64>,
    verdicts: Count,
    /// Why there is no evidence to show, where there are rows.
    too_many_rows: bool,
}

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the page's names")]
struct Cells<'a> {
    total: usize,
    closed: usize,
    cells: Vec<Cell<'a>>,
}

#[derive(Serialize)]
struct Cell<'a> {
    label: &'a str,
    done: u64,
    planned: u64,
    leased: u64,
    decided: bool,
    failures: u64,
}

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the page's names")]
struct Claim<'a> {
    claim: &'a str,
    form: Option<&'a str>,
    #[serde(flatten)]
    count: Count,
    /// Open rows that were written down when trials existed.
    exploratory: usize,
    worst: Option<Worst<'a>>,
}

/// The row of a claim that says most against it.
#[derive(Serialize)]
struct Worst<'a> {
    coverage: f64,
    required: f64,
    cell: &'a str,
    t: u32,
    delta: f64,
    /// Its place among the views.
    view: usize,
}

#[derive(Serialize)]
struct Workers<'a> {
    total: usize,
    workers: Vec<Worker<'a>>,
}

#[derive(Serialize)]
struct Worker<'a> {
    name: &'a str,
    slots: u32,
    rate: f64,
    heartbeat_ms: u64,
}

#[derive(Serialize)]
struct Trouble<'a> {
    reason: &'a str,
    alarm: Option<String>,
    quarantined: Vec<String>,
    more: usize,
}

/// The names of the sections, in the order in which they are sent.
pub(super) const NAMES: [&str; 6] = ["head", "trouble", "views", "claims", "cells", "workers"];

/// All sections in the same order. `activity` replaces the state where the study is at its end and
/// something else goes on.
pub(super) fn all(
    status: &StudyStatus,
    verdicts: &[Option<Verdict>],
    views: &[View],
    activity: Option<&'static str>,
) -> [String; 6] {
    let labels: HashMap<u64, &str> =
        status.cells.iter().map(|cell| (cell.cell, cell.label.as_str())).collect();
    [
        json(&head(status, verdicts, activity)),
        json(&trouble(status, &labels)),
        json(&views),
        json(&claims(status, verdicts, views, &labels)),
        json(&cells(&status.cells)),
        json(&workers(status)),
    ]
}

pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("keys are text and numbers are finite or null")
}

fn head<'a>(
    status: &'a StudyStatus,
    rows: &[Option<Verdict>],
    activity: Option<&'static str>,
) -> Head<'a> {
    let mut verdicts = Count::default();
    rows.iter().for_each(|&row| verdicts.add(row));
    let sum = |of: fn(&CellStatus) -> u64| status.cells.iter().map(of).sum();
    Head {
        name: &status.name,
        state: activity.unwrap_or(text::state(status.state())),
        done: sum(|cell| cell.trials_done),
        planned: sum(|cell| cell.trials_planned),
        failures: sum(|cell| cell.failures),
        rate: status.trials_per_second,
        seconds_left: status.seconds_left,
        verdicts,
        too_many_rows: rows.is_empty() && status.family.is_some_and(|family| family.rows > 4096),
    }
}

fn cells(all: &[CellStatus]) -> Cells<'_> {
    let mut shown: Vec<&CellStatus> = all.iter().collect();
    if shown.len() > MOST_CELLS {
        shown.sort_by_key(|cell| (cell.failures == 0, cell.trials_leased == 0));
        shown.truncate(MOST_CELLS);
    }
    shown.sort_by(|one, other| by_numbers(&one.label, &other.label));
    let closed = all.iter().filter(|cell| cell.trials_done >= cell.trials_planned).count();
    Cells {
        total: all.len(),
        closed,
        cells: shown
            .into_iter()
            .map(|cell| Cell {
                label: &cell.label,
                done: cell.trials_done,
                planned: cell.trials_planned,
                leased: cell.trials_leased,
                decided: cell.stopped,
                failures: cell.failures,
            })
            .collect(),
    }
}

/// Claims by form: those with refutations first, otherwise by name.
fn claims<'a>(
    status: &'a StudyStatus,
    verdicts: &[Option<Verdict>],
    views: &[View],
    labels: &HashMap<u64, &'a str>,
) -> Vec<Claim<'a>> {
    type Judged<'a> = (Count, usize, Option<(bool, &'a RowStatus)>);
    let mut claims: BTreeMap<(&str, Option<&str>), Judged<'_>> = BTreeMap::new();
    let margin = |row: &RowStatus| coverage(row).map_or(f64::INFINITY, |held| held - row.required);
    for (row, &verdict) in status.rows.iter().zip(verdicts) {
        let (count, exploratory, worst) =
            claims.entry((&row.claim, row.form.as_deref())).or_default();
        count.add(verdict);
        *exploratory += usize::from(row.exploratory);
        // A row that is refuted says more than an open one of few trials.
        let refuted = verdict == Some(Verdict::Refuted);
        let worse = |&(other, than): &(bool, &RowStatus)| {
            (refuted && !other) || (refuted == other && margin(row) < margin(than))
        };
        if worst.as_ref().is_none_or(worse) {
            *worst = Some((refuted, row));
        }
    }
    let worst = |row: &'a RowStatus| {
        let cell = labels.get(&row.cell).copied().unwrap_or_default();
        let view = views.iter().position(|view| view.shows(row, cell))?;
        let (required, t, delta) = (row.required, row.t, row.delta);
        Some(Worst { coverage: coverage(row)?, required, cell, t, delta, view })
    };
    let mut claims: Vec<Claim<'a>> = claims
        .into_iter()
        .map(|((claim, form), (count, exploratory, row))| Claim {
            claim,
            form,
            count,
            exploratory,
            worst: row.and_then(|(_, row)| worst(row)),
        })
        .collect();
    claims.sort_by_key(|claim| claim.count.refuted == 0);
    claims
}

fn workers(status: &StudyStatus) -> Workers<'_> {
    let mut workers: Vec<Worker<'_>> = status
        .workers
        .iter()
        .map(|worker| Worker {
            name: &worker.name,
            slots: worker.slots,
            rate: worker.trials_per_second,
            heartbeat_ms: worker.last_heartbeat_ms,
        })
        .collect();
    workers.sort_by(|one, other| by_numbers(one.name, other.name));
    workers.truncate(MOST_WORKERS);
    Workers { total: status.workers.len(), workers }
}

fn trouble<'a>(status: &'a StudyStatus, labels: &HashMap<u64, &str>) -> Trouble<'a> {
    let label = |cell: u64| labels.get(&cell).copied().unwrap_or("an unknown cell");
    let quarantined = status.quarantined.iter().take(MOST_QUARANTINED).map(|range| {
        format!(
            "{}: replicates {} to {} given up after {} workers were lost with them ({})",
            label(range.cell),
            range.first,
            range.end,
            range.deaths,
            range.reason
        )
    });
    Trouble {
        reason: &status.reason,
        alarm: status.alarm.as_ref().map(|alarm| {
            format!(
                "workers {} and {} gave different records for {}, replicates {} to {}",
                alarm.one,
                alarm.other,
                label(alarm.cell),
                alarm.first,
                alarm.end
            )
        }),
        quarantined: quarantined.collect(),
        more: status.quarantined.len().saturating_sub(MOST_QUARANTINED),
    }
}
