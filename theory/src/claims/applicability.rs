//! The hypotheses of the paper's statements, with a reason where they do not hold.

use super::{Acquisition, At, Conditions, Design, Method, Setting};
use crate::theorem2;

/// Holds always.
#[expect(clippy::unnecessary_wraps, reason = "checks of the registry share one signature")]
pub(super) fn always(_: &Conditions) -> Result<(), String> {
    Ok(())
}

/// Lemmas 1 and 3: N >= T + 2 for some T > t (and T <= K in the compact setting).
pub(super) fn lemma(conditions: &Conditions) -> Result<(), String> {
    degrees(conditions, 3, "N >= T + 2 with t < T")?;
    estimated(conditions)?;
    basis(conditions)
}

/// The proof's bound on K, which no estimator enters.
pub(super) fn lemma_without_estimate(conditions: &Conditions) -> Result<(), String> {
    degrees(conditions, 3, "N >= T + 2 with t < T")?;
    basis(conditions)
}

/// The mean and variance of squared errors: chi2_{N-t} must have two inverse moments.
pub(super) fn second_moment(conditions: &Conditions) -> Result<(), String> {
    degrees(conditions, 5, "a finite variance of the squared error, N > t + 4")?;
    estimated(conditions)?;
    basis(conditions)
}

/// There must be an estimate, at a point that the design does not choose.
fn estimated(conditions: &Conditions) -> Result<(), String> {
    match conditions.method {
        Some(Method::KnownPrior) => {
            return Err("a run with the known prior estimates nothing".to_owned());
        }
        Some(Method::Random) => return Err("random search estimates nothing".to_owned()),
        Some(method @ (Method::Plain | Method::TlsmBo | Method::Box | Method::Niw)) => {
            return Err(format!("{} has other estimators than the paper's", method.name()));
        }
        Some(Method::PemBo) | None => {}
    }
    match (conditions.design, conditions.at) {
        (Design::Fixed, Some(at @ (At::Star | At::Next))) => {
            Err(format!("a fixed design is measured at probe, not at {at}"))
        }
        _ => Ok(()),
    }
}

fn degrees(conditions: &Conditions, least: u64, what: &str) -> Result<(), String> {
    let (n, t) = (conditions.n, conditions.t);
    let needed = u64::from(t) + least;
    if n >= needed {
        Ok(())
    } else {
        Err(format!("N = {n} is too small at t = {t}, which needs {what}; use N >= {needed}"))
    }
}

/// Section 4.2 assumes T < K.
fn basis(conditions: &Conditions) -> Result<(), String> {
    let t = conditions.t;
    match (conditions.setting, conditions.basis) {
        (Setting::Finite, _) => Ok(()),
        (Setting::Compact, None) => Err("the number K of basis functions is not known".to_owned()),
        (Setting::Compact, Some(k)) if t < k => Ok(()),
        (Setting::Compact, Some(k)) => Err(format!(
            "T = {t} is not below K = {k}, the number of basis functions; use T <= {}",
            k.saturating_sub(1)
        )),
    }
}

/// Theorems 2 and 4 for GP-UCB, with the constants that the policy ran with.
pub(super) fn ucb(conditions: &Conditions) -> Result<(), String> {
    acquisition(conditions, Acquisition::GpUcb)?;
    let form = conditions.form;
    match conditions.policy_constants {
        Some(policy) if policy != form => {
            Err(format!("GP-UCB ran with {policy} constants, so its bound has no {form} form here"))
        }
        _ => regret(conditions),
    }
}

/// Theorems 2 and 4 for PI.
pub(super) fn pi(conditions: &Conditions) -> Result<(), String> {
    acquisition(conditions, Acquisition::Pi)?;
    regret(conditions)
}

/// Theorems 2 and 4 for whichever acquisition function ran.
pub(super) fn either(conditions: &Conditions) -> Result<(), String> {
    match conditions.acquisition {
        Some(Acquisition::GpUcb) => ucb(conditions),
        Some(Acquisition::Pi) => pi(conditions),
        None => Err("the theorem is about GP-UCB and PI".to_owned()),
    }
}

/// A step of GP-UCB's proof: any form of its constants, whichever the policy ran with.
pub(super) fn ucb_step(conditions: &Conditions) -> Result<(), String> {
    acquisition(conditions, Acquisition::GpUcb)?;
    noisy(conditions)?;
    size(conditions)
}

/// A step of PI's proof.
pub(super) fn pi_step(conditions: &Conditions) -> Result<(), String> {
    acquisition(conditions, Acquisition::Pi)?;
    noisy(conditions)?;
    size(conditions)
}

/// The selection inequality alone: no hypothesis on N.
pub(super) fn selects_by_ucb(conditions: &Conditions) -> Result<(), String> {
    acquisition(conditions, Acquisition::GpUcb)
}

/// The selection inequality alone: no hypothesis on N.
pub(super) fn selects_by_pi(conditions: &Conditions) -> Result<(), String> {
    acquisition(conditions, Acquisition::Pi)
}

fn acquisition(conditions: &Conditions, wanted: Acquisition) -> Result<(), String> {
    if conditions.design != Design::Adaptive || conditions.method != Some(Method::PemBo) {
        return Err("the theorem is about runs that use the estimated prior".to_owned());
    }
    match (conditions.acquisition, wanted) {
        (Some(ran), _) if ran == wanted => Ok(()),
        (_, Acquisition::GpUcb) => Err("the statement is about GP-UCB".to_owned()),
        (_, Acquisition::Pi) => Err("the statement is about PI".to_owned()),
    }
}

/// N >= 4 log(6/delta) + T + 2, and T < K in the compact setting.
fn size(conditions: &Conditions) -> Result<(), String> {
    let (n, t, delta) = (conditions.n, conditions.t, conditions.delta);
    if !theorem2::hypothesis(n, t, delta) {
        return Err(format!(
            "N = {n} is below 4 log(6/delta) + T + 2 = {:.1}; use N >= {}",
            theorem2::least_real_n(t, delta),
            theorem2::least_n(t, delta)
        ));
    }
    basis(conditions)
}

/// What the bound itself needs besides: information gain.
fn regret(conditions: &Conditions) -> Result<(), String> {
    size(conditions)?;
    noisy(conditions)?;
    let t = conditions.t;
    match conditions.rho {
        Some(_) => Ok(()),
        None => Err(format!("rho_T, the maximum information gain, is not known at T = {t}")),
    }
}

/// Information gain exists only with noise.
pub(super) fn noisy(conditions: &Conditions) -> Result<(), String> {
    let s2 = conditions.noise_variance;
    if s2 > 0.0 {
        Ok(())
    } else {
        Err(format!("noise_variance = {s2}: information gain is infinite; use noise_variance > 0"))
    }
}
