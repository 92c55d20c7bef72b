//! Lemma 5, the steps of its proof, and its combination with the theorems.

use super::{
    Acquisition, Budget, Claim, Context, Origin, Outcome, RegretBound, Scope, Setting, Test,
    applicability, outcome, pi, ucb,
};
use crate::{Form, Measurement};

#[expect(clippy::unnecessary_wraps, reason = "bounds of the registry share one signature")]
fn simple_bound(context: &Context, m: &Measurement) -> Option<f64> {
    Some(m.best_sample_regret + context.derived.allowance)
}

const BOUND: RegretBound = RegretBound::simple(simple_bound);

fn simple(context: &Context, m: &Measurement) -> Outcome {
    BOUND.holds(context, m)
}

fn step_tau(context: &Context, m: &Measurement) -> Outcome {
    outcome(Some(m.f_at_y_max + context.derived.reach >= m.y_max))
}

fn step_tau_prime(context: &Context, m: &Measurement) -> Outcome {
    outcome(Some(m.y_at_f_max >= m.f_max - context.derived.reach))
}

fn chained_bound(context: &Context, m: &Measurement) -> Option<f64> {
    let best = match context.conditions.acquisition? {
        Acquisition::GpUcb => ucb::bound(context, m)?,
        Acquisition::Pi => pi::bound(context, m)?,
    };
    Some(best + context.derived.allowance)
}

const CHAINED_BOUND: RegretBound = RegretBound::simple(chained_bound);

fn chained(context: &Context, m: &Measurement) -> Outcome {
    CHAINED_BOUND.holds(context, m)
}

const SIMPLE: Claim = Claim {
    id: "lemma5.simple",
    place: "Lemma 5, section 4.3",
    origin: Origin::Stated,
    statement: "R_T ≤ r_T + 2√(2 log(1/δ)) σ",
    latex: r"R_T \le r_T + 2\sqrt{2\log(1/\delta)}\,\sigma",
    hypotheses: "none: any method, any design",
    setting: None,
    forms: &[],
    at: &[],
    scope: Scope::Horizon,
    test: Test::Probability { budget: Budget::share(1, 1), holds: simple },
    bound: Some(BOUND),
    check: applicability::always,
};

const CHAINED: Claim = Claim {
    id: "theorem2+lemma5",
    place: "section 4.3, last paragraph: Theorem 2 and Lemma 5 together; 2δ is our union bound",
    origin: Origin::Ours,
    statement: "R_T ≤ the bound of Theorem 2 + 2√(2 log(1/δ)) σ",
    latex: r"R_T \le \mathrm{bound} + 2\sqrt{2\log(1/\delta)}\,\sigma",
    hypotheses: "those of Theorem 2",
    setting: Some(Setting::Finite),
    forms: &Form::ALL,
    test: Test::Probability { budget: Budget::share(2, 1), holds: chained },
    bound: Some(CHAINED_BOUND),
    check: applicability::either,
    ..SIMPLE
};

pub(super) const CLAIMS: &[Claim] = &[
    SIMPLE,
    Claim {
        id: "lemma5.simple/step.tau",
        place: "appendix, proof of Lemma 5; half of its δ",
        origin: Origin::ProofSplit,
        statement: "f(x_τ) + √(2 log(1/δ)) σ ≥ y_τ, τ = argmax y",
        latex: r"f(x_\tau) + \sqrt{2\log(1/\delta)}\,\sigma \ge y_\tau,\ \tau=\arg\max_t y_t",
        test: Test::Probability { budget: Budget::share(1, 2), holds: step_tau },
        bound: None,
        ..SIMPLE
    },
    Claim {
        id: "lemma5.simple/step.tau-prime",
        place: "appendix, proof of Lemma 5; half of its δ",
        origin: Origin::ProofSplit,
        statement: "y_τ′ ≥ f(x_τ′) − √(2 log(1/δ)) σ, τ′ = argmax f(x_t)",
        latex: r"y_{\tau'} \ge f(x_{\tau'}) - \sqrt{2\log(1/\delta)}\,\sigma,\ \tau'=\arg\max_t f(x_t)",
        test: Test::Probability { budget: Budget::share(1, 2), holds: step_tau_prime },
        bound: None,
        ..SIMPLE
    },
    CHAINED,
    Claim {
        id: "theorem4+lemma5",
        place: "section 4.3, last paragraph: Theorem 4 (our reading) and Lemma 5 together",
        statement: "R_T ≤ the bound of Theorem 4 + 2√(2 log(1/δ)) σ",
        hypotheses: "those of Theorem 4",
        setting: Some(Setting::Compact),
        ..CHAINED
    },
];
