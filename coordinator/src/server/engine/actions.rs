//! What the core's commands do: grants, commits, notes in the ledger, replies to workers, ends of studies.

use std::future::Future;
use std::ops::Range;
use std::sync::Arc;

use proto::convert::{self, Reply};
use proto::limits::MAX_LEASES;
use study::{CellId, StudyId};
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::JoinError;

use super::{Done, Engine};
use crate::core::{Command, Event, Grant, LeaseEpoch, Refusal, ShardCommit, WorkerId};
use crate::server::inflow::{Received, Terms};
use crate::server::outcome::Outcome;
use crate::store::{self, Check, Death, ShardRow};

impl Engine {
    /// Does what the core has decided.
    pub(super) fn carry_out(&mut self, command: Command) {
        match command {
            Command::Grant { worker, grant } => self.grant(worker, grant),
            Command::NothingNow { .. } => {}
            Command::UnknownWorker { worker } => {
                self.unknown = true;
                self.sessions.remove(&worker);
            }
            Command::NotHeld { epoch, .. } => self.not_held.push(epoch),
            Command::Commit { epoch, shard } => self.commit(epoch, shard),
            Command::Acknowledge { worker, epoch } => {
                self.leases.remove(epoch);
                self.reply(worker, Reply::Committed { lease: epoch.0 });
            }
            Command::Forget { epoch } => self.end(epoch),
            Command::Reject { worker, epoch, reason } => {
                match reason {
                    Refusal::Malformed(_) | Refusal::CommitFailed(_) => {
                        tracing::warn!(%worker, lease = %epoch, %reason, "a shard was refused");
                    }
                    _ => tracing::debug!(%worker, lease = %epoch, %reason, "a shard is not needed"),
                }
                self.retire(worker, epoch, &reason.to_string());
            }
            Command::Revoke { worker, epoch, reason } => {
                tracing::debug!(%worker, lease = %epoch, %reason, "a lease was revoked");
                self.retire(worker, epoch, &reason.to_string());
            }
            Command::RecordDeath { study, cell, range, deaths, worker, reason } => {
                self.metrics.deaths.add(1);
                let reason = format!("{worker}: {reason}");
                tracing::warn!(%study, %cell, ?range, deaths, reason, "a worker was lost");
                let death = Death { cell, range, deaths, reason };
                let store = Arc::clone(&self.store);
                self.note(async move { store.record_death(study, &death).await });
            }
            Command::RecordCheck { study, cell, range, digest, agreed, worker } => {
                self.metrics.checks.add(1);
                let check = Check { cell, range, digest, agreed, worker: worker.to_string() };
                let store = Arc::clone(&self.store);
                self.note(async move { store.record_check(study, &check).await });
            }
            Command::Quarantined { study, cell, range, deaths, reason } => {
                tracing::error!(%study, %cell, ?range, deaths, reason, "trials were given up");
            }
            Command::Alarm(alarm) => {
                self.metrics.alarms.add(1);
                let outcome = Outcome::alarmed(&alarm);
                tracing::error!("{outcome}");
                self.conclude(alarm.study, outcome, store::State::Alarmed);
            }
            Command::CellClosed { study, cell, replicates } => {
                if let Some(entry) = self.studies.get_mut(&study) {
                    entry.closed.insert(cell, replicates);
                }
            }
            Command::StudyDone { study } => {
                let quarantined =
                    self.core.study(study).map_or_else(Vec::new, |view| view.quarantined);
                let outcome = Outcome::ended(&quarantined);
                let state = match outcome {
                    Outcome::Complete => store::State::Done,
                    _ => store::State::Active,
                };
                self.conclude(study, outcome, state);
            }
        }
    }

    fn grant(&mut self, worker: WorkerId, grant: Grant) {
        let Some(entry) = self.studies.get(&grant.study) else { return };
        let Some((cell, contents)) = entry.cell(grant.cell) else { return };
        let revision = entry.revision;
        let terms = Terms {
            cell: grant.cell,
            range: grant.range.clone(),
            check: grant.check,
            checkpoints: Arc::clone(&cell.checkpoints),
            rows: contents.rows,
            detail: entry.plan.study.detail,
        };
        self.leases.put(grant.epoch, worker, terms, self.writer.draft(grant.epoch.0));
        self.metrics.leases.add(1);
        self.grants.push((grant, revision));
    }

    /// Makes a shard durable; the core hears of it when it is, or that it cannot be.
    fn commit(&mut self, epoch: LeaseEpoch, shard: ShardCommit) {
        let ShardCommit { study, cell, range, digest, tally, worker, seconds } = shard;
        let trials = trials(&range);
        let Received { draft, sum } =
            self.received.take().expect("only what was received is committed");
        let records = sum.records;
        let Some(checkpoints) = self.checkpoints(study, cell) else {
            let reason = format!("cell {cell} is not in its study any more");
            self.pending.spawn(async move { Done::NotWanted { epoch, reason } });
            return;
        };
        let row = ShardRow {
            study,
            cell,
            range,
            checkpoints,
            digest,
            tally: tally.encode().into(),
            records,
            worker: worker.to_string(),
            seconds,
        };
        self.pending.spawn(async move {
            let result = draft.commit(row, sum).await.map(drop);
            Done::Committed { epoch, records, trials, result }
        });
    }

    fn checkpoints(&self, study: StudyId, cell: CellId) -> Option<[u8; 32]> {
        let (_, contents) = self.studies.get(&study)?.cell(cell)?;
        Some(contents.digest)
    }

    /// Writes something down on the side; a failure is logged, and made good by recomputing.
    pub(in crate::server) fn note(
        &mut self,
        write: impl Future<Output = Result<(), store::Error>> + Send + 'static,
    ) {
        self.pending.spawn(async move { Done::Noted(write.await) });
    }

    pub(super) fn joined(&mut self, done: Result<Done, JoinError>) {
        match done.map_err(JoinError::try_into_panic) {
            Ok(done) => self.done(done),
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // The runtime ends, and so does everything.
            Err(Err(_)) => {}
        }
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Committed { epoch, records, trials, result: Ok(()) } => {
                self.metrics.shards.add(1);
                self.metrics.trials.add(trials);
                self.metrics.records.add(records);
                self.tell(Event::Committed { epoch });
            }
            Done::Committed { epoch, result: Err(error), .. } => {
                self.metrics.commit_failures.add(1);
                tracing::error!(lease = %epoch, %error, "a shard could not be made durable");
                let fatal = error.needs_attention().then(|| error.to_string());
                self.tell(Event::CommitFailed { epoch, reason: error.to_string() });
                if let Some(reason) = fatal.filter(|_| self.single) {
                    self.stall(&reason);
                }
            }
            Done::NotWanted { epoch, reason } => self.tell(Event::CommitFailed { epoch, reason }),
            Done::Noted(Ok(())) => {}
            Done::Noted(Err(error)) => tracing::error!(%error, "the ledger could not be written"),
        }
    }

    /// The disk refuses: whoever waits for the folder's study is told why. Running it again resumes
    /// it; a coordinator of many studies goes on trying instead.
    fn stall(&mut self, reason: &str) {
        let studies: Vec<StudyId> = self.studies.keys().copied().collect();
        for study in studies {
            self.outcomes.send_modify(|outcomes| {
                let outcome = outcomes.entry(study).or_insert(Outcome::Running);
                if *outcome == Outcome::Running {
                    *outcome = Outcome::Failed(reason.to_owned());
                }
            });
        }
    }

    /// Drops what came under a lease. A copy that was revoked and then expires ends once.
    fn end(&mut self, epoch: LeaseEpoch) {
        if self.leases.remove(epoch) {
            self.metrics.retries.add(1);
        }
    }

    /// A lease is over without its shard: drop what came, and tell the worker.
    fn retire(&mut self, worker: WorkerId, epoch: LeaseEpoch, reason: &str) {
        self.end(epoch);
        if let Some(session) = self.sessions.get_mut(&worker) {
            session.revoked.push((epoch, reason.to_owned()));
            if session.revoked.len() > MAX_LEASES {
                self.deaf.push(worker);
            }
        }
        self.reply(worker, Reply::Rejected { lease: epoch.0, reason: convert::reason(reason) });
    }

    /// Sends a worker what has become of a shard. One without a stream hears of it by losing the lease.
    fn reply(&mut self, worker: WorkerId, reply: Reply) {
        let stream = self.sessions.get(&worker).and_then(|session| session.stream.as_ref());
        match stream.map(|stream| stream.replies.try_send(reply.into())) {
            None | Some(Ok(())) => {}
            Some(Err(TrySendError::Full(_))) => self.deaf.push(worker),
            Some(Err(TrySendError::Closed(_))) => {
                tracing::debug!(%worker, "a worker is gone before its reply");
            }
        }
    }

    /// A study has come to an end, for now.
    fn conclude(&mut self, study: StudyId, outcome: Outcome, state: store::State) {
        let reason = outcome.to_string();
        let store = Arc::clone(&self.store);
        self.note(async move { store.set_state(study, state, &reason).await });
        self.announce(study, outcome);
    }

    /// Lets waiting callers know.
    pub(in crate::server) fn announce(&mut self, study: StudyId, outcome: Outcome) {
        self.outcomes.send_modify(|outcomes| _ = outcomes.insert(study, outcome));
    }
}

fn trials(range: &Range<u64>) -> u64 {
    range.end - range.start
}
