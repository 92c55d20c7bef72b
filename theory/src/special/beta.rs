//! The beta function and the regularised incomplete beta functions, with both tails in logarithms.
//!
//! I_x(a, b) = P(Beta(a, b) <= x) = power/fraction, where power = x^a (1-x)^b/B(a, b) is taken in
//! deviance form and the continued fraction (Didonato and Morris 1992, eq. 9, their BFRAC)
//! converges fast for x below the mean. Above it the other tail is expanded instead.

use super::{
    Bracket, find_root, ln_1m_exp, ln_1p_minus,
    stirling::{HALF_LN_2PI, ln_gamma, stirling_error},
};

/// More than the fraction needs for parameters up to 1e12.
const MAX_TERMS: u32 = 20_000_000;

/// A probability and its complement, both with full relative accuracy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Split {
    /// x.
    pub x: f64,
    /// 1 - x.
    pub y: f64,
}

impl Split {
    /// x and 1 - x for an x that is given as a number.
    pub fn at(x: f64) -> Self {
        Self { x, y: 1.0 - x }
    }

    /// x = 1/(1 + e^-z), exact in both halves also near 0 and near 1.
    pub fn logistic(z: f64) -> Self {
        let small = libm::exp(-z.abs());
        let (tail, rest) = (small / (1.0 + small), 1.0 / (1.0 + small));
        if z < 0.0 { Self { x: tail, y: rest } } else { Self { x: rest, y: tail } }
    }

    fn swap(self) -> Self {
        Self { x: self.y, y: self.x }
    }
}

/// log B(a, b) for a, b > 0; relative accuracy about 1e-15 also for arguments of 1e9.
pub fn ln_beta(a: f64, b: f64) -> f64 {
    let (small, large) = if a < b { (a, b) } else { (b, a) };
    if large < 10.0 {
        return ln_gamma(small) + ln_gamma(large) - ln_gamma(small + large);
    }
    let correction = stirling_error(large) - stirling_error(small + large);
    let ratio = small / large;
    if small < 10.0 {
        // log Gamma(small) stays whole; only Gamma(large)/Gamma(small + large) is expanded.
        let rest = (large - 0.5) * libm::log1p(ratio) + small * libm::log(small + large) - small;
        return ln_gamma(small) + correction - rest;
    }
    let rest = (small - 0.5) * libm::log(ratio / (1.0 + ratio)) - large * libm::log1p(ratio);
    HALF_LN_2PI - 0.5 * libm::log(large) + rest + stirling_error(small) + correction
}

/// log(x^a (1-x)^b / B(a, b)), in deviance form.
///
/// With d = a - (a+b) x it is a [log(1 - d/a) + d/a] + b [log(1 + d/b) - d/b] plus Stirling's
/// remainders: no term is larger than the result deserves.
pub fn ln_power(a: f64, b: f64, at: Split) -> f64 {
    let sum = a + b;
    let d = excess(a, b, at);
    let deviance = a * shifted_log(-d / a, sum * at.x / a) + b * shifted_log(d / b, sum * at.y / b);
    let remainders = stirling_error(sum) - stirling_error(a) - stirling_error(b);
    deviance + remainders - HALF_LN_2PI + 0.5 * libm::log(a / sum * b)
}

/// a - (a+b) x = (a+b) y - b, from whichever of x and y is the smaller.
///
/// Near the mean this is a small difference of large numbers, and everything hangs on it: hence
/// one rounding, by `libm`'s own fused multiply-add, which is the same on every CPU.
fn excess(a: f64, b: f64, at: Split) -> f64 {
    if at.x <= at.y { libm::fma(-(a + b), at.x, a) } else { libm::fma(a + b, at.y, -b) }
}

/// log(1 + v) - v, where 1 + v is known as `ratio` in case v is near -1.
fn shifted_log(v: f64, ratio: f64) -> f64 {
    if v < -0.4 { libm::log(ratio) - v } else { ln_1p_minus(v) }
}

/// The continued fraction with I_x(a, b) = power/fraction, by modified Lentz.
fn fraction(a: f64, b: f64, at: Split) -> f64 {
    let x = at.x;
    let lambda = excess(a, b, at) + 1.0;
    let denominator = |m: f64| {
        let near = m * (b - m) * x / (a + 2.0 * m - 1.0);
        m + near + (a + m) * (lambda + m * (1.0 + at.y)) / (a + 2.0 * m + 1.0)
    };
    let mut value = a * lambda / (a + 1.0);
    let (mut c, mut d) = (value, 0.0);
    for m in 1..MAX_TERMS {
        let m = f64::from(m);
        let scale = a + 2.0 * m - 1.0;
        let numerator = (a + m - 1.0) / scale * ((a + b + m - 1.0) / scale) * m * (b - m) * x * x;
        let next = denominator(m);
        d = 1.0 / (next + numerator * d);
        c = next + numerator / c;
        let factor = c * d;
        value *= factor;
        if (factor - 1.0).abs() < f64::EPSILON / 2.0 {
            break;
        }
    }
    value
}

/// The tail on the near side of the mean, for which the fraction converges.
struct NearTail {
    /// log of the power term.
    power: f64,
    /// log(tail/power).
    ratio: f64,
    /// Whether it is the lower tail.
    lower: bool,
}

impl NearTail {
    fn new(a: f64, b: f64, at: Split) -> Self {
        // (a+b) x <= a: x is at or below the mean.
        let lower = excess(a, b, at) >= 0.0;
        let fraction = if lower { fraction(a, b, at) } else { fraction(b, a, at.swap()) };
        Self { power: ln_power(a, b, at), ratio: -libm::log(fraction), lower }
    }

    /// (lower, upper) from (near, far).
    fn order(&self, near: f64, far: f64) -> (f64, f64) {
        if self.lower { (near, far) } else { (far, near) }
    }
}

/// (log I_x(a, b), log(1 - I_x(a, b))), each accurate relative to its own tail, 0 < x < 1.
pub fn ln_tails(a: f64, b: f64, at: Split) -> (f64, f64) {
    let tail = NearTail::new(a, b, at);
    let near = tail.power + tail.ratio;
    tail.order(near, complement(near))
}

/// Both log tails minus the log power term: log(I_x/power) and log((1 - I_x)/power).
///
/// The mixtures of [`crate::evidence`] are differences of these, in which the power term,
/// thousands of nats for large counts, has already cancelled. For x strictly inside (0, 1).
pub fn ln_tail_ratios(a: f64, b: f64, at: Split) -> (f64, f64) {
    let tail = NearTail::new(a, b, at);
    tail.order(tail.ratio, complement(tail.power + tail.ratio) - tail.power)
}

/// log(1 - exp(x)), where rounding may have put x at or above 0.
fn complement(ln_tail: f64) -> f64 {
    if ln_tail < 0.0 { ln_1m_exp(ln_tail) } else { f64::NEG_INFINITY }
}

/// I_x(a, b) and its complement.
pub fn inc_beta(a: f64, b: f64, at: Split) -> (f64, f64) {
    if at.x <= 0.0 {
        return (0.0, 1.0);
    }
    if at.y <= 0.0 {
        return (1.0, 0.0);
    }
    let (lower, upper) = ln_tails(a, b, at);
    (libm::exp(lower), libm::exp(upper))
}

/// The x with I_x(a, b) = p, p in (0, 1).
pub fn beta_quantile(a: f64, b: f64, p: f64) -> f64 {
    let (ln_p, ln_q) = (libm::log(p), libm::log1p(-p));
    // The smaller tail, as a function of log(x/(1-x)), is nearly linear far out.
    let miss = |z: f64| {
        let (lower, upper) = ln_tails(a, b, Split::logistic(z));
        if p < 0.5 { lower - ln_p } else { ln_q - upper }
    };
    Split::logistic(find_root(miss, Bracket { low: -700.0, high: 700.0 })).x
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn closed_forms() {
        for x in [1e-12, 0.1, 0.5, 0.9, 1.0 - 1e-6] {
            let at = Split::at(x);
            // The tail comes as a logarithm: |log x| rounding units are lost in exp.
            assert!((inc_beta(1.0, 1.0, at).0 / x - 1.0).abs() < 1e-13, "{x}");
            assert!((inc_beta(2.0, 1.0, at).0 / (x * x) - 1.0).abs() < 1e-13, "{x}");
            let tail = libm::log1p(-x) * 7.0;
            assert!((ln_tails(1.0, 7.0, at).1 / tail - 1.0).abs() < 1e-13, "{x}");
        }
        assert!((ln_beta(0.5, 0.5) - libm::log(std::f64::consts::PI)).abs() < 1e-15);
    }

    proptest! {
        #[test]
        fn symmetry_and_complement(a in 0.3_f64..1e4, b in 0.3_f64..1e4, z in -8.0_f64..8.0) {
            let at = Split::logistic(z);
            let (lower, upper) = ln_tails(a, b, at);
            let (mirror_lower, mirror_upper) = ln_tails(b, a, at.swap());
            prop_assert!((libm::exp(lower) + libm::exp(upper) - 1.0).abs() < 1e-13);
            prop_assert!((lower - mirror_upper).abs() <= 1e-12 * lower.abs());
            prop_assert!((upper - mirror_lower).abs() <= 1e-12 * upper.abs());
        }

        #[test]
        fn quantile_inverts(a in 0.5_f64..1e4, b in 0.5_f64..1e4, p in 1e-6_f64..0.999999) {
            let x = beta_quantile(a, b, p);
            prop_assert!((inc_beta(a, b, Split::at(x)).0 / p - 1.0).abs() < 1e-8);
        }
    }
}
