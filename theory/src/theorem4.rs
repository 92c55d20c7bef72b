//! Theorem 4: the compact twin of Theorem 2. The paper gives it no explicit form; this reading,
//! which follows the proof of Theorem 2 with sigma_bar^2(x) in place of sigma^2, is ours:
//!
//! ```text
//! r_T <= eta sqrt(2 c rho_T/(T log(1 + c/sigma^2)) + sigma_bar^2(x_tau)) - (zeta'/2) slack
//! slack = s(x*) + s(x_tau) for GP-UCB, s(x_tau) for PI;  s(x) = sigma_bar^2(x)/sqrt(c + sigma_bar^2(x))
//! ```
//!
//! eta and zeta' are Theorem 2's.

use crate::{
    Delta,
    measurement::CompactNoise,
    theorem2::{Prior, variance_cap, zeta_prime_pi, zeta_prime_ucb},
};

/// The bound on GP-UCB's r_T, eta from [`Concentration::eta_ucb`](crate::theorem2::Concentration::eta_ucb).
pub fn ucb_bound(
    eta: f64,
    horizon: u32,
    delta: Delta,
    prior: Prior,
    sigma_bar2: CompactNoise,
) -> f64 {
    let slack = slack(prior.c, sigma_bar2.star) + slack(prior.c, sigma_bar2.tau);
    eta * lambda(horizon, prior, sigma_bar2.tau) - 0.5 * zeta_prime_ucb(delta) * slack
}

/// The bound on PI's r_T, eta from [`Concentration::eta_pi`](crate::theorem2::Concentration::eta_pi).
pub fn pi_bound(
    eta: f64,
    horizon: u32,
    delta: Delta,
    prior: Prior,
    sigma_bar2: CompactNoise,
) -> f64 {
    let slack = slack(prior.c, sigma_bar2.tau);
    eta * lambda(horizon, prior, sigma_bar2.tau) - 0.5 * zeta_prime_pi(delta) * slack
}

/// sqrt(2 c rho_T/(T log(1 + c/sigma^2)) + sigma_bar^2(x_tau)).
pub fn lambda(horizon: u32, prior: Prior, sigma_bar2_tau: f64) -> f64 {
    let cap = variance_cap(prior.c, prior.noise_variance, prior.rho, horizon);
    (cap + sigma_bar2_tau).sqrt()
}

fn slack(c: f64, sigma_bar2: f64) -> f64 {
    sigma_bar2 / (c + sigma_bar2).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theorem2;

    #[test]
    fn with_sigma_for_sigma_bar_it_is_theorem_2() {
        let delta = Delta::new(0.1).unwrap();
        let prior = Prior { c: 1.0, noise_variance: 0.01, rho: 30.0 };
        let same = CompactNoise { star: 0.01, tau: 0.01 };
        let finite = theorem2::ucb_bound(6.5, 20, delta, prior);
        assert!((ucb_bound(6.5, 20, delta, prior, same) - finite).abs() < 1e-14);
        let finite = theorem2::pi_bound(4.0, 20, delta, prior);
        assert!((pi_bound(4.0, 20, delta, prior, same) - finite).abs() < 1e-14);
    }
}
