//! A study's progress in the words of the wire.

use proto::convert::study_bytes;
use proto::v1;
use study::StudyId;
use study::rows::rows;
use theory::evidence::{Counts, Mixture};

use super::catalog::Entry;
use super::engine::Engine;
use super::outcome::Outcome;
use crate::core::{CellView, StudyView};

/// Rows beyond which a status shows none: their evidence would take too long for a look.
const MOST_ROWS: u64 = 4096;

impl Engine {
    pub(super) fn summaries(&self) -> Vec<v1::StudySummary> {
        let summary = |(&study, entry): (&StudyId, &Entry)| {
            let view = self.core.study(study);
            let cells = view.map_or_else(Vec::new, |view| view.cells);
            v1::StudySummary {
                study: study_bytes(study),
                name: entry.plan.study.name.clone(),
                state: self.state(study).into(),
                trials_done: cells.iter().map(|cell| cell.done).sum(),
                trials_planned: cells.iter().map(|cell| cell.planned).sum(),
            }
        };
        self.studies.iter().map(summary).collect()
    }

    fn state(&self, study: StudyId) -> v1::StudyState {
        match self.outcome(study) {
            None | Some(Outcome::Running) => v1::StudyState::Running,
            Some(Outcome::Complete) if self.is_sealed(study) => v1::StudyState::Done,
            Some(Outcome::Complete) => v1::StudyState::Sealing,
            Some(Outcome::Cancelled) => v1::StudyState::Cancelled,
            Some(Outcome::Quarantined(_) | Outcome::Alarmed(_) | Outcome::Failed(_)) => {
                v1::StudyState::Failed
            }
        }
    }

    pub(super) fn status(&self, study: StudyId) -> Option<v1::StudyStatus> {
        let entry = self.studies.get(&study)?;
        let view = self.core.study(study)?;
        let rate: f64 = view.cells.iter().map(|cell| cell.trials_per_second).sum();
        let reason = match self.outcome(study) {
            Some(Outcome::Running | Outcome::Complete) | None => String::new(),
            Some(outcome) => outcome.to_string(),
        };
        Some(v1::StudyStatus {
            study: study_bytes(study),
            name: entry.plan.study.name.clone(),
            state: self.state(study).into(),
            reason,
            rows: row_statuses(entry, &view),
            workers: self.worker_statuses(),
            quarantined: view.quarantined.iter().map(quarantined).collect(),
            alarm: view.alarm.as_ref().map(|alarm| v1::Alarm {
                cell: alarm.cell.0,
                first: alarm.range.start,
                end: alarm.range.end,
                one: alarm.first.0.to_string(),
                other: alarm.second.0.to_string(),
            }),
            seconds_left: self.seconds_left(&view),
            trials_per_second: rate,
            family: Some(v1::Family {
                alpha: entry.plan.study.alpha,
                ln_evidence: libm::log(entry.plan.evidence),
                n_opt: entry.plan.study.n_opt,
                rows: entry.plan.rows,
            }),
            cells: view.cells.iter().map(|cell| cell_status(entry, cell)).collect(),
        })
    }

    fn worker_statuses(&self) -> Vec<v1::WorkerStatus> {
        let status = |worker: crate::core::WorkerView| v1::WorkerStatus {
            name: worker.name.to_string(),
            slots: worker.slots,
            last_heartbeat_ms: worker.since_heartbeat.map_or(0, |age| age.as_millis() as u64),
            trials_per_second: worker.trials_per_second,
        };
        self.core.workers().map(status).collect()
    }

    /// From each cell's own time per trial; `None` until every cell with work has one.
    fn seconds_left(&self, view: &StudyView) -> Option<f64> {
        let slots: u32 = self.core.workers().map(|worker| worker.slots).sum();
        let mut work = 0.0;
        for cell in view.cells.iter().filter(|cell| cell.done < cell.planned) {
            work += (cell.planned - cell.done) as f64 * cell.seconds_per_trial?;
        }
        (slots > 0).then(|| work / f64::from(slots))
    }
}

fn quarantined(range: &crate::core::Quarantine) -> v1::Quarantined {
    v1::Quarantined {
        cell: range.cell.0,
        first: range.range.start,
        end: range.range.end,
        deaths: range.deaths,
        reason: range.reason.clone(),
    }
}

fn cell_status(entry: &Entry, view: &CellView) -> v1::CellStatus {
    let cell = entry.plan.cell(view.cell);
    v1::CellStatus {
        cell: view.cell.0,
        label: cell.map(|cell| entry.plan.label(cell)).unwrap_or_default(),
        trials_done: view.done,
        trials_planned: view.planned,
        trials_leased: view.leased,
        stopped: view.stopped,
        failures: view.failures,
        trials_per_second: view.trials_per_second,
    }
}

/// The evidence so far, row by row, the most decided first.
fn row_statuses(entry: &Entry, view: &StudyView) -> Vec<v1::RowStatus> {
    let plan = &entry.plan;
    if plan.rows > MOST_ROWS {
        return Vec::new();
    }
    let mut statuses = Vec::new();
    for cell_view in &view.cells {
        let Some(cell) = plan.cell(cell_view.cell) else { continue };
        let exploratory = entry.exploratory.get(&cell.id);
        let rows = rows(&plan.study, &cell.cell);
        for (place, (row, counted)) in rows.iter().zip(&cell_view.tally.0).enumerate() {
            let mixture = Mixture::new(row.budget, plan.study.alpha, plan.study.n_opt);
            let counts = |violations| Counts {
                trials: counted.trials,
                violations,
                failures: counted.failures,
            };
            statuses.push(v1::RowStatus {
                claim: row.claim.id.to_owned(),
                form: row.form.map(|form| form.name().to_owned()),
                at: row.at.map(|at| at.to_string()),
                t: row.t,
                delta: row.delta.get(),
                cell: cell.id.0,
                trials: counted.trials,
                violations: counted.refuting,
                ln_e_refute: mixture.ln_e_refute(counts(counted.refuting)),
                ln_e_confirm: mixture.ln_e_confirm(counts(counted.confirming)),
                required: 1.0 - row.budget,
                violations_confirming: counted.confirming,
                exploratory: exploratory.is_some_and(|places| places.contains(&place)),
            });
        }
    }
    let evidence = |row: &v1::RowStatus| {
        if row.ln_e_refute > row.ln_e_confirm { row.ln_e_refute } else { row.ln_e_confirm }
    };
    statuses.sort_by(|a, b| evidence(b).total_cmp(&evidence(a)));
    statuses
}
