//! The regularised incomplete gamma functions and the chi-square law.

use super::{
    Bracket, NEGLIGIBLE, find_root, larger, ln_1p_minus,
    stirling::{HALF_LN_2PI, stirling_error},
};

/// More than sqrt(a) times a small constant for every a up to 1e12.
const MAX_TERMS: u32 = 20_000_000;

/// log(x^a e^-x / Gamma(a + 1)), also the Poisson log-probability of a at mean x.
///
/// In deviance form: -(a log(a/x) + x - a) - stirling(a) - log(2 pi a)/2.
pub fn ln_poisson(a: f64, x: f64) -> f64 {
    if a == 0.0 {
        return -x;
    }
    let v = (a - x) / a;
    // log(x/a) + v, from x itself once 1 - v has lost digits.
    let deviance = if v > 0.4 { libm::log(x / a) + v } else { ln_1p_minus(-v) };
    a * deviance - stirling_error(a) - HALF_LN_2PI - 0.5 * libm::log(a)
}

/// (P(a, x), Q(a, x)), the regularised lower and upper incomplete gamma functions, a > 0, x >= 0.
///
/// The tail on the far side of the mode is summed (P) or expanded (Q); the other is its complement.
pub fn inc_gamma(a: f64, x: f64) -> (f64, f64) {
    if x <= 0.0 {
        return (0.0, 1.0);
    }
    if x.is_infinite() {
        return (1.0, 0.0);
    }
    let power = libm::exp(ln_poisson(a, x));
    if x < a + 1.0 {
        let lower = power * lower_series(a, x);
        (lower, 1.0 - lower)
    } else {
        let upper = power * a * upper_fraction(a, x);
        (1.0 - upper, upper)
    }
}

/// 1 + x/(a+1) + x^2/((a+1)(a+2)) + .. (DLMF 8.7.1).
fn lower_series(a: f64, x: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..MAX_TERMS {
        term *= x / (a + f64::from(k));
        sum += term;
        if term < NEGLIGIBLE * sum {
            break;
        }
    }
    sum
}

/// Gamma(a, x) e^x x^-a by Legendre's continued fraction (DLMF 8.9.2), modified Lentz.
fn upper_fraction(a: f64, x: f64) -> f64 {
    let mut b = x + 1.0 - a;
    let mut d = 1.0 / b;
    let (mut value, mut c) = (d, f64::INFINITY);
    for k in 1..MAX_TERMS {
        let k = f64::from(k);
        let numerator = k * (a - k);
        b += 2.0;
        d = 1.0 / (b + numerator * d);
        c = b + numerator / c;
        let factor = c * d;
        value *= factor;
        if (factor - 1.0).abs() < f64::EPSILON / 2.0 {
            break;
        }
    }
    value
}

/// P(chi2_k <= x).
pub fn chi2_cdf(k: f64, x: f64) -> f64 {
    inc_gamma(0.5 * k, 0.5 * x).0
}

/// P(chi2_k > x).
pub fn chi2_sf(k: f64, x: f64) -> f64 {
    inc_gamma(0.5 * k, 0.5 * x).1
}

/// The x with P(chi2_k <= x) = p, p in (0, 1).
pub fn chi2_quantile(k: f64, p: f64) -> f64 {
    let ln_p = libm::log(p);
    find_root(|x| libm::log(chi2_cdf(k, x)) - ln_p, chi2_bracket(k, p, 1.0 - p))
}

/// The x with P(chi2_k > x) = p, p in (0, 1); accurate for tails below rounding of 1.
pub fn chi2_upper_quantile(k: f64, p: f64) -> f64 {
    let ln_p = libm::log(p);
    find_root(|x| ln_p - libm::log(chi2_sf(k, x)), chi2_bracket(k, 1.0 - p, p))
}

/// Laurent and Massart's tail bounds, which the paper's proof uses too, bracket every quantile.
fn chi2_bracket(k: f64, lower: f64, upper: f64) -> Bracket {
    let (below, above) = (-libm::log(lower), -libm::log(larger(upper, f64::MIN_POSITIVE)));
    // P(chi2_k <= x) <= (e x/k)^(k/2) bounds small quantiles where the quadratic bound is negative.
    let chernoff = k * libm::exp(-1.0 - 2.0 * below / k);
    let gaussian = k - 2.0 * (k * below).sqrt();
    Bracket {
        low: larger(gaussian, chernoff) * (1.0 - 1e-9),
        high: (k + 2.0 * (k * above).sqrt() + 2.0 * above) * (1.0 + 1e-9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_degrees_of_freedom_are_exponential() {
        for x in [1e-8, 0.3, 2.0, 40.0, 1000.0] {
            assert!((chi2_sf(2.0, x) / libm::exp(-0.5 * x) - 1.0).abs() < 1e-13, "{x}");
            assert!((chi2_cdf(2.0, x) / -libm::expm1(-0.5 * x) - 1.0).abs() < 1e-14, "{x}");
        }
    }

    proptest! {
        #[test]
        fn tails_add_to_one(a in 0.25_f64..1e6, z in -6.0_f64..6.0) {
            let x = larger(a + z * a.sqrt(), 1e-3);
            let (p, q) = inc_gamma(a, x);
            prop_assert!((p + q - 1.0).abs() < 1e-15);
        }

        #[test]
        fn quantiles_invert(k in 1.0_f64..1e5, p in 1e-9_f64..0.999) {
            prop_assert!((chi2_cdf(k, chi2_quantile(k, p)) / p - 1.0).abs() < 1e-9);
            prop_assert!((chi2_sf(k, chi2_upper_quantile(k, p)) / p - 1.0).abs() < 1e-9);
        }
    }
}
