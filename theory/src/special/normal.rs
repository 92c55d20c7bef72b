//! The standard normal law.

use super::{Bracket, find_root};
use std::f64::consts::FRAC_1_SQRT_2;

/// P(Z <= z).
pub fn normal_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z * FRAC_1_SQRT_2)
}

/// P(Z > z), with full relative accuracy in the upper tail.
pub fn normal_sf(z: f64) -> f64 {
    0.5 * libm::erfc(z * FRAC_1_SQRT_2)
}

/// The z with P(Z <= z) = p; infinite for p = 0 and p = 1.
pub fn normal_quantile(p: f64) -> f64 {
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    if p == 0.5 {
        return 0.0;
    }
    // 1 - p is exact for p in [1/2, 1), so the upper half is the lower one mirrored.
    let tail = if p < 0.5 { p } else { 1.0 - p };
    let ln_tail = libm::log(tail);
    let z = find_root(|z| libm::log(normal_sf(z)) - ln_tail, Bracket { low: 0.0, high: 38.0 });
    if p < 0.5 { -z } else { z }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_quantiles() {
        assert!((normal_quantile(0.975) - 1.959963984540054).abs() < 1e-14);
        assert!((normal_quantile(1e-12) + 7.034483825301132).abs() < 1e-12);
        assert_eq!(normal_quantile(0.5), 0.0);
    }

    proptest! {
        #[test]
        fn quantile_inverts_cdf(p in 1e-300_f64..1.0) {
            prop_assert!((normal_cdf(normal_quantile(p)) / p - 1.0).abs() < 1e-12);
        }
    }
}
