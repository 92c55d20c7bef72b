//! The coordinator's process: its runtime, its end and its beginning.

use coordinator::core::{Command, Core, Deaths, Event, LeaseEpoch, Refusal, ShardCommit, WorkerId};
use study::StudyId;

use super::{Action, World, Writing};
use crate::ledger::Status;
use crate::scenario::Operation;
use crate::store::{Store, Write};
use crate::truth;
use crate::worker::Reply;

impl World<'_> {
    pub(super) fn start_coordinator(&mut self) {
        if self.core.is_some() {
            return;
        }
        self.life += 1;
        self.started = self.clock();
        let first = LeaseEpoch(self.life << 32);
        self.core = Some(Core::new(self.scenario.settings.clone(), first));
        let life = self.life;
        self.after(1, 1_000, Action::Tick { life });
        let studies: Vec<StudyId> = self.ledger.status.keys().copied().collect();
        for study in studies {
            if matches!(self.ledger.status[&study], Status::Active | Status::Done) {
                self.ledger.status.insert(study, Status::Active);
                self.feed(Event::Submit(self.ledger.work(study, self.plan(study))));
            }
        }
    }

    pub(super) fn crash_coordinator(&mut self) {
        if self.core.take().is_some() {
            self.seen.crashes += 1;
            self.life += 1;
            self.writing.clear();
            self.sessions.clear();
            self.streams.clear();
            self.held.clear();
            self.received = None;
            self.store = Store::new(self.scenario.room, !self.scenario.planted);
            self.after(200, 15_000, Action::StartCoordinator);
        }
    }

    pub(super) fn operate(&mut self, study: usize, operation: Operation) {
        if self.core.is_none() {
            self.after(500, 1_000, Action::Operate { study, operation });
            return;
        }
        self.operations_left -= 1;
        let id = self.scenario.studies[study].id;
        let status = self.ledger.status.get(&id).copied();
        match operation {
            Operation::Cancel => {
                if status == Some(Status::Active) {
                    self.ledger.status.insert(id, Status::Cancelled);
                    self.feed(Event::Cancel { study: id });
                    // The core forgets it, the ledger does not: submitted again it goes on.
                    if self.rng.chance(50) {
                        self.seen.forgotten += 1;
                        self.feed(Event::Forget { study: id });
                    }
                }
            }
            Operation::Submit | Operation::Grow => {
                if status == Some(Status::Alarmed) {
                    return;
                }
                let version = usize::from(operation == Operation::Grow);
                self.ledger.plans.insert(id, version);
                self.ledger.status.insert(id, Status::Active);
                self.feed(Event::Submit(self.ledger.work(id, self.plan(id))));
            }
        }
    }

    pub(super) fn join(&mut self, worker: usize, previous: Option<WorkerId>, connection: u32) {
        if self.core.is_none() {
            return;
        }
        if let Some(previous) = previous.filter(|previous| self.sessions.remove(previous)) {
            self.end_streams(previous);
            if self.scenario.planted {
                self.drop_early(previous, None);
            }
            self.feed(Event::Replaced { worker: previous });
        }
        self.heard[worker] = self.clock();
        let id = WorkerId(self.life << 32 | self.ids.len() as u64);
        self.ids.insert(id, worker);
        self.sessions.insert(id);
        let (name, slots) =
            (self.workers[worker].name.clone(), self.scenario.workers[worker].slots);
        self.feed(Event::Register { worker: id, name, slots });
        self.answer(id, Reply::Registered(id, connection));
    }

    pub(super) fn answer(&mut self, id: WorkerId, reply: Reply) {
        let Some(&worker) = self.ids.get(&id) else { return };
        let life = self.workers[worker].life;
        self.send(Action::Reply { worker, life, reply });
    }

    pub(super) fn carry_out(&mut self, command: Command) {
        match command {
            Command::Grant { worker, grant } => {
                assert!(grant.epoch > self.last_epoch, "epochs increase over all lives");
                self.last_epoch = grant.epoch;
                if grant.check {
                    self.check_epochs.insert(grant.epoch);
                }
                let plan = self.cell(grant.study, grant.cell).clone();
                self.hold(worker, grant.epoch);
                self.answer(worker, Reply::Lease(worker, grant, plan));
            }
            Command::NothingNow { .. } => {}
            Command::UnknownWorker { worker } => {
                self.sessions.remove(&worker);
                self.answer(worker, Reply::Unknown(worker));
            }
            Command::NotHeld { worker, epoch } => {
                self.seen.fenced += 1;
                self.answer(worker, Reply::Over(epoch));
            }
            Command::Forget { epoch } => self.release(epoch),
            Command::Commit { epoch, shard } => self.write(epoch, shard),
            Command::Acknowledge { worker, epoch } => {
                let durable = self.ledger.has(epoch) || self.check_epochs.contains(&epoch);
                assert!(durable, "{epoch} is acknowledged and not durable");
                self.release(epoch);
                self.answer(worker, Reply::Over(epoch));
            }
            Command::Reject { worker, epoch, reason } => {
                self.seen.refused += u64::from(matches!(reason, Refusal::CommitFailed(_)));
                self.release(epoch);
                self.answer(worker, Reply::Over(epoch));
            }
            Command::Revoke { worker, epoch, reason } => {
                self.seen.expired += u64::from(reason == Refusal::Expired);
                self.seen.superseded += u64::from(reason == Refusal::Superseded);
                self.release(epoch);
                self.answer(worker, Reply::Over(epoch));
            }
            Command::RecordDeath { study, cell, range, deaths, worker, reason } => {
                self.check_blame(&worker);
                self.seen.deaths += 1;
                let address = (study, cell, self.cell(study, cell).version);
                let record = Deaths { range, count: deaths, reason };
                let known = self.ledger.deaths.entry(address).or_default();
                let before = known.insert(record.range.start, record.clone());
                let bounds = before.as_ref().is_none_or(|before| before.range == record.range);
                assert!(bounds, "{record:?} after {before:?}: bounds are kept");
                let count = before.map_or(0, |before| before.count);
                assert_eq!(record.count, count + 1, "deaths are counted one by one");
            }
            Command::RecordCheck { study, cell, range, digest, agreed, worker } => {
                self.seen.checks += 1;
                let address = (study, cell, self.cell(study, cell).version);
                let rows = self.ledger.rows.get_mut(&address).expect("what is checked is durable");
                let row = rows.get_mut(&range.start).expect("what is checked is durable");
                assert_eq!(agreed, row.shard.digest == digest, "a check compares digests");
                row.checked = agreed.then(|| worker.to_string());
            }
            Command::Quarantined { study, cell, range, deaths, .. } => {
                assert_eq!(deaths, self.scenario.settings.max_deaths, "given up in time");
                self.seen.quarantined += 1;
                let mut killers = self.scenario.killers.iter();
                let guilty =
                    killers.any(|&(a, b, c)| a == study && b == cell && range.contains(&c));
                self.seen.innocent += u64::from(!guilty);
            }
            Command::Alarm(alarm) => {
                self.seen.alarms += 1;
                self.ledger.status.insert(alarm.study, Status::Alarmed);
            }
            Command::CellClosed { study, cell, replicates } => self.closed(study, cell, replicates),
            Command::StudyDone { study } => self.done(study),
        }
    }

    pub(super) fn write(&mut self, epoch: LeaseEpoch, shard: ShardCommit) {
        let plan = self.cell(shard.study, shard.cell);
        let honest = truth::digest(shard.study, plan, &shard.range, 0);
        assert!(shard.digest == honest || self.lies(&shard.worker), "a shard of other trials");
        assert_eq!(shard.tally, truth::tally(shard.study, plan, &shard.range));
        let (of, batches) = self.received.take().expect("only what came is written");
        assert_eq!(of, epoch, "what came is of this lease");
        let writing = Writing { version: plan.version, shard, batches };
        assert!(self.writing.insert(epoch, writing).is_none(), "{epoch} twice");
        self.store.write(Write::Commit { epoch, batches });
        self.turn_disk();
    }

    pub(super) fn durable(&mut self, epoch: LeaseEpoch, stored: &[u64]) {
        let writing = self.writing.remove(&epoch).expect("it is being written");
        let Writing { version, shard, batches } = writing;
        self.ledger.insert(version, epoch, shard, (batches, stored));
        let life = self.life;
        self.after(0, 10, Action::Written { life, epoch, durable: true });
    }
}
