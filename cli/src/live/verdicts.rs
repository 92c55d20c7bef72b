//! Verdicts as they fall: which rows have been decided, and when that was noticed.
//!
//! A row counts as decided once its e-value was seen at the study's level of evidence, as for stopping: an
//! e-value may be looked at as often as one likes. The report weighs whole batches and applies Holm's
//! procedure on top, so that it can decide more.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant, SystemTime};

use proto::v1::{RowStatus, StudyStatus};
use serde::Serialize;

/// Verdicts that are kept for whoever comes to look.
const MOST_ENTRIES: usize = 200;

/// After a longer pause it is not known when a row was decided.
const PAUSE: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Refuted,
    Confirmed,
}

/// Rows refuted, confirmed and open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Count {
    pub(super) refuted: usize,
    pub(super) confirmed: usize,
    pub(super) open: usize,
}

impl Count {
    pub(super) fn add(&mut self, verdict: Option<Verdict>) {
        match verdict {
            Some(Verdict::Refuted) => self.refuted += 1,
            Some(Verdict::Confirmed) => self.confirmed += 1,
            None => self.open += 1,
        }
    }
}

/// A verdict that fell.
#[derive(Debug, Serialize)]
pub(super) struct Entry {
    /// Counts from 1 over all verdicts of a study.
    pub(super) number: u64,
    /// When it was noticed, in milliseconds since 1970.
    noticed: u64,
    /// Nobody had looked for a while, so that it may have fallen long before.
    late: bool,
    verdict: Verdict,
    claim: String,
    form: Option<String>,
    at: Option<String>,
    cell: String,
    t: u32,
    delta: f64,
    trials: u64,
    coverage: f64,
    required: f64,
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    cell: u64,
    claim: String,
    form: Option<String>,
    at: Option<String>,
    t: u32,
    delta: u64,
}

/// What is remembered of a study between looks.
#[derive(Default)]
pub(super) struct Tracker {
    decided: HashMap<Key, Verdict>,
    pub(super) entries: VecDeque<std::sync::Arc<Entry>>,
    count: u64,
    trials: u64,
    last: Option<Instant>,
}

impl Tracker {
    /// Takes note of what has been decided since the last look; says of every row what it is.
    pub(super) fn look(&mut self, status: &StudyStatus) -> Vec<Option<Verdict>> {
        let trials = status.cells.iter().map(|cell| cell.trials_done).sum();
        // A study that grew may compute cells anew.
        if trials < self.trials {
            self.decided.clear();
        }
        self.trials = trials;
        let late = self.last.is_none_or(|last| last.elapsed() > PAUSE);
        self.last = Some(Instant::now());
        let level = status.family.as_ref().map_or(f64::INFINITY, |family| family.ln_evidence);
        let labels: HashMap<u64, &str> =
            status.cells.iter().map(|cell| (cell.cell, cell.label.as_str())).collect();
        let mut fallen = Vec::new();
        let mut verdicts = Vec::with_capacity(status.rows.len());
        for row in &status.rows {
            let key = key(row);
            let known = self.decided.get(&key).copied();
            let verdict = known.or_else(|| now(row, level));
            if let (None, Some(verdict)) = (known, verdict) {
                self.decided.insert(key, verdict);
                let cell = labels.get(&row.cell).copied().unwrap_or_default();
                fallen.push(entry(row, cell, verdict, late));
            }
            verdicts.push(verdict);
        }
        // Of what fell at once, refutations are to stand above: they come last.
        fallen.sort_by_key(|entry| entry.verdict == Verdict::Refuted);
        for entry in fallen {
            self.count += 1;
            self.entries.push_back(Entry { number: self.count, ..entry }.into());
            if self.entries.len() > MOST_ENTRIES {
                self.entries.pop_front();
            }
        }
        verdicts
    }
}

fn key(row: &RowStatus) -> Key {
    Key {
        cell: row.cell,
        claim: row.claim.clone(),
        form: row.form.clone(),
        at: row.at.clone(),
        t: row.t,
        delta: row.delta.to_bits(),
    }
}

fn now(row: &RowStatus, level: f64) -> Option<Verdict> {
    if row.exploratory {
        None
    } else if row.ln_e_refute >= level {
        Some(Verdict::Refuted)
    } else if row.ln_e_confirm >= level {
        Some(Verdict::Confirmed)
    } else {
        None
    }
}

/// The share of trials in which the claim held; `None` before there are any.
pub(super) fn coverage(row: &RowStatus) -> Option<f64> {
    (row.trials > 0).then(|| 1.0 - row.violations as f64 / row.trials as f64)
}

fn entry(row: &RowStatus, cell: &str, verdict: Verdict, late: bool) -> Entry {
    let clock = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Entry {
        number: 0,
        noticed: clock.map_or(0, |clock| clock.as_millis() as u64),
        late,
        verdict,
        claim: row.claim.clone(),
        form: row.form.clone(),
        at: row.at.clone(),
        cell: cell.to_owned(),
        t: row.t,
        delta: row.delta,
        trials: row.trials,
        coverage: coverage(row).unwrap_or(1.0),
        required: row.required,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proto::v1::{CellStatus, Family};

    use super::*;

    pub(in crate::live) fn row(t: u32, ln_e_refute: f64, ln_e_confirm: f64) -> RowStatus {
        RowStatus {
            exploratory: false,
            claim: "lemma1.mean".into(),
            form: Some("printed".into()),
            at: Some("probe".into()),
            t,
            delta: 0.1,
            cell: 1,
            trials: 100,
            violations: 20,
            violations_confirming: 20,
            required: 0.9,
            ln_e_refute,
            ln_e_confirm,
        }
    }

    pub(in crate::live) fn status(rows: Vec<RowStatus>, trials_done: u64) -> StudyStatus {
        let label = "fixed design, N = 100".to_owned();
        let cell =
            CellStatus { cell: 1, label, trials_done, trials_planned: 9, ..CellStatus::default() };
        let rows_of_all = rows.len() as u64;
        let family = Family { alpha: 0.05, ln_evidence: 3.0, n_opt: 2000.0, rows: rows_of_all };
        StudyStatus { cells: vec![cell], rows, family: Some(family), ..StudyStatus::default() }
    }

    #[test]
    fn a_verdict_falls_once_and_stays() {
        let mut tracker = Tracker::default();
        let open = tracker.look(&status(vec![row(1, 0.0, 1.0)], 1));
        assert_eq!((open, tracker.entries.len()), (vec![None], 0));
        for (refute, count) in [(3.0, 1), (0.5, 1)] {
            let verdicts = tracker.look(&status(vec![row(1, refute, 0.0)], 2));
            assert_eq!((verdicts[0], tracker.entries.len()), (Some(Verdict::Refuted), count));
        }
        let entry = &tracker.entries[0];
        assert_eq!((entry.number, entry.coverage, entry.late), (1, 0.8, false));
        assert_eq!(entry.cell, "fixed design, N = 100");
        // Fewer trials than before: another plan.
        let verdicts = tracker.look(&status(vec![row(1, 0.5, 0.0)], 1));
        assert_eq!(verdicts, [None]);
    }

    #[test]
    fn an_exploratory_row_is_never_decided() {
        let mut tracker = Tracker::default();
        let late = RowStatus { exploratory: true, ..row(1, 9.0, 0.0) };
        let verdicts = tracker.look(&status(vec![late, row(5, 9.0, 0.0)], 1));
        assert_eq!(verdicts, [None, Some(Verdict::Refuted)]);
        assert_eq!(tracker.entries.len(), 1);
    }

    #[test]
    fn refutations_come_last_and_old_entries_go() {
        let mut tracker = Tracker::default();
        let mut rows: Vec<RowStatus> = (0..300).map(|t| row(t, 0.0, 9.0)).collect();
        rows[0].ln_e_refute = 9.0;
        tracker.look(&status(rows, 1));
        assert_eq!(tracker.entries.len(), MOST_ENTRIES);
        let last = tracker.entries.back().unwrap();
        assert_eq!((last.number, last.verdict, last.late), (300, Verdict::Refuted, true));
    }
}
