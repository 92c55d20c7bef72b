//! The conditions under which a claim is tested, and the constants that follow from them.

use super::{Quantity, Trial};
use crate::{
    Delta, Form, lemma1, lemma5,
    theorem2::{self, Concentration, Prior},
};
use std::{
    fmt,
    sync::{Arc, OnceLock},
};

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
    /// A squared-exponential kernel, its parameters fitted to the run's own observations.
    Plain,
    /// The same kernel, fitted to standardised training responses as well.
    TlsmBo,
    /// The paper's point estimates, plugged in, with a constant exploration weight.
    Box,
    /// The posterior mean of a normal-inverse-Wishart prior on mu and k.
    Niw,
}

impl Method {
    /// Every method, in the order in which they are documented.
    pub const ALL: [Self; 7] = [
        Self::PemBo,
        Self::KnownPrior,
        Self::Random,
        Self::Plain,
        Self::TlsmBo,
        Self::Box,
        Self::Niw,
    ];

    /// The name in study files and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::PemBo => "pem-bo",
            Self::KnownPrior => "known-prior",
            Self::Random => "random",
            Self::Plain => "plain",
            Self::TlsmBo => "tlsm-bo",
            Self::Box => "box",
            Self::Niw => "niw",
        }
    }
}

/// What puts a cell outside of the theory, whatever N and T are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Barrier {
    /// f is a row of real data.
    RealData,
    /// Entries of the training data are missing and were filled in.
    MissingEntries,
    /// The basis functions are learnt, so that they are not those of the prior.
    LearntFeatures,
}

impl Barrier {
    /// Why a claim is not made behind it.
    pub fn reason(self) -> &'static str {
        match self {
            Self::RealData => "on real data mu_t, k_t and sigma are unknown",
            Self::MissingEntries => {
                "the theory does not cover training data with missing entries that were filled in"
            }
            Self::LearntFeatures => {
                "the theory takes the basis functions as given, and here they are learnt"
            }
        }
    }
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
    /// What puts the cell outside of the theory.
    pub barrier: Option<Barrier>,
}

/// The constants of one (N, delta, form) up to a horizon, each computed once and on demand: a sharp one
/// costs a root of an integral.
#[derive(Debug)]
pub struct Constants {
    n: u64,
    delta: Delta,
    form: Form,
    at: Box<[AtT]>,
}

/// What is computed at one t.
#[derive(Debug, Default)]
struct AtT {
    a: OnceLock<Option<f64>>,
    interval: OnceLock<Option<(f64, f64)>>,
    concentration: OnceLock<Option<Concentration>>,
}

impl Constants {
    /// For t = 0 ..= `horizon`; nothing is computed yet.
    pub fn new(n: u64, delta: Delta, form: Form, horizon: u32) -> Self {
        Self { n, delta, form, at: (0..=horizon).map(|_| AtT::default()).collect() }
    }

    fn a(&self, t: u32) -> Option<f64> {
        let compute = || lemma1::a(self.n, t, self.delta, self.form);
        *self.at.get(t as usize)?.a.get_or_init(compute)
    }

    fn interval(&self, t: u32) -> Option<(f64, f64)> {
        let compute = || lemma1::variance_interval(self.n, t, self.delta, self.form);
        *self.at.get(t as usize)?.interval.get_or_init(compute)
    }

    #[inline(always)]
    fn concentration(&self, t: u32) -> Option<&Concentration> {
        let known = &self.at.get(t as usize)?.concentration;
        known.get().map_or_else(|| self.compute_concentration(t), Option::as_ref)
    }

    #[cold]
    fn compute_concentration(&self, t: u32) -> Option<&Concentration> {
        let compute = || Concentration::new(self.n, t, self.delta, self.form);
        self.at[t as usize].concentration.get_or_init(compute).as_ref()
    }
}

/// What follows from the conditions alone: predicates are evaluated for every record, and logarithms
/// would be most of their cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Derived {
    /// zeta' of GP-UCB.
    pub(super) zeta_ucb: f64,
    /// zeta' of PI.
    pub(super) zeta_pi: f64,
    /// C sigma of Lemma 5.
    pub(super) reach: f64,
    /// 2 C sigma.
    pub(super) allowance: f64,
    /// The proof's bound on K.
    pub(super) k_bound: f64,
    /// log(1 + c/sigma^2).
    pub(super) log_ratio: f64,
    /// lambda_T, where rho_T is known and sigma > 0.
    pub(super) lambda: Option<f64>,
    /// zeta' sigma^2/(2 sqrt(c + sigma^2)) of PI.
    pub(super) shift_pi: f64,
}

impl Derived {
    fn new(conditions: &Conditions) -> Self {
        let Conditions { t, delta, c, noise_variance: s2, rho, .. } = *conditions;
        let zeta_pi = theorem2::zeta_prime_pi(delta);
        Self {
            zeta_ucb: theorem2::zeta_prime_ucb(delta),
            zeta_pi,
            reach: lemma5::noise_factor(delta) * s2.sqrt(),
            allowance: lemma5::allowance(delta, s2),
            k_bound: lemma1::k_bound(t, delta),
            log_ratio: libm::log1p(c / s2),
            lambda: rho.filter(|_| s2 > 0.0).map(|rho| theorem2::lambda(c, s2, rho, t)),
            shift_pi: zeta_pi * s2 / (2.0 * (c + s2).sqrt()),
        }
    }
}

/// Conditions with their constants.
#[derive(Clone, Debug)]
pub struct Context {
    /// The conditions.
    pub conditions: Conditions,
    constants: Arc<Constants>,
    pub(super) derived: Derived,
    /// GP-UCB's bound, which is the same for all trials of the finite setting.
    pub(super) ucb_bound: OnceLock<f64>,
}

impl Context {
    /// Nothing is computed until a claim asks for it.
    pub fn new(conditions: Conditions) -> Self {
        let Conditions { n, t, delta, form, .. } = conditions;
        Self::sharing(conditions, &Arc::new(Constants::new(n, delta, form, t)))
    }

    /// With constants that other contexts of the same N, delta and form use too.
    ///
    /// # Panics
    /// Where the constants are of another N, delta or form, or end before the conditions' t.
    pub fn sharing(conditions: Conditions, constants: &Arc<Constants>) -> Self {
        let of = (constants.n, constants.delta, constants.form);
        assert_eq!(of, (conditions.n, conditions.delta, conditions.form), "another context's");
        assert!((conditions.t as usize) < constants.at.len(), "constants that end too early");
        let derived = Derived::new(&conditions);
        let constants = Arc::clone(constants);
        Self { conditions, constants, derived, ucb_bound: OnceLock::new() }
    }

    /// a_t of Lemma 1 at the conditions' t.
    pub fn a(&self) -> Option<f64> {
        self.constants.a(self.conditions.t)
    }

    /// Lemma 1's interval for the variance ratio at the conditions' t.
    pub fn variance_interval(&self) -> Option<(f64, f64)> {
        self.constants.interval(self.conditions.t)
    }

    /// Theorem 2's constants at evaluation tau <= T.
    #[inline]
    pub fn concentration(&self, tau: u32) -> Option<Concentration> {
        self.known(tau).copied()
    }

    #[inline(always)]
    fn known(&self, tau: u32) -> Option<&Concentration> {
        if tau > self.conditions.t {
            return None;
        }
        self.constants.concentration(tau)
    }

    /// c, sigma^2 and rho_T, where the bounds exist: rho_T known and sigma > 0.
    pub fn prior(&self) -> Option<Prior> {
        let Conditions { c, noise_variance, rho, .. } = self.conditions;
        let rho = rho.filter(|_| noise_variance > 0.0)?;
        Some(Prior { c, noise_variance, rho })
    }

    /// Theorem 2's constants at a trial's tau.
    #[inline(always)]
    pub(super) fn at_tau(&self, trial: &impl Trial) -> Option<&Concentration> {
        self.known(trial.value(Quantity::Tau) as u32)
    }

    /// What k(x*) is increased by: sigma^2, or sigma_bar^2(x*) in the compact setting.
    #[inline(always)]
    pub(super) fn noise_star(&self, trial: &impl Trial) -> f64 {
        trial.get(Quantity::SigmaBarStar).unwrap_or(self.conditions.noise_variance)
    }

    /// What k(x_tau) is increased by: sigma^2, or sigma_bar^2(x_tau) in the compact setting.
    #[inline(always)]
    pub(super) fn noise_tau(&self, trial: &impl Trial) -> f64 {
        trial.get(Quantity::SigmaBarTau).unwrap_or(self.conditions.noise_variance)
    }
}
