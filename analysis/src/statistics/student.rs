//! Quantiles of Student's t law.
//!
//! With y = t^2/(nu + t^2), P(|T| <= t) = I_y(1/2, nu/2) (Abramowitz and Stegun 26.7.1), so that
//! t = sqrt(nu y/(1-y)) with y a quantile of the beta law. Of y and 1 - y the smaller one is
//! computed, each from its own beta law.

use theory::special::beta_quantile;

/// The t with P(T <= t) = p for `degrees` > 0 degrees of freedom, p in (0, 1).
///
/// # Panics
/// Where p is not in (0, 1) or `degrees` is not positive.
pub fn student_quantile(degrees: f64, p: f64) -> f64 {
    assert!(p > 0.0 && p < 1.0, "p = {p} is not in (0, 1)");
    assert!(degrees > 0.0, "{degrees} degrees of freedom");
    if p == 0.5 {
        return 0.0;
    }
    // 1 - p is exact for p in [1/2, 1).
    let tail = if p < 0.5 { p } else { 1.0 - p };
    let y = beta_quantile(0.5, 0.5 * degrees, 1.0 - 2.0 * tail);
    let odds = if y < 0.5 {
        y / (1.0 - y)
    } else {
        let x = beta_quantile(0.5 * degrees, 0.5, 2.0 * tail);
        (1.0 - x) / x
    };
    let t = (degrees * odds).sqrt();
    if p < 0.5 { -t } else { t }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_degree_is_cauchy_and_two_are_algebraic() {
        for p in [0.001, 0.2, 0.5, 0.7, 0.975, 0.9999] {
            let cauchy = libm::tan(std::f64::consts::PI * (p - 0.5));
            assert!((student_quantile(1.0, p) - cauchy).abs() <= 2e-12 * cauchy.abs(), "{p}");
            let two = (2.0 * p - 1.0) / (2.0 * p * (1.0 - p)).sqrt();
            assert!((student_quantile(2.0, p) - two).abs() <= 2e-13 * two.abs(), "{p}");
        }
    }
}
