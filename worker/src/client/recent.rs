//! What was used last, as far as there is room for it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A map that forgets what was not used for longest, so that all weights fit in a budget. The one used
/// last is kept in any case.
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    budget: u64,
    /// The last used at the end.
    entries: Vec<Entry<K, V>>,
}

#[derive(Debug)]
struct Entry<K, V> {
    key: K,
    value: V,
    weight: u64,
}

impl<K: PartialEq, V: Clone> Recent<K, V> {
    /// Nothing yet.
    pub(super) fn new(budget: u64) -> Self {
        Self { budget, entries: Vec::new() }
    }

    /// The value of a key, made with weight 1 where it is not there.
    pub(super) fn get(&mut self, key: K, make: impl FnOnce() -> V) -> V {
        let place = self.entries.iter().position(|entry| entry.key == key);
        let entry = match place {
            Some(place) => self.entries.remove(place),
            None => Entry { key, value: make(), weight: 1 },
        };
        let value = entry.value.clone();
        self.entries.push(entry);
        self.fit();
        value
    }

    /// Says what a value weighs.
    fn weigh(&mut self, key: &K, weight: u64) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.key == *key) {
            entry.weight = weight;
            self.fit();
        }
    }

    fn fit(&mut self) {
        let mut total = self.entries.iter().map(|entry| entry.weight).sum::<u64>();
        while total > self.budget && self.entries.len() > 1 {
            total -= self.entries.remove(0).weight;
        }
    }
}

/// The same for threads, and for values that take long to make: whoever comes first makes one, and
/// those who want the same wait for it.
#[derive(Debug)]
pub(super) struct Shelf<K, V>(Mutex<Recent<K, Arc<OnceLock<V>>>>);

impl<K: PartialEq + Copy, V: Clone> Shelf<K, V> {
    /// Nothing yet.
    pub(super) fn new(budget: u64) -> Self {
        Self(Mutex::new(Recent::new(budget)))
    }

    /// The value of a key, made where it is not there.
    pub(super) fn get(&self, key: K, weight: fn(&V) -> u64, make: impl FnOnce() -> V) -> V {
        let recent = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let once = recent().get(key, Arc::default);
        let mut made = false;
        let value = once.get_or_init(|| {
            made = true;
            make()
        });
        if made {
            recent().weigh(&key, weight(value));
        }
        value.clone()
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
            let make = || {
                made.push(key);
                key
            };
            assert_eq!(recent.get(key, make), key);
        }
        assert_eq!(made, ['a', 'b', 'c', 'b']);
    }

    #[test]
    fn what_is_heavy_leaves_room_for_less() {
        let shelf = Shelf::new(10);
        let mut made = 0;
        let mut get = |weight: u64| {
            let make = || {
                made += 1;
                weight
            };
            assert_eq!(shelf.get(weight, |&weight| weight, make), weight);
            made
        };
        assert_eq!((get(3), get(4), get(3), get(2), get(4)), (1, 2, 2, 3, 3));
        // 50 is more than the budget and stays alone.
        assert_eq!((get(50), get(50), get(3), get(50)), (4, 4, 5, 6));
    }

    #[test]
    fn threads_that_want_the_same_wait_for_one() {
        let shelf = Shelf::new(4);
        let made = Mutex::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| shelf.get('a', |()| 1, || *made.lock().unwrap() += 1));
            }
        });
        assert_eq!(*made.lock().unwrap(), 1);
    }
}
