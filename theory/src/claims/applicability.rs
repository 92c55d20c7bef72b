//! The hypotheses of the paper's statements, with a reason where they do not hold.

use super::{Acquisition, At, Context, Design, Method, Setting};
use crate::theorem2;

/// Holds always.
#[expect(clippy::unnecessary_wraps, reason = "checks of the registry share one signature")]
pub(super) fn always(_: &Context) -> Result<(), String> {
    Ok(())
}

/// Lemmas 1 and 3: N >= T + 2 for some T > t (and T <= K in the compact setting).
pub(super) fn lemma(context: &Context) -> Result<(), String> {
    degrees(context, 3, "N >= T + 2 with t < T")?;
    estimated(context)?;
    basis(context)
}

/// The proof's bound on K, which no estimator enters.
pub(super) fn lemma_without_estimate(context: &Context) -> Result<(), String> {
    degrees(context, 3, "N >= T + 2 with t < T")?;
    basis(context)
}

/// The mean and variance of squared errors: chi2_{N-t} must have two inverse moments.
pub(super) fn second_moment(context: &Context) -> Result<(), String> {
    degrees(context, 5, "a finite variance of the squared error, N > t + 4")?;
    estimated(context)?;
    basis(context)
}

/// There must be an estimate, at a point that the design does not choose.
fn estimated(context: &Context) -> Result<(), String> {
    let conditions = &context.conditions;
    match conditions.method {
        Some(Method::KnownPrior) => {
            return Err("a run with the known prior estimates nothing".to_owned());
        }
        Some(Method::Random) => return Err("random search estimates nothing".to_owned()),
        Some(Method::PemBo) | None => {}
    }
    match (conditions.design, conditions.at) {
        (Design::Fixed, Some(at @ (At::Star | At::Next))) => {
            Err(format!("a fixed design is measured at probe, not at {at}"))
        }
        _ => Ok(()),
    }
}

fn degrees(context: &Context, least: u64, what: &str) -> Result<(), String> {
    let (n, t) = (context.conditions.n, context.conditions.t);
    let needed = u64::from(t) + least;
    if n >= needed {
        Ok(())
    } else {
        Err(format!("N = {n} is too small at t = {t}, which needs {what}; use N >= {needed}"))
    }
}

/// Section 4.2 assumes T < K.
fn basis(context: &Context) -> Result<(), String> {
    let t = context.conditions.t;
    match (context.conditions.setting, context.conditions.basis) {
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
pub(super) fn ucb(context: &Context) -> Result<(), String> {
    acquisition(context, Acquisition::GpUcb)?;
    let form = context.conditions.form;
    match context.conditions.policy_constants {
        Some(policy) if policy != form => {
            Err(format!("GP-UCB ran with {policy} constants, so its bound has no {form} form here"))
        }
        _ => regret(context),
    }
}

/// Theorems 2 and 4 for PI.
pub(super) fn pi(context: &Context) -> Result<(), String> {
    acquisition(context, Acquisition::Pi)?;
    regret(context)
}

/// Theorems 2 and 4 for whichever acquisition function ran.
pub(super) fn either(context: &Context) -> Result<(), String> {
    match context.conditions.acquisition {
        Some(Acquisition::GpUcb) => ucb(context),
        Some(Acquisition::Pi) => pi(context),
        None => Err("the theorem is about GP-UCB and PI".to_owned()),
    }
}

/// A step of GP-UCB's proof: any form of its constants, whichever the policy ran with.
pub(super) fn ucb_step(context: &Context) -> Result<(), String> {
    acquisition(context, Acquisition::GpUcb)?;
    noisy(context)?;
    size(context)
}

/// A step of PI's proof.
pub(super) fn pi_step(context: &Context) -> Result<(), String> {
    acquisition(context, Acquisition::Pi)?;
    noisy(context)?;
    size(context)
}

/// The selection inequality alone: no hypothesis on N.
pub(super) fn selects_by_ucb(context: &Context) -> Result<(), String> {
    acquisition(context, Acquisition::GpUcb)
}

/// The selection inequality alone: no hypothesis on N.
pub(super) fn selects_by_pi(context: &Context) -> Result<(), String> {
    acquisition(context, Acquisition::Pi)
}

fn acquisition(context: &Context, wanted: Acquisition) -> Result<(), String> {
    let conditions = &context.conditions;
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
fn size(context: &Context) -> Result<(), String> {
    let (n, t, delta) = (context.conditions.n, context.conditions.t, context.conditions.delta);
    if !theorem2::hypothesis(n, t, delta) {
        return Err(format!(
            "N = {n} is below 4 log(6/delta) + T + 2 = {:.1}; use N >= {}",
            theorem2::least_real_n(t, delta),
            theorem2::least_n(t, delta)
        ));
    }
    basis(context)
}

/// What the bound itself needs besides: information gain.
fn regret(context: &Context) -> Result<(), String> {
    size(context)?;
    noisy(context)?;
    let t = context.conditions.t;
    match context.conditions.rho {
        Some(_) => Ok(()),
        None => Err(format!("rho_T, the maximum information gain, is not known at T = {t}")),
    }
}

/// Information gain exists only with noise.
pub(super) fn noisy(context: &Context) -> Result<(), String> {
    let s2 = context.conditions.noise_variance;
    if s2 > 0.0 {
        Ok(())
    } else {
        Err(format!("noise_variance = {s2}: information gain is infinite; use noise_variance > 0"))
    }
}
