//! What workers bring back, and what becomes of it.

use std::sync::Arc;

use study::StudyId;
use study::tally::Tally;

use super::cell::{CellState, Released};
use super::lease::{Lease, Stage};
use super::{Alarm, Command, Core, LeaseEpoch, Refusal, ShardCommit, StudyPhase, WorkerId};

/// The result of a lease, as its worker reports it.
pub(super) struct Report {
    pub(super) digest: [u8; 32],
    pub(super) tally: Tally,
    pub(super) trials: u64,
    pub(super) seconds: f64,
}

impl Core {
    pub(super) fn finished(&mut self, worker: WorkerId, epoch: LeaseEpoch, report: Report) {
        let Some(lease) = self.leases.held(worker, epoch).cloned() else {
            self.out.push(Command::NotHeld { worker, epoch });
            return;
        };
        match &lease.stage {
            // Sent again; the answer comes when it is durable.
            Stage::Committing { .. } => {}
            Stage::Superseded { digest, by } => {
                self.forget(epoch);
                self.out.push(Command::Reject { worker, epoch, reason: Refusal::Superseded });
                if *digest != report.digest {
                    self.alarm(&lease, (by.clone(), *digest), report.digest);
                }
            }
            Stage::Running => {
                if let Some(fault) = self.fault(&lease, &report) {
                    let reason = Refusal::Malformed(fault.clone());
                    self.out.push(Command::Reject { worker, epoch, reason });
                    self.end(epoch, Some(fault));
                } else if lease.check {
                    self.compare(epoch, &lease, &report);
                } else {
                    self.commit(epoch, &lease, report);
                }
            }
        }
    }

    /// What is wrong with a result, whatever its records.
    fn fault(&self, lease: &Lease, report: &Report) -> Option<String> {
        let leased = lease.range.end - lease.range.start;
        let rows = self.studies[&lease.study].cell(lease.cell).rows;
        let sound = report.tally.0.iter().all(|row| {
            row.refuting <= row.trials
                && row.confirming <= row.trials
                && row.trials.checked_add(row.failures).is_some_and(|all| all <= leased)
        });
        if report.trials != leased {
            Some(format!("{} trials of {leased}", report.trials))
        } else if report.tally.0.len() != rows {
            Some(format!("a tally of {} rows, not {rows}", report.tally.0.len()))
        } else {
            (!sound).then(|| "a tally that counts more than its trials".to_owned())
        }
    }

    fn commit(&mut self, epoch: LeaseEpoch, lease: &Lease, report: Report) {
        let Report { digest, tally, trials, seconds } = report;
        self.leases.committing(epoch, digest, tally.clone());
        self.let_go(lease.worker, epoch);
        let (now, settings) = (self.now, self.settings.clone());
        let study = self.state(lease.study);
        study.committing += 1;
        let cell = study.cell(lease.cell).id;
        let slower = study.update(lease.cell, |cell| {
            cell.sizing.learn(trials, seconds, &settings);
            cell.meter.add(now, trials);
            let shard = cell.shard(lease.range.start);
            let slower = shard.holders.iter().copied().find(|&holder| holder != epoch);
            shard.holders = vec![epoch];
            slower
        });
        if let Some(worker) = self.workers.get_mut(lease.worker) {
            worker.meter.add(now, trials);
        }
        let shard = ShardCommit {
            study: lease.study,
            cell,
            range: lease.range.clone(),
            digest,
            tally,
            worker: lease.name.clone(),
            seconds,
        };
        self.out.push(Command::Commit { epoch, shard });
        if let Some(other) = slower {
            self.leases.supersede(other, digest, lease.name.clone());
            let worker = self.leases.get(other).expect("a copy is leased").worker;
            self.out.push(Command::Revoke { worker, epoch: other, reason: Refusal::Superseded });
        }
    }

    fn compare(&mut self, epoch: LeaseEpoch, lease: &Lease, report: &Report) {
        self.forget(epoch);
        let study = self.state(lease.study);
        let check = study.checks.remove((lease.cell, lease.range.start));
        let check = check.expect("a leased check is known");
        let agreed = check.digest == report.digest;
        study.checks.agreed += u64::from(agreed);
        let cell = study.cell(lease.cell).id;
        self.out.push(Command::RecordCheck {
            study: lease.study,
            cell,
            range: lease.range.clone(),
            digest: report.digest,
            agreed,
            worker: lease.name.clone(),
        });
        self.out.push(Command::Acknowledge { worker: lease.worker, epoch });
        if agreed {
            self.finish_if_done(lease.study);
        } else {
            self.alarm(lease, (check.by, check.digest), report.digest);
        }
    }

    pub(super) fn committed(&mut self, epoch: LeaseEpoch) {
        let Some((lease, digest, tally, orphaned)) = self.written(epoch) else { return };
        self.out.push(Command::Acknowledge { worker: lease.worker, epoch });
        if !orphaned {
            let settings = self.settings.clone();
            let study = self.state(lease.study);
            study.update(lease.cell, |cell| cell.commit(lease.range.start, &tally));
            study.want_check(lease.cell, lease.range, digest, lease.name, &settings);
            self.settle(lease.study, lease.cell);
        }
        self.finish_if_done(lease.study);
        self.drop_forgotten(lease.study);
    }

    pub(super) fn commit_failed(&mut self, epoch: LeaseEpoch, reason: String) {
        let Some((lease, _, _, orphaned)) = self.written(epoch) else { return };
        let reason = Refusal::CommitFailed(reason);
        self.out.push(Command::Reject { worker: lease.worker, epoch, reason });
        if !orphaned {
            self.give_back(epoch, &lease, None);
        }
        self.finish_if_done(lease.study);
        self.drop_forgotten(lease.study);
    }

    /// Takes a lease whose shard was being written off the books.
    fn written(&mut self, epoch: LeaseEpoch) -> Option<(Lease, [u8; 32], Tally, bool)> {
        let lease = self.leases.get(epoch)?;
        let Stage::Committing { digest, tally, orphaned } = lease.stage.clone() else {
            return None;
        };
        let lease = self.leases.remove(epoch)?;
        self.state(lease.study).committing -= 1;
        Some((lease, digest, tally, orphaned))
    }

    /// Ends a lease on which its worker was working, without a result.
    pub(super) fn end(&mut self, epoch: LeaseEpoch, death: Option<String>) {
        let Some(lease) = self.forget(epoch) else { return };
        if !matches!(lease.stage, Stage::Superseded { .. }) {
            self.give_back(epoch, &lease, death);
        }
    }

    fn give_back(&mut self, epoch: LeaseEpoch, lease: &Lease, death: Option<String>) {
        let max = self.settings.max_deaths;
        let (name, range, start) = (lease.name.clone(), lease.range.clone(), lease.range.start);
        let study = self.state(lease.study);
        let cell = study.cell(lease.cell).id;
        if lease.check {
            let deaths = study.checks.release((lease.cell, start), death, max);
            // A check's deaths are not written down: the shard itself is durable and innocent.
            if deaths.is_some() {
                self.finish_if_done(lease.study);
            }
            return;
        }
        let died = death.clone();
        let (released, deaths) =
            study.update(lease.cell, |cell| cell.release(start, epoch, death, max));
        if let Some(reason) = died {
            let study = lease.study;
            self.out.push(Command::RecordDeath {
                study,
                cell,
                range,
                deaths,
                worker: name,
                reason,
            });
        }
        match released {
            Released::StillLeased(other) => self.leases.runs_alone(other),
            Released::Waiting => {}
            Released::Quarantined => self.quarantine(lease),
        }
    }

    fn quarantine(&mut self, lease: &Lease) {
        let cell = self.studies[&lease.study].cell(lease.cell);
        let held = &cell.quarantined[&lease.range.start];
        self.out.push(Command::Quarantined {
            study: lease.study,
            cell: cell.id,
            range: lease.range.clone(),
            deaths: held.past.deaths,
            reason: held.past.reason.clone(),
        });
        self.settle(lease.study, lease.cell);
        self.finish_if_done(lease.study);
    }

    /// Decides the batches that are complete by now. Where the cell closes, what lies beyond the
    /// stop is dropped.
    pub(super) fn settle(&mut self, id: StudyId, cell: usize) {
        let study = self.state(id);
        if study.phase != StudyPhase::Active {
            return;
        }
        let Some(replicates) = study.update(cell, CellState::advance) else { return };
        let state = study.cell(cell);
        let closed = Command::CellClosed { study: id, cell: state.id, replicates };
        let beyond = state.leased.range(replicates..).flat_map(|(_, shard)| shard.holders.clone());
        let mut leases: Vec<LeaseEpoch> = beyond.collect();
        let checks = study.checks.beyond(cell, replicates);
        leases.extend(checks.iter().filter_map(|&key| study.checks.get(key)?.running));
        self.out.push(closed);
        for epoch in leases {
            self.revoke(epoch, &Refusal::CellClosed);
        }
        let study = self.state(id);
        checks.into_iter().for_each(|key| drop(study.checks.remove(key)));
    }

    pub(super) fn finish_if_done(&mut self, id: StudyId) {
        let study = self.state(id);
        if study.phase == StudyPhase::Active && study.is_finished() {
            self.leave(id, StudyPhase::Done);
            self.out.push(Command::StudyDone { study: id });
        }
    }

    /// Two workers disagree: names both and stops the study.
    fn alarm(&mut self, lease: &Lease, first: (Arc<str>, [u8; 32]), digest: [u8; 32]) {
        let id = lease.study;
        let study = self.state(id);
        let alarm = Alarm {
            study: id,
            cell: study.cell(lease.cell).id,
            range: lease.range.clone(),
            first,
            second: (lease.name.clone(), digest),
        };
        study.alarm = Some(alarm.clone());
        self.leave(id, StudyPhase::Alarmed);
        self.out.push(Command::Alarm(alarm));
        self.revoke_all(id, &Refusal::Alarm);
    }

    /// A study is not served any more.
    pub(super) fn leave(&mut self, id: StudyId, phase: StudyPhase) {
        let study = self.state(id);
        study.phase = phase;
        let turn = study.turn;
        self.turns.remove(&(turn, id));
    }

    /// Revokes all leases of a study on which workers are working.
    pub(super) fn revoke_all(&mut self, id: StudyId, reason: &Refusal) {
        let leases = self.leases.iter().filter(|(_, lease)| lease.study == id);
        let epochs: Vec<LeaseEpoch> = leases.map(|(epoch, _)| epoch).collect();
        for epoch in epochs {
            self.revoke(epoch, reason);
        }
    }

    /// Ends a lease and tells its worker, unless its shard is being written.
    pub(super) fn revoke(&mut self, epoch: LeaseEpoch, reason: &Refusal) {
        let Some(lease) = self.leases.get(epoch) else { return };
        if matches!(lease.stage, Stage::Committing { .. }) {
            return;
        }
        let worker = lease.worker;
        self.out.push(Command::Revoke { worker, epoch, reason: reason.clone() });
        self.end(epoch, None);
    }

    /// Takes a lease off the books and out of its worker's hands.
    fn forget(&mut self, epoch: LeaseEpoch) -> Option<Lease> {
        let lease = self.leases.remove(epoch)?;
        self.let_go(lease.worker, epoch);
        Some(lease)
    }

    fn let_go(&mut self, worker: WorkerId, epoch: LeaseEpoch) {
        if let Some(worker) = self.workers.get_mut(worker) {
            worker.leases.remove(&epoch);
            worker.suspect = worker.suspect.filter(|&suspect| suspect != epoch);
        }
    }
}
