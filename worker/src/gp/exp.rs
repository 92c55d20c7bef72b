//! exp for whole arrays, x <= 0, to within one unit in the last place.
//!
//! With k the whole number nearest to x/log 2 and r = x - k log 2, |r| <= log(2)/2,
//!
//! ```text
//! exp(x) = 2^k (1 + (r + r^2 p(r))),   p(r) = sum_{j <= 11} r^j/(j + 2)!
//! ```
//!
//! which leaves out r^14/14! < 5e-18. Only sums, products and bit operations without branches, so
//! that the compiler vectorises the loop around it; `libm::exp` takes some five times longer.

/// exp is taken to be 0 below: where 2^k would be subnormal.
const LEAST: f64 = -708.0;

/// Adding it rounds to a whole number, which then stands in the lowest bits.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// log 2 in two parts; multiples of the first by k are exact.
const LN2_HIGH: f64 = 6.931471803691238e-1;
const LN2_LOW: f64 = 1.9082149292705877e-10;

/// exp(x) for x <= 0, minus infinity included, NaN not.
#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = (x - k * LN2_HIGH) - k * LN2_LOW;
    let power = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1023 << 52));
    let value = (1.0 + (r + r * r * p(r))) * power;
    if x >= LEAST { value } else { 0.0 }
}

/// By pairs, then fours: short chains of dependent operations.
#[inline(always)]
fn p(r: f64) -> f64 {
    let (r2, r4) = (r * r, (r * r) * (r * r));
    let a = (1.0 / 2.0 + r * (1.0 / 6.0)) + r2 * (1.0 / 24.0 + r * (1.0 / 120.0));
    let b = (1.0 / 720.0 + r * (1.0 / 5040.0)) + r2 * (1.0 / 40320.0 + r * (1.0 / 362880.0));
    let c = (1.0 / 3628800.0 + r * (1.0 / 39916800.0))
        + r2 * (1.0 / 479001600.0 + r * (1.0 / 6227020800.0));
    a + r4 * (b + r4 * c)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distance in units in the last place; both are positive and normal.
    fn ulps(a: f64, b: f64) -> u64 {
        a.to_bits().abs_diff(b.to_bits())
    }

    #[test]
    fn within_one_unit_of_libm() {
        let mut differing = 0;
        for i in 0..1_000_000 {
            let x = -708.0 * libm::pow(f64::from(i) / 1e6, 3.0);
            let apart = ulps(exp(x), libm::exp(x));
            assert!(apart <= 1, "{x:e}: {apart}");
            differing += apart;
        }
        assert!(differing < 150_000, "{differing}");
    }

    #[test]
    fn ends() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-0.0), 1.0);
        assert_eq!(exp(-1e-300), 1.0);
        assert!(exp(-708.0) > 0.0);
        for x in [-708.1, -1e4, -1e300, f64::MIN, f64::NEG_INFINITY] {
            assert_eq!(exp(x), 0.0);
        }
    }
}
