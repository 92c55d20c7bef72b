//! Theorem 2 and Theorem 4 for GP-UCB, and the steps of the proof.

use super::{
    Budget, Claim, Context, Origin, RegretBound, Scope, Setting, Test, Trial, applicability,
    compact_noise, is_within, predicate, statistic, steps,
};
use crate::{Form, theorem2, theorem4};

/// The bound on r_T at this context's horizon; in the compact setting it depends on x* and x_tau.
pub(super) fn bound<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<f64>> {
    let (horizon, delta) = (context.conditions.t, context.conditions.delta);
    let is_finite = context.conditions.setting == Setting::Finite;
    let prior = context.prior()?;
    let eta = context.concentration(horizon)?.eta_ucb(delta)?;
    let bound = || theorem2::ucb_bound(eta, horizon, delta, prior);
    let finite = *context.ucb_bound.get_or_init(bound);
    Some(move |m: &T| {
        if is_finite {
            return Some(finite);
        }
        Some(theorem4::ucb_bound(eta, horizon, delta, prior, compact_noise(m)?))
    })
}

const BOUND: RegretBound = RegretBound::best_sample(statistic!(bound));

fn regret<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    let bound = bound(context)?;
    Some(move |m: &T| Some(is_within(m.value(BOUND.regret()), bound(m)?)))
}

const THEOREM: Claim = Claim {
    id: "theorem2.ucb",
    place: "Theorem 2, section 4.1; explicit in the appendix's theorem",
    origin: Origin::Stated,
    statement: "r_T ≤ η λ_T − ζ′σ²/√(c+σ²), η = (ι_{T−1} + ζ′)(κ_T + 1), ζ′ = √(2 log(3/δ))",
    latex: r"r_T \le \eta\sqrt{\tfrac{2c\rho_T}{T\log(1+c\sigma^{-2})}+\sigma^2} - \frac{\zeta'\sigma^2}{\sqrt{c+\sigma^2}}",
    hypotheses: "N ≥ 4 log(6/δ) + T + 2, c ≥ max k, σ > 0, GP-UCB whose ζ_t has the same form as the bound",
    setting: Some(Setting::Finite),
    forms: &[Form::Printed, Form::Corrected],
    at: &[],
    scope: Scope::Horizon,
    test: Test::Probability { budget: Budget::share(1, 1), holds: predicate!(regret) },
    bound: Some(BOUND),
    check: applicability::ucb,
};

const F_STAR: Claim = Claim {
    id: "theorem2.ucb/step.f-star",
    place: "appendix, proof of Theorem 2, first display; half of its δ/3",
    origin: Origin::ProofSplit,
    statement: "f(x*) ≤ μ_{τ−1}(x*) + ζ′ √k_{τ−1}(x*)",
    latex: r"f(x_*) \le \mu_{\tau-1}(x_*) + \zeta'\sqrt{k_{\tau-1}(x_*)}",
    hypotheses: "N ≥ 4 log(6/δ) + T + 2, σ > 0, GP-UCB with printed or corrected ζ_t",
    forms: &[],
    test: Test::Probability { budget: Budget::share(1, 6), holds: predicate!(steps::f_star) },
    bound: None,
    check: applicability::ucb_step,
    ..THEOREM
};

const F_TAU: Claim = Claim {
    id: "theorem2.ucb/step.f-tau",
    statement: "f(x_τ) ≥ μ_{τ−1}(x_τ) − ζ′ √k_{τ−1}(x_τ)",
    latex: r"f(x_\tau) \ge \mu_{\tau-1}(x_\tau) - \zeta'\sqrt{k_{\tau-1}(x_\tau)}",
    test: Test::Probability { budget: Budget::share(1, 6), holds: predicate!(steps::f_tau_ucb) },
    ..F_STAR
};

const MEAN: Claim = Claim {
    id: "theorem2.ucb/step.mean",
    place: "appendix, proof of Theorem 2, \"by Lemma 1 .. with probability at least 1 − δ/3\"",
    statement: "μ(x*) < μ̂(x*) + ι_{τ−1}√(k(x*)+σ²) and μ̂(x_τ) − μ(x_τ) < ι_{τ−1}√(k(x_τ)+σ²)",
    latex: r"\mu(x_*) < \hat\mu(x_*)+\iota\sqrt{k(x_*)+\sigma^2} \wedge \hat\mu(x_\tau)-\mu(x_\tau) < \iota\sqrt{k(x_\tau)+\sigma^2}",
    forms: &Form::ALL,
    test: Test::Probability { budget: Budget::share(1, 3), holds: predicate!(steps::mean) },
    ..F_STAR
};

const VARIANCE_STAR: Claim = Claim {
    id: "theorem2.ucb/step.variance-star",
    place: "appendix, proof of Theorem 2, \"with probability at least 1 − δ/6\"",
    statement: "k̂_{τ−1}(x*) > (1 − 2√b_{τ−1})(k_{τ−1}(x*) + σ²)",
    latex: r"\hat k_{\tau-1}(x_*) > (1-2\sqrt{b_{\tau-1}})(k_{\tau-1}(x_*)+\sigma^2)",
    test: Test::Probability {
        budget: Budget::share(1, 6),
        holds: predicate!(steps::variance_star),
    },
    ..MEAN
};

const VARIANCE_TAU: Claim = Claim {
    id: "theorem2.ucb/step.variance-tau",
    statement: "k̂_{τ−1}(x_τ) < (1 + 2√b_{τ−1} + 2b_{τ−1})(k_{τ−1}(x_τ) + σ²)",
    latex: r"\hat k_{\tau-1}(x_\tau) < (1+2\sqrt{b_{\tau-1}}+2b_{\tau-1})(k_{\tau-1}(x_\tau)+\sigma^2)",
    test: Test::Probability { budget: Budget::share(1, 6), holds: predicate!(steps::variance_tau) },
    ..VARIANCE_STAR
};

/// What a compact twin says of its place.
const FOLLOWS: &str = "appendix, proofs for section 4.2: \"directly follow\" Theorem 2's";

/// The compact twin of a step.
const fn twin(of: Claim, id: &'static str, statement: &'static str, latex: &'static str) -> Claim {
    Claim {
        id,
        place: FOLLOWS,
        statement,
        latex,
        hypotheses: "those of Theorem 2, Φ(x̄) of full row rank, T < K",
        setting: Some(Setting::Compact),
        ..of
    }
}

pub(super) const CLAIMS: &[Claim] = &[
    THEOREM,
    F_STAR,
    F_TAU,
    MEAN,
    VARIANCE_STAR,
    VARIANCE_TAU,
    Claim {
        place: "Theorem 4, section 4.2; the explicit form is our reading of its proof",
        origin: Origin::Ours,
        ..twin(
            THEOREM,
            "theorem4.ucb",
            "r_T ≤ η √(2cρ_T/(T log(1+c/σ²)) + σ̄²(x_τ)) − (ζ′/2)[s(x*) + s(x_τ)], s = σ̄²/√(c+σ̄²)",
            r"r_T \le \eta\sqrt{\tfrac{2c\rho_T}{T\log(1+c\sigma^{-2})}+\bar\sigma^2(x_\tau)} - \tfrac{\zeta'}{2}\sum_{x\in\{x_*,x_\tau\}}\tfrac{\bar\sigma^2(x)}{\sqrt{c+\bar\sigma^2(x)}}",
        )
    },
    twin(F_STAR, "theorem4.ucb/step.f-star", F_STAR.statement, F_STAR.latex),
    twin(F_TAU, "theorem4.ucb/step.f-tau", F_TAU.statement, F_TAU.latex),
    twin(
        MEAN,
        "theorem4.ucb/step.mean",
        "μ(x*) < μ̂(x*) + ι√(k(x*)+σ̄²(x*)) and μ̂(x_τ) − μ(x_τ) < ι√(k(x_τ)+σ̄²(x_τ))",
        r"\mu(x_*) < \hat\mu(x_*)+\iota\sqrt{k(x_*)+\bar\sigma^2(x_*)} \wedge \hat\mu(x_\tau)-\mu(x_\tau) < \iota\sqrt{k(x_\tau)+\bar\sigma^2(x_\tau)}",
    ),
    twin(
        VARIANCE_STAR,
        "theorem4.ucb/step.variance-star",
        "k̂_{τ−1}(x*) > (1 − 2√b_{τ−1})(k_{τ−1}(x*) + σ̄²(x*))",
        r"\hat k_{\tau-1}(x_*) > (1-2\sqrt{b_{\tau-1}})(k_{\tau-1}(x_*)+\bar\sigma^2(x_*))",
    ),
    twin(
        VARIANCE_TAU,
        "theorem4.ucb/step.variance-tau",
        "k̂_{τ−1}(x_τ) < (1 + 2√b_{τ−1} + 2b_{τ−1})(k_{τ−1}(x_τ) + σ̄²(x_τ))",
        r"\hat k_{\tau-1}(x_\tau) < (1+2\sqrt{b_{\tau-1}}+2b_{\tau-1})(k_{\tau-1}(x_\tau)+\bar\sigma^2(x_\tau))",
    ),
];
