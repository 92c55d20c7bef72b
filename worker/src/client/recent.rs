//! The few things that were used last.

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
