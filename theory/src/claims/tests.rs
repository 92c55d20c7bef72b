use std::sync::Arc;

use super::*;
use crate::Measurement;
use crate::{
    Delta, Form, lemma1,
    measurement::{AtTau, CompactNoise, Deviation, EstimatedAtTau},
    theorem2,
};
use proptest::prelude::*;
use std::collections::HashSet;

fn conditions() -> Conditions {
    Conditions {
        n: 500,
        t: 20,
        delta: Delta::new(0.1).unwrap(),
        form: Form::Printed,
        setting: Setting::Finite,
        design: Design::Adaptive,
        method: Some(Method::PemBo),
        acquisition: Some(Acquisition::GpUcb),
        policy_constants: Some(Form::Printed),
        at: None,
        c: 1.0,
        noise_variance: 0.01,
        rho: Some(30.0),
        basis: None,
        barrier: None,
    }
}

/// A trial in which everything is as expected: every claim holds.
fn quiet() -> Measurement {
    let usual = Some(Deviation::new(0.1, 1.0, 1.0));
    Measurement {
        t: 20,
        x: Some(3),
        y: 1.0,
        f: 1.0,
        f_star: 2.0,
        x_star: Some(5),
        prior_known: true,
        expected: None,
        f_range: 4.0,
        zeta: Some(3.3),
        target: Some(2.0),
        best_sample_regret: 0.5,
        simple_regret: 0.6,
        cumulative_regret: 20.0,
        probe: usual,
        star: usual,
        next: usual,
        observed: usual,
        k_xy: 20.0,
        star_seen: false,
        at_tau: AtTau {
            tau: 12,
            mean_star: 1.25,
            variance_star: 0.12,
            mean_tau: 1.2,
            variance_tau: 0.09,
            f_tau: 1.3,
            zeta: Some(3.3),
            estimated: Some(EstimatedAtTau {
                mean_star: 1.15,
                variance_star: 0.13,
                mean_tau: 1.25,
                variance_tau: 0.11,
            }),
            compact: None,
            star_seen: false,
        },
        y_max: 1.6,
        f_at_y_max: 1.4,
        f_max: 1.5,
        y_at_f_max: 1.45,
        information: Some(20.0),
        information_determinant: Some(20.0),
    }
}

#[test]
fn ids_are_unique_and_found() {
    let ids: Vec<&str> = all().map(|claim| claim.id).collect();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
    for id in [
        "lemma1.mean",
        "lemma1.unbiased-mean",
        "lemma1/step.K",
        "theorem2.ucb/step.f-star",
        "theorem2.pi/step.numerator",
        "theorem2+lemma5",
        "lemma3.mean",
        "theorem4.ucb",
        "lemma5.simple/step.tau-prime",
    ] {
        assert_eq!(find(id).map(|claim| claim.id), Some(id));
    }
    assert!(find("lemma1").is_none());
}

#[test]
fn globs() {
    let found = |glob| matching(glob).count();
    // A statement with the steps of its proof.
    assert_eq!(found("lemma1.*"), 9);
    assert_eq!(found("lemma1*"), 9);
    assert_eq!(found("theorem2.ucb/*"), 5);
    assert_eq!(found("*step.f-tau"), 4);
    assert_eq!(found("*"), all().count());
    assert_eq!(found("theorem2.pi"), 1);
    assert_eq!(found("nothing*"), 0);
    for (glob, id, named) in [
        ("l*1*n", "lemma1.mean", true),
        ("*m*m*m*", "lemma1.mean", true),
        ("*m*m*m*m*", "lemma1.mean", false),
        ("**.mean", "lemma1.mean", true),
        ("lemma1.mean*mean", "lemma1.mean", false),
        ("*.*", "mine.own/step.one", true),
        ("m*.*", "mine/step", true),
        ("", "mine", false),
    ] {
        assert_eq!(names(glob, id), named, "{glob} {id}");
    }
}

#[test]
fn budgets_are_those_of_the_table() {
    let budget = |id| find(id).unwrap().budget().unwrap().to_string();
    assert_eq!(budget("lemma1.mean"), "δ/2");
    assert_eq!(budget("lemma1/step.chebyshev"), "δ/4");
    assert_eq!(budget("theorem2.ucb/step.variance-tau"), "δ/6");
    assert_eq!(budget("theorem2.pi/step.f-tau"), "δ/3");
    assert_eq!(budget("theorem2.pi/step.numerator"), "0");
    assert_eq!(budget("theorem2+lemma5"), "2δ");
    // The steps of a proof spend exactly what the theorem has.
    for theorem in ["theorem2.ucb", "theorem2.pi", "theorem4.ucb", "theorem4.pi"] {
        let delta = Delta::new(0.1).unwrap();
        let spent: f64 =
            matching(&format!("{theorem}/*")).map(|step| step.budget().unwrap().at(delta)).sum();
        assert!((spent - 0.1).abs() < 1e-15, "{theorem} spends {spent}");
    }
}

#[test]
fn a_quiet_trial_satisfies_what_applies() {
    for at in [None, Some(At::Probe), Some(At::Star), Some(At::Next)] {
        for acquisition in [Acquisition::GpUcb, Acquisition::Pi] {
            let acquisition = Some(acquisition);
            let context = Context::new(Conditions { acquisition, at, ..conditions() });
            for claim in all().filter(|claim| claim.applies(&context).is_ok()) {
                if !matches!(claim.test, Test::Mean { .. }) {
                    assert_eq!(claim.evaluate(&context, &quiet()), Outcome::Holds, "{}", claim.id);
                }
            }
        }
    }
}

#[test]
fn each_violation_is_seen_by_its_claim() {
    let context = Context::new(Conditions { at: Some(At::Probe), ..conditions() });
    let violated = |id: &str, m: &Measurement| {
        assert_eq!(find(id).unwrap().evaluate(&context, m), Outcome::Violated, "{id}");
    };
    let mut m = quiet();
    m.probe = Some(Deviation { signed: 0.0, error: context.a().unwrap(), ratio: 2.0 });
    for id in ["lemma1.mean", "lemma1.variance", "lemma1.joint", "lemma3.joint"] {
        violated(id, &m);
    }
    m = quiet();
    m.k_xy = lemma1::k_bound(20, conditions().delta) + 1e-9;
    violated("lemma1/step.K", &m);
    m = quiet();
    m.best_sample_regret = 5.33;
    m.simple_regret = 10.0;
    for id in ["theorem2.ucb", "theorem2+lemma5", "lemma5.simple", "invariant.regret-order"] {
        violated(id, &m);
    }
    m = quiet();
    m.f_star = 3.0;
    m.at_tau.f_tau = 0.0;
    m.target = Some(0.0);
    violated("theorem2.ucb/step.f-star", &m);
    violated("theorem2.ucb/step.f-tau", &m);
    violated("theorem2.pi/step.f-tau", &m);
    violated("theorem2.pi/step.numerator", &m);
    m = quiet();
    let estimated =
        EstimatedAtTau { mean_star: 0.7, variance_star: 0.0, mean_tau: 1.6, variance_tau: 0.9 };
    m.at_tau.estimated = Some(EstimatedAtTau { variance_star: 9.0, ..estimated });
    violated("invariant.ucb-selection", &m);
    m.at_tau.estimated = Some(estimated);
    for step in ["mean", "variance-star", "variance-tau"] {
        violated(&format!("theorem2.ucb/step.{step}"), &m);
        violated(&format!("theorem2.pi/step.{step}"), &m);
    }
    m = quiet();
    m.information_determinant = Some(20.0 * (1.0 - 1e-6));
    violated("invariant.information-identity", &m);
    m.information = Some(31.0);
    violated("invariant.information", &m);
    m.information = Some(1.0);
    violated("invariant.variance-cap", &m);
}

#[test]
fn statistics_of_means() {
    let statistic = |id: &str, form| {
        let context = Context::new(Conditions { form, at: Some(At::Probe), ..conditions() });
        let claim = find(id).unwrap();
        claim.applies(&context).unwrap();
        match claim.test {
            Test::Mean { statistic, .. } => (statistic.one)(&context, &quiet()).unwrap(),
            Test::Probability { .. } | Test::Invariant { .. } => {
                unreachable!("{id} is about a mean")
            }
        }
    };
    assert_eq!(statistic("lemma1.unbiased-variance", Form::Printed), 1.0);
    // K = 20 at N = 500, t = 20: (498 + 20)/(500 * 478), and with the factor N restored.
    let printed = statistic("lemma1.variance-formula", Form::Printed);
    assert!((printed - (0.01 - 518.0 / 239000.0)).abs() < 1e-16);
    let corrected = statistic("lemma1.variance-formula", Form::Corrected);
    assert!((corrected - (0.01 - 10498.0 / 239000.0)).abs() < 1e-16);
}

#[test]
fn absent_quantities_are_not_applicable() {
    let context = Context::new(Conditions { at: Some(At::Star), ..conditions() });
    let mut m = quiet();
    m.star = None;
    m.at_tau.estimated = None;
    for id in ["lemma1.joint", "theorem2.ucb/step.mean", "invariant.ucb-selection"] {
        let claim = find(id).unwrap();
        assert_eq!(claim.evaluate(&context, &m), Outcome::NotApplicable, "{id}");
    }
}

#[test]
fn reasons_name_the_value_and_what_would_be_valid() {
    let reason = |id: &str, conditions: Conditions| {
        find(id).unwrap().applies(&Context::new(conditions)).unwrap_err()
    };
    assert_eq!(
        reason("theorem2.ucb", Conditions { n: 20, ..conditions() }),
        "N = 20 is below 4 log(6/delta) + T + 2 = 38.4; use N >= 39"
    );
    let lemma = Conditions { n: 22, at: Some(At::Probe), ..conditions() };
    assert_eq!(
        reason("lemma1.mean", lemma),
        "N = 22 is too small at t = 20, which needs N >= T + 2 with t < T; use N >= 23"
    );
    let half = Delta::new(0.5).unwrap();
    assert_eq!(
        reason("theorem2+lemma5", Conditions { delta: half, ..conditions() }),
        "a failure probability of 2δ = 1 is no claim; use delta < 0.5"
    );
    assert_eq!(
        reason("theorem2.ucb", Conditions { form: Form::Corrected, ..conditions() }),
        "GP-UCB ran with printed constants, so its bound has no corrected form here"
    );
    let compact = Conditions { setting: Setting::Compact, basis: Some(20), ..conditions() };
    assert_eq!(
        reason("theorem4.ucb", compact),
        "T = 20 is not below K = 20, the number of basis functions; use T <= 19"
    );
    let fixed = Conditions { design: Design::Fixed, at: Some(At::Star), ..conditions() };
    assert_eq!(reason("lemma1.mean", fixed), "a fixed design is measured at probe, not at x_star");
    assert_eq!(reason("lemma1.mean", compact), "lemma1.mean is not about the compact setting");
}

#[test]
fn bounds_are_the_theorems() {
    let context = Context::new(conditions());
    let bound =
        (find("theorem2.ucb").unwrap().bound.unwrap().bound.one)(&context, &quiet()).unwrap();
    assert!((bound - 5.3291892393).abs() < 1e-10);
    let mut m = quiet();
    // G = 1 at tau = T.
    m.at_tau = AtTau { tau: 20, mean_star: 1.0, variance_star: 0.99, ..m.at_tau };
    let bound = (find("theorem2.pi").unwrap().bound.unwrap().bound.one)(&context, &m).unwrap();
    assert!((bound - 3.5291364471).abs() < 1e-10);
    assert_eq!(
        context.concentration(20).unwrap().zeta(conditions().delta),
        theorem2::zeta(500, 20, conditions().delta, Form::Printed)
    );
}

/// Without noise G is 0/0 where x* was observed: no statement, and above all no violation.
#[test]
fn nothing_is_violated_by_a_quotient_that_does_not_exist() {
    let silent = Conditions {
        noise_variance: 0.0,
        acquisition: Some(Acquisition::Pi),
        policy_constants: None,
        ..conditions()
    };
    let context = Context::new(silent);
    let mut m = quiet();
    (m.at_tau.mean_star, m.at_tau.variance_star) = (2.0, 0.0);
    let numerator = find("theorem2.pi/step.numerator").unwrap();
    assert!(numerator.applies(&context).unwrap_err().contains("noise_variance > 0"));
    assert_eq!(numerator.evaluate(&context, &m), Outcome::NotApplicable);
}

#[test]
fn shared_constants_are_the_same() {
    let long = Conditions { t: 20, form: Form::Sharp, ..conditions() };
    let shared = Arc::new(Constants::new(long.n, long.delta, long.form, 20));
    for t in [3, 20] {
        let conditions = Conditions { t, ..long };
        let (own, beside) = (Context::new(conditions), Context::sharing(conditions, &shared));
        assert_eq!(own.a(), beside.a());
        assert_eq!(own.variance_interval(), beside.variance_interval());
        for tau in 0..=21 {
            assert_eq!(own.concentration(tau), beside.concentration(tau), "{tau}");
        }
        assert!(beside.concentration(t).is_some() && beside.concentration(t + 1).is_none());
    }
}

/// Trials that differ in everything that claims read, with all that a trial may lack lacking in some.
fn trials() -> impl Strategy<Value = Vec<Measurement>> {
    let number = || prop_oneof![0.0..3.0_f64, -1.0..1.0_f64, Just(0.0), Just(1.0)];
    let deviation = move || {
        let some = (number(), number(), number());
        prop::option::of(some.prop_map(|(signed, error, ratio)| Deviation { signed, error, ratio }))
    };
    let numbers = prop::collection::vec(number(), 18);
    let optional = prop::collection::vec(prop::option::of(number()), 4);
    let estimated = prop::option::of((number(), number(), number(), number()));
    let one = (
        (numbers, optional, estimated, prop::option::of((number(), number()))),
        (deviation(), deviation(), deviation(), deviation(), 0_u32..22, any::<bool>()),
    );
    let made =
        one.prop_map(|((n, o, estimated, compact), (probe, star, next, observed, tau, seen))| {
            let estimated = estimated.map(|(mean_star, variance_star, mean_tau, variance_tau)| {
                EstimatedAtTau { mean_star, variance_star, mean_tau, variance_tau }
            });
            Measurement {
                f_star: n[0],
                f_range: n[1],
                target: o[0],
                best_sample_regret: n[2],
                simple_regret: n[3],
                cumulative_regret: n[4],
                probe,
                star,
                next,
                observed,
                k_xy: 20.0 * n[5],
                at_tau: AtTau {
                    tau,
                    mean_star: n[6],
                    variance_star: n[7].abs(),
                    mean_tau: n[8],
                    variance_tau: n[9].abs(),
                    f_tau: n[10],
                    zeta: o[1],
                    estimated,
                    compact: compact.map(|(star, tau)| CompactNoise { star, tau }),
                    star_seen: seen,
                },
                y_max: n[11],
                f_at_y_max: n[12],
                f_max: n[13],
                y_at_f_max: n[14],
                information: o[2],
                information_determinant: o[3],
                ..quiet()
            }
        });
    prop::collection::vec(made, 0..LANES)
}

/// The trials by column, with those columns alone that are said to be read.
fn by_column(all: &[Measurement], reads: Quantities) -> Trials {
    let mut trials = Trials::new();
    trials.start(all.len());
    for quantity in Quantity::ALL.into_iter().filter(|&quantity| reads.has(quantity)) {
        let column = trials.column_mut(quantity).iter_mut();
        column.zip(all).for_each(|(value, m)| *value = m.value(quantity));
    }
    trials
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// What a claim says of many trials is what it says of each, and no column is missing.
    #[test]
    fn claims_say_the_same_by_column(
        all_trials in trials(),
        setting in prop::sample::select(vec![Setting::Finite, Setting::Compact]),
        acquisition in prop::sample::select(vec![Acquisition::GpUcb, Acquisition::Pi]),
        form in prop::sample::select(Form::ALL.to_vec()),
        at in prop::sample::select(vec![None, Some(At::Probe), Some(At::Star), Some(At::Next), Some(At::Observed)]),
    ) {
        let basis = Some(40);
        let base = Conditions { setting, acquisition: Some(acquisition), form, at, basis, ..conditions() };
        let context = Context::new(Conditions { policy_constants: Some(form), ..base });
        for claim in all() {
            let statistic = match claim.test {
                Test::Probability { holds, .. } | Test::Invariant { holds, .. } => {
                    let mut outcomes = [Outcome::Holds; LANES];
                    (holds.many)(&context, &by_column(&all_trials, (holds.reads)(&context)), &mut outcomes);
                    for (m, outcome) in all_trials.iter().zip(outcomes) {
                        prop_assert_eq!(outcome, claim.evaluate(&context, m), "{}", claim.id);
                    }
                    claim.bound.map(|bound| bound.bound)
                }
                Test::Mean { statistic, .. } => Some(statistic),
            };
            let Some(statistic) = statistic else { continue };
            let mut values = [0.0; LANES];
            let trials = by_column(&all_trials, (statistic.reads)(&context));
            (statistic.many)(&context, &trials, &mut values);
            for (m, value) in all_trials.iter().zip(values) {
                let one = (statistic.one)(&context, m).unwrap_or(f64::NAN);
                prop_assert_eq!(one.to_bits(), value.to_bits(), "{}", claim.id);
            }
        }
    }
}
