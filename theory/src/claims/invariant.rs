//! What must be true of every record: a single violation is a bug of ours, not of the paper.
//!
//! Each comparison allows a fraction of the size of its terms for rounding.

use super::{
    Claim, Context, Origin, Quantity as Q, Scope, Setting, Test, Trial,
    applicability::{always, noisy, selects_by_pi, selects_by_ucb},
    predicate,
};

/// Far above the rounding of a trial's recursions, far below any real violation; all but the
/// information-gain identity, which has its own.
const ALLOWANCE: f64 = 1e-9;

/// The identity compares two sums of t logarithms whose arguments are what is left of k/sigma^2 after
/// subtractions, with errors of about 1e-16 c/sigma^2 each: 1e-8 at the least noise that a prior may
/// have. The worst relative difference seen is 1.2e-8, there, with ranks 1 to 241 and t up to 250; it
/// falls as sigma^2 grows (1e-10 at 1e-6). Eight times that is allowed.
const IDENTITY_ALLOWANCE: f64 = 1e-7;

/// low <= high, up to the allowance relative to `scale`.
#[inline(always)]
fn at_most(low: f64, high: f64, scale: f64) -> bool {
    low <= high + ALLOWANCE * scale.abs()
}

/// k_{tau-1}(x_tau) <= 2 c I_T/(T log(1 + c/sigma^2)).
#[expect(clippy::unnecessary_wraps, reason = "predicates of the registry share one signature")]
fn variance_cap<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    let (c, horizon) = (context.conditions.c, f64::from(context.conditions.t));
    let log_ratio = context.derived.log_ratio;
    Some(move |m: &T| {
        let (k, information) = (m.value(Q::KTau), m.get(Q::Information)?);
        // theorem2::variance_cap, with its logarithm computed before.
        let cap = 2.0 * c * information / (horizon * log_ratio);
        Some(at_most(k, cap, cap))
    })
}

/// 1/2 log det(I + k(x_T, x_T)/sigma^2) = I_T, where the trial has factorised the matrix.
#[expect(clippy::unnecessary_wraps, reason = "predicates of the registry share one signature")]
fn information_identity<T: Trial>(_: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    Some(|m: &T| {
        let sides = (m.get(Q::Information), m.get(Q::InformationDeterminant));
        let (sum, determinant) = (sides.0?, sides.1?);
        Some((sum - determinant).abs() <= IDENTITY_ALLOWANCE * determinant.abs())
    })
}

/// 0 <= I_T <= rho_T; the context has to hold the upper end of rho_T's bracket.
fn information<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    let rho = context.conditions.rho?;
    Some(move |m: &T| {
        let gain = m.get(Q::Information)?;
        Some(gain >= 0.0 && at_most(gain, rho, rho))
    })
}

/// UCB(x*) <= UCB(x_tau).
#[expect(clippy::unnecessary_wraps, reason = "predicates of the registry share one signature")]
fn ucb_selection<T: Trial>(_: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    Some(|m: &T| {
        let (zeta, mu_star) = (m.get(Q::ZetaTau), m.get(Q::MuHatStarTau));
        let (k_star, mu_tau) = (m.value(Q::KHatStarTau), m.value(Q::MuHatTau));
        let (k_tau, seen) = (m.value(Q::KHatTau), m.value(Q::StarSeenTau) != 0.0);
        let (zeta, mu_star) = (zeta?, mu_star?);
        if seen {
            return None;
        }
        let reach = zeta * k_tau.sqrt();
        Some(at_most(mu_star + zeta * k_star.sqrt(), mu_tau + reach, mu_tau.abs() + reach))
    })
}

/// (target - mu_hat(x_tau))/sqrt(k_hat(x_tau)) <= (target - mu_hat(x*))/sqrt(k_hat(x*)), with both
/// sides multiplied by both roots, so that a variance of zero does no harm.
#[expect(clippy::unnecessary_wraps, reason = "predicates of the registry share one signature")]
fn pi_selection<T: Trial>(_: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    Some(|m: &T| {
        let (target, mu_star) = (m.get(Q::Target), m.get(Q::MuHatStarTau));
        let (k_star, mu_tau) = (m.value(Q::KHatStarTau), m.value(Q::MuHatTau));
        let (k_tau, seen) = (m.value(Q::KHatTau), m.value(Q::StarSeenTau) != 0.0);
        let (target, mu_star) = (target?, mu_star?);
        if seen {
            return None;
        }
        let (star, tau) = (k_star.sqrt(), k_tau.sqrt());
        let size = |mu: f64| target.abs() + mu.abs();
        Some(at_most(
            (target - mu_tau) * star,
            (target - mu_star) * tau,
            size(mu_tau) * star + size(mu_star) * tau,
        ))
    })
}

/// sqrt(k) < sqrt(k + s2) - s2/(2 sqrt(c + s2)) at x* and at x_tau.
#[expect(clippy::unnecessary_wraps, reason = "predicates of the registry share one signature")]
fn square_root<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    let c = context.conditions.c;
    let below = move |k: f64, s2: f64| is_usual(k, c, s2) || root_is_below(k, c, s2);
    Some(move |m: &T| {
        let star = below(m.value(Q::KStarTau), context.noise_star(m));
        let tau = below(m.value(Q::KTau), context.noise_tau(m));
        Some(star && tau)
    })
}

/// Whether 0 <= k <= c and s2 >= 0. Then the lemma of the square root and Bernoulli's inequality are facts
/// about numbers, and their roots and logarithms need not be taken: they are for all other k.
#[inline(always)]
fn is_usual(k: f64, c: f64, s2: f64) -> bool {
    0.0 <= k && k <= c && 0.0 <= s2
}

#[cold]
fn root_is_below(k: f64, c: f64, s2: f64) -> bool {
    let bound = (k + s2).sqrt() - s2 / (2.0 * (c + s2).sqrt());
    at_most(k.sqrt(), bound, (c + s2).sqrt())
}

/// k <= c log(1 + k/sigma^2)/log(1 + c/sigma^2) at x_tau, where 0 <= k <= c.
#[expect(clippy::unnecessary_wraps, reason = "predicates of the registry share one signature")]
fn bernoulli<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    let (c, s2) = (context.conditions.c, context.conditions.noise_variance);
    Some(move |m: &T| {
        let k = m.value(Q::KTau);
        Some(is_usual(k, c, s2) || logarithm_is_above(k, c, s2))
    })
}

#[cold]
fn logarithm_is_above(k: f64, c: f64, s2: f64) -> bool {
    let bound = c * libm::log1p(k / s2) / libm::log1p(c / s2);
    k >= 0.0 && at_most(k, c, c) && at_most(k, bound, bound)
}

/// 0 <= r_T <= R_T <= max f - min f.
#[expect(clippy::unnecessary_wraps, reason = "predicates of the registry share one signature")]
fn regret_order<T: Trial>(_: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    Some(|m: &T| {
        let (best, simple) = (m.value(Q::BestSampleRegret), m.value(Q::SimpleRegret));
        let range = m.value(Q::FRange);
        Some(0.0 <= best && best <= simple && at_most(simple, range, range))
    })
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
    test: Test::Invariant { holds: predicate!(variance_cap), allowance: ALLOWANCE },
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
        test: Test::Invariant { holds: predicate!(information), allowance: ALLOWANCE },
        ..VARIANCE_CAP
    },
    Claim {
        id: "invariant.information-identity",
        place: "appendix, Lemma 5.3 of Srinivas et al.",
        statement: "½ log det(I + σ⁻²k(x_T)) = I_T = ½ Σ_t log(1 + σ⁻²k_{t−1}(x_t))",
        latex: r"\tfrac12\log\det(I+\sigma^{-2}k(\mathbf x_T)) = \tfrac12\sum_{t=1}^T\log(1+\sigma^{-2}k_{t-1}(x_t))",
        hypotheses: "σ > 0",
        test: Test::Invariant {
            holds: predicate!(information_identity),
            allowance: IDENTITY_ALLOWANCE,
        },
        ..VARIANCE_CAP
    },
    Claim {
        id: "invariant.ucb-selection",
        place: "appendix, proof of Theorem 2, selection strategy of GP-UCB",
        statement: "μ̂(x*) + ζ_τ√k̂(x*) ≤ μ̂(x_τ) + ζ_τ√k̂(x_τ) where x* is unevaluated",
        latex: r"\hat\mu(x_*)+\zeta_\tau\sqrt{\hat k(x_*)} \le \hat\mu(x_\tau)+\zeta_\tau\sqrt{\hat k(x_\tau)}",
        hypotheses: "GP-UCB, x* not among x_1 .. x_{τ−1}",
        setting: Some(Setting::Finite),
        test: Test::Invariant { holds: predicate!(ucb_selection), allowance: ALLOWANCE },
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
        test: Test::Invariant { holds: predicate!(pi_selection), allowance: ALLOWANCE },
        check: selects_by_pi,
        ..VARIANCE_CAP
    },
    Claim {
        id: "invariant.square-root",
        place: "appendix, lemma before Theorem 2's proof",
        statement: "√k < √(k+σ²) − σ²/(2√(c+σ²)) at x* and x_τ",
        latex: r"\sqrt{k} < \sqrt{k+\sigma^2}-\frac{\sigma^2}{2\sqrt{c+\sigma^2}}",
        test: Test::Invariant { holds: predicate!(square_root), allowance: ALLOWANCE },
        ..VARIANCE_CAP
    },
    Claim {
        id: "invariant.bernoulli",
        place: "appendix, corollary of Bernoulli's inequality",
        statement: "0 ≤ k_{τ−1}(x_τ) ≤ c log(1 + k_{τ−1}(x_τ)/σ²)/log(1 + c/σ²) ≤ c",
        latex: r"k_{\tau-1}(x_\tau) \le \frac{c\log(1+\sigma^{-2}k_{\tau-1}(x_\tau))}{\log(1+c\sigma^{-2})}",
        test: Test::Invariant { holds: predicate!(bernoulli), allowance: ALLOWANCE },
        ..VARIANCE_CAP
    },
    Claim {
        id: "invariant.regret-order",
        place: "definitions of r_T and R_T",
        origin: Origin::Ours,
        statement: "0 ≤ r_T ≤ R_T ≤ max f − min f",
        latex: r"0 \le r_T \le R_T \le \max f - \min f",
        hypotheses: "none",
        test: Test::Invariant { holds: predicate!(regret_order), allowance: ALLOWANCE },
        check: always,
        ..VARIANCE_CAP
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What is not computed where k is usual: both ends of 0 <= k <= c and the least noise included.
        #[test]
        fn facts_about_numbers_need_no_root_and_no_logarithm(
            c in 1e-6_f64..1e6,
            share in prop_oneof![Just(0.0), Just(1.0), 0.0_f64..1.0],
            noise in prop_oneof![Just(1e-8), Just(1.0), 1e-8_f64..1e2],
        ) {
            let (k, s2) = (share * c, noise * c);
            prop_assert!(is_usual(k, c, s2));
            prop_assert!(root_is_below(k, c, s2) && logarithm_is_above(k, c, s2));
        }

        /// What is computed for the others.
        #[test]
        fn other_variances_are_looked_at(c in 1e-6_f64..1e6, beyond in 1.0001_f64..10.0, noise in 1e-8_f64..1e2) {
            for k in [beyond * c, -1e-3 * c, f64::NAN] {
                prop_assert!(!is_usual(k, c, noise * c) && !logarithm_is_above(k, c, noise * c));
            }
        }
    }
}
