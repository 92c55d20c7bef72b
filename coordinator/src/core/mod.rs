//! The scheduling core: events in, commands out, time passed in.
//!
//! No clock, no randomness, no I/O, and no order that depends on a hash: the same events at the same
//! times give the same commands. Everything outside (network, ledger, segments) is the runtime's, and
//! the simulation's (`tests/simulation.rs`).
//!
//! A shard is a range of replicates of one cell, within one batch. Its way:
//!
//! ```text
//! pending -> leased -> committing -> done -> (check)
//!    ^         |           |
//!    |         v           v CommitFailed
//!    +---- given back <----+
//!              | worker died
//!              v
//!          suspect -> leased with the same bounds -> ... -> quarantined after `max_deaths`
//! ```
//!
//! | invariant | kept by |
//! |---|---|
//! | pending, leased, suspect, quarantined and done replicates partition 0..max of every cell | `cell` |
//! | a range is leased once, or twice where an idle worker copies a straggler; a check is leased once | `cell`, `checks` |
//! | no shard crosses a batch; nothing beyond one batch of lookahead is leased | `cell` |
//! | the first result of a range is written, others are compared with it | `results` |
//! | only the worker that was granted an epoch can extend, finish or abandon it, and finish it only once | `results`, `mod` |
//! | epochs increase strictly; a new life of the coordinator starts above all of the last | `granting`, the ledger's restart counter |
//! | what is being written neither expires, nor is given back or leased again, until it is known to have failed | `lease`, `mod` |
//! | a closed cell has no work in any hand beyond its stop, and its stop is a function of its trials | `results`, `stopping` |
//! | a worker works on one range at most that killed a worker before | `granting`, `worker` |
//! | queues and totals agree with the cells | `study` |
//!
//! [`Core::sanity_check`] verifies all of them that a state can show.

mod cell;
mod checks;
mod command;
mod event;
mod granting;
mod ids;
mod interval_set;
mod lease;
mod meter;
mod results;
mod sanity;
mod settings;
mod sizing;
mod study;
mod submitting;
#[cfg(test)]
mod tests;
mod view;
mod work;
mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ::study::StudyId;

pub use command::{Alarm, Command, Grant, Refusal, ShardCommit};
pub use event::Event;
pub use ids::{LeaseEpoch, WorkerId};
pub use settings::Settings;
pub use view::{CellView, ChecksView, Quarantine, StudyPhase, StudyView, WorkerView};
pub use work::{CellWork, Deaths, DoneShard, StudyWork};

pub(crate) use study::BYTES_PER_CELL;

use lease::{Leases, Stage};
use results::Report;
use study::StudyState;
use worker::Workers;

/// The scheduling core.
#[derive(Debug)]
pub struct Core {
    settings: Settings,
    now: Duration,
    /// Nothing expires before.
    calm_until: Duration,
    next_epoch: LeaseEpoch,
    next_turn: u64,
    studies: BTreeMap<StudyId, StudyState>,
    /// Active studies, the one to be served next first.
    turns: BTreeSet<(u64, StudyId)>,
    workers: Workers,
    leases: Leases,
    out: Vec<Command>,
}

impl Core {
    /// A core without studies or workers. `first_epoch` lies above all epochs ever granted.
    pub fn new(settings: Settings, first_epoch: LeaseEpoch) -> Self {
        Self {
            settings,
            now: Duration::ZERO,
            calm_until: Duration::ZERO,
            next_epoch: first_epoch,
            next_turn: 0,
            studies: BTreeMap::new(),
            turns: BTreeSet::new(),
            workers: Workers::default(),
            leases: Leases::default(),
            out: Vec::new(),
        }
    }

    /// Takes an event; `now` is the time since the start of this core.
    pub fn handle(&mut self, now: Duration, event: Event) -> Vec<Command> {
        self.pass_time(now);
        match event {
            Event::Submit(work) => self.submit(&work),
            Event::Register { worker, name, slots } => {
                self.workers.register(worker, &name, slots, self.now);
            }
            Event::Request { worker, wanted } => {
                if self.greet(worker) {
                    self.request(worker, wanted);
                }
            }
            Event::Heartbeat { worker, leases } => {
                if self.greet(worker) {
                    self.heartbeat(worker, leases);
                }
            }
            Event::Finished { worker, epoch, digest, tally, trials, seconds } => {
                self.workers.contact(worker, self.now);
                self.finished(worker, epoch, Report { digest, tally, trials, seconds });
            }
            Event::Committed { epoch } => self.committed(epoch),
            Event::CommitFailed { epoch, reason } => self.commit_failed(epoch, reason),
            Event::Abandoned { worker, epoch, .. } => {
                self.workers.contact(worker, self.now);
                self.abandoned(worker, epoch);
            }
            Event::Replaced { worker } => self.replaced(worker),
            Event::Disconnected { worker } => self.disconnected(worker),
            Event::Drain { worker } => self.workers.drain(worker),
            Event::Cancel { study } => self.cancel(study),
            Event::Forget { study } => self.forget_study(study),
            Event::Tick => {}
        }
        std::mem::take(&mut self.out)
    }

    /// Moves the clock, and ends what expired.
    fn pass_time(&mut self, now: Duration) {
        let now = now.max(self.now);
        if now.saturating_sub(self.now) > self.settings.lease / 2 {
            // This process slept, or its clock jumped: workers had no chance to be heard.
            self.calm_until = now + self.settings.lease;
        }
        self.now = now;
        if now < self.calm_until {
            return;
        }
        while let Some(epoch) = self.leases.expired(now) {
            self.expire(epoch);
        }
        let Some(silent) = now.checked_sub(self.settings.lease) else { return };
        while let Some(worker) = self.workers.silent_since(silent) {
            self.workers.remove(worker);
        }
    }

    fn expire(&mut self, epoch: LeaseEpoch) {
        let lease = self.leases.get(epoch).expect("an expiring lease is known");
        if matches!(lease.stage, Stage::Superseded { .. }) {
            self.end(epoch, None);
            return;
        }
        let worker = lease.worker;
        // A worker that talks without naming the lease never got it, or lost it: nobody died.
        let contact = self.workers.get(worker).map_or(Duration::ZERO, |worker| worker.contact);
        let silence = self.now.saturating_sub(contact);
        let died = silence >= self.settings.lease / 2;
        let death = died.then(|| format!("its worker was silent for {} s", silence.as_secs()));
        self.out.push(Command::Revoke { worker, epoch, reason: Refusal::Expired });
        self.end(epoch, death);
    }

    /// Notes that a worker lives, or tells it that it is not known.
    fn greet(&mut self, worker: WorkerId) -> bool {
        let known = self.workers.contact(worker, self.now);
        if !known {
            self.out.push(Command::UnknownWorker { worker });
        }
        known
    }

    fn heartbeat(&mut self, worker: WorkerId, leases: Vec<LeaseEpoch>) {
        if let Some(state) = self.workers.get_mut(worker) {
            state.heartbeat = Some(self.now);
        }
        let expires = self.now + self.settings.lease;
        for epoch in leases {
            let reason = match self.leases.held(worker, epoch).map(|lease| &lease.stage) {
                Some(Stage::Running) => {
                    self.leases.extend(epoch, expires);
                    continue;
                }
                Some(Stage::Committing { .. }) => continue,
                Some(Stage::Superseded { .. }) => Refusal::Superseded,
                None => {
                    self.out.push(Command::NotHeld { worker, epoch });
                    continue;
                }
            };
            self.out.push(Command::Revoke { worker, epoch, reason });
        }
    }

    fn abandoned(&mut self, worker: WorkerId, epoch: LeaseEpoch) {
        let lease = self.leases.held(worker, epoch);
        if lease.is_some_and(|lease| !matches!(lease.stage, Stage::Committing { .. })) {
            self.out.push(Command::Forget { epoch });
            self.end(epoch, None);
        }
    }

    fn replaced(&mut self, worker: WorkerId) {
        let Some(state) = self.workers.get(worker) else { return };
        // Shards that are being written are in nobody's hands.
        let leases: Vec<LeaseEpoch> = state.leases.iter().copied().collect();
        for epoch in leases {
            self.out.push(Command::Forget { epoch });
            self.end(epoch, None);
        }
        self.workers.remove(worker);
    }

    fn disconnected(&mut self, worker: WorkerId) {
        let Some(state) = self.workers.get(worker) else { return };
        // Who drains has said goodbye: leaving early is not dying.
        let death = (!state.draining).then(|| "its worker's process ended".to_owned());
        let leases: Vec<LeaseEpoch> = state.leases.iter().copied().collect();
        for epoch in leases {
            self.out.push(Command::Revoke { worker, epoch, reason: Refusal::Disconnected });
            self.end(epoch, death.clone());
        }
        self.workers.remove(worker);
    }

    fn state(&mut self, study: StudyId) -> &mut StudyState {
        self.studies.get_mut(&study).expect("a lease's study is known")
    }
}
