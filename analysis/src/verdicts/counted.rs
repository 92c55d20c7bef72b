//! Which trials of a cell a row counts, and with which rows it is judged.

use std::ops::RangeInclusive;

use study::family::{Membership, RowKey};

use super::{Group, VerdictRow};
use crate::dataset::{DataCell, Dataset};
use crate::pass::Asked;

/// A row as it counts in one group.
pub(super) struct Counted {
    pub(super) group: Group,
    /// The periods whose trials count.
    pub(super) periods: RangeInclusive<usize>,
    /// The first batch that counts, and its first replicate: those before were drawn, or begun, when a
    /// planned row was written down.
    pub(super) batch: u64,
    pub(super) first: u64,
    pub(super) is_shown: bool,
}

impl Counted {
    /// Whether no trial of the cell is left out.
    pub(super) fn is_of_all(&self, cell: &DataCell) -> bool {
        self.first == 0 && *self.periods.end() == cell.replaced_at.len()
    }

    /// Says in a row how it counts.
    pub(super) fn mark(&self, dataset: &Dataset, cell: &DataCell, row: &mut VerdictRow) {
        row.exploratory = self.group == Group::Exploratory;
        let end = cell.replaced_at.get(*self.periods.end()).copied().unwrap_or(u64::MAX);
        let end = end.min(cell.replicates);
        row.replicates = Some([self.first.min(end), end]);
        if let Group::Earlier(family) = self.group {
            row.family = Some(dataset.earlier[family].family.digest.to_string());
        }
    }

    /// Why a row has no trials yet.
    pub(super) fn awaits(&self, dataset: &Dataset, cell: &DataCell) -> String {
        let existed = cell.first(*self.periods.start());
        let written = format!("it was written down when {existed} replicates existed");
        match (dataset.is_stopped(), dataset.has_all_records()) {
            (true, _) if self.first < cell.replicates => {
                format!("{written}, and no trial since has this quantity")
            }
            (true, _) => format!(
                "{written}, so that it counts from replicate {} on, and the cell has {}; raise max in \
                 replicates to test it",
                self.first, cell.replicates
            ),
            (false, true) => {
                format!("{written}, and none has been counted since; add replicates to test it")
            }
            (false, false) => format!(
                "{written}, and a summary with a fixed number of replicates counts all of them together; to test \
                 it, run it under another name with another seed"
            ),
        }
    }
}

/// The families of a study, as far as they matter for a cell.
pub(super) struct Judging<'a> {
    pub(super) cell: &'a DataCell,
    /// The size of batches where late rows begin with a whole one: where cells stop early, so that rows
    /// count what the stopping rule counts, and where all that was kept are counts by batch.
    batch: Option<u64>,
    /// `None` where nothing was ever changed.
    membership: Option<Membership>,
}

impl<'a> Judging<'a> {
    pub(super) fn new(dataset: &Dataset, cell: &'a DataCell) -> Self {
        let changed = dataset.is_changed() && cell.replaced_at.iter().any(|&existed| existed > 0);
        let whole = dataset.is_stopped() || !dataset.has_all_records();
        let batch = whole.then(|| dataset.study.replicates.batch_size());
        Self { cell, batch, membership: changed.then(|| dataset.membership(cell)) }
    }

    fn now(&self) -> usize {
        self.cell.replaced_at.len()
    }

    /// A row in every group that it is in.
    pub(super) fn all(&self, key: impl FnOnce() -> RowKey, asked: Asked) -> Vec<Counted> {
        let mut counted = match asked {
            Asked::Further => vec![self.exploratory()],
            Asked::Planned if self.membership.is_none() => return self.planned(key),
            Asked::Planned | Asked::Before => vec![],
        };
        let Some(_) = &self.membership else { return counted };
        let key = key();
        if asked == Asked::Planned {
            counted = self.planned(|| key.clone());
        }
        if asked != Asked::Further {
            counted.extend((0..self.now()).filter_map(|family| self.before(&key, family)));
        }
        counted
    }

    /// A row of the present family: planned for the trials since it was written down, and exploratory on
    /// all where there were some before.
    pub(super) fn planned(&self, key: impl FnOnce() -> RowKey) -> Vec<Counted> {
        let now = self.now();
        let joined = self.membership.as_ref().map_or(0, |families| families.joined(now, &key()));
        let (batch, first) = self.start(joined);
        let planned =
            Counted { group: Group::Planned, periods: joined..=now, batch, first, is_shown: true };
        if first == 0 {
            return vec![Counted { periods: 0..=now, ..planned }];
        }
        vec![self.exploratory(), planned]
    }

    fn exploratory(&self) -> Counted {
        let periods = 0..=self.now();
        Counted { group: Group::Exploratory, periods, batch: 0, first: 0, is_shown: true }
    }

    /// The first batch and replicate that count for a row that joined with a family.
    fn start(&self, joined: usize) -> (u64, u64) {
        let existed = self.cell.first(joined);
        match self.batch {
            None => (0, existed),
            Some(size) => {
                let batch = existed.div_ceil(size);
                (batch, batch.saturating_mul(size))
            }
        }
    }

    /// A row of an earlier family, on the trials that it had; shown where the next family does not go on
    /// with it.
    pub(super) fn before(&self, key: &str, family: usize) -> Option<Counted> {
        let families = self.membership.as_ref()?;
        let existed = self.cell.replaced_at[family];
        if existed == 0 || !families.has(family, key) {
            return None;
        }
        let joined = families.joined(family, key);
        let (batch, first) = self.start(joined);
        let periods = joined..=family;
        let is_shown = !families.goes_on(family, key) && existed > first;
        Some(Counted { group: Group::Earlier(family), periods, batch, first, is_shown })
    }
}
