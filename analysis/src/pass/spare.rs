//! Memory that is used again: what is freed and asked for anew would have to be cleared by the system.

use std::sync::{Mutex, PoisonError};

/// Vectors that nobody needs at the moment.
#[derive(Default)]
pub(super) struct Spare(Mutex<Vec<Vec<f64>>>);

impl Spare {
    /// An empty vector.
    pub(super) fn take(&self) -> Vec<f64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Takes back vectors, whatever they hold.
    pub(super) fn give(&self, used: impl Iterator<Item = Vec<f64>>) {
        let mut vectors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        vectors.extend(used.map(|mut vector| {
            vector.clear();
            vector
        }));
    }
}
