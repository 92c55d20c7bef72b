//! The few things that were used last.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A map of bounded size that forgets what was not used for longest.
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    most: usize,
    /// The last used at the end.
    entries: Vec<(K, V)>,
}

impl<K: PartialEq, V: Clone> Recent<K, V> {
    /// Keeps at most so many, at least 1.
    pub(super) fn new(most: usize) -> Self {
        Self { most, entries: Vec::with_capacity(most) }
    }

    /// The value of a key, made where it is not there.
    pub(super) fn get(&mut self, key: K, make: impl FnOnce() -> V) -> V {
        let place = self.entries.iter().position(|entry| entry.0 == key);
        let entry = match place {
            Some(place) => self.entries.remove(place),
            None => (key, make()),
        };
        if self.entries.len() == self.most {
            self.entries.remove(0);
        }
        let value = entry.1.clone();
        self.entries.push(entry);
        value
    }
}

/// The same for threads, and for values that take long to make: whoever comes first makes one, and
/// those who want the same wait for it.
#[derive(Debug)]
pub(super) struct Shelf<K, V>(Mutex<Recent<K, Arc<OnceLock<V>>>>);

impl<K: PartialEq, V: Clone> Shelf<K, V> {
    /// Keeps at most so many, at least 1.
    pub(super) fn new(most: usize) -> Self {
        Self(Mutex::new(Recent::new(most)))
    }

    /// The value of a key, made where it is not there.
    pub(super) fn get(&self, key: K, make: impl FnOnce() -> V) -> V {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let once = recent.get(key, Arc::default);
        drop(recent);
        once.get_or_init(make).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_longest_is_forgotten() {
        let mut recent = Recent::new(2);
        let mut made = Vec::new();
        for key in ['a', 'b', 'a', 'c', 'a', 'b'] {
            assert_eq!(
                recent.get(key, || {
                    made.push(key);
                    key
                }),
                key
            );
        }
        assert_eq!(made, ['a', 'b', 'c', 'b']);
    }
}
