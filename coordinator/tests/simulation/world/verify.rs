//! What must hold.

use std::collections::BTreeMap;

use coordinator::core::{Alarm, Command};
use study::{CellId, StudyId};

use super::World;
use crate::ledger::Status;
use crate::scenario::CellPlan;
use crate::truth;

impl World<'_> {
    pub(super) fn lies(&self, name: &str) -> bool {
        let worker = self.workers.iter().position(|worker| worker.name == name);
        self.scenario.workers[worker.expect("a worker of the scenario")].lies
    }

    /// A check that does not agree raises an alarm that names both workers.
    pub(super) fn check_alarms(&self, commands: &[Command]) {
        for command in commands {
            let Command::RecordCheck { study, cell, range, agreed: false, worker, .. } = command
            else {
                continue;
            };
            let address = (*study, *cell, self.cell(*study, *cell).version);
            let first = &self.ledger.rows[&address][&range.start].shard.worker;
            let named = |alarm: &Alarm| {
                alarm.study == *study
                    && alarm.cell == *cell
                    && alarm.range == *range
                    && alarm.first.0 == *first
                    && alarm.second.0 == *worker
            };
            let raised = commands.iter().any(|it| matches!(it, Command::Alarm(a) if named(a)));
            assert!(raised, "a wrong digest without an alarm");
        }
        for command in commands {
            if let Command::Alarm(Alarm { first, second, .. }) = command {
                assert!(self.lies(&first.0) || self.lies(&second.0), "a false alarm");
            }
        }
    }

    /// A worker is said to have died only if it ended, stalled or was not heard.
    pub(super) fn check_blame(&self, name: &str) {
        let worker = self.workers.iter().position(|worker| worker.name == name);
        let worker = worker.expect("a worker of the scenario");
        let silence = self.clock() - self.heard[worker];
        let stalled = self.workers[worker].stalled_until > 0;
        // In another life of the coordinator, or when messages are lost, it may well not be heard.
        let unheard = self.scenario.faults.loss > 0 || self.life > 1 || silence >= 15_000;
        assert!(self.ended[worker] || stalled || unheard, "{name} is blamed for a death");
    }

    pub(super) fn closed(&mut self, study: StudyId, cell: CellId, replicates: u64) {
        let plan = self.cell(study, cell);
        let max_deaths = self.scenario.settings.max_deaths;
        let lost = self.ledger.given_up((study, cell, plan.version), max_deaths);
        assert_eq!(replicates, truth::replicates(study, plan, &lost), "the stop of cell {cell}");
        self.seen.early_stops += u64::from(replicates < plan.replicates.max());
        self.ledger.stops.insert((study, cell), replicates);
    }

    pub(super) fn done(&mut self, study: StudyId) {
        self.seen.done += 1;
        self.ledger.status.insert(study, Status::Done);
        for plan in self.plan(study) {
            let replicates = self.ledger.stops[&(study, plan.id)];
            self.check_cell(study, plan, replicates);
        }
    }

    /// Every replicate below the stop is durable once or given up, with the right content.
    pub(super) fn check_cell(&mut self, study: StudyId, plan: &CellPlan, replicates: u64) {
        let address = (study, plan.id, plan.version);
        let lost = self.ledger.given_up(address, self.scenario.settings.max_deaths);
        let mut covered: Vec<_> =
            lost.into_iter().filter(|range| range.start < replicates).collect();
        for row in self.ledger.rows.get(&address).into_iter().flat_map(BTreeMap::values) {
            let shard = &row.shard;
            if shard.range.start >= replicates {
                self.seen.beyond += 1;
                continue;
            }
            covered.push(shard.range.clone());
            let right = shard.digest == truth::digest(study, plan, &shard.range, 0);
            assert!(right || self.lies(&shard.worker), "{} has wrong records", row.epoch);
            let checked = row.checked.as_ref();
            assert!(
                right || checked.is_none_or(|by| self.lies(by)),
                "an honest check agreed with a lie"
            );
        }
        covered.sort_by_key(|range| range.start);
        let mut next = 0;
        for range in covered {
            assert_eq!(range.start, next, "cell {} has a gap or a trial twice", plan.id);
            next = range.end;
        }
        assert_eq!(next, replicates, "cell {} is complete", plan.id);
    }
}
