//! Intervals for a violation rate: the confidence sequence with stopping, Clopper-Pearson without.

use super::{Counts, Mixture};
use crate::special::{Bracket, Split, beta_quantile, find_root};

/// A closed interval of rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Logits beyond which a rate is 0 or 1 for an f64.
const LOGIT_RANGE: f64 = 700.0;

/// The rates p with average over both priors of M(p) < 1/alpha: valid at every n at once.
///
/// log M(p) is convex with its minimum at S/n, so the set is an interval around it. The rate is
/// that of ok trials; failures are not counted here. Valid for any fixed pair of priors; ours are
/// Jeffreys' and the one tuned to the claim's budget.
pub fn confidence_sequence(counts: Counts, mixture: &Mixture, alpha: f64) -> Interval {
    let violations = counts.violations as f64;
    let held = counts.held() as f64;
    if counts.trials == 0 {
        return Interval { low: 0.0, high: 1.0 };
    }
    let excess = |z: f64| {
        let p = Split::logistic(z);
        mixture.average(|prior| prior.ln_m(violations, held, p)) + libm::log(alpha)
    };
    let centre = if violations == 0.0 {
        -LOGIT_RANGE
    } else if held == 0.0 {
        LOGIT_RANGE
    } else {
        libm::log(violations / held)
    };
    let end = |edge: f64| Split::logistic(find_root(excess, Bracket { low: centre, high: edge })).x;
    Interval {
        low: if violations == 0.0 { 0.0 } else { end(-LOGIT_RANGE) },
        high: if held == 0.0 { 1.0 } else { end(LOGIT_RANGE) },
    }
}

/// Clopper and Pearson's exact interval at confidence 1 - alpha, for a fixed number of trials.
pub fn clopper_pearson(counts: Counts, alpha: f64) -> Interval {
    let violations = counts.violations as f64;
    let held = counts.held() as f64;
    let tail = 0.5 * alpha;
    Interval {
        low: if violations == 0.0 { 0.0 } else { beta_quantile(violations, held + 1.0, tail) },
        // The upper end of S is one minus the lower end of n - S.
        high: if held == 0.0 { 1.0 } else { beta_quantile(violations + 1.0, held, 1.0 - tail) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts(violations: u64, trials: u64) -> Counts {
        Counts { trials, violations, failures: 0 }
    }

    #[test]
    fn known_clopper_pearson_limits() {
        for (s, n, low, high) in [(5, 50, 0.033275, 0.218135), (70, 1000, 0.054972, 0.087616)] {
            let interval = clopper_pearson(counts(s, n), 0.05);
            assert!((interval.low - low).abs() < 5e-7, "{interval:?}");
            assert!((interval.high - high).abs() < 5e-7, "{interval:?}");
        }
    }

    #[test]
    fn no_violation_still_has_width() {
        let none = clopper_pearson(counts(0, 100), 0.05);
        // 1 - (alpha/2)^(1/n).
        let high = -libm::expm1(libm::log(0.025) / 100.0);
        assert!(none.low == 0.0 && (none.high / high - 1.0).abs() < 1e-13);
        let sequence = confidence_sequence(counts(0, 100), &Mixture::new(0.05, 0.05, 2000.0), 0.05);
        assert!(sequence.low == 0.0 && sequence.high > none.high && sequence.high < 0.2);
    }

    proptest! {
        #[test]
        fn nested_in_level_and_wider_with_stopping(s in 0_u64..300, more in 0_u64..3000) {
            let counts = counts(s, s + more);
            prop_assume!(counts.trials > 0);
            let mixture = Mixture::new(0.05, 0.05, 2000.0);
            let narrow = confidence_sequence(counts, &mixture, 0.1);
            let wide = confidence_sequence(counts, &mixture, 0.01);
            prop_assert!(wide.low <= narrow.low && narrow.high <= wide.high);
            let rate = s as f64 / counts.trials as f64;
            prop_assert!(narrow.low <= rate && rate <= narrow.high);
            let exact = clopper_pearson(counts, 0.1);
            prop_assert!(exact.low <= rate && rate <= exact.high);
        }
    }
}
