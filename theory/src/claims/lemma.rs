//! Lemma 1, the steps of its proof, and Lemma 3, its compact twin (same a_t and b_t, with
//! sigma_bar^2(x) in place of sigma^2).

use super::{
    At, Budget, Claim, Context, Origin, Quantity, Scope, Setting, Test, Trial,
    applicability::{lemma, lemma_without_estimate, second_moment},
    predicate, statistic,
};
use crate::{Form, lemma1};

/// Error, ratio and signed error at the point that the conditions name; records have no sign at an
/// observed point, and no claim asks for it.
fn error(context: &Context) -> Option<Quantity> {
    Some(match context.conditions.at? {
        At::Probe => Quantity::ErrorProbe,
        At::Star => Quantity::ErrorStar,
        At::Next => Quantity::ErrorNext,
        At::Observed => Quantity::ErrorObserved,
    })
}

fn ratio(context: &Context) -> Option<Quantity> {
    Some(match context.conditions.at? {
        At::Probe => Quantity::RatioProbe,
        At::Star => Quantity::RatioStar,
        At::Next => Quantity::RatioNext,
        At::Observed => Quantity::RatioObserved,
    })
}

fn signed(context: &Context) -> Option<Quantity> {
    match context.conditions.at? {
        At::Probe => Some(Quantity::SignedProbe),
        At::Star => Some(Quantity::SignedStar),
        At::Next => Some(Quantity::SignedNext),
        At::Observed => None,
    }
}

fn mean<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    let (error, a) = (error(context)?, context.a()?);
    Some(move |m: &T| Some(m.get(error)? < a))
}

fn variance<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    let (ratio, (low, high)) = (ratio(context)?, context.variance_interval()?);
    Some(move |m: &T| {
        let ratio = m.get(ratio)?;
        Some(low < ratio && ratio < high)
    })
}

fn joint<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    let (mean, variance) = (mean(context)?, variance(context)?);
    Some(move |m: &T| {
        let (mean, variance) = (mean(m), variance(m));
        Some(mean? & variance?)
    })
}

#[expect(clippy::unnecessary_wraps, reason = "predicates of the registry share one signature")]
fn k_step<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    let bound = context.derived.k_bound;
    Some(move |m: &T| Some(m.value(Quantity::KXy) <= bound))
}

fn chebyshev_step<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    let (error, c) = (error(context)?, context.conditions);
    Some(move |m: &T| {
        let radius = lemma1::chebyshev_radius(c.n, c.t, c.delta, c.form, m.value(Quantity::KXy));
        let error = m.get(error);
        Some(error? < radius?)
    })
}

fn signed_error<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<f64>> {
    let signed = signed(context)?;
    Some(move |m: &T| m.get(signed))
}

fn variance_ratio<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<f64>> {
    let ratio = ratio(context)?;
    Some(move |m: &T| m.get(ratio))
}

/// error - Var[mu_hat_t | D_t]/(k_t + sigma^2): mean 0 where the formula is right.
fn variance_excess<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<f64>> {
    let (error, c) = (error(context)?, context.conditions);
    Some(move |m: &T| {
        let formula = lemma1::variance_formula(c.n, c.t, m.value(Quantity::KXy), c.form);
        let error = m.get(error);
        Some(error? - formula?)
    })
}

const UNOBSERVED: &[At] = &[At::Probe, At::Star, At::Next];
const TWO_FORMS: &[Form] = &[Form::Printed, Form::Corrected];
const FINITE: &str = "N ≥ T + 2, t < T, x ∉ x_t; fixed design (adaptive: the lemma's use)";
/// Corrected and sharp constants repair the spread of Lemma 3's estimators, not their bias.
const COMPACT: &str = "N ≥ T + 2, t < T < K, Φ(x̄) of full row rank, x ∉ x_t; fixed design";

const MEAN: Claim = Claim {
    id: "lemma1.mean",
    place: "Lemma 1, section 4.1; split as in its proof",
    origin: Origin::ProofSplit,
    statement: "(μ̂_t(x) − μ_t(x))² < a_t (k_t(x) + σ²)",
    latex: r"|\hat\mu_t(x)-\mu_t(x)|^2 < a_t\,(k_t(x)+\sigma^2)",
    hypotheses: FINITE,
    setting: Some(Setting::Finite),
    forms: &Form::ALL,
    at: UNOBSERVED,
    scope: Scope::EachT,
    test: Test::Probability { budget: Budget::share(1, 2), holds: predicate!(mean) },
    bound: None,
    check: lemma,
};

const VARIANCE: Claim = Claim {
    id: "lemma1.variance",
    statement: "1 − 2√b_t < k̂_t(x)/(k_t(x) + σ²) < 1 + 2√b_t + 2b_t",
    latex: r"1-2\sqrt{b_t} < \hat k_t(x)/(k_t(x)+\sigma^2) < 1+2\sqrt{b_t}+2b_t",
    test: Test::Probability { budget: Budget::share(1, 2), holds: predicate!(variance) },
    ..MEAN
};

const JOINT: Claim = Claim {
    id: "lemma1.joint",
    place: "Lemma 1, section 4.1",
    origin: Origin::Stated,
    statement: "(μ̂_t − μ_t)² < a_t (k_t + σ²) and 1 − 2√b_t < k̂_t/(k_t + σ²) < 1 + 2√b_t + 2b_t",
    latex: r"|\hat\mu_t-\mu_t|^2 < a_t(k_t+\sigma^2) \wedge 1-2\sqrt{b_t} < \hat k_t/(k_t+\sigma^2) < 1+2\sqrt{b_t}+2b_t",
    test: Test::Probability { budget: Budget::share(1, 1), holds: predicate!(joint) },
    ..MEAN
};

const UNBIASED_MEAN: Claim = Claim {
    id: "lemma1.unbiased-mean",
    place: "Lemma 1, section 4.1, first sentence",
    origin: Origin::Stated,
    statement: "E[μ̂_t(x)] = μ_t(x)",
    latex: r"\mathbb E[\hat\mu_t(x)] = \mu_t(x)",
    forms: &[],
    test: Test::Mean { statistic: statistic!(signed_error), expected: 0.0 },
    ..MEAN
};

const UNBIASED_VARIANCE: Claim = Claim {
    id: "lemma1.unbiased-variance",
    statement: "E[k̂_t(x)] = k_t(x) + σ²",
    latex: r"\mathbb E[\hat k_t(x)] = k_t(x)+\sigma^2",
    test: Test::Mean { statistic: statistic!(variance_ratio), expected: 1.0 },
    ..UNBIASED_MEAN
};

const VARIANCE_FORMULA: Claim = Claim {
    id: "lemma1.variance-formula",
    place: "appendix, proof of Lemma 1, law of total variance",
    origin: Origin::Stated,
    statement: "Var[μ̂_t(x)] = (N − 2 + K)(k_t(x) + σ²)/(N(N−t−2)); corrected: N − 2 + NK",
    latex: r"\mathrm{Var}[\hat\mu_t(x)] = \frac{(N-2+K)(k_t(x)+\sigma^2)}{N(N-t-2)}",
    hypotheses: "N > t + 4, so that squared errors have a variance, x ∉ x_t; fixed design",
    forms: TWO_FORMS,
    test: Test::Mean { statistic: statistic!(variance_excess), expected: 0.0 },
    check: second_moment,
    ..MEAN
};

const STEP_K: Claim = Claim {
    id: "lemma1/step.K",
    place: "appendix, proof of Lemma 1, δ₁'' = δ/4",
    statement: "K ≤ t + 2√(t log(4/δ)) + 2 log(4/δ)",
    latex: r"K \le t+2\sqrt{t\log(4/\delta)}+2\log(4/\delta)",
    hypotheses: "N ≥ T + 2, t < T; fixed design",
    forms: &[],
    at: &[],
    test: Test::Probability { budget: Budget::share(1, 4), holds: predicate!(k_step) },
    check: lemma_without_estimate,
    ..MEAN
};

const STEP_CHEBYSHEV: Claim = Claim {
    id: "lemma1/step.chebyshev",
    place: "appendix, proof of Lemma 1, δ₁' = δ/8 on each side",
    statement: "(μ̂_t − μ_t)² < 4(N − 2 + K)(k_t + σ²)/(δN(N−t−2)); corrected: N − 2 + NK",
    latex: r"|\hat\mu_t-\mu_t|^2 < \frac{4(N-2+K)(k_t+\sigma^2)}{\delta N(N-t-2)}",
    forms: TWO_FORMS,
    test: Test::Probability { budget: Budget::share(1, 4), holds: predicate!(chebyshev_step) },
    ..MEAN
};

const OBSERVED: Claim = Claim {
    id: "lemma1.observed",
    place: "Lemma 1, section 4.1, \"for any input x\", read at x ∈ x_t",
    statement: "Lemma 1's two bounds at an observed point x = x_t",
    hypotheses: "N ≥ T + 2, t < T, x ∈ x_t, where the estimators interpolate",
    at: &[At::Observed],
    ..JOINT
};

/// The compact twin of a claim: other name, place and words, same constants and predicate.
const fn twin(
    of: Claim,
    id: &'static str,
    place: &'static str,
    statement: &'static str,
    latex: &'static str,
) -> Claim {
    Claim {
        id,
        place,
        statement,
        latex,
        hypotheses: COMPACT,
        setting: Some(Setting::Compact),
        ..of
    }
}

pub(super) const CLAIMS: &[Claim] = &[
    JOINT,
    MEAN,
    VARIANCE,
    UNBIASED_MEAN,
    UNBIASED_VARIANCE,
    VARIANCE_FORMULA,
    STEP_K,
    STEP_CHEBYSHEV,
    OBSERVED,
    twin(
        JOINT,
        "lemma3.joint",
        "Lemma 3, section 4.2",
        "(μ̂_t − μ_t)² < a_t (k_t + σ̄²) and 1 − 2√b_t < k̂_t/(k_t + σ̄²) < 1 + 2√b_t + 2b_t",
        r"|\hat\mu_t-\mu_t|^2 < a_t(k_t+\bar\sigma^2) \wedge 1-2\sqrt{b_t} < \hat k_t/(k_t+\bar\sigma^2) < 1+2\sqrt{b_t}+2b_t",
    ),
    twin(
        MEAN,
        "lemma3.mean",
        "Lemma 3, section 4.2; split as in Lemma 1's proof",
        "(μ̂_t(x) − μ_t(x))² < a_t (k_t(x) + σ̄²(x))",
        r"|\hat\mu_t(x)-\mu_t(x)|^2 < a_t\,(k_t(x)+\bar\sigma^2(x))",
    ),
    twin(
        VARIANCE,
        "lemma3.variance",
        "Lemma 3, section 4.2; split as in Lemma 1's proof",
        "1 − 2√b_t < k̂_t(x)/(k_t(x) + σ̄²(x)) < 1 + 2√b_t + 2b_t",
        r"1-2\sqrt{b_t} < \hat k_t(x)/(k_t(x)+\bar\sigma^2(x)) < 1+2\sqrt{b_t}+2b_t",
    ),
    twin(
        UNBIASED_MEAN,
        "lemma3.unbiased-mean",
        "Lemma 3, section 4.2, first sentence",
        "E[μ̂_t(x)] = μ_t(x)",
        r"\mathbb E[\hat\mu_t(x)] = \mu_t(x)",
    ),
    twin(
        UNBIASED_VARIANCE,
        "lemma3.unbiased-variance",
        "Lemma 3, section 4.2, first sentence",
        "E[k̂_t(x)] = k_t(x) + σ̄²(x)",
        r"\mathbb E[\hat k_t(x)] = k_t(x)+\bar\sigma^2(x)",
    ),
    twin(
        VARIANCE_FORMULA,
        "lemma3.variance-formula",
        "appendix, proofs for section 4.2: \"directly follow\" Lemma 1's",
        "E[(μ̂_t(x) − μ_t(x))²] = (N − 2 + K)(k_t(x) + σ̄²(x))/(N(N−t−2)); corrected: N − 2 + NK",
        r"\mathbb E|\hat\mu_t(x)-\mu_t(x)|^2 = \frac{(N-2+K)(k_t(x)+\bar\sigma^2(x))}{N(N-t-2)}",
    ),
    twin(
        STEP_K,
        "lemma3/step.K",
        "appendix, proofs for section 4.2: \"directly follow\" Lemma 1's",
        "K ≤ t + 2√(t log(4/δ)) + 2 log(4/δ)",
        r"K \le t+2\sqrt{t\log(4/\delta)}+2\log(4/\delta)",
    ),
    twin(
        STEP_CHEBYSHEV,
        "lemma3/step.chebyshev",
        "appendix, proofs for section 4.2: \"directly follow\" Lemma 1's",
        "(μ̂_t − μ_t)² < 4(N − 2 + K)(k_t + σ̄²)/(δN(N−t−2)); corrected: N − 2 + NK",
        r"|\hat\mu_t-\mu_t|^2 < \frac{4(N-2+K)(k_t+\bar\sigma^2)}{\delta N(N-t-2)}",
    ),
    Claim {
        hypotheses: "N ≥ T + 2, t < T < K, x ∈ x_t, where the estimators interpolate",
        ..twin(
            OBSERVED,
            "lemma3.observed",
            "Lemma 3, section 4.2, \"for any input x\", read at x ∈ x_t",
            "Lemma 3's two bounds at an observed point x = x_t",
            OBSERVED.latex,
        )
    },
];
