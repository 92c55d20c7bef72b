//! The gamma function's logarithm and the remainder of Stirling's formula.

/// log(2 pi)/2.
pub(super) const HALF_LN_2PI: f64 = 0.918938533204672741780329736405617640;

/// Coefficients B_{2k}/(2k (2k-1)) of the asymptotic series in 1/x^(2k-1).
const SERIES: [f64; 8] = [
    1.0 / 12.0,
    -1.0 / 360.0,
    1.0 / 1260.0,
    -1.0 / 1680.0,
    1.0 / 1188.0,
    -691.0 / 360360.0,
    1.0 / 156.0,
    -3617.0 / 122400.0,
];

/// From here on eight terms of the series are exact to rounding.
const ASYMPTOTIC: f64 = 10.0;

/// log Gamma(x) - [(x - 1/2) log x - x + log(2 pi)/2] for x > 0.
pub fn stirling_error(x: f64) -> f64 {
    // Each step up is (x + 1/2) log(1 + 1/x) - 1, positive and without cancellation worth a digit.
    let mut shifted = x;
    let mut steps = 0.0;
    while shifted < ASYMPTOTIC {
        steps += (shifted + 0.5) * libm::log1p(1.0 / shifted) - 1.0;
        shifted += 1.0;
    }
    let square = 1.0 / (shifted * shifted);
    let series = SERIES.iter().rev().fold(0.0, |sum, &c| sum * square + c);
    steps + series / shifted
}

/// log Gamma(x) for x > 0.
pub fn ln_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        // log Gamma(1/2) = log(pi)/2, and (x - 1/2) log x vanishes there.
        let half = 0.5 * libm::log(std::f64::consts::PI) + 0.5 - HALF_LN_2PI;
        assert!((stirling_error(0.5) - half).abs() < 1e-15);
        assert!((stirling_error(1.0) - (1.0 - HALF_LN_2PI)).abs() < 1e-15);
        assert!((stirling_error(1e9) * 12e9 - 1.0).abs() < 1e-15);
    }
}
