//! Lemma 1: concentration of the estimated posterior in the finite setting.
//!
//! For x not in x_t, with probability at least 1 - delta, error < a_t and
//! 1 - 2 sqrt(b_t) < ratio < 1 + 2 sqrt(b_t) + 2 b_t, where (L4 = log(4/delta))
//!
//! ```text
//! printed    a_t = 4 (N-2 +    t + 2 sqrt(t L4) + 2 L4 ) / (delta N (N-t-2))
//! corrected  a_t = 4 (N-2 + N (t + 2 sqrt(t L4) + 2 L4)) / (delta N (N-t-2))
//! sharp      a_t = the exact error law's quantile at 1 - delta/2
//!            b_t = L4/(N-t-1)
//! ```
//!
//! A constant that does not exist for (N, t) is `None`.

use crate::{
    Delta, Form,
    laws::{ErrorLaw, RatioLaw},
};

/// The failure probability that the union bound allots to each half of the lemma.
const HALF: f64 = 0.5;

/// a_t, the bound on the mean's squared error. Needs N >= t + 3.
pub fn a(n: u64, t: u32, delta: Delta, form: Form) -> Option<f64> {
    if form == Form::Sharp {
        degrees(n, t, 2)?;
        return Some(ErrorLaw::new(n, t)?.upper_quantile(HALF * delta.get()));
    }
    chebyshev_radius(n, t, delta, form, k_bound(t, delta))
}

/// b_t = log(4/delta)/(N-t-1). Needs N >= t + 2.
pub fn b(n: u64, t: u32, delta: Delta) -> Option<f64> {
    Some(delta.log_ratio(4.0) / degrees(n, t, 1)?)
}

/// The interval for the variance ratio: the paper's, or exact quantiles at delta/4 a side.
///
/// The paper's lower end may be negative; its half of the statement is then trivially true.
pub fn variance_interval(n: u64, t: u32, delta: Delta, form: Form) -> Option<(f64, f64)> {
    match form {
        Form::Printed | Form::Corrected => Some(laurent_massart(b(n, t, delta)?)),
        Form::Sharp => {
            let law = RatioLaw::new(n, t)?;
            let tail = 0.25 * delta.get();
            Some((law.quantile(tail), law.upper_quantile(tail)))
        }
    }
}

/// (1 - 2 sqrt(b), 1 + 2 sqrt(b) + 2 b): Laurent and Massart's bounds for chi-square
/// (appendix, corollary on the Wishart law).
pub(crate) fn laurent_massart(b: f64) -> (f64, f64) {
    let root = b.sqrt();
    (1.0 - 2.0 * root, 1.0 + 2.0 * root + 2.0 * b)
}

/// The proof's bound on K, at level delta/4: t + 2 sqrt(t L4) + 2 L4.
pub fn k_bound(t: u32, delta: Delta) -> f64 {
    chi_square_bound(f64::from(t), delta.log_ratio(4.0))
}

/// d + 2 sqrt(d l) + 2 l, exceeded by chi2_d with probability at most e^-l.
pub(crate) fn chi_square_bound(d: f64, l: f64) -> f64 {
    d + 2.0 * (d * l).sqrt() + 2.0 * l
}

/// Var[mu_hat_t(x) | D_t]/(k_t(x) + sigma^2): (N-2+K)/(N (N-t-2)) as the proof prints it,
/// (N-2+N K)/(N (N-t-2)) in truth. Needs N >= t + 3.
#[inline]
pub fn variance_formula(n: u64, t: u32, k: f64, form: Form) -> Option<f64> {
    let below = degrees(n, t, 2)?;
    let n = n as f64;
    let k = if form == Form::Printed { k } else { n * k };
    Some((n - 2.0 + k) / (n * below))
}

/// The proof's Chebyshev radius given K: error below it with probability at least 1 - delta/4.
///
/// Chebyshev spends delta/8 on each side of a symmetric law, hence the factor 4/delta on the
/// variance, printed or corrected.
#[inline]
pub fn chebyshev_radius(n: u64, t: u32, delta: Delta, form: Form, k: f64) -> Option<f64> {
    Some(4.0 / delta.get() * variance_formula(n, t, k, form)?)
}

/// The exact probability that error < a_t, over y_t too, for a fixed design.
pub fn coverage_mean(n: u64, t: u32, delta: Delta, form: Form) -> Option<f64> {
    let bound = a(n, t, delta, form)?;
    Some(ErrorLaw::new(n, t)?.cdf(bound))
}

/// The exact probability that the variance ratio lies in its interval, for a fixed design.
pub fn coverage_variance(n: u64, t: u32, delta: Delta, form: Form) -> Option<f64> {
    let (low, high) = variance_interval(n, t, delta, form)?;
    Some(RatioLaw::new(n, t)?.between(low, high))
}

/// The exact probability of both: the product, because the two are independent.
pub fn coverage_joint(n: u64, t: u32, delta: Delta, form: Form) -> Option<f64> {
    Some(coverage_mean(n, t, delta, form)? * coverage_variance(n, t, delta, form)?)
}

/// N - t - k where that is positive.
#[inline]
pub(crate) fn degrees(n: u64, t: u32, k: u64) -> Option<f64> {
    let left = n.checked_sub(u64::from(t) + k)?;
    (left > 0).then_some(left as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn delta(value: f64) -> Delta {
        Delta::new(value).unwrap()
    }

    fn close(value: Option<f64>, expected: f64, digits: f64) {
        let value = value.unwrap();
        assert!((value - expected).abs() < digits, "{value} is not {expected}");
    }

    #[test]
    fn known_values() {
        let d = delta(0.1);
        close(a(500, 20, d, Form::Printed), 0.0908044410, 5e-11);
        close(a(500, 20, d, Form::Corrected), 3.8119276353, 5e-11);
        close(a(500, 20, d, Form::Sharp), 0.172188899, 5e-10);
        let (low, high) = variance_interval(500, 20, d, Form::Sharp).unwrap();
        close(Some(low), 0.87735275, 5.1e-9);
        close(Some(high), 1.13055429, 5.1e-9);
        close(coverage_mean(500, 14, d, Form::Printed), 0.90884, 5e-6);
        close(coverage_mean(500, 20, d, Form::Printed), 0.85345, 5e-6);
        close(coverage_mean(500, 50, d, Form::Printed), 0.66623, 5e-6);
        close(coverage_mean(200, 20, d, Form::Printed), 0.874386, 5e-7);
        close(coverage_mean(1000, 14, d, Form::Printed), 0.903948, 5e-7);
        close(coverage_variance(200, 20, d, Form::Printed), 0.996466, 5e-7);
    }

    #[test]
    fn the_printed_joint_statement_first_fails_at_moderate_t() {
        for (n, first) in [(100, 20), (200, 17), (500, 15), (2000, 14)] {
            let joint = |t| coverage_joint(n, t, delta(0.1), Form::Printed).unwrap();
            assert!(joint(first) < 0.9 && joint(first - 1) >= 0.9, "N = {n}");
        }
    }

    #[test]
    fn sharp_constants_spend_exactly_their_budget() {
        for (n, t, d) in [(23, 20, 0.1), (200, 0, 0.5), (5000, 60, 0.01)] {
            close(coverage_mean(n, t, delta(d), Form::Sharp), 1.0 - d / 2.0, 1e-12);
            close(coverage_variance(n, t, delta(d), Form::Sharp), 1.0 - d / 2.0, 1e-12);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn forms_and_levels_are_ordered(t in 1_u32..150, extra in 3_u64..3000, d in 0.005_f64..0.9) {
            let (n, level, looser) = (u64::from(t) + extra, delta(d), delta(d * 1.05));
            for form in Form::ALL {
                let here = a(n, t, level, form).unwrap();
                prop_assert!(a(n, t, looser, form).unwrap() < here);
                prop_assert!(a(n + 1, t, level, form).unwrap() < here);
                let (low, high) = variance_interval(n, t, level, form).unwrap();
                let (inner_low, inner_high) = variance_interval(n, t, looser, form).unwrap();
                prop_assert!(low < inner_low && inner_high < high);
            }
            // The corrected lemma is true: its coverage is never below what it promises.
            let joint = coverage_joint(n, t, level, Form::Corrected).unwrap();
            prop_assert!(joint >= 1.0 - d);
            prop_assert!(joint >= coverage_joint(n, t, level, Form::Printed).unwrap());
        }
    }

    #[test]
    fn constants_end_where_their_degrees_of_freedom_do() {
        let d = delta(0.1);
        for form in Form::ALL {
            assert!(a(22, 20, d, form).is_none() && a(23, 20, d, form).is_some());
            assert!(variance_interval(21, 20, d, form).is_none());
            assert!(variance_interval(22, 20, d, form).is_some());
        }
        assert!(a(0, u32::MAX, d, Form::Printed).is_none());
    }
}
