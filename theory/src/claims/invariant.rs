//! What must be true of every record: a single violation is a bug of ours, not of the paper.
//!
//! Each comparison allows a fraction of the size of its terms for rounding.

use super::{
    Claim, Context, Origin, Outcome, Scope, Setting, Test,
    applicability::{always, noisy, selects_by_pi, selects_by_ucb},
    outcome,
};
use crate::Measurement;

/// Far above the rounding of a trial's recursions, far below any real violation; all but the
/// information-gain identity, which has its own.
const ALLOWANCE: f64 = 1e-9;

/// The identity compares two sums of t logarithms whose arguments are what is left of k/sigma^2 after
/// subtractions, with errors of about 1e-16 c/sigma^2 each: 1e-8 at the least noise that a prior may
/// have. The worst relative difference seen is 1.2e-8, there, with ranks 1 to 241 and t up to 250; it
/// falls as sigma^2 grows (1e-10 at 1e-6). Eight times that is allowed.
const IDENTITY_ALLOWANCE: f64 = 1e-7;

/// low <= high, up to the allowance relative to `scale`.
fn at_most(low: f64, high: f64, scale: f64) -> bool {
    low <= high + ALLOWANCE * scale.abs()
}

/// k_{tau-1}(x_tau) <= 2 c I_T/(T log(1 + c/sigma^2)).
fn variance_cap(context: &Context, m: &Measurement) -> Outcome {
    let c = &context.conditions;
    outcome(m.information.map(|information| {
        // theorem2::variance_cap, with its logarithm computed before.
        let cap = 2.0 * c.c * information / (f64::from(m.t) * context.derived.log_ratio);
        at_most(m.at_tau.variance_tau, cap, cap)
    }))
}

/// 1/2 log det(I + k(x_T, x_T)/sigma^2) = I_T, where the trial has factorised the matrix.
fn information_identity(_: &Context, m: &Measurement) -> Outcome {
    let sides = m.information.zip(m.information_determinant);
    outcome(sides.map(|(sum, determinant)| {
        (sum - determinant).abs() <= IDENTITY_ALLOWANCE * determinant.abs()
    }))
}

/// 0 <= I_T <= rho_T; the context has to hold the upper end of rho_T's bracket.
fn information(context: &Context, m: &Measurement) -> Outcome {
    let range = m.information.zip(context.conditions.rho);
    outcome(range.map(|(gain, rho)| gain >= 0.0 && at_most(gain, rho, rho)))
}

/// UCB(x*) <= UCB(x_tau).
fn ucb_selection(_: &Context, m: &Measurement) -> Outcome {
    let at = &m.at_tau;
    let chosen = at.zeta.zip(at.estimated).filter(|_| !at.star_seen);
    outcome(chosen.map(|(zeta, estimated)| {
        let star = estimated.mean_star + zeta * estimated.variance_star.sqrt();
        let reach = zeta * estimated.variance_tau.sqrt();
        at_most(star, estimated.mean_tau + reach, estimated.mean_tau.abs() + reach)
    }))
}

/// (target - mu_hat(x_tau))/sqrt(k_hat(x_tau)) <= (target - mu_hat(x*))/sqrt(k_hat(x*)), with both
/// sides multiplied by both roots, so that a variance of zero does no harm.
fn pi_selection(_: &Context, m: &Measurement) -> Outcome {
    let at = &m.at_tau;
    let chosen = m.target.zip(at.estimated).filter(|_| !at.star_seen);
    outcome(chosen.map(|(target, estimated)| {
        let (star, tau) = (estimated.variance_star.sqrt(), estimated.variance_tau.sqrt());
        let size = |mean: f64| target.abs() + mean.abs();
        at_most(
            (target - estimated.mean_tau) * star,
            (target - estimated.mean_star) * tau,
            size(estimated.mean_tau) * star + size(estimated.mean_star) * tau,
        )
    }))
}

/// sqrt(k) < sqrt(k + s2) - s2/(2 sqrt(c + s2)) at x* and at x_tau.
fn square_root(context: &Context, m: &Measurement) -> Outcome {
    let (at, c) = (&m.at_tau, context.conditions.c);
    let below = |k: f64, s2: f64| {
        let bound = (k + s2).sqrt() - s2 / (2.0 * (c + s2).sqrt());
        at_most(k.sqrt(), bound, (c + s2).sqrt())
    };
    let star = below(at.variance_star, context.noise_star(at));
    outcome(Some(star && below(at.variance_tau, context.noise_tau(at))))
}

/// k <= c log(1 + k/sigma^2)/log(1 + c/sigma^2) at x_tau, where 0 <= k <= c.
fn bernoulli(context: &Context, m: &Measurement) -> Outcome {
    let c = &context.conditions;
    let (k, s2) = (m.at_tau.variance_tau, c.noise_variance);
    let bound = c.c * libm::log1p(k / s2) / context.derived.log_ratio;
    outcome(Some(k >= 0.0 && at_most(k, c.c, c.c) && at_most(k, bound, bound)))
}

/// 0 <= r_T <= R_T <= max f - min f.
fn regret_order(_: &Context, m: &Measurement) -> Outcome {
    let (best, simple) = (m.best_sample_regret, m.simple_regret);
    outcome(Some(0.0 <= best && best <= simple && at_most(simple, m.f_range, m.f_range)))
}

const VARIANCE_CAP: Claim = Claim {
    id: "invariant.variance-cap",
    place: "appendix, proof of Theorem 2, with the realised information I_T",
    origin: Origin::Stated,
    statement: "k_{τ−1}(x_τ) ≤ 2c I_T/(T log(1 + c/σ²))",
    latex: r"k_{\tau-1}(x_\tau) \le \frac{2c\,I_T}{T\log(1+c\sigma^{-2})}",
    hypotheses: "σ > 0, c ≥ max k",
    setting: None,
    forms: &[],
    at: &[],
    scope: Scope::Horizon,
    test: Test::Invariant { holds: variance_cap, allowance: ALLOWANCE },
    bound: None,
    check: noisy,
};

pub(super) const CLAIMS: &[Claim] = &[
    VARIANCE_CAP,
    Claim {
        id: "invariant.information",
        place: "appendix, Lemma 5.3 of Srinivas et al., and the definition of ρ_T",
        statement: "0 ≤ I_T ≤ ρ_T (its upper end)",
        latex: r"0 \le I_T \le \rho_T",
        test: Test::Invariant { holds: information, allowance: ALLOWANCE },
        ..VARIANCE_CAP
    },
    Claim {
        id: "invariant.information-identity",
        place: "appendix, Lemma 5.3 of Srinivas et al.",
        statement: "½ log det(I + σ⁻²k(x_T)) = I_T = ½ Σ_t log(1 + σ⁻²k_{t−1}(x_t))",
        latex: r"\tfrac12\log\det(I+\sigma^{-2}k(\mathbf x_T)) = \tfrac12\sum_{t=1}^T\log(1+\sigma^{-2}k_{t-1}(x_t))",
        hypotheses: "σ > 0",
        test: Test::Invariant { holds: information_identity, allowance: IDENTITY_ALLOWANCE },
        ..VARIANCE_CAP
    },
    Claim {
        id: "invariant.ucb-selection",
        place: "appendix, proof of Theorem 2, selection strategy of GP-UCB",
        statement: "μ̂(x*) + ζ_τ√k̂(x*) ≤ μ̂(x_τ) + ζ_τ√k̂(x_τ) where x* is unevaluated",
        latex: r"\hat\mu(x_*)+\zeta_\tau\sqrt{\hat k(x_*)} \le \hat\mu(x_\tau)+\zeta_\tau\sqrt{\hat k(x_\tau)}",
        hypotheses: "GP-UCB, x* not among x_1 .. x_{τ−1}",
        setting: Some(Setting::Finite),
        test: Test::Invariant { holds: ucb_selection, allowance: ALLOWANCE },
        check: selects_by_ucb,
        ..VARIANCE_CAP
    },
    Claim {
        id: "invariant.pi-selection",
        place: "appendix, proof of Theorem 2, selection strategy of PI",
        statement: "(f̂* − μ̂(x_τ))/√k̂(x_τ) ≤ (f̂* − μ̂(x*))/√k̂(x*) where x* is unevaluated",
        latex: r"\frac{\hat f^*-\hat\mu(x_\tau)}{\sqrt{\hat k(x_\tau)}} \le \frac{\hat f^*-\hat\mu(x_*)}{\sqrt{\hat k(x_*)}}",
        hypotheses: "PI, x* not among x_1 .. x_{τ−1}",
        setting: Some(Setting::Finite),
        test: Test::Invariant { holds: pi_selection, allowance: ALLOWANCE },
        check: selects_by_pi,
        ..VARIANCE_CAP
    },
    Claim {
        id: "invariant.square-root",
        place: "appendix, lemma before Theorem 2's proof",
        statement: "√k < √(k+σ²) − σ²/(2√(c+σ²)) at x* and x_τ",
        latex: r"\sqrt{k} < \sqrt{k+\sigma^2}-\frac{\sigma^2}{2\sqrt{c+\sigma^2}}",
        test: Test::Invariant { holds: square_root, allowance: ALLOWANCE },
        ..VARIANCE_CAP
    },
    Claim {
        id: "invariant.bernoulli",
        place: "appendix, corollary of Bernoulli's inequality",
        statement: "0 ≤ k_{τ−1}(x_τ) ≤ c log(1 + k_{τ−1}(x_τ)/σ²)/log(1 + c/σ²) ≤ c",
        latex: r"k_{\tau-1}(x_\tau) \le \frac{c\log(1+\sigma^{-2}k_{\tau-1}(x_\tau))}{\log(1+c\sigma^{-2})}",
        test: Test::Invariant { holds: bernoulli, allowance: ALLOWANCE },
        ..VARIANCE_CAP
    },
    Claim {
        id: "invariant.regret-order",
        place: "definitions of r_T and R_T",
        origin: Origin::Ours,
        statement: "0 ≤ r_T ≤ R_T ≤ max f − min f",
        latex: r"0 \le r_T \le R_T \le \max f - \min f",
        hypotheses: "none",
        test: Test::Invariant { holds: regret_order, allowance: ALLOWANCE },
        check: always,
        ..VARIANCE_CAP
    },
];
