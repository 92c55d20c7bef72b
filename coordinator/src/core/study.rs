//! A study: its cells, queued by how far they are, and its checks.
//!
//! Invariant: a cell is in `fresh`, `suspect` and `ahead` exactly where it has such work, under its
//! present place, so that the least advanced cell is the first entry. Cells change only through
//! [`StudyState::update`], which keeps the queues and the totals.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use study::{CellId, StudyId};

use super::cell::{Advance, CellState, Past};
use super::checks::{self, Check, Checks};
use super::{Alarm, Settings, StudyPhase, StudyWork};

/// A cell in a queue.
type Place = (Advance, usize);

/// The memory of a cell, without what grows with its rows: the two sets of replicates, of which each has a node
/// of 11 ranges, the ranges that are leased, and places in the queues.
pub(crate) const BYTES_PER_CELL: usize =
    size_of::<CellState>() + 3 * (11 * 16 + 32) + 3 * 2 * size_of::<Place>();

/// The state of a study.
#[derive(Debug)]
pub(super) struct StudyState {
    pub(super) id: StudyId,
    pub(super) phase: StudyPhase,
    /// Deleted, and forgotten once nothing of it is being written.
    pub(super) forgotten: bool,
    pub(super) alarm: Option<Alarm>,
    pub(super) checks: Checks,
    /// Shards that are being written, those without a place in the study included.
    pub(super) committing: usize,
    /// When the study is served, relative to the others.
    pub(super) turn: u64,
    seed_for_checks: u64,
    /// By id.
    cells: Vec<CellState>,
    fresh: BTreeSet<Place>,
    suspect: BTreeSet<Place>,
    ahead: BTreeSet<Place>,
    open_work: u64,
    open_cells: usize,
}

impl StudyState {
    /// The study as the ledger knows it.
    pub(super) fn new(work: &StudyWork, settings: &Settings, now: Duration) -> Self {
        let mut order: Vec<_> = work.cells.iter().collect();
        order.sort_by_key(|cell| cell.cell);
        let cells = order.iter().map(|cell| CellState::new(cell, settings.max_deaths, now));
        let mut study = Self {
            id: work.study,
            phase: StudyPhase::Active,
            forgotten: false,
            alarm: None,
            checks: Checks::default(),
            committing: 0,
            turn: 0,
            seed_for_checks: work.seed_for_checks,
            cells: cells.collect(),
            fresh: BTreeSet::new(),
            suspect: BTreeSet::new(),
            ahead: BTreeSet::new(),
            open_work: 0,
            open_cells: order.len(),
        };
        for (index, cell) in order.iter().enumerate() {
            study.list(index);
            for shard in cell.done.iter().filter(|shard| !shard.checked) {
                let by = shard.worker.as_str().into();
                study.want_check(index, shard.range.clone(), shard.digest, by, settings);
            }
        }
        study
    }

    pub(super) fn cells(&self) -> &[CellState] {
        &self.cells
    }

    pub(super) fn cell(&self, index: usize) -> &CellState {
        &self.cells[index]
    }

    /// A cell's place.
    pub(super) fn index_of(&self, cell: CellId) -> Option<usize> {
        self.cells.binary_search_by_key(&cell, |state| state.id).ok()
    }

    /// Changes a cell.
    pub(super) fn update<R>(
        &mut self,
        index: usize,
        change: impl FnOnce(&mut CellState) -> R,
    ) -> R {
        self.unlist(index);
        let was_open = self.cells[index].closed.is_none();
        let result = change(&mut self.cells[index]);
        if was_open && self.cells[index].closed.is_some() {
            self.open_cells -= 1;
        }
        self.list(index);
        result
    }

    /// Puts a shard on the list of those to be recomputed, if it is one of them.
    pub(super) fn want_check(
        &mut self,
        index: usize,
        range: Range<u64>,
        digest: [u8; 32],
        by: Arc<str>,
        settings: &Settings,
    ) {
        let cell = &self.cells[index];
        let beyond = cell.closed.is_some_and(|stop| range.start >= stop);
        let fraction = settings.check_fraction;
        if !beyond
            && cell.done.covers(&range)
            && checks::is_due(self.seed_for_checks, self.id, cell.id, range.start, fraction)
        {
            let check = Check { range, digest, by, past: Past::default(), running: None };
            self.checks.add((index, check.range.start), check);
        }
    }

    /// The least advanced cell that has needed work, and whether that is a suspect range.
    pub(super) fn needed(&self, suspects: bool) -> Option<(usize, bool)> {
        let fresh = self.fresh.first().map(|&place| (place, false));
        let suspect = self.suspect.first().filter(|_| suspects).map(|&place| (place, true));
        let first = match (fresh, suspect) {
            (Some(fresh), Some(suspect)) if fresh.0 < suspect.0 => Some(fresh),
            (fresh, suspect) => suspect.or(fresh),
        };
        first.map(|((_, index), suspect)| (index, suspect))
    }

    /// The least advanced cell that has work which is needed unless it stops.
    pub(super) fn lookahead(&self) -> Option<usize> {
        self.ahead.first().map(|&(_, index)| index)
    }

    /// Needed trials that nobody has.
    pub(super) fn open_work(&self) -> u64 {
        self.open_work
    }

    /// Whether a request could be served.
    pub(super) fn has_work(&self) -> bool {
        self.checks.any_waiting()
            || !(self.fresh.is_empty() && self.suspect.is_empty() && self.ahead.is_empty())
    }

    /// Whether all is done.
    pub(super) fn is_finished(&self) -> bool {
        self.open_cells == 0 && self.committing == 0 && self.checks.len() == 0
    }

    fn places(&self, index: usize) -> [Option<Place>; 3] {
        let cell = &self.cells[index];
        let place = |range: Range<u64>| (cell.advance_at(range.start), index);
        [cell.fresh().map(place), cell.suspect().map(place), cell.ahead().map(place)]
    }

    fn list(&mut self, index: usize) {
        let [fresh, suspect, ahead] = self.places(index);
        self.fresh.extend(fresh);
        self.suspect.extend(suspect);
        self.ahead.extend(ahead);
        self.open_work += self.cells[index].open_work();
    }

    fn unlist(&mut self, index: usize) {
        let [fresh, suspect, ahead] = self.places(index);
        fresh.map(|place| self.fresh.remove(&place));
        suspect.map(|place| self.suspect.remove(&place));
        ahead.map(|place| self.ahead.remove(&place));
        self.open_work -= self.cells[index].open_work();
    }

    /// Verifies the invariant.
    pub(super) fn sanity_check(&self) {
        let places = |kind: usize| -> BTreeSet<Place> {
            (0..self.cells.len()).filter_map(|index| self.places(index)[kind]).collect()
        };
        assert_eq!(self.fresh, places(0), "cells with fresh work are queued");
        assert_eq!(self.suspect, places(1), "cells with suspect ranges are queued");
        assert_eq!(self.ahead, places(2), "cells with lookahead are queued");
        assert_eq!(self.open_work, self.cells.iter().map(CellState::open_work).sum::<u64>());
        let open = self.cells.iter().filter(|cell| cell.closed.is_none()).count();
        assert_eq!(self.open_cells, open, "open cells are counted");
        self.checks.sanity_check();
        for (&(index, first), check) in self.checks.iter() {
            let cell = &self.cells[index];
            assert!(first == check.range.start && cell.done.covers(&check.range));
            assert!(cell.closed.is_none_or(|stop| first < stop), "no check beyond the stop");
        }
    }
}
