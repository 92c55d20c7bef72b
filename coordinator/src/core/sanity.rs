//! The invariants of the core, verified.

use std::collections::BTreeSet;
use std::ops::Range;

use super::cell::{CellState, Held};
use super::lease::{Lease, Stage};
use super::study::StudyState;
use super::{Core, LeaseEpoch, StudyPhase};

impl Core {
    /// Verifies every invariant; for tests.
    ///
    /// # Panics
    /// Where one is broken.
    pub fn sanity_check(&self) {
        self.workers.sanity_check();
        self.leases.sanity_check(|_, lease| self.holders(lease).len() == 1);
        for (epoch, lease) in self.leases.iter() {
            self.check_lease(epoch, lease);
        }
        let held: usize = self.workers.iter().map(|(_, worker)| worker.leases.len()).sum();
        let working = |lease: &Lease| !matches!(lease.stage, Stage::Committing { .. });
        let out = self.leases.iter().filter(|(_, lease)| working(lease)).count();
        assert_eq!(held, out, "workers hold what is leased");
        for study in self.studies.values() {
            self.check_study(study);
        }
        let active = self.studies.values().filter(|study| study.phase == StudyPhase::Active);
        let turns: BTreeSet<_> = active.map(|study| (study.turn, study.id)).collect();
        assert_eq!(self.turns, turns, "active studies take turns");
    }

    fn holders(&self, lease: &Lease) -> &[LeaseEpoch] {
        let cell = self.studies[&lease.study].cell(lease.cell);
        cell.leased.get(&lease.range.start).map_or(&[], |shard| &shard.holders)
    }

    fn check_lease(&self, epoch: LeaseEpoch, lease: &Lease) {
        assert!(epoch < self.next_epoch, "{epoch} was granted");
        let worker = self.workers.get(lease.worker);
        let study = &self.studies[&lease.study];
        match &lease.stage {
            Stage::Running => {
                assert_eq!(study.phase, StudyPhase::Active, "{epoch} of a study that is over");
                if lease.check {
                    let check = study.checks.get((lease.cell, lease.range.start));
                    assert_eq!(check.and_then(|check| check.running), Some(epoch));
                } else {
                    let cell = study.cell(lease.cell);
                    assert!(self.holders(lease).contains(&epoch), "{epoch} holds its range");
                    assert!(cell.closed.is_none(), "{epoch} of a closed cell");
                    assert!(lease.range.end <= cell.lookahead(), "{epoch} is too far ahead");
                }
            }
            Stage::Committing { orphaned, .. } => {
                assert!(*orphaned || *self.holders(lease) == [epoch], "{epoch} is written alone");
                return;
            }
            Stage::Superseded { .. } => assert!(!self.holders(lease).contains(&epoch)),
        }
        let worker = worker.expect("a worker that holds a lease is known");
        assert!(worker.leases.contains(&epoch), "{epoch} is in its worker's hands");
        assert!(lease.expires <= worker.contact + self.settings.lease, "{epoch} outlives contact");
    }

    fn check_study(&self, study: &StudyState) {
        study.sanity_check();
        let of_study = || self.leases.iter().filter(|(_, lease)| lease.study == study.id);
        let writing = |lease: &Lease| matches!(lease.stage, Stage::Committing { .. });
        assert_eq!(study.committing, of_study().filter(|(_, lease)| writing(lease)).count());
        assert_eq!(study.phase == StudyPhase::Alarmed, study.alarm.is_some());
        if study.phase == StudyPhase::Done {
            assert!(study.is_finished() && of_study().all(|(_, lease)| !lease.is_running()));
        }
        for (index, cell) in study.cells().iter().enumerate() {
            self.check_partition(cell);
            for (&start, shard) in &cell.leased {
                assert!((1..=2).contains(&shard.holders.len()), "held once, or copied once");
                let mut workers = Vec::new();
                for &epoch in &shard.holders {
                    let lease = self.leases.get(epoch).expect("a holder is leased");
                    assert!(!lease.check && lease.study == study.id && lease.cell == index);
                    assert_eq!(lease.range, start..shard.end, "a lease has its shard's bounds");
                    workers.push(lease.worker);
                }
                assert!(workers.len() < 2 || workers[0] != workers[1], "copied by another");
            }
        }
    }

    fn check_partition(&self, cell: &CellState) {
        let leased = cell.leased.iter().map(|(&start, shard)| start..shard.end);
        let held = |(&start, held): (&u64, &Held)| start..held.end;
        let suspects = cell.suspects.iter().map(held);
        let quarantined = cell.quarantined.iter().map(held);
        let whole: Vec<Range<u64>> = leased.chain(suspects).chain(quarantined).collect();
        for range in &whole {
            let batch = cell.batch(range.start / cell.replicates.batch_size().max(1));
            assert!(batch.start <= range.start && range.end <= batch.end, "{range:?} in a batch");
        }
        let mut all: Vec<Range<u64>> = whole;
        all.extend(cell.pending.iter().chain(cell.done.iter()));
        all.sort_by_key(|range| range.start);
        let mut next = 0;
        for range in all {
            assert!(range.start == next && range.end > next, "{range:?} after {next}");
            next = range.end;
        }
        assert_eq!(next, cell.replicates.max(), "a cell's replicates are all somewhere");
        let max = self.settings.max_deaths;
        assert!(cell.suspects.values().all(|held| (1..max).contains(&held.past.deaths)));
        assert!(cell.quarantined.values().all(|held| held.past.deaths >= max));
    }
}
