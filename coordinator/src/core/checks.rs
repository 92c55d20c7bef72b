//! Shards that are to be recomputed and compared, by another worker where there is one.
//!
//! Invariant: a check is waiting or running, never both; waiting checks are filed under the name of
//! the worker whose result they check, so that one for somebody else is found at once.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use study::{CellId, Digest, StudyId};

use super::LeaseEpoch;
use super::cell::Past;

/// A check by its cell's place in the study and its shard's first replicate.
pub(super) type Key = (usize, u64);

/// A durable shard and its digest.
#[derive(Clone, Debug)]
pub(super) struct Check {
    pub(super) range: Range<u64>,
    pub(super) digest: [u8; 32],
    /// Who computed the shard.
    pub(super) by: Arc<str>,
    pub(super) past: Past,
    pub(super) running: Option<LeaseEpoch>,
}

/// The checks of a study.
#[derive(Debug, Default)]
pub(super) struct Checks {
    all: BTreeMap<Key, Check>,
    waiting: BTreeMap<Arc<str>, BTreeSet<Key>>,
    /// Checks that agreed.
    pub(super) agreed: u64,
    /// Checks given up because their workers died.
    pub(super) given_up: u64,
}

/// Whether a shard is among those that are recomputed: a function of its name alone.
pub(super) fn is_due(seed: u64, study: StudyId, cell: CellId, first: u64, fraction: f64) -> bool {
    let mut digest = Digest::new();
    digest.tag("check").u64(seed).bytes(&study.0).u64(cell.0).u64(first);
    let bytes = digest.finish();
    let draw = bytes[..8].iter().fold(0_u64, |value, &byte| value << 8 | u64::from(byte));
    (draw as f64) < fraction * TWO_TO_64
}

/// One more than the largest draw.
const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

impl Checks {
    /// A shard that is to be checked.
    pub(super) fn add(&mut self, key: Key, check: Check) {
        self.wait(key, &check.by.clone());
        self.all.insert(key, check);
    }

    /// Checks that are not done.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Checks that nobody works on.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.values().map(BTreeSet::len).sum()
    }

    /// Whether there is one that nobody works on; asked with every lease.
    pub(super) fn any_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// All checks that are not done.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Check)> {
        self.all.iter()
    }

    /// A check that is not done.
    pub(super) fn get(&self, key: Key) -> Option<&Check> {
        self.all.get(&key)
    }

    /// A waiting check for the worker `name`: of another's shard, or of its own where it is `alone`.
    /// One whose workers died only if `suspects` are welcome.
    pub(super) fn next(&self, name: &str, alone: bool, suspects: bool) -> Option<Key> {
        let may = |by: &str| by != name || alone;
        let files = self.waiting.iter().filter(|(by, _)| may(by));
        files.flat_map(|(_, keys)| keys).copied().find(|key| suspects || !self.is_suspect(*key))
    }

    /// Whether a worker died with this check.
    pub(super) fn is_suspect(&self, key: Key) -> bool {
        self.all.get(&key).is_some_and(|check| check.past.deaths > 0)
    }

    /// Leases a waiting check.
    pub(super) fn take(&mut self, key: Key, epoch: LeaseEpoch) -> &Check {
        let check = self.all.get_mut(&key).expect("a waiting check is known");
        check.running = Some(epoch);
        forget(&mut self.waiting, &check.by, key);
        check
    }

    /// Ends a check's lease without a result; the number of deaths, if there was one.
    pub(super) fn release(
        &mut self,
        key: Key,
        death: Option<String>,
        max_deaths: u32,
    ) -> Option<u32> {
        let check = self.all.get_mut(&key).expect("a leased check is known");
        check.running = None;
        let deaths = death.map(|reason| {
            check.past = Past { deaths: check.past.deaths + 1, reason };
            check.past.deaths
        });
        if check.past.deaths >= max_deaths {
            self.all.remove(&key);
            self.given_up += 1;
        } else {
            let by = check.by.clone();
            self.wait(key, &by);
        }
        deaths
    }

    /// Takes a check off the list.
    pub(super) fn remove(&mut self, key: Key) -> Option<Check> {
        let check = self.all.remove(&key)?;
        if check.running.is_none() {
            forget(&mut self.waiting, &check.by, key);
        }
        Some(check)
    }

    /// The checks of a cell's shards from `first` on.
    pub(super) fn beyond(&self, cell: usize, first: u64) -> Vec<Key> {
        self.all.range((cell, first)..(cell + 1, 0)).map(|(&key, _)| key).collect()
    }

    /// Verifies the invariant.
    pub(super) fn sanity_check(&self) {
        for (by, keys) in &self.waiting {
            assert!(!keys.is_empty(), "an empty file is removed");
            for key in keys {
                let check = &self.all[key];
                assert!(check.by == *by && check.running.is_none(), "{key:?} waits once");
            }
        }
        let running = self.all.values().filter(|check| check.running.is_some()).count();
        assert_eq!(self.waiting() + running, self.all.len(), "a check waits or runs");
    }

    fn wait(&mut self, key: Key, by: &Arc<str>) {
        self.waiting.entry(by.clone()).or_default().insert(key);
    }
}

fn forget(waiting: &mut BTreeMap<Arc<str>, BTreeSet<Key>>, by: &Arc<str>, key: Key) {
    if let Some(keys) = waiting.get_mut(by) {
        keys.remove(&key);
        if keys.is_empty() {
            waiting.remove(by);
        }
    }
}
