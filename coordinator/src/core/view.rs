//! What people may see of the core.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use study::tally::Tally;
use study::{CellId, StudyId};

use super::cell::CellState;
use super::study::StudyState;
use super::{Alarm, Core, WorkerId};

/// Where a study stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StudyPhase {
    /// It is being run.
    Active,
    /// All that it asks for is durable, or given up.
    Done,
    /// It was cancelled.
    Cancelled,
    /// It was stopped because two workers disagreed.
    Alarmed,
}

/// A study's progress.
#[derive(Clone, Debug)]
pub struct StudyView {
    /// The study.
    pub study: StudyId,
    /// Where it stands.
    pub phase: StudyPhase,
    /// Its cells, by id.
    pub cells: Vec<CellView>,
    /// Ranges that were given up.
    pub quarantined: Vec<Quarantine>,
    /// What stopped it.
    pub alarm: Option<Alarm>,
    /// Its checks.
    pub checks: ChecksView,
}

/// A cell's progress, in trials.
#[derive(Clone, Debug)]
pub struct CellView {
    /// The cell.
    pub cell: CellId,
    /// The number of replicates once it is known, else the most that there can be.
    pub planned: u64,
    /// Durable, among those planned.
    pub done: u64,
    /// Being computed or written.
    pub leased: u64,
    /// The number of replicates, once it is known.
    pub closed: Option<u64>,
    /// Whether that is less than the maximum.
    pub stopped: bool,
    /// Trials that failed: the most that any row counted.
    pub failures: u64,
    /// What the trials say so far.
    pub tally: Tally,
    /// Trials per second of late.
    pub trials_per_second: f64,
    /// The estimated time of a trial on one slot.
    pub seconds_per_trial: Option<f64>,
}

/// A range that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantine {
    /// Its cell.
    pub cell: CellId,
    /// Its replicates.
    pub range: Range<u64>,
    /// Workers that died with it.
    pub deaths: u32,
    /// The reason of the last death.
    pub reason: String,
}

/// Checks of a study, counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChecksView {
    /// Waiting for a worker.
    pub waiting: usize,
    /// Being recomputed.
    pub running: usize,
    /// Recomputed, and equal.
    pub agreed: u64,
    /// Given up because their workers died.
    pub given_up: u64,
}

/// A worker.
#[derive(Clone, Debug)]
pub struct WorkerView {
    /// Its id.
    pub worker: WorkerId,
    /// Its name.
    pub name: Arc<str>,
    /// Shards that it computes at once.
    pub slots: u32,
    /// Whether it takes nothing more.
    pub draining: bool,
    /// Leases that it holds.
    pub leases: usize,
    /// Time since its last heartbeat, if there was one.
    pub since_heartbeat: Option<Duration>,
    /// Trials per second of late.
    pub trials_per_second: f64,
}

impl Core {
    /// All studies, by id.
    pub fn studies(&self) -> impl Iterator<Item = (StudyId, StudyPhase)> + '_ {
        self.studies.iter().map(|(&id, study)| (id, study.phase))
    }

    /// A study's progress.
    pub fn study(&self, study: StudyId) -> Option<StudyView> {
        self.studies.get(&study).map(|study| self.view(study, CellState::tally))
    }

    /// The same without tallies, which are most of a large study.
    pub fn study_without_tallies(&self, study: StudyId) -> Option<StudyView> {
        self.studies.get(&study).map(|study| self.view(study, |_| Tally(Vec::new())))
    }

    /// A study's durable trials, and those planned.
    pub fn progress(&self, study: StudyId) -> Option<(u64, u64)> {
        let cells = self.studies.get(&study)?.cells().iter();
        let progress = cells.map(|cell| {
            let planned = cell.closed.unwrap_or_else(|| cell.replicates.max());
            (cell.done.count_below(planned), planned)
        });
        Some(progress.fold((0, 0), |sum, cell| (sum.0 + cell.0, sum.1 + cell.1)))
    }

    /// All workers, by id.
    pub fn workers(&self) -> impl Iterator<Item = WorkerView> + '_ {
        self.workers.iter().map(|(id, worker)| WorkerView {
            worker: id,
            name: worker.name.clone(),
            slots: worker.slots,
            draining: worker.draining,
            leases: worker.leases.len(),
            since_heartbeat: worker.heartbeat.map(|at| self.now.saturating_sub(at)),
            trials_per_second: worker.meter.rate(self.now),
        })
    }

    /// Leases of any kind, those being written included.
    pub fn leases(&self) -> usize {
        self.leases.iter().count()
    }

    /// Whether a request could be served now without copying a straggler: what an idle worker
    /// waits for.
    pub fn has_work(&self) -> bool {
        self.turns.iter().any(|(_, study)| self.studies[study].has_work())
    }

    fn view(&self, study: &StudyState, tally: fn(&CellState) -> Tally) -> StudyView {
        let quarantined = study.cells().iter().flat_map(|cell| {
            cell.quarantined.iter().map(|(&start, held)| Quarantine {
                cell: cell.id,
                range: start..held.end,
                deaths: held.past.deaths,
                reason: held.past.reason.clone(),
            })
        });
        let waiting = study.checks.waiting();
        StudyView {
            study: study.id,
            phase: study.phase,
            cells: study
                .cells()
                .iter()
                .map(|cell| cell_view(cell, tally(cell), self.now))
                .collect(),
            quarantined: quarantined.collect(),
            alarm: study.alarm.clone(),
            checks: ChecksView {
                waiting,
                running: study.checks.len() - waiting,
                agreed: study.checks.agreed,
                given_up: study.checks.given_up,
            },
        }
    }
}

fn cell_view(cell: &CellState, tally: Tally, now: Duration) -> CellView {
    let max = cell.replicates.max();
    let planned = cell.closed.unwrap_or(max);
    CellView {
        cell: cell.id,
        planned,
        done: cell.done.count_below(planned),
        leased: cell.leased.iter().map(|(start, shard)| shard.end - start).sum(),
        closed: cell.closed,
        stopped: cell.closed.is_some_and(|stop| stop < max),
        failures: cell.failures(),
        tally,
        trials_per_second: cell.meter.rate(now),
        seconds_per_trial: cell.sizing.seconds_per_trial(),
    }
}
