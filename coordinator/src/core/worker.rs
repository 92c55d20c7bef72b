//! Workers, and who of them is there.
//!
//! Invariant: `silent` holds every worker once, by the time at which it counts as gone; `names`
//! counts the workers that take work, by name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::meter::Meter;
use super::{LeaseEpoch, WorkerId};

/// The state of a worker.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) name: Arc<str>,
    pub(super) slots: u32,
    pub(super) draining: bool,
    /// The last message of any kind.
    pub(super) contact: Duration,
    pub(super) heartbeat: Option<Duration>,
    /// Leases on which it works, superseded ones included.
    pub(super) leases: BTreeSet<LeaseEpoch>,
    /// The lease among them on a range that killed a worker before; one at most, so that an innocent
    /// range is not blamed again and again for the company that it keeps.
    pub(super) suspect: Option<LeaseEpoch>,
    pub(super) meter: Meter,
}

/// All workers.
#[derive(Debug, Default)]
pub(super) struct Workers {
    all: BTreeMap<WorkerId, Worker>,
    silent: BTreeSet<(Duration, WorkerId)>,
    names: BTreeMap<Arc<str>, u32>,
    slots: u64,
}

impl Workers {
    /// A worker joined or came back.
    pub(super) fn register(&mut self, id: WorkerId, name: &str, slots: u32, now: Duration) {
        let known = self.remove(id);
        let mut worker = known.unwrap_or_else(|| Worker {
            name: name.into(),
            slots,
            draining: false,
            contact: now,
            heartbeat: None,
            leases: BTreeSet::new(),
            suspect: None,
            meter: Meter::new(now),
        });
        (worker.name, worker.slots, worker.contact) = (name.into(), slots, now);
        self.silent.insert((now, id));
        self.count(&worker, true);
        self.all.insert(id, worker);
    }

    /// A worker said something; whether it is known.
    pub(super) fn contact(&mut self, id: WorkerId, now: Duration) -> bool {
        let Some(worker) = self.all.get_mut(&id) else { return false };
        self.silent.remove(&(worker.contact, id));
        worker.contact = now;
        self.silent.insert((now, id));
        true
    }

    /// A worker takes nothing more.
    pub(super) fn drain(&mut self, id: WorkerId) {
        if let Some(mut worker) = self.remove(id) {
            worker.draining = true;
            self.silent.insert((worker.contact, id));
            self.all.insert(id, worker);
        }
    }

    /// A worker is gone.
    pub(super) fn remove(&mut self, id: WorkerId) -> Option<Worker> {
        let worker = self.all.remove(&id)?;
        self.silent.remove(&(worker.contact, id));
        self.count(&worker, false);
        Some(worker)
    }

    pub(super) fn get(&self, id: WorkerId) -> Option<&Worker> {
        self.all.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: WorkerId) -> Option<&mut Worker> {
        self.all.get_mut(&id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (WorkerId, &Worker)> {
        self.all.iter().map(|(&id, worker)| (id, worker))
    }

    /// The worker that was silent longest, if that is since `before` or longer.
    pub(super) fn silent_since(&self, before: Duration) -> Option<WorkerId> {
        self.silent.first().filter(|(contact, _)| *contact <= before).map(|&(_, id)| id)
    }

    /// Whether no worker of another name takes work.
    pub(super) fn is_alone(&self, name: &str) -> bool {
        !self.names.keys().take(2).any(|other| **other != *name)
    }

    /// Slots of all workers that take work.
    pub(super) fn slots(&self) -> u64 {
        self.slots
    }

    fn count(&mut self, worker: &Worker, joined: bool) {
        if worker.draining {
            return;
        }
        let count = self.names.entry(worker.name.clone()).or_default();
        if joined {
            *count += 1;
            self.slots += u64::from(worker.slots);
        } else {
            *count -= 1;
            self.slots -= u64::from(worker.slots);
            if *count == 0 {
                self.names.remove(&worker.name);
            }
        }
    }

    /// Verifies the invariant.
    pub(super) fn sanity_check(&self) {
        assert_eq!(self.silent.len(), self.all.len(), "one entry per worker");
        let active = || self.all.values().filter(|worker| !worker.draining);
        for (&id, worker) in &self.all {
            assert!(self.silent.contains(&(worker.contact, id)), "{id} is listed by its contact");
            assert!(worker.suspect.is_none_or(|epoch| worker.leases.contains(&epoch)));
        }
        assert_eq!(self.slots, active().map(|worker| u64::from(worker.slots)).sum::<u64>());
        assert_eq!(self.names.values().sum::<u32>() as usize, active().count());
    }
}
