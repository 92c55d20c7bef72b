//! Logarithms near the points where the naive expression cancels.

/// log(1 + x) - x for x > -1, without cancellation near 0.
///
/// With r = x/(2 + x), log(1 + x) = 2 atanh r and 2r - x = -x r, so that
/// log(1 + x) - x = r (2 (r^2/3 + r^4/5 + ..) - x).
pub fn ln_1p_minus(x: f64) -> f64 {
    if !(-0.4..=0.7).contains(&x) {
        return libm::log1p(x) - x;
    }
    let r = x / (2.0 + x);
    let square = r * r;
    // Fifteen terms: the first one left out is below 1e-17 of the sum for r^2 <= 1/15.
    let mut series = 0.0;
    for k in (1..=15_u8).rev() {
        series = square * (series + 1.0 / f64::from(2 * k + 1));
    }
    r * (2.0 * series - x)
}

/// log(1 - exp(x)) for x < 0: the logarithm of a complement, given the logarithm of a tail.
pub fn ln_1m_exp(x: f64) -> f64 {
    if x > -std::f64::consts::LN_2 {
        libm::log(-libm::expm1(x))
    } else {
        libm::log1p(-libm::exp(x))
    }
}

/// log(exp(x) + exp(y)) without overflow.
pub fn ln_add_exp(x: f64, y: f64) -> f64 {
    let (low, high) = if x < y { (x, y) } else { (y, x) };
    if high.is_infinite() { high } else { high + libm::log1p(libm::exp(low - high)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_of_ln_1p_minus_meet() {
        for edge in [-0.4, 0.7] {
            let inside = ln_1p_minus(edge);
            let direct = libm::log1p(edge) - edge;
            assert!((inside / direct - 1.0).abs() < 4e-15, "{edge}");
        }
        // Leading term -x^2/2 where the difference itself would have no digits.
        assert!((ln_1p_minus(1e-9) / -4.999999996666667e-19 - 1.0).abs() < 1e-15);
        assert_eq!(ln_1p_minus(0.0), 0.0);
    }

    #[test]
    fn infinities_add() {
        assert_eq!(ln_add_exp(f64::NEG_INFINITY, -3.0), -3.0);
        assert_eq!(ln_add_exp(f64::NEG_INFINITY, f64::NEG_INFINITY), f64::NEG_INFINITY);
        assert_eq!(ln_add_exp(f64::INFINITY, 1.0), f64::INFINITY);
    }
}
