//! The steps that the proofs for GP-UCB and PI share, at time tau - 1.
//!
//! They are evaluated in every trial, also where x* had been observed before tau: the proof makes
//! no exception there.

use super::{Context, Quantity as Q, Trial};

/// f(x*) <= mu(x*) + zeta' sqrt(k(x*)), GP-UCB's zeta'.
#[expect(clippy::unnecessary_wraps, reason = "predicates of the registry share one signature")]
pub(super) fn f_star<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    let reach = context.derived.zeta_ucb;
    Some(move |m: &T| {
        let (f, mu, k) = (m.value(Q::FStar), m.value(Q::MuStarTau), m.value(Q::KStarTau));
        Some(f <= mu + reach * k.sqrt())
    })
}

/// f(x_tau) >= mu(x_tau) - zeta' sqrt(k(x_tau)), GP-UCB's zeta'.
pub(super) fn f_tau_ucb<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    f_tau(context.derived.zeta_ucb)
}

/// f(x_tau) >= mu(x_tau) - zeta' sqrt(k(x_tau)), PI's zeta'.
pub(super) fn f_tau_pi<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    f_tau(context.derived.zeta_pi)
}

#[expect(clippy::unnecessary_wraps, reason = "predicates of the registry share one signature")]
fn f_tau<T: Trial>(reach: f64) -> Option<impl Fn(&T) -> Option<bool>> {
    Some(move |m: &T| {
        let (f, mu, k) = (m.value(Q::FTau), m.value(Q::MuTau), m.value(Q::KTau));
        Some(f >= mu - reach * k.sqrt())
    })
}

/// mu(x*) < mu_hat(x*) + iota sqrt(k(x*) + sigma^2) and
/// mu_hat(x_tau) - mu(x_tau) < iota sqrt(k(x_tau) + sigma^2).
#[expect(clippy::unnecessary_wraps, reason = "predicates of the registry share one signature")]
pub(super) fn mean<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    Some(|m: &T| {
        let (mu_star, estimated_star) = (m.value(Q::MuStarTau), m.get(Q::MuHatStarTau));
        let (mu_tau, estimated_tau) = (m.value(Q::MuTau), m.value(Q::MuHatTau));
        let scale_star = (m.value(Q::KStarTau) + context.noise_star(m)).sqrt();
        let scale_tau = (m.value(Q::KTau) + context.noise_tau(m)).sqrt();
        let constants = context.at_tau(m);
        let (constants, estimated_star) = (constants?, estimated_star?);
        let (star, tau) = (constants.iota * scale_star, constants.iota * scale_tau);
        Some(mu_star < estimated_star + star && estimated_tau - mu_tau < tau)
    })
}

/// k_hat(x*) > (1 - 2 sqrt(b)) (k(x*) + sigma^2).
#[expect(clippy::unnecessary_wraps, reason = "predicates of the registry share one signature")]
pub(super) fn variance_star<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    Some(|m: &T| {
        let k = m.value(Q::KStarTau) + context.noise_star(m);
        let (constants, estimated) = (context.at_tau(m), m.get(Q::KHatStarTau));
        Some(estimated? > constants?.low * k)
    })
}

/// k_hat(x_tau) < (1 + 2 sqrt(b) + 2b) (k(x_tau) + sigma^2).
#[expect(clippy::unnecessary_wraps, reason = "predicates of the registry share one signature")]
pub(super) fn variance_tau<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    Some(|m: &T| {
        let k = m.value(Q::KTau) + context.noise_tau(m);
        let (constants, estimated) = (context.at_tau(m), m.get(Q::KHatTau));
        Some(estimated? < constants?.high * k)
    })
}
