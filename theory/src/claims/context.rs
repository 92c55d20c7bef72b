//! The conditions under which a claim is tested, and the constants that follow from them.

use crate::{
    Delta, Form, lemma1,
    measurement::AtTau,
    theorem2::{Concentration, Prior},
};
use std::{fmt, sync::OnceLock};

/// Which of the paper's two settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Setting {
    /// Section 4.1: finitely many points.
    Finite,
    /// Section 4.2: a compact domain with known basis functions.
    Compact,
}

/// How x_1 .. x_t are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Design {
    /// Independently of the estimators: Lemma 1's hypothesis.
    Fixed,
    /// By the method: how Theorem 2 uses the lemma.
    Adaptive,
}

/// What a run knows of the prior.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// The paper's: estimated from N functions.
    PemBo,
    /// The prior itself, N = infinity.
    KnownPrior,
    /// Nothing: uniform without replacement.
    Random,
}

/// The acquisition function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Acquisition {
    /// GP-UCB with weight zeta_t.
    GpUcb,
    /// Probability of improvement over a target.
    Pi,
}

/// The point at which Lemma 1 is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum At {
    /// A random unobserved point.
    Probe,
    /// x*.
    Star,
    /// The next point to be evaluated.
    Next,
    /// x_t, an observed point.
    Observed,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Finite => "finite",
            Self::Compact => "compact",
        })
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Probe => "probe",
            Self::Star => "x_star",
            Self::Next => "x_next",
            Self::Observed => "x_observed",
        })
    }
}

/// Everything about a cell that claims depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditions {
    /// N, the number of training functions.
    pub n: u64,
    /// t, the number of observations; the horizon T for claims about regret.
    pub t: u32,
    /// delta.
    pub delta: Delta,
    /// The form of the constants in the claim.
    pub form: Form,
    /// The setting.
    pub setting: Setting,
    /// The design.
    pub design: Design,
    /// The method; `None` for a fixed design.
    pub method: Option<Method>,
    /// The acquisition function, where the method has one.
    pub acquisition: Option<Acquisition>,
    /// The form of zeta_t with which GP-UCB ran.
    pub policy_constants: Option<Form>,
    /// Where Lemma 1 is evaluated.
    pub at: Option<At>,
    /// c >= max_x k(x).
    pub c: f64,
    /// sigma^2.
    pub noise_variance: f64,
    /// rho_T: its lower end when confirming, its upper end when refuting and for invariants.
    pub rho: Option<f64>,
    /// K, the number of basis functions (compact setting).
    pub basis: Option<u32>,
}

/// Conditions with their constants, each computed once: a sharp one costs a root of an integral.
#[derive(Debug)]
pub struct Context {
    /// The conditions.
    pub conditions: Conditions,
    a: OnceLock<Option<f64>>,
    interval: OnceLock<Option<(f64, f64)>>,
    at_evaluation: Vec<OnceLock<Option<Concentration>>>,
}

impl Context {
    /// Nothing is computed until a claim asks for it.
    pub fn new(conditions: Conditions) -> Self {
        Self {
            conditions,
            a: OnceLock::new(),
            interval: OnceLock::new(),
            at_evaluation: (0..=conditions.t).map(|_| OnceLock::new()).collect(),
        }
    }

    /// a_t of Lemma 1 at the conditions' t.
    pub fn a(&self) -> Option<f64> {
        let Conditions { n, t, delta, form, .. } = self.conditions;
        *self.a.get_or_init(|| lemma1::a(n, t, delta, form))
    }

    /// Lemma 1's interval for the variance ratio at the conditions' t.
    pub fn variance_interval(&self) -> Option<(f64, f64)> {
        let Conditions { n, t, delta, form, .. } = self.conditions;
        *self.interval.get_or_init(|| lemma1::variance_interval(n, t, delta, form))
    }

    /// Theorem 2's constants at evaluation tau <= T.
    pub fn concentration(&self, tau: u32) -> Option<Concentration> {
        let Conditions { n, delta, form, .. } = self.conditions;
        let cached = self.at_evaluation.get(tau as usize)?;
        *cached.get_or_init(|| Concentration::new(n, tau, delta, form))
    }

    /// c, sigma^2 and rho_T, where the bounds exist: rho_T known and sigma > 0.
    pub fn prior(&self) -> Option<Prior> {
        let Conditions { c, noise_variance, rho, .. } = self.conditions;
        let rho = rho.filter(|_| noise_variance > 0.0)?;
        Some(Prior { c, noise_variance, rho })
    }

    /// What k(x*) is increased by: sigma^2, or sigma_bar^2(x*) in the compact setting.
    pub(super) fn noise_star(&self, at: &AtTau) -> f64 {
        at.compact.map_or(self.conditions.noise_variance, |noise| noise.star)
    }

    /// What k(x_tau) is increased by: sigma^2, or sigma_bar^2(x_tau) in the compact setting.
    pub(super) fn noise_tau(&self, at: &AtTau) -> f64 {
        at.compact.map_or(self.conditions.noise_variance, |noise| noise.tau)
    }
}
