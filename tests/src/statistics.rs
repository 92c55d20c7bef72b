//! Tests of distributions, and the alarm that weighs all their p-values together.

use theory::special::{Split, inc_beta};

/// Collects p-values and fails where one is too small for all of them together.
///
/// With a false-alarm rate q and k p-values, each is held against q/k (Bonferroni), so that correct
/// code fails with probability at most q whatever the dependence between the p-values.
#[derive(Debug, Default)]
pub struct Alarm {
    least: Option<(f64, String)>,
    count: u32,
}

impl Alarm {
    /// Takes in the p-value of one check.
    ///
    /// # Panics
    /// Where `p` is not a number.
    pub fn check(&mut self, p: f64, what: impl FnOnce() -> String) {
        assert!(!p.is_nan(), "{}: no p-value", what());
        self.count += 1;
        if self.least.as_ref().is_none_or(|least| p < least.0) {
            self.least = Some((p, what()));
        }
    }

    /// The smallest p-value, corrected for their number.
    pub fn corrected(&self) -> f64 {
        self.least.as_ref().map_or(1.0, |least| least.0 * f64::from(self.count))
    }

    /// Judges all checks at a false-alarm rate of `rate`.
    ///
    /// # Panics
    /// Where a p-value is too small, or where nothing was checked.
    pub fn judge(self, title: &str, rate: f64) {
        let corrected = self.corrected();
        let (p, what) = self.least.expect("something was checked");
        println!("{title}: {} p-values, smallest {p:.3e} ({what})", self.count);
        assert!(
            corrected > rate,
            "{title}: {what}: p = {p:e} among {} at rate {rate:e}",
            self.count
        );
    }
}

/// P(sup |F_n - F| >= d) for `size` observations, asymptotic with Stephens' correction for small
/// samples (Stephens 1970).
pub fn kolmogorov(d: f64, size: f64) -> f64 {
    let root = size.sqrt();
    let lambda = (root + 0.12 + 0.11 / root) * d;
    if lambda < 0.3 {
        return 1.0;
    }
    let term = |k: f64| libm::exp(-2.0 * k * k * lambda * lambda);
    let p: f64 = (1..=40).map(|k| if k % 2 == 1 { term(k.into()) } else { -term(k.into()) }).sum();
    2.0 * p
}

/// The p-value of Kolmogorov and Smirnov's test of a sample against a continuous law.
pub fn one_sample(mut sample: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    sample.sort_unstable_by(f64::total_cmp);
    let size = sample.len() as f64;
    let mut d = 0.0;
    for (i, &x) in sample.iter().enumerate() {
        let p = cdf(x);
        for gap in [p - i as f64 / size, (i + 1) as f64 / size - p] {
            if gap > d {
                d = gap;
            }
        }
    }
    kolmogorov(d, size)
}

/// The p-value of Kolmogorov and Smirnov's test of two independent samples; conservative with ties.
pub fn two_sample(mut a: Vec<f64>, mut b: Vec<f64>) -> f64 {
    a.sort_unstable_by(f64::total_cmp);
    b.sort_unstable_by(f64::total_cmp);
    let (n, m) = (a.len() as f64, b.len() as f64);
    let (mut i, mut j, mut d) = (0, 0, 0.0);
    while i < a.len() && j < b.len() {
        let x = if a[i] < b[j] { a[i] } else { b[j] };
        while i < a.len() && a[i] <= x {
            i += 1;
        }
        while j < b.len() && b[j] <= x {
            j += 1;
        }
        let gap = (i as f64 / n - j as f64 / m).abs();
        if gap > d {
            d = gap;
        }
    }
    kolmogorov(d, n * m / (n + m))
}

/// The exact two-sided p-value of `count` successes in `trials` at probability p in (0, 1).
pub fn binomial(count: u64, trials: u64, p: f64) -> f64 {
    let (s, n) = (count as f64, trials as f64);
    // P(X >= s) = I_p(s, n-s+1) and P(X <= s) = 1 - I_p(s+1, n-s).
    let at_least = if count == 0 { 1.0 } else { inc_beta(s, n - s + 1.0, Split::at(p)).0 };
    let at_most = if count == trials { 1.0 } else { inc_beta(s + 1.0, n - s, Split::at(p)).1 };
    let tail = 2.0 * if at_least < at_most { at_least } else { at_most };
    if tail < 1.0 { tail } else { 1.0 }
}
