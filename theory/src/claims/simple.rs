//! Lemma 5, the steps of its proof, and its combination with the theorems.

use super::trial::{compute_all, judge, judge_all, reads};
use super::{
    Acquisition, Budget, Claim, Context, Origin, Outcome, Predicate, Quantities, Quantity,
    RegretBound, Scope, Setting, Statistic, Test, Trial, applicability, is_within, pi, predicate,
    statistic, ucb,
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

/// A bound on r_T makes one on R_T.
#[inline(always)]
fn with_allowance<T: Trial>(
    context: &Context,
    bound: Option<impl Fn(&T) -> Option<f64>>,
) -> Option<impl Fn(&T) -> Option<f64>> {
    let allowance = context.derived.allowance;
    bound.map(|bound| move |m: &T| Some(bound(m)? + allowance))
}

/// The bound of the acquisition function with which the trials ran, chosen once for many trials.
const CHAINED_BOUND: RegretBound = RegretBound::simple(Statistic {
    one: |context, m| match context.conditions.acquisition? {
        Acquisition::GpUcb => with_allowance(context, ucb::bound(context))?(m),
        Acquisition::Pi => with_allowance(context, pi::bound(context))?(m),
    },
    many: |context, trials, bounds| match context.conditions.acquisition {
        Some(Acquisition::GpUcb) => {
            compute_all(with_allowance(context, ucb::bound(context)), trials, bounds);
        }
        Some(Acquisition::Pi) => {
            compute_all(with_allowance(context, pi::bound(context)), trials, bounds);
        }
        None => bounds.fill(f64::NAN),
    },
    reads: |context| match context.conditions.acquisition {
        Some(Acquisition::GpUcb) => reads(ucb::bound(context)),
        Some(Acquisition::Pi) => reads(pi::bound(context)),
        None => Quantities::default(),
    },
});

#[inline(always)]
fn chained<T: Trial>(
    context: &Context,
    bound: Option<impl Fn(&T) -> Option<f64>>,
) -> Option<impl Fn(&T) -> Option<bool>> {
    let bound = with_allowance(context, bound)?;
    Some(move |m: &T| Some(is_within(m.value(CHAINED_BOUND.regret()), bound(m)?)))
}

const CHAINED_HOLDS: Predicate = Predicate {
    one: |context, m| match context.conditions.acquisition {
        Some(Acquisition::GpUcb) => judge(chained(context, ucb::bound(context)), m),
        Some(Acquisition::Pi) => judge(chained(context, pi::bound(context)), m),
        None => Outcome::NotApplicable,
    },
    many: |context, trials, outcomes| match context.conditions.acquisition {
        Some(Acquisition::GpUcb) => {
            judge_all(chained(context, ucb::bound(context)), trials, outcomes);
        }
        Some(Acquisition::Pi) => {
            judge_all(chained(context, pi::bound(context)), trials, outcomes);
        }
        None => outcomes.fill(Outcome::NotApplicable),
    },
    reads: |context| (CHAINED_BOUND.bound.reads)(context).with(CHAINED_BOUND.regret()),
};

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
    test: Test::Probability { budget: Budget::share(2, 1), holds: CHAINED_HOLDS },
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
