//! Lemma 5, the steps of its proof, and its combination with the theorems.

use super::{
    Acquisition, Budget, Claim, Context, Origin, Quantity, RegretBound, Scope, Setting, Test,
    Trial, applicability, is_within, pi, predicate, statistic, ucb,
};
use crate::Form;

#[expect(clippy::unnecessary_wraps, reason = "bounds of the registry share one signature")]
fn simple_bound<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<f64>> {
    let allowance = context.derived.allowance;
    Some(move |m: &T| Some(m.value(Quantity::BestSampleRegret) + allowance))
}

const BOUND: RegretBound = RegretBound::simple(statistic!(simple_bound));

fn simple<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    let bound = simple_bound(context)?;
    Some(move |m: &T| Some(is_within(m.value(BOUND.regret()), bound(m)?)))
}

#[expect(clippy::unnecessary_wraps, reason = "predicates of the registry share one signature")]
fn step_tau<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    let reach = context.derived.reach;
    Some(move |m: &T| Some(m.value(Quantity::FAtYMax) + reach >= m.value(Quantity::YMax)))
}

#[expect(clippy::unnecessary_wraps, reason = "predicates of the registry share one signature")]
fn step_tau_prime<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    let reach = context.derived.reach;
    Some(move |m: &T| Some(m.value(Quantity::YAtFMax) >= m.value(Quantity::FMax) - reach))
}

fn chained_bound<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<f64>> {
    let acquisition = context.conditions.acquisition?;
    let is = |one: Acquisition| acquisition == one;
    let ucb = is(Acquisition::GpUcb).then(|| ucb::bound(context)).flatten();
    let pi = is(Acquisition::Pi).then(|| pi::bound(context)).flatten();
    let allowance = context.derived.allowance;
    Some(move |m: &T| {
        let best = match (&ucb, &pi) {
            (Some(ucb), _) => ucb(m)?,
            (None, Some(pi)) => pi(m)?,
            (None, None) => return None,
        };
        Some(best + allowance)
    })
}

const CHAINED_BOUND: RegretBound = RegretBound::simple(statistic!(chained_bound));

fn chained<T: Trial>(context: &Context) -> Option<impl Fn(&T) -> Option<bool>> {
    let bound = chained_bound(context)?;
    Some(move |m: &T| Some(is_within(m.value(CHAINED_BOUND.regret()), bound(m)?)))
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
    test: Test::Probability { budget: Budget::share(1, 1), holds: predicate!(simple) },
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
    test: Test::Probability { budget: Budget::share(2, 1), holds: predicate!(chained) },
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
        test: Test::Probability { budget: Budget::share(1, 2), holds: predicate!(step_tau) },
        bound: None,
        ..SIMPLE
    },
    Claim {
        id: "lemma5.simple/step.tau-prime",
        place: "appendix, proof of Lemma 5; half of its δ",
        origin: Origin::ProofSplit,
        statement: "y_τ′ ≥ f(x_τ′) − √(2 log(1/δ)) σ, τ′ = argmax f(x_t)",
        latex: r"y_{\tau'} \ge f(x_{\tau'}) - \sqrt{2\log(1/\delta)}\,\sigma,\ \tau'=\arg\max_t f(x_t)",
        test: Test::Probability { budget: Budget::share(1, 2), holds: predicate!(step_tau_prime) },
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
