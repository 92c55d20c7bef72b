//! Theorem 2 and Theorem 4 for PI, and the steps of the proof.

use super::{
    Budget, Claim, Context, Origin, Quantity, RegretBound, Scope, Setting, Test, Trial,
    applicability, compact_noise, is_within, predicate, statistic, steps,
};
use crate::{Form, theorem4};

/// G = (target - mu_{tau-1}(x*))/sqrt(k_{tau-1}(x*) + sigma^2), where that is a number.
#[inline(always)]
fn gap(context: &Context, m: &impl Trial) -> Option<f64> {
    let (target, mu) = (m.get(Quantity::Target), m.value(Quantity::MuStarTau));
    let scale = (m.value(Quantity::KStarTau) + context.noise_star(m)).sqrt();
    let target = target?;
    (scale > 0.0).then_some((target - mu) / scale)
}

/// The bound on r_T, which depends on the run through tau and G.
#[expect(clippy::unnecessary_wraps, reason = "bounds of the registry share one signature")]
pub(super) fn bound<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<f64>> {
    let (horizon, delta) = (context.conditions.t, context.conditions.delta);
    let is_finite = context.conditions.setting == Setting::Finite;
    Some(
        #[inline(always)]
        move |m: &T| {
            let derived = &context.derived;
            let (gap, constants) = (gap(context, m), context.at_tau(m));
            let (gap, constants) = (gap?, constants?);
            let eta = constants.eta_pi(derived.zeta_pi, gap)?;
            if is_finite {
                // theorem2::pi_bound, with what does not depend on the trial computed before.
                return Some(eta * derived.lambda? - derived.shift_pi);
            }
            Some(theorem4::pi_bound(eta, horizon, delta, context.prior()?, compact_noise(m)?))
        },
    )
}

const BOUND: RegretBound = RegretBound::best_sample(statistic!(bound));

fn regret<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    let bound = bound(context)?;
    Some(move |m: &T| Some(is_within(m.value(BOUND.regret()), bound(m)?)))
}

/// The proof replaces sqrt(k_hat) by its bounds in a quotient whose numerator it takes as >= 0.
#[expect(clippy::unnecessary_wraps, reason = "predicates of the registry share one signature")]
fn numerator<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    Some(|m: &T| {
        let (gap, constants) = (gap(context, m), context.at_tau(m));
        Some(gap? + constants?.iota >= 0.0)
    })
}

const THEOREM: Claim = Claim {
    id: "theorem2.pi",
    place: "Theorem 2, section 4.1; explicit in the appendix's theorem",
    origin: Origin::Stated,
    statement: "r_T ≤ η λ_T − ζ′σ²/(2√(c+σ²)), η = (G + ι_{τ−1})κ_τ + ι_{τ−1} + ζ′, ζ′ = √(2 log(3/(2δ)))",
    latex: r"r_T \le \eta\sqrt{\tfrac{2c\rho_T}{T\log(1+c\sigma^{-2})}+\sigma^2} - \frac{\zeta'\sigma^2}{2\sqrt{c+\sigma^2}}",
    hypotheses: "N ≥ 4 log(6/δ) + T + 2, c ≥ max k, σ > 0, PI with a target ≥ max f",
    setting: Some(Setting::Finite),
    forms: &Form::ALL,
    at: &[],
    scope: Scope::Horizon,
    test: Test::Probability { budget: Budget::share(1, 1), holds: predicate!(regret) },
    bound: Some(BOUND),
    check: applicability::pi,
};

const F_TAU: Claim = Claim {
    id: "theorem2.pi/step.f-tau",
    place: "appendix, proof of Theorem 2 for PI, first display",
    origin: Origin::ProofSplit,
    statement: "f(x_τ) ≥ μ_{τ−1}(x_τ) − ζ′ √k_{τ−1}(x_τ)",
    latex: r"f(x_\tau) \ge \mu_{\tau-1}(x_\tau) - \zeta'\sqrt{k_{\tau-1}(x_\tau)}",
    forms: &[],
    test: Test::Probability { budget: Budget::share(1, 3), holds: predicate!(steps::f_tau_pi) },
    bound: None,
    check: applicability::pi_step,
    ..THEOREM
};

const MEAN: Claim = Claim {
    id: "theorem2.pi/step.mean",
    place: "appendix, proof of Theorem 2 for PI; the split of its 2δ/3 is ours, after GP-UCB's",
    statement: "μ(x*) < μ̂(x*) + ι_{τ−1}√(k(x*)+σ²) and μ̂(x_τ) − μ(x_τ) < ι_{τ−1}√(k(x_τ)+σ²)",
    latex: r"\mu(x_*) < \hat\mu(x_*)+\iota\sqrt{k(x_*)+\sigma^2} \wedge \hat\mu(x_\tau)-\mu(x_\tau) < \iota\sqrt{k(x_\tau)+\sigma^2}",
    forms: &Form::ALL,
    test: Test::Probability { budget: Budget::share(1, 3), holds: predicate!(steps::mean) },
    ..F_TAU
};

const VARIANCE_STAR: Claim = Claim {
    id: "theorem2.pi/step.variance-star",
    statement: "k̂_{τ−1}(x*) > (1 − 2√b_{τ−1})(k_{τ−1}(x*) + σ²)",
    latex: r"\hat k_{\tau-1}(x_*) > (1-2\sqrt{b_{\tau-1}})(k_{\tau-1}(x_*)+\sigma^2)",
    test: Test::Probability {
        budget: Budget::share(1, 6),
        holds: predicate!(steps::variance_star),
    },
    ..MEAN
};

const VARIANCE_TAU: Claim = Claim {
    id: "theorem2.pi/step.variance-tau",
    statement: "k̂_{τ−1}(x_τ) < (1 + 2√b_{τ−1} + 2b_{τ−1})(k_{τ−1}(x_τ) + σ²)",
    latex: r"\hat k_{\tau-1}(x_\tau) < (1+2\sqrt{b_{\tau-1}}+2b_{\tau-1})(k_{\tau-1}(x_\tau)+\sigma^2)",
    test: Test::Probability { budget: Budget::share(1, 6), holds: predicate!(steps::variance_tau) },
    ..MEAN
};

const NUMERATOR: Claim = Claim {
    id: "theorem2.pi/step.numerator",
    place: "appendix, proof of Theorem 2 for PI, last inequality: silently assumed",
    statement: "G + ι_{τ−1} ≥ 0",
    latex: r"G + \iota_{\tau-1} \ge 0",
    test: Test::Probability { budget: Budget::share(0, 1), holds: predicate!(numerator) },
    ..MEAN
};

/// The compact twin of a step.
const fn twin(of: Claim, id: &'static str, statement: &'static str, latex: &'static str) -> Claim {
    Claim {
        id,
        place: "appendix, proofs for section 4.2: \"directly follow\" Theorem 2's",
        statement,
        latex,
        hypotheses: "those of Theorem 2, Φ(x̄) of full row rank, T < K",
        setting: Some(Setting::Compact),
        ..of
    }
}

pub(super) const CLAIMS: &[Claim] = &[
    THEOREM,
    F_TAU,
    MEAN,
    VARIANCE_STAR,
    VARIANCE_TAU,
    NUMERATOR,
    Claim {
        place: "Theorem 4, section 4.2; the explicit form is our reading of its proof",
        origin: Origin::Ours,
        ..twin(
            THEOREM,
            "theorem4.pi",
            "r_T ≤ η √(2cρ_T/(T log(1+c/σ²)) + σ̄²(x_τ)) − (ζ′/2) σ̄²(x_τ)/√(c+σ̄²(x_τ))",
            r"r_T \le \eta\sqrt{\tfrac{2c\rho_T}{T\log(1+c\sigma^{-2})}+\bar\sigma^2(x_\tau)} - \tfrac{\zeta'}{2}\tfrac{\bar\sigma^2(x_\tau)}{\sqrt{c+\bar\sigma^2(x_\tau)}}",
        )
    },
    twin(F_TAU, "theorem4.pi/step.f-tau", F_TAU.statement, F_TAU.latex),
    twin(
        MEAN,
        "theorem4.pi/step.mean",
        "μ(x*) < μ̂(x*) + ι√(k(x*)+σ̄²(x*)) and μ̂(x_τ) − μ(x_τ) < ι√(k(x_τ)+σ̄²(x_τ))",
        r"\mu(x_*) < \hat\mu(x_*)+\iota\sqrt{k(x_*)+\bar\sigma^2(x_*)} \wedge \hat\mu(x_\tau)-\mu(x_\tau) < \iota\sqrt{k(x_\tau)+\bar\sigma^2(x_\tau)}",
    ),
    twin(
        VARIANCE_STAR,
        "theorem4.pi/step.variance-star",
        "k̂_{τ−1}(x*) > (1 − 2√b_{τ−1})(k_{τ−1}(x*) + σ̄²(x*))",
        r"\hat k_{\tau-1}(x_*) > (1-2\sqrt{b_{\tau-1}})(k_{\tau-1}(x_*)+\bar\sigma^2(x_*))",
    ),
    twin(
        VARIANCE_TAU,
        "theorem4.pi/step.variance-tau",
        "k̂_{τ−1}(x_τ) < (1 + 2√b_{τ−1} + 2b_{τ−1})(k_{τ−1}(x_τ) + σ̄²(x_τ))",
        r"\hat k_{\tau-1}(x_\tau) < (1+2\sqrt{b_{\tau-1}}+2b_{\tau-1})(k_{\tau-1}(x_\tau)+\bar\sigma^2(x_\tau))",
    ),
    twin(NUMERATOR, "theorem4.pi/step.numerator", NUMERATOR.statement, NUMERATOR.latex),
];
