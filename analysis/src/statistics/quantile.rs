//! Quantiles of a sample, with limits that hold for every law.
//!
//! Type 7 of Hyndman and Fan (The American Statistician 50, 1996): with h = (n-1) p from 0, the
//! value x_h interpolated between its neighbours in order. Limits are order statistics at exact
//! binomial ranks (David and Nagaraja, Order Statistics, section 7.1): the largest l with
//! P(Bin(n,p) < l) <= alpha/2 and the least u with P(Bin(n,p) >= u) <= alpha/2. Then [x_(l), x_(u)]
//! covers the p-quantile of any law, continuous or not, with probability at least 1 - alpha.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use theory::special::{Split, inc_beta};

/// A sample, not empty, without NaN; it is put in order as far as it is asked.
#[derive(Debug)]
pub struct Sample {
    count: usize,
    partly_ordered: Mutex<PartlyOrdered>,
}

/// Values of which some are where they are in ascending order, with all smaller ones before them.
#[derive(Debug)]
struct PartlyOrdered {
    values: Vec<f64>,
    known: BTreeSet<usize>,
}

/// Limits for a quantile; an end is `None` where the sample is too small for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantileLimits {
    /// x_(l).
    pub low: Option<f64>,
    /// x_(u).
    pub high: Option<f64>,
}

impl Sample {
    /// `None` where there are no values or where one is NaN.
    pub fn new(values: Vec<f64>) -> Option<Self> {
        if values.is_empty() || values.iter().any(|value| value.is_nan()) {
            return None;
        }
        let count = values.len();
        let partly_ordered = Mutex::new(PartlyOrdered { values, known: BTreeSet::new() });
        Some(Self { count, partly_ordered })
    }

    /// How many values there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The value that so many others come before in ascending order.
    ///
    /// # Panics
    /// Where there are not so many.
    pub fn at(&self, rank: usize) -> f64 {
        let mut ordered = self.partly_ordered.lock().unwrap_or_else(PoisonError::into_inner);
        let PartlyOrdered { values, known } = &mut *ordered;
        if known.insert(rank) {
            let start = known.range(..rank).next_back().map_or(0, |before| before + 1);
            let end = known.range(rank + 1..).next().copied().unwrap_or(values.len());
            values[start..end].select_nth_unstable_by(rank - start, f64::total_cmp);
        }
        values[rank]
    }

    /// The quantile of type 7 at p.
    ///
    /// # Panics
    /// Where p is not in [0, 1].
    pub fn quantile(&self, p: f64) -> f64 {
        assert!((0.0..=1.0).contains(&p), "p = {p} is not in [0, 1]");
        let h = (self.count - 1) as f64 * p;
        let below = h as usize;
        let here = self.at(below);
        if h > below as f64 && below + 1 < self.count {
            return here + (h - below as f64) * (self.at(below + 1) - here);
        }
        here
    }

    /// Limits for the law's p-quantile, p in (0, 1), at confidence `level`.
    ///
    /// # Panics
    /// Where p or `level` is not in (0, 1).
    pub fn limits(&self, p: f64, level: f64) -> QuantileLimits {
        let (low, high) = rank_limits(self.count, p, level);
        QuantileLimits { low: low.map(|l| self.at(l - 1)), high: high.map(|u| self.at(u - 1)) }
    }
}

/// The ranks l and u, counted from 1, of the limits for the p-quantile from n values.
///
/// # Panics
/// Where p or `level` is not in (0, 1).
pub fn rank_limits(n: usize, p: f64, level: f64) -> (Option<usize>, Option<usize>) {
    assert!(p > 0.0 && p < 1.0, "p = {p} is not in (0, 1)");
    assert!(level > 0.0 && level < 1.0, "level = {level} is not in (0, 1)");
    let tail = 0.5 * (1.0 - level);
    // P(Bin(n, p) >= k) = I_p(k, n-k+1) for 1 <= k <= n.
    let tails = |k: usize| inc_beta(k as f64, (n - k + 1) as f64, Split::at(p));
    let low = last(n, |k| tails(k).1 <= tail);
    let high = last(n, |k| tails(k).0 > tail) + 1;
    ((low > 0).then_some(low), (high <= n).then_some(high))
}

/// The largest k in 1..=n that satisfies a predicate which only ever turns from true to false; or 0.
fn last(n: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut yes, mut no) = (0, n + 1);
    while no - yes > 1 {
        let middle = yes + (no - yes) / 2;
        if holds(middle) { yes = middle } else { no = middle }
    }
    yes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn too_small_a_sample_has_no_limit() {
        // 0.5^5 = 0.03125 > 0.025: five values do not bound a median at 95 %, six do.
        assert_eq!(rank_limits(5, 0.5, 0.95), (None, None));
        assert_eq!(rank_limits(6, 0.5, 0.95), (Some(1), Some(6)));
        assert!(Sample::new(vec![]).is_none());
        assert!(Sample::new(vec![1.0, f64::NAN]).is_none());
        let one = Sample::new(vec![2.0]).unwrap();
        assert_eq!((one.quantile(0.0), one.quantile(0.3), one.quantile(1.0)), (2.0, 2.0, 2.0));
    }

    proptest! {
        #[test]
        fn ranks_are_those_of_the_sorted_sample(
            values in prop::collection::vec(prop_oneof![Just(0.0), -1.0_f64..1.0], 1..200),
            asked in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
        ) {
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let sample = Sample::new(values).unwrap();
            for rank in asked.iter().map(|index| index.index(sorted.len())) {
                prop_assert_eq!(sample.at(rank).to_bits(), sorted[rank].to_bits());
            }
        }

        #[test]
        fn ranks_are_the_sharpest(n in 1_usize..400, p in 0.01_f64..0.99) {
            let (low, high) = rank_limits(n, p, 0.9);
            let at_least = |k: usize| inc_beta(k as f64, (n - k + 1) as f64, Split::at(p)).0;
            if let Some(l) = low {
                prop_assert!(1.0 - at_least(l) <= 0.05 + 1e-12);
                prop_assert!(l == n || 1.0 - at_least(l + 1) > 0.05 - 1e-12);
            }
            if let Some(u) = high {
                prop_assert!(at_least(u) <= 0.05 && (u == 1 || at_least(u - 1) > 0.05));
            }
            prop_assert!(low.is_none_or(|l| high.is_none_or(|u| l <= u)));
        }
    }
}
