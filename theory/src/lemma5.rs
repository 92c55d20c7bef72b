//! Lemma 5: simple regret against best-sample regret, R_T <= r_T + 2 sqrt(2 log(1/delta)) sigma.

use crate::Delta;

/// C = sqrt(2 log(1/delta)): each of the proof's two noise bounds, at delta/2, is C sigma.
pub fn noise_factor(delta: Delta) -> f64 {
    (2.0 * delta.log_ratio(1.0)).sqrt()
}

/// 2 C sigma, by which the simple regret may exceed the best-sample regret.
pub fn allowance(delta: Delta, noise_variance: f64) -> f64 {
    2.0 * noise_factor(delta) * noise_variance.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_delta_e_to_minus_two() {
        let delta = Delta::new(libm::exp(-2.0)).unwrap();
        assert!((noise_factor(delta) - 2.0).abs() < 1e-15);
        assert!((allowance(delta, 0.25) - 2.0).abs() < 1e-15);
    }
}
