//! Leases that are held, for the tasks that receive their records.
//!
//! The core alone decides who holds a lease and until when: entries are put when it grants and removed when it says
//! that a lease is over, and nothing else touches them. What has come of a lease belongs to the lease, not to the
//! stream on which it came, and goes with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::inflow::{Inflow, Terms};
use crate::core::{LeaseEpoch, WorkerId};
use crate::store::Draft;

/// A lease that is held.
pub(super) struct Lease {
    worker: WorkerId,
    /// What has come of it; taken away once all of it is there.
    pub(super) inflow: tokio::sync::Mutex<Option<Inflow>>,
}

/// All leases that are held.
#[derive(Clone, Default)]
pub(super) struct Leases(Arc<Mutex<HashMap<LeaseEpoch, Arc<Lease>>>>);

impl Leases {
    /// The lease, if this worker holds it.
    pub(super) fn of(&self, worker: WorkerId, epoch: LeaseEpoch) -> Option<Arc<Lease>> {
        let leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        leases.get(&epoch).filter(|lease| lease.worker == worker).cloned()
    }

    pub(super) fn put(&self, epoch: LeaseEpoch, worker: WorkerId, terms: Terms, draft: Draft) {
        let inflow = tokio::sync::Mutex::new(Some(Inflow::new(terms, draft)));
        let mut leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        leases.insert(epoch, Arc::new(Lease { worker, inflow }));
    }

    /// Whether it was there. Records that came under it are forgotten, at the latest when the task that is busy with
    /// one of them lets go.
    pub(super) fn remove(&self, epoch: LeaseEpoch) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&epoch).is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
