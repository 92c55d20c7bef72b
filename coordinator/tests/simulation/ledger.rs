//! The durable side: what survives a crash of the coordinator.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use coordinator::core::{CellWork, Deaths, DoneShard, LeaseEpoch, ShardCommit, StudyWork};
use study::{CellId, StudyId};

use crate::scenario::{BUDGETS, CellPlan};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Active,
    Done,
    Cancelled,
    Alarmed,
}

/// A study, a cell and the version of its checkpoints.
pub(crate) type Address = (StudyId, CellId, u8);

pub(crate) struct Row {
    pub(crate) shard: ShardCommit,
    pub(crate) epoch: LeaseEpoch,
    /// The worker whose recomputation agreed.
    pub(crate) checked: Option<String>,
}

#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) status: BTreeMap<StudyId, Status>,
    /// Which version of the plan is submitted.
    pub(crate) plans: BTreeMap<StudyId, usize>,
    /// By first replicate.
    pub(crate) rows: BTreeMap<Address, BTreeMap<u64, Row>>,
    pub(crate) deaths: BTreeMap<Address, BTreeMap<u64, Deaths>>,
    pub(crate) stops: BTreeMap<(StudyId, CellId), u64>,
    epochs: BTreeSet<LeaseEpoch>,
}

impl Ledger {
    /// A shard becomes durable; twice the same trial is the failure that is looked for.
    pub(crate) fn insert(
        &mut self,
        version: u8,
        epoch: LeaseEpoch,
        shard: ShardCommit,
        batches: (u64, &[u64]),
    ) {
        let (sent, stored) = batches;
        assert!((0..sent).eq(stored.iter().copied()), "{epoch} has batches {stored:?} of {sent}");
        let rows = self.rows.entry((shard.study, shard.cell, version)).or_default();
        let range = &shard.range;
        let before = rows.range(..range.end).next_back();
        assert!(
            before.is_none_or(|(_, row)| row.shard.range.end <= range.start),
            "{range:?} of {} is committed twice",
            shard.cell
        );
        assert!(self.epochs.insert(epoch), "{epoch} is committed twice");
        rows.insert(range.start, Row { shard, epoch, checked: None });
    }

    pub(crate) fn has(&self, epoch: LeaseEpoch) -> bool {
        self.epochs.contains(&epoch)
    }

    /// What a recovering coordinator submits.
    pub(crate) fn work(&self, study: StudyId, plan: &[CellPlan]) -> StudyWork {
        let cells = plan.iter().map(|cell| self.cell(study, cell)).collect();
        StudyWork { study, seed_for_checks: 1, cells }
    }

    fn cell(&self, study: StudyId, plan: &CellPlan) -> CellWork {
        let address = (study, plan.id, plan.version);
        let rows = self.rows.get(&address).into_iter().flat_map(BTreeMap::values);
        let done = rows.map(|row| DoneShard {
            range: row.shard.range.clone(),
            digest: row.shard.digest,
            tally: row.shard.tally.encode().into(),
            worker: row.shard.worker.to_string(),
            checked: row.checked.is_some(),
        });
        let deaths = self.deaths.get(&address).into_iter().flat_map(BTreeMap::values);
        CellWork {
            cell: plan.id,
            replicates: plan.replicates,
            checkpoints: [plan.version; 32],
            records_per_trial: 2,
            rows: BUDGETS.len(),
            rule: plan.rule(),
            done: done.collect(),
            deaths: deaths.cloned().collect(),
        }
    }

    /// Ranges of a cell that were given up.
    pub(crate) fn given_up(&self, address: Address, max_deaths: u32) -> Vec<Range<u64>> {
        let deaths = self.deaths.get(&address).into_iter().flat_map(BTreeMap::values);
        let rows = self.rows.get(&address);
        let durable = |first: u64| rows.is_some_and(|rows| rows.contains_key(&first));
        let lost =
            deaths.filter(|deaths| deaths.count >= max_deaths && !durable(deaths.range.start));
        lost.map(|deaths| deaths.range.clone()).collect()
    }
}
