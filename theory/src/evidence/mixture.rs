//! Beta-mixture e-values for a violation rate against its budget q (docs/mathematics.md, section 8).
//!
//! ```text
//! log M     = -S log q - (n-S) log(1-q) + log B(a+S, b+n-S) - log B(a, b)
//! E_refute  = M [1 - I_q(a+S, b+n-S)]/[1 - I_q(a, b)]     (H0: rate <= q)
//! E_confirm = M I_q(a+S, b+n-S)/I_q(a, b)                 (H0: rate >= q)
//! ```
//!
//! With the power term p(a, b) = q^a (1-q)^b/B(a, b), M = p(a, b)/p(a+S, b+n-S): both logarithms
//! are differences of log(tail/power), and nothing of the size of n log(1/q) is ever subtracted.

use super::Counts;
use crate::special::{Split, larger, ln_add_exp, ln_beta, ln_power, ln_tail_ratios, smaller};

/// A Beta(a, b) prior on the violation rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BetaPrior {
    /// a > 0.
    pub a: f64,
    /// b > 0.
    pub b: f64,
}

impl BetaPrior {
    /// Jeffreys' prior, (1/2, 1/2).
    pub const JEFFREYS: Self = Self { a: 0.5, b: 0.5 };

    /// The prior tuned to a budget q in (0, 1): strongest near `n_opt` trials at level alpha.
    ///
    /// a = r/(1-q), b = r/q, r = max(rho - v, v/1000), v = q (1-q),
    /// rho = n_opt v/(2 l + log(1 + 2 l)), l = log(1/(2 alpha)).
    ///
    /// # Panics
    /// Where alpha is not in (0, 1/2): l must be positive.
    pub fn tuned(q: f64, alpha: f64, n_opt: f64) -> Self {
        assert!(alpha > 0.0 && alpha < 0.5, "alpha = {alpha} is not in (0, 1/2)");
        let v = q * (1.0 - q);
        let l = -libm::log(2.0 * alpha);
        let rho = n_opt * v / (2.0 * l + libm::log1p(2.0 * l));
        let r = larger(rho - v, v / 1000.0);
        Self { a: r / (1.0 - q), b: r / q }
    }

    /// log E_refute after `violations` and `held`, budget q in (0, 1).
    pub fn ln_e_refute(self, violations: f64, held: f64, q: f64) -> f64 {
        let at = Split::at(q);
        let posterior = ln_tail_ratios(self.a + violations, self.b + held, at).1;
        posterior - ln_tail_ratios(self.a, self.b, at).1
    }

    /// log E_confirm after `violations` and `held`, budget q in (0, 1).
    pub fn ln_e_confirm(self, violations: f64, held: f64, q: f64) -> f64 {
        let at = Split::at(q);
        let posterior = ln_tail_ratios(self.a + violations, self.b + held, at).0;
        posterior - ln_tail_ratios(self.a, self.b, at).0
    }

    /// log M at a rate p: the two-sided mixture, which the confidence sequence inverts.
    pub(super) fn ln_m(self, violations: f64, held: f64, p: Split) -> f64 {
        let prior = self.a * libm::log(p.x) + self.b * libm::log(p.y) - ln_beta(self.a, self.b);
        prior - ln_power(self.a + violations, self.b + held, p)
    }
}

/// The study's e-value: the average of E under Jeffreys' prior and under the tuned prior.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mixture {
    budget: f64,
    tuned: BetaPrior,
}

impl Mixture {
    /// For a budget in [0, 1), the family's level alpha and the n_opt fixed in the study.
    ///
    /// # Panics
    /// Where alpha is not in (0, 1/2).
    pub fn new(budget: f64, alpha: f64, n_opt: f64) -> Self {
        let tuned = if budget > 0.0 {
            BetaPrior::tuned(budget, alpha, n_opt)
        } else {
            // There is no scale to tune to; intervals still need a prior.
            BetaPrior::JEFFREYS
        };
        Self { budget, tuned }
    }

    /// The budget q that is tested.
    pub fn budget(&self) -> f64 {
        self.budget
    }

    /// The prior tuned to the budget.
    pub fn tuned(&self) -> BetaPrior {
        self.tuned
    }

    /// log E against "the violation rate is at most q"; failures count as successes.
    ///
    /// A budget of 0 is refuted by one violation: E is infinite, and 1 before that.
    pub fn ln_e_refute(&self, counts: Counts) -> f64 {
        let (violations, held) = counts.optimistic();
        if self.budget == 0.0 {
            return if violations > 0.0 { f64::INFINITY } else { 0.0 };
        }
        self.average(|prior| prior.ln_e_refute(violations, held, self.budget))
    }

    /// log E against "the violation rate is at least q"; failures count as violations.
    ///
    /// A budget of 0 is never confirmed: E stays 1.
    pub fn ln_e_confirm(&self, counts: Counts) -> f64 {
        let (violations, held) = counts.pessimistic();
        if self.budget == 0.0 {
            return 0.0;
        }
        self.average(|prior| prior.ln_e_confirm(violations, held, self.budget))
    }

    /// The least n at which S = 0 reaches log E_confirm >= `ln_threshold`; `None` for budget 0.
    pub fn least_n_to_confirm(&self, ln_threshold: f64) -> Option<u64> {
        if self.budget == 0.0 {
            return None;
        }
        let reached = |trials: u64| {
            let counts = Counts { trials, violations: 0, failures: 0 };
            self.ln_e_confirm(counts) >= ln_threshold
        };
        let mut high = 1;
        while !reached(high) {
            high = 2_u64.checked_mul(high)?;
        }
        let mut low = high / 2;
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if reached(middle) { high = middle } else { low = middle }
        }
        Some(high)
    }

    /// log of the mean over both priors of exp(`ln_e`).
    pub(super) fn average(&self, ln_e: impl Fn(BetaPrior) -> f64) -> f64 {
        ln_add_exp(ln_e(BetaPrior::JEFFREYS), ln_e(self.tuned)) - std::f64::consts::LN_2
    }
}

/// The anytime-valid p-value min(1, 1/E) of the largest log E over completed batches.
pub fn anytime_p_value(largest_ln_e: f64) -> f64 {
    libm::exp(smaller(0.0, -largest_ln_e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() < tolerance, "{value} is not {expected}");
    }

    #[test]
    fn known_values() {
        let jeffreys = BetaPrior::JEFFREYS;
        for (s, n, refute, confirm) in [
            (0.0, 100.0, -4.205813, 4.192745),
            (30.0, 1000.0, -5.588092, 3.143107),
            (70.0, 1000.0, 0.236808, -3.834682),
        ] {
            close(jeffreys.ln_e_refute(s, n - s, 0.05), refute, 5e-7);
            close(jeffreys.ln_e_confirm(s, n - s, 0.05), confirm, 5e-7);
        }
        close(jeffreys.ln_e_refute(0.0, 1e5, 0.05), -11.0306, 5e-5);
        let tuned = BetaPrior::tuned(0.05, 0.05, 1000.0);
        close(tuned.a, 7.850317, 5e-7);
        close(tuned.b, 149.156032, 5e-7);
        close(tuned.ln_e_refute(70.0, 930.0, 0.05), 2.930940, 5e-7);
        close(tuned.ln_e_confirm(70.0, 930.0, 0.05), -2.416264, 5e-7);
    }

    #[test]
    fn a_budget_of_zero() {
        let mixture = Mixture::new(0.0, 0.05, 2000.0);
        let clean = Counts { trials: 1000, violations: 0, failures: 3 };
        assert_eq!((mixture.ln_e_refute(clean), mixture.ln_e_confirm(clean)), (0.0, 0.0));
        let broken = Counts { violations: 1, ..clean };
        assert_eq!(
            (mixture.ln_e_refute(broken), mixture.ln_e_confirm(broken)),
            (f64::INFINITY, 0.0)
        );
        assert_eq!(mixture.least_n_to_confirm(1.0), None);
    }

    #[test]
    fn failures_help_neither_side() {
        let mixture = Mixture::new(0.1, 0.05, 2000.0);
        let counts = Counts { trials: 100, violations: 5, failures: 2 };
        let bad = Counts { trials: 102, violations: 7, failures: 0 };
        let good = Counts { trials: 102, violations: 5, failures: 0 };
        assert_eq!(mixture.ln_e_confirm(counts), mixture.ln_e_confirm(bad));
        assert_eq!(mixture.ln_e_refute(counts), mixture.ln_e_refute(good));
    }

    #[test]
    fn the_least_n_is_the_least() {
        let mixture = Mixture::new(0.05, 0.05, 2000.0);
        let threshold = libm::log(800.0);
        let least = mixture.least_n_to_confirm(threshold).unwrap();
        let at = |trials| mixture.ln_e_confirm(Counts { trials, violations: 0, failures: 0 });
        assert!(at(least) >= threshold && at(least - 1) < threshold, "{least}");
    }

    proptest! {
        #[test]
        fn both_sides_average_to_the_two_sided_mixture(
            s in 0_u32..400, held in 0_u32..4000, q in 0.01_f64..0.5,
        ) {
            // P(rate > q) E_refute + P(rate < q) E_confirm = M under any prior.
            let (prior, s, held) = (BetaPrior { a: 2.0, b: 9.0 }, f64::from(s), f64::from(held));
            let (lower, upper) = crate::special::ln_tails(2.0, 9.0, Split::at(q));
            let total = ln_add_exp(
                upper + prior.ln_e_refute(s, held, q),
                lower + prior.ln_e_confirm(s, held, q),
            );
            let m = prior.ln_m(s, held, Split::at(q));
            prop_assert!((total - m).abs() < 1e-11 * larger(1.0, m.abs()));
        }

        #[test]
        fn a_violation_moves_both_the_right_way(s in 0_u64..50, n in 60_u64..5000) {
            let mixture = Mixture::new(0.05, 0.05, 2000.0);
            let here = Counts { trials: n, violations: s, failures: 0 };
            let more = Counts { violations: s + 1, ..here };
            prop_assert!(mixture.ln_e_refute(more) > mixture.ln_e_refute(here));
            prop_assert!(mixture.ln_e_confirm(more) < mixture.ln_e_confirm(here));
        }
    }
}
