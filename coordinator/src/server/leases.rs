//! Leases that are held, shared between the engine, which grants and ends them, and the tasks that receive
//! records.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::inflow::Held;
use crate::core::{LeaseEpoch, WorkerId};

/// Leases that are held, for the tasks that receive records.
#[derive(Clone, Default)]
pub(super) struct Leases(Arc<Mutex<HashMap<LeaseEpoch, Arc<Held>>>>);

impl Leases {
    /// The lease, if this worker holds it.
    pub(super) fn of(&self, worker: WorkerId, epoch: LeaseEpoch) -> Option<Arc<Held>> {
        let leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        leases.get(&epoch).filter(|held| held.worker == worker).cloned()
    }

    pub(super) fn put(&self, held: Held) {
        let mut leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        leases.insert(held.epoch, Arc::new(held));
    }

    pub(super) fn remove(&self, epoch: LeaseEpoch) -> Option<Arc<Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&epoch)
    }

    /// All leases of a worker, oldest first.
    pub(super) fn of_worker(&self, worker: WorkerId) -> Vec<LeaseEpoch> {
        let leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut epochs: Vec<LeaseEpoch> =
            leases.values().filter(|held| held.worker == worker).map(|held| held.epoch).collect();
        epochs.sort_unstable();
        epochs
    }

    pub(super) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
