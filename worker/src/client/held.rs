//! The leases that a worker holds, and how many more it wants.
//!
//! For every slot one lease runs and one waits, so that a thread that is done finds work without
//! asking the network. What is computed and not yet acknowledged is bounded too: a coordinator that
//! does not keep up is asked for nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use proto::convert::{Lease, Progress};
use proto::limits::MAX_LEASES;

const WAITING: u8 = 0;
const RUNNING: u8 = 1;
const CANCELLED: u8 = 2;

/// What the session and the thread that computes a lease both know of it.
#[derive(Debug, Default)]
pub(super) struct Ticket {
    state: AtomicU8,
    done: AtomicU64,
    records: AtomicU64,
}

impl Ticket {
    /// Whether the lease may be computed; from then on it runs.
    pub(super) fn start(&self) -> bool {
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        self.state.compare_exchange(WAITING, RUNNING, success, failure).is_ok()
    }

    /// Asks whoever computes the lease to stop.
    pub(super) fn cancel(&self) {
        self.state.store(CANCELLED, Ordering::Release);
    }

    /// The same, unless it runs already; whether it does not.
    pub(super) fn cancel_waiting(&self) -> bool {
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        self.state.compare_exchange(WAITING, CANCELLED, success, failure).is_ok()
    }

    /// Whether to stop.
    pub(super) fn is_cancelled(&self) -> bool {
        self.state.load(Ordering::Acquire) == CANCELLED
    }

    /// Says how many trials are done, and how many records are about to be sent. It is said before
    /// they are: the coordinator can be faster than the news of it.
    pub(super) fn progress(&self, done: u64, records: u64) {
        self.done.store(done, Ordering::Release);
        self.records.store(records, Ordering::Release);
    }
}

/// A lease in hand.
#[derive(Debug)]
struct Entry {
    trials: u64,
    ticket: Arc<Ticket>,
    /// All of it has been handed in.
    finished: bool,
}

/// What became of a lease that was durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) trials: u64,
    pub(super) records: u64,
}

/// All leases of a registration. Dropping it cancels them.
#[derive(Debug)]
pub(super) struct Held {
    slots: usize,
    leases: BTreeMap<u64, Entry>,
}

impl Held {
    /// None, for so many slots.
    pub(super) fn new(slots: usize) -> Self {
        Self { slots, leases: BTreeMap::new() }
    }

    /// How many more leases to ask for.
    pub(super) fn wanted(&self) -> usize {
        let finished = self.leases.values().filter(|entry| entry.finished).count();
        let active = self.leases.len() - finished;
        let unacknowledged = (4 * self.slots + 16).min(MAX_LEASES.saturating_sub(2 * self.slots));
        let ahead = (2 * self.slots).saturating_sub(active);
        ahead.min(unacknowledged.saturating_sub(finished))
    }

    /// Takes a lease in hand; `None` where it is there already.
    pub(super) fn take(&mut self, lease: &Lease) -> Option<Arc<Ticket>> {
        let ticket = Arc::new(Ticket::default());
        let trials = lease.replicates.end - lease.replicates.start;
        if self.leases.contains_key(&lease.epoch) {
            return None;
        }
        let entry = Entry { trials, ticket: Arc::clone(&ticket), finished: false };
        self.leases.insert(lease.epoch, entry);
        Some(ticket)
    }

    /// All of a lease has been handed in.
    pub(super) fn finished(&mut self, lease: u64) {
        if let Some(entry) = self.leases.get_mut(&lease) {
            entry.finished = true;
        }
    }

    /// A lease is durable; `None` where it was not in hand.
    pub(super) fn committed(&mut self, lease: u64) -> Option<Done> {
        let entry = self.leases.remove(&lease)?;
        entry.ticket.cancel();
        let records = entry.ticket.records.load(Ordering::Acquire);
        Some(Done { trials: entry.trials, records })
    }

    /// Drops a lease; whether it was in hand.
    pub(super) fn drop_lease(&mut self, lease: u64) -> bool {
        let entry = self.leases.remove(&lease);
        entry.as_ref().inspect(|entry| entry.ticket.cancel()).is_some()
    }

    /// Drops all leases that do not run yet, and names them.
    pub(super) fn drop_waiting(&mut self) -> Vec<u64> {
        let waiting = self.leases.iter().filter(|(_, entry)| entry.ticket.cancel_waiting());
        let waiting: Vec<u64> = waiting.map(|(&lease, _)| lease).collect();
        waiting.iter().for_each(|lease| _ = self.leases.remove(lease));
        waiting
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.leases.len()
    }

    /// How far every lease is.
    pub(super) fn progress(&self) -> Vec<Progress> {
        let progress = |(&lease, entry): (&u64, &Entry)| Progress {
            lease,
            done_trials: entry.ticket.done.load(Ordering::Acquire),
        };
        self.leases.iter().map(progress).collect()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.leases.values().for_each(|entry| entry.ticket.cancel());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use study::{CellId, StudyId};

    fn lease(epoch: u64) -> Lease {
        Lease {
            epoch,
            study: StudyId([0; 32]),
            cell: CellId(1),
            replicates: 10..18,
            check: false,
            revision: [0; 32],
        }
    }

    #[test]
    fn one_runs_and_one_waits_for_every_slot() {
        let mut held = Held::new(3);
        assert_eq!(held.wanted(), 6);
        let tickets: Vec<_> = (0..6).map(|epoch| held.take(&lease(epoch)).unwrap()).collect();
        assert!(held.take(&lease(0)).is_none());
        assert_eq!(held.wanted(), 0);
        assert!(tickets[0].start());
        tickets[0].progress(8, 16);
        held.finished(0);
        assert_eq!(held.wanted(), 1);
        assert_eq!(held.committed(0), Some(Done { trials: 8, records: 16 }));
        assert_eq!((held.committed(0), held.wanted(), held.len()), (None, 1, 5));
    }

    #[test]
    fn a_coordinator_that_does_not_acknowledge_is_asked_for_nothing() {
        let mut held = Held::new(1);
        let mut epoch = 0;
        while held.wanted() > 0 {
            held.take(&lease(epoch)).unwrap();
            held.finished(epoch);
            epoch += 1;
        }
        assert_eq!(epoch, 20);
        held.committed(3);
        assert_eq!(held.wanted(), 1);
    }

    #[test]
    fn every_slot_count_stays_within_what_a_message_may_name() {
        for slots in [1, 7, 100, 1024] {
            let mut held = Held::new(slots);
            let mut epoch = 0;
            while held.wanted() > 0 {
                held.take(&lease(epoch)).unwrap();
                if epoch % 3 > 0 {
                    held.finished(epoch);
                }
                epoch += 1;
            }
            assert!(held.len() <= MAX_LEASES, "{slots}");
        }
    }

    #[test]
    fn what_waits_can_be_given_back_and_what_runs_goes_on() {
        let mut held = Held::new(2);
        let tickets: Vec<_> = (0..4).map(|epoch| held.take(&lease(epoch)).unwrap()).collect();
        assert!(tickets[1].start());
        tickets[1].progress(5, 0);
        assert_eq!(held.drop_waiting(), [0, 2, 3]);
        assert!(!tickets[0].start() && tickets[0].is_cancelled() && !tickets[1].is_cancelled());
        assert_eq!(held.progress(), [Progress { lease: 1, done_trials: 5 }]);
        drop(held);
        assert!(tickets[1].is_cancelled());
    }
}
