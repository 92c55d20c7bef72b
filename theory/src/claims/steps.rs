//! The steps that the proofs for GP-UCB and PI share, at time tau - 1.
//!
//! They are evaluated in every trial, also where x* had been observed before tau: the proof makes
//! no exception there.

use super::{Context, Outcome, outcome};
use crate::Measurement;

/// f(x*) <= mu(x*) + zeta' sqrt(k(x*)), GP-UCB's zeta'.
pub(super) fn f_star(context: &Context, m: &Measurement) -> Outcome {
    let reach = context.derived.zeta_ucb;
    let at = &m.at_tau;
    outcome(Some(m.f_star <= at.mean_star + reach * at.variance_star.sqrt()))
}

/// f(x_tau) >= mu(x_tau) - zeta' sqrt(k(x_tau)), GP-UCB's zeta'.
pub(super) fn f_tau_ucb(context: &Context, m: &Measurement) -> Outcome {
    f_tau(m, context.derived.zeta_ucb)
}

/// f(x_tau) >= mu(x_tau) - zeta' sqrt(k(x_tau)), PI's zeta'.
pub(super) fn f_tau_pi(context: &Context, m: &Measurement) -> Outcome {
    f_tau(m, context.derived.zeta_pi)
}

fn f_tau(m: &Measurement, reach: f64) -> Outcome {
    let at = &m.at_tau;
    outcome(Some(at.f_tau >= at.mean_tau - reach * at.variance_tau.sqrt()))
}

/// mu(x*) < mu_hat(x*) + iota sqrt(k(x*) + sigma^2) and
/// mu_hat(x_tau) - mu(x_tau) < iota sqrt(k(x_tau) + sigma^2).
pub(super) fn mean(context: &Context, m: &Measurement) -> Outcome {
    let at = &m.at_tau;
    outcome(context.concentration(at.tau).zip(at.estimated).map(|(constants, estimated)| {
        let star = constants.iota * (at.variance_star + context.noise_star(at)).sqrt();
        let tau = constants.iota * (at.variance_tau + context.noise_tau(at)).sqrt();
        at.mean_star < estimated.mean_star + star && estimated.mean_tau - at.mean_tau < tau
    }))
}

/// k_hat(x*) > (1 - 2 sqrt(b)) (k(x*) + sigma^2).
pub(super) fn variance_star(context: &Context, m: &Measurement) -> Outcome {
    let at = &m.at_tau;
    outcome(context.concentration(at.tau).zip(at.estimated).map(|(constants, estimated)| {
        estimated.variance_star > constants.low * (at.variance_star + context.noise_star(at))
    }))
}

/// k_hat(x_tau) < (1 + 2 sqrt(b) + 2b) (k(x_tau) + sigma^2).
pub(super) fn variance_tau(context: &Context, m: &Measurement) -> Outcome {
    let at = &m.at_tau;
    outcome(context.concentration(at.tau).zip(at.estimated).map(|(constants, estimated)| {
        estimated.variance_tau < constants.high * (at.variance_tau + context.noise_tau(at))
    }))
}
