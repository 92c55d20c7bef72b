//! A cell: which of its replicates are where, and when it has enough of them.
//!
//! Invariant: `pending`, `leased`, `suspects`, `quarantined` and `done` partition 0..max. Ranges that
//! are leased, suspect or quarantined never cross a batch. Batches are decided in order: the
//! tally that the stopping rule sees is that of all trials of the batches before `decided`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use study::CellId;
use study::plan::Replicates;
use study::tally::{RowCounts, Tally};

use super::interval_set::IntervalSet;
use super::meter::Meter;
use super::sizing::Sizing;
use super::{CellWork, LeaseEpoch};
use crate::stopping::Rule;

/// Where a cell stands among the cells of its study: batch, then trials done and leased.
pub(super) type Advance = (u64, u64);

/// What happened to a range before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Past {
    /// Workers that died with it.
    pub(super) deaths: u32,
    /// The reason of the last death.
    pub(super) reason: String,
}

/// A range and its past.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) end: u64,
    pub(super) past: Past,
}

/// A range that is being computed or written.
#[derive(Clone, Debug)]
pub(super) struct Shard {
    pub(super) end: u64,
    pub(super) past: Past,
    /// The lease, and the one that a straggler's copy has.
    pub(super) holders: Vec<LeaseEpoch>,
}

/// What became of a range whose lease ended without a result.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Released {
    /// The other lease goes on.
    StillLeased(LeaseEpoch),
    /// It waits for another worker.
    Waiting,
    /// It is given up.
    Quarantined,
}

/// The state of a cell.
#[derive(Debug)]
pub(super) struct CellState {
    pub(super) id: CellId,
    pub(super) replicates: Replicates,
    pub(super) checkpoints: [u8; 32],
    pub(super) records_per_trial: u32,
    pub(super) rows: usize,
    pub(super) pending: IntervalSet,
    /// By first replicate, as the next two.
    pub(super) leased: BTreeMap<u64, Shard>,
    pub(super) suspects: BTreeMap<u64, Held>,
    pub(super) quarantined: BTreeMap<u64, Held>,
    pub(super) done: IntervalSet,
    /// The number of replicates, once it is known.
    pub(super) closed: Option<u64>,
    pub(super) sizing: Sizing,
    pub(super) meter: Meter,
    rule: Option<Rule>,
    decided: u64,
    cumulative: Tally,
    /// What is durable of batches that are not decided.
    open: BTreeMap<u64, Tally>,
}

impl CellState {
    /// The cell as the ledger knows it. Batches are decided by [`advance`](Self::advance).
    pub(super) fn new(work: &CellWork, max_deaths: u32, now: Duration) -> Self {
        let max = work.replicates.max();
        let mut cell = Self {
            id: work.cell,
            replicates: work.replicates,
            checkpoints: work.checkpoints,
            records_per_trial: work.records_per_trial,
            rows: work.rows,
            pending: IntervalSet::of(0..max),
            leased: BTreeMap::new(),
            suspects: BTreeMap::new(),
            quarantined: BTreeMap::new(),
            done: IntervalSet::default(),
            closed: None,
            sizing: Sizing::new(),
            meter: Meter::new(now),
            rule: work.rule.clone(),
            decided: 0,
            cumulative: Tally(vec![RowCounts::default(); work.rows]),
            open: BTreeMap::new(),
        };
        for shard in &work.done {
            // A shard beyond the maximum, or one that the ledger names twice, is no news.
            if cell.pending.covers(&shard.range)
                && let Ok(tally) = Tally::decode(&shard.tally)
            {
                cell.pending.remove(shard.range.clone());
                cell.add_done(shard.range.clone(), &tally);
            }
        }
        for deaths in work.deaths.iter().filter(|deaths| deaths.count > 0) {
            if cell.pending.covers(&deaths.range) && !deaths.range.is_empty() {
                cell.pending.remove(deaths.range.clone());
                let past = Past { deaths: deaths.count, reason: deaths.reason.clone() };
                let held = Held { end: deaths.range.end, past };
                let quarantined = deaths.count >= max_deaths;
                let waiting = if quarantined { &mut cell.quarantined } else { &mut cell.suspects };
                waiting.insert(deaths.range.start, held);
            }
        }
        cell
    }

    /// The replicates of a batch.
    pub(super) fn batch(&self, batch: u64) -> Range<u64> {
        let (size, max) = (self.replicates.batch_size(), self.replicates.max());
        batch.saturating_mul(size).min(max)..(batch + 1).saturating_mul(size).min(max)
    }

    fn batch_of(&self, replicate: u64) -> u64 {
        replicate / self.replicates.batch_size().max(1)
    }

    /// The end of what is certainly needed.
    fn needed(&self) -> u64 {
        if self.rule.is_some() { self.batch(self.decided).end } else { self.replicates.max() }
    }

    /// The end of what may be leased: a batch of lookahead where the cell may stop early.
    pub(super) fn lookahead(&self) -> u64 {
        if self.rule.is_some() { self.batch(self.decided + 1).end } else { self.replicates.max() }
    }

    /// The next replicates that are needed and were never tried in vain, within one batch.
    pub(super) fn fresh(&self) -> Option<Range<u64>> {
        self.pending_in(0..self.needed())
    }

    /// The next replicates that will be needed unless the cell stops, within one batch.
    pub(super) fn ahead(&self) -> Option<Range<u64>> {
        self.pending_in(self.needed()..self.lookahead())
    }

    /// The next needed range whose workers died.
    pub(super) fn suspect(&self) -> Option<Range<u64>> {
        let (&start, held) = self.suspects.first_key_value()?;
        (self.closed.is_none() && start < self.needed()).then_some(start..held.end)
    }

    fn pending_in(&self, bounds: Range<u64>) -> Option<Range<u64>> {
        if self.closed.is_some() {
            return None;
        }
        let range = self.pending.first_from(bounds.start)?;
        let end = range.end.min(self.batch(self.batch_of(range.start)).end);
        (range.start < bounds.end).then_some(range.start..end)
    }

    /// The place in the queue of a range that starts at `start`.
    pub(super) fn advance_at(&self, start: u64) -> Advance {
        (self.batch_of(start), self.replicates.max() - self.pending.count())
    }

    /// Needed trials that nobody has.
    pub(super) fn open_work(&self) -> u64 {
        if self.closed.is_some() { 0 } else { self.pending.count_below(self.needed()) }
    }

    /// Leases pending replicates.
    pub(super) fn take(&mut self, range: Range<u64>, epoch: LeaseEpoch) {
        self.pending.remove(range.clone());
        let shard = Shard { end: range.end, past: Past::default(), holders: vec![epoch] };
        self.leased.insert(range.start, shard);
    }

    /// Leases a suspect range again, with its bounds.
    pub(super) fn take_suspect(&mut self, start: u64, epoch: LeaseEpoch) {
        let held = self.suspects.remove(&start).expect("a suspect range is known by its start");
        let shard = Shard { end: held.end, past: held.past, holders: vec![epoch] };
        self.leased.insert(start, shard);
    }

    /// The range of a lease.
    pub(super) fn shard(&mut self, start: u64) -> &mut Shard {
        self.leased.get_mut(&start).expect("a lease's range is leased in its cell")
    }

    /// Ends a lease without a result; `death` says how its worker died with it.
    pub(super) fn release(
        &mut self,
        start: u64,
        epoch: LeaseEpoch,
        death: Option<String>,
        max_deaths: u32,
    ) -> (Released, u32) {
        let shard = self.shard(start);
        shard.holders.retain(|&holder| holder != epoch);
        if let Some(reason) = death {
            shard.past = Past { deaths: shard.past.deaths + 1, reason };
        }
        let deaths = shard.past.deaths;
        if let Some(&other) = shard.holders.first() {
            return (Released::StillLeased(other), deaths);
        }
        let Shard { end, past, .. } = self.leased.remove(&start).expect("it was just found");
        let released = if deaths >= max_deaths {
            self.quarantined.insert(start, Held { end, past });
            Released::Quarantined
        } else {
            if deaths > 0 {
                self.suspects.insert(start, Held { end, past });
            } else {
                self.pending.insert(start..end);
            }
            Released::Waiting
        };
        (released, deaths)
    }

    /// A leased range is durable.
    pub(super) fn commit(&mut self, start: u64, tally: &Tally) {
        let shard = self.leased.remove(&start).expect("a lease's range is leased in its cell");
        self.add_done(start..shard.end, tally);
    }

    fn add_done(&mut self, range: Range<u64>, tally: &Tally) {
        let batch = self.batch_of(range.start);
        assert!(range.end <= self.batch(batch).end, "a shard lies within a batch");
        self.done.insert(range);
        if self.rule.is_none() {
            self.cumulative.plus(tally);
        } else if self.closed.is_none() {
            let rows = self.rows;
            let open = self.open.entry(batch);
            open.or_insert_with(|| Tally(vec![RowCounts::default(); rows])).plus(tally);
        }
    }

    /// Decides the batches that are complete, in order; the number of replicates if the cell closes.
    pub(super) fn advance(&mut self) -> Option<u64> {
        if self.closed.is_some() {
            return None;
        }
        if self.rule.is_none() {
            let complete = self.is_complete(&(0..self.replicates.max()));
            self.closed = complete.then_some(self.replicates.max());
            return self.closed;
        }
        while self.decided < self.replicates.batches() {
            let batch = self.batch(self.decided);
            if !self.is_complete(&batch) {
                return None;
            }
            if let Some(tally) = self.open.remove(&self.decided) {
                self.cumulative.plus(&tally);
            }
            self.count_quarantined(&batch);
            self.decided += 1;
            let rule = self.rule.as_mut().expect("cells without a rule were handled above");
            if rule.batch_ended(&self.cumulative) {
                return self.close(batch.end);
            }
        }
        self.close(self.replicates.max())
    }

    fn close(&mut self, replicates: u64) -> Option<u64> {
        self.open.clear();
        self.closed = Some(replicates);
        self.closed
    }

    /// Trials of a range that is given up answer nothing: to the rule they are failures, which help
    /// neither side.
    fn count_quarantined(&mut self, batch: &Range<u64>) {
        let lost: u64 =
            self.quarantined.range(batch.clone()).map(|(start, held)| held.end - start).sum();
        self.cumulative.0.iter_mut().for_each(|row| row.failures += lost);
    }

    /// Whether every replicate of a range is durable or given up.
    fn is_complete(&self, range: &Range<u64>) -> bool {
        self.pending.is_disjoint(range)
            && self.leased.range(range.clone()).next().is_none()
            && self.suspects.range(range.clone()).next().is_none()
    }

    /// What all counted trials say so far.
    pub(super) fn tally(&self) -> Tally {
        let mut tally = self.cumulative.clone();
        self.open.values().for_each(|open| tally.plus(open));
        tally
    }

    /// Trials that failed: the most that any row counted.
    pub(super) fn failures(&self) -> u64 {
        let failures = |tally: &Tally, row: usize| tally.0.get(row).map_or(0, |row| row.failures);
        let of_row = |row| {
            let open = self.open.values().map(|open| failures(open, row));
            failures(&self.cumulative, row) + open.sum::<u64>()
        };
        (0..self.cumulative.0.len()).map(of_row).max().unwrap_or(0)
    }
}
