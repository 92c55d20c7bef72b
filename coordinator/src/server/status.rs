//! A study's progress in the words of the wire.

use std::sync::Arc;

use proto::convert::study_bytes;
use proto::v1;
use study::StudyId;
use study::plan::Plan;
use study::rows::rows;
use theory::evidence::{Counts, Mixture};

use super::catalog::Exploratory;
use super::engine::Engine;
use super::outcome::Outcome;
use crate::core::{CellView, StudyView, WorkerView};

/// Rows beyond which a status shows none: their evidence would take too long for a look.
const MOST_ROWS: u64 = 4096;

/// Notes of a study that are shown; there may be one for every shard.
const MOST_NOTES: usize = 50;

/// How a study stood at a moment. That is all that is asked of the engine: rates, evidence and words are
/// made of it elsewhere.
pub(super) struct Look {
    pub(super) study: StudyId,
    pub(super) name: String,
    pub(super) state: v1::StudyState,
    pub(super) reason: String,
    pub(super) notes: Vec<String>,
    pub(super) workers: Vec<WorkerView>,
    /// `None` where the study could not be taken up.
    pub(super) progress: Option<Progress>,
}

/// How far a study is, and what that is measured by.
pub(super) struct Progress {
    pub(super) plan: Arc<Plan>,
    pub(super) exploratory: Arc<Exploratory>,
    pub(super) view: StudyView,
}

impl Engine {
    pub(super) fn summaries(&self) -> Vec<v1::StudySummary> {
        let summary = |(study, name): (StudyId, &str)| {
            let (trials_done, trials_planned) = self.core.progress(study).unwrap_or_default();
            v1::StudySummary {
                study: study_bytes(study),
                name: name.to_owned(),
                state: self.state(study).into(),
                trials_done,
                trials_planned,
            }
        };
        let known =
            self.studies.iter().map(|(&study, entry)| (study, entry.plan.study.name.as_str()));
        let failed = self.failed.iter().map(|(&study, failed)| (study, failed.name.as_str()));
        known.chain(failed).map(summary).collect()
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

    /// Whether something happens to a study by itself.
    pub(super) fn is_running(&self, study: StudyId) -> bool {
        is_running(self.state(study))
    }

    pub(super) fn look(&self, study: StudyId) -> Option<Look> {
        let progress = match self.studies.get(&study) {
            Some(entry) => {
                let shows_rows = entry.plan.rows <= MOST_ROWS;
                let view = if shows_rows {
                    self.core.study(study)
                } else {
                    self.core.study_without_tallies(study)
                };
                let (plan, exploratory) = (Arc::clone(&entry.plan), Arc::clone(&entry.exploratory));
                Some(Progress { plan, exploratory, view: view? })
            }
            None => None,
        };
        let reason = match self.outcome(study) {
            Some(Outcome::Running | Outcome::Complete) | None => String::new(),
            Some(outcome) => outcome.to_string(),
        };
        let notes = self.notes.get(&study).map_or(&[][..], Vec::as_slice);
        Some(Look {
            study,
            name: self.name(study)?,
            state: self.state(study),
            reason,
            notes: shown(notes),
            workers: self.core.workers().collect(),
            progress,
        })
    }
}

/// Whether something happens by itself to a study in this state.
pub(super) fn is_running(state: v1::StudyState) -> bool {
    [v1::StudyState::Running, v1::StudyState::Sealing].contains(&state)
}

/// The first notes, and how many there are besides.
fn shown(notes: &[String]) -> Vec<String> {
    let mut shown: Vec<String> = notes.iter().take(MOST_NOTES).cloned().collect();
    if notes.len() > MOST_NOTES {
        shown.push(format!("and {} more like these", notes.len() - MOST_NOTES));
    }
    shown
}

impl Look {
    /// The whole status; it may be larger than a message.
    pub(super) fn status(self) -> v1::StudyStatus {
        let mut status = v1::StudyStatus {
            study: study_bytes(self.study),
            name: self.name,
            state: self.state.into(),
            reason: self.reason,
            notes: self.notes,
            workers: self.workers.iter().map(worker_status).collect(),
            ..v1::StudyStatus::default()
        };
        let Some(progress) = self.progress else { return status };
        let Progress { plan, view, .. } = &progress;
        let open = |cell: &&v1::CellStatus| cell.trials_done < cell.trials_planned;
        status.cells = view.cells.iter().map(|cell| cell_status(plan, cell)).collect();
        status.trials_done = status.cells.iter().map(|cell| cell.trials_done).sum();
        status.trials_planned = status.cells.iter().map(|cell| cell.trials_planned).sum();
        status.cells_total = status.cells.len() as u64;
        status.cells_open = status.cells.iter().filter(open).count() as u64;
        status.trials_per_second = view.cells.iter().map(|cell| cell.trials_per_second).sum();
        status.rows = row_statuses(&progress);
        status.quarantined = view.quarantined.iter().map(quarantined).collect();
        status.quarantined_total = status.quarantined.len() as u64;
        status.alarm = view.alarm.as_ref().map(|alarm| v1::Alarm {
            cell: alarm.cell.0,
            first: alarm.range.start,
            end: alarm.range.end,
            one: alarm.first.0.to_string(),
            other: alarm.second.0.to_string(),
        });
        status.seconds_left = seconds_left(&self.workers, view);
        status.family = Some(v1::Family {
            alpha: plan.study.alpha,
            ln_evidence: libm::log(plan.evidence),
            n_opt: plan.study.n_opt,
            rows: plan.rows,
        });
        status
    }
}

fn worker_status(worker: &WorkerView) -> v1::WorkerStatus {
    v1::WorkerStatus {
        name: worker.name.to_string(),
        slots: worker.slots,
        last_heartbeat_ms: worker.since_heartbeat.map_or(0, |age| age.as_millis() as u64),
        trials_per_second: worker.trials_per_second,
    }
}

/// From each cell's own time per trial; `None` until every cell with work has one.
fn seconds_left(workers: &[WorkerView], view: &StudyView) -> Option<f64> {
    let slots: u32 = workers.iter().map(|worker| worker.slots).sum();
    let mut work = 0.0;
    for cell in view.cells.iter().filter(|cell| cell.done < cell.planned) {
        work += (cell.planned - cell.done) as f64 * cell.seconds_per_trial?;
    }
    (slots > 0).then(|| work / f64::from(slots))
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

fn cell_status(plan: &Plan, view: &CellView) -> v1::CellStatus {
    let cell = plan.cell(view.cell);
    v1::CellStatus {
        cell: view.cell.0,
        label: cell.map(|cell| plan.label(cell)).unwrap_or_default(),
        trials_done: view.done,
        trials_planned: view.planned,
        trials_leased: view.leased,
        stopped: view.stopped,
        failures: view.failures,
        trials_per_second: view.trials_per_second,
    }
}

/// The evidence so far, row by row, the most decided first.
fn row_statuses(progress: &Progress) -> Vec<v1::RowStatus> {
    let Progress { plan, exploratory, view } = progress;
    if plan.rows > MOST_ROWS {
        return Vec::new();
    }
    let mut statuses = Vec::new();
    for cell_view in &view.cells {
        let Some(cell) = plan.cell(cell_view.cell) else { continue };
        let exploratory = exploratory.get(&cell.id);
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
