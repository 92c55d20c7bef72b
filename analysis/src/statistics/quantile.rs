//! Quantiles of a sample, with limits that hold for every law.
//!
//! Type 7 of Hyndman and Fan (The American Statistician 50, 1996): with h = (n-1) p from 0, the
//! value x_h interpolated between its neighbours in order. Limits are order statistics at exact
//! binomial ranks (David and Nagaraja, Order Statistics, section 7.1): the largest l with
//! P(Bin(n,p) < l) <= alpha/2 and the least u with P(Bin(n,p) >= u) <= alpha/2. Then [x_(l), x_(u)]
//! covers the p-quantile of any law, continuous or not, with probability at least 1 - alpha.

use std::borrow::Cow;

use theory::special::{Split, inc_beta};

/// A sample in ascending order, not empty, without NaN.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<'a>(Cow<'a, [f64]>);

/// Limits for a quantile; an end is `None` where the sample is too small for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantileLimits {
    /// x_(l).
    pub low: Option<f64>,
    /// x_(u).
    pub high: Option<f64>,
}

impl<'a> Sample<'a> {
    /// Sorts the values; `None` where there are none or where one is NaN.
    pub fn new(mut values: Vec<f64>) -> Option<Self> {
        if values.is_empty() || values.iter().any(|value| value.is_nan()) {
            return None;
        }
        values.sort_by(f64::total_cmp);
        Some(Self(values.into()))
    }

    /// Values that are in ascending order; `None` where there are none.
    pub fn from_sorted(values: &'a [f64]) -> Option<Self> {
        debug_assert!(values.is_sorted(), "the values are in ascending order");
        (!values.is_empty()).then_some(Self(values.into()))
    }

    /// The values in ascending order.
    pub fn sorted(&self) -> &[f64] {
        &self.0
    }

    /// The quantile of type 7 at p.
    ///
    /// # Panics
    /// Where p is not in [0, 1].
    pub fn quantile(&self, p: f64) -> f64 {
        assert!((0.0..=1.0).contains(&p), "p = {p} is not in [0, 1]");
        let h = (self.0.len() - 1) as f64 * p;
        let below = h as usize;
        let here = self.0[below];
        match self.0.get(below + 1) {
            Some(next) if h > below as f64 => here + (h - below as f64) * (next - here),
            _ => here,
        }
    }

    /// Limits for the law's p-quantile, p in (0, 1), at confidence `level`.
    ///
    /// # Panics
    /// Where p or `level` is not in (0, 1).
    pub fn limits(&self, p: f64, level: f64) -> QuantileLimits {
        let (low, high) = rank_limits(self.0.len(), p, level);
        QuantileLimits { low: low.map(|l| self.0[l - 1]), high: high.map(|u| self.0[u - 1]) }
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
        assert_eq!(Sample::new(vec![]), None);
        assert_eq!(Sample::new(vec![1.0, f64::NAN]), None);
        let one = Sample::new(vec![2.0]).unwrap();
        assert_eq!((one.quantile(0.0), one.quantile(0.3), one.quantile(1.0)), (2.0, 2.0, 2.0));
    }

    proptest! {
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
