//! Sets of replicates as disjoint ranges.
//!
//! Invariant: ranges are not empty, and between two neighbours lies at least one number that is not
//! in the set. Memory follows the number of ranges, never the number of replicates.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of u64 as maximal ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct IntervalSet {
    /// End (exclusive) by first member.
    ranges: BTreeMap<u64, u64>,
    count: u64,
}

impl IntervalSet {
    /// The members of `range`.
    pub(super) fn of(range: Range<u64>) -> Self {
        let mut set = Self::default();
        set.insert(range);
        set
    }

    /// The number of members.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The maximal ranges, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ranges.iter().map(|(&start, &end)| start..end)
    }

    /// Adds all of `range`.
    pub(super) fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut end) = (range.start, range.end);
        // Whatever touches the range, adjacent ranges included, becomes one with it.
        while let Some((&from, &to)) = self.ranges.range(..=end).next_back() {
            if to < start {
                break;
            }
            self.take_out(from, to);
            (start, end) = (start.min(from), end.max(to));
        }
        self.put_in(start, end);
    }

    /// Removes all of `range`.
    pub(super) fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        while let Some((&from, &to)) = self.ranges.range(..range.end).next_back() {
            if to <= range.start {
                break;
            }
            self.take_out(from, to);
            if range.end < to {
                self.put_in(range.end, to);
            }
            if from < range.start {
                self.put_in(from, range.start);
            }
        }
    }

    /// Whether every member of `range` is in the set.
    pub(super) fn covers(&self, range: &Range<u64>) -> bool {
        range.is_empty()
            || self.ranges.range(..=range.start).next_back().is_some_and(|(_, &to)| range.end <= to)
    }

    /// Whether no member of `range` is in the set.
    pub(super) fn is_disjoint(&self, range: &Range<u64>) -> bool {
        range.is_empty()
            || self.ranges.range(..range.end).next_back().is_none_or(|(_, &to)| to <= range.start)
    }

    /// The first maximal range of members that are at least `at`.
    pub(super) fn first_from(&self, at: u64) -> Option<Range<u64>> {
        if let Some((_, &to)) = self.ranges.range(..=at).next_back()
            && at < to
        {
            return Some(at..to);
        }
        self.ranges.range(at..).next().map(|(&from, &to)| from..to)
    }

    /// The number of members below `bound`.
    pub(super) fn count_below(&self, bound: u64) -> u64 {
        if self.ranges.last_key_value().is_none_or(|(_, &to)| to <= bound) {
            return self.count;
        }
        self.ranges.range(..bound).map(|(&from, &to)| to.min(bound) - from).sum()
    }

    fn put_in(&mut self, start: u64, end: u64) {
        self.ranges.insert(start, end);
        self.count += end - start;
    }

    fn take_out(&mut self, start: u64, end: u64) {
        self.ranges.remove(&start);
        self.count -= end - start;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn check(set: &IntervalSet, model: &BTreeSet<u64>) {
        let members: Vec<u64> = set.iter().flatten().collect();
        assert_eq!(members, model.iter().copied().collect::<Vec<_>>());
        assert_eq!(set.count(), model.len() as u64);
        let ranges: Vec<Range<u64>> = set.iter().collect();
        assert!(ranges.iter().all(|range| range.start < range.end));
        assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(3),
            ..ProptestConfig::default() })]
        #[test]
        fn behaves_as_a_set_of_numbers(
            steps in prop::collection::vec((any::<bool>(), 0_u64..60, 0_u64..20), 1..60),
            probe in 0_u64..80, length in 0_u64..10,
        ) {
            let (mut set, mut model) = (IntervalSet::default(), BTreeSet::new());
            for (add, start, length) in steps {
                let range = start..start + length;
                if add {
                    set.insert(range.clone());
                    model.extend(range);
                } else {
                    set.remove(range.clone());
                    model.retain(|member| !range.contains(member));
                }
                check(&set, &model);
            }
            let range = probe..probe + length;
            prop_assert_eq!(set.covers(&range), range.clone().all(|x| model.contains(&x)));
            prop_assert_eq!(set.is_disjoint(&range), range.clone().all(|x| !model.contains(&x)));
            prop_assert_eq!(set.count_below(probe), model.range(..probe).count() as u64);
            let first = model.range(probe..).next().copied();
            prop_assert_eq!(set.first_from(probe).map(|range| range.start), first);
            if let Some(range) = set.first_from(probe) {
                prop_assert!(set.covers(&range) && !model.contains(&range.end));
            }
        }
    }

    #[test]
    fn a_billion_replicates_are_one_range() {
        let mut set = IntervalSet::of(0..1_000_000_000);
        set.remove(8..16);
        assert_eq!(set.iter().collect::<Vec<_>>(), [0..8, 16..1_000_000_000]);
        assert_eq!(set.count(), 999_999_992);
    }
}
