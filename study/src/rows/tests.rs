use super::*;
use crate::file::Study;
use crate::prior::Files;

fn plan_of(extra: &str, noise: &str) -> Plan {
    let text = format!(
        r#"[study]
name = "rows"
seed = 7
replicates = 100
[prior]
domain = {{ kind = "grid", points = 80, dimension = 1 }}
kernel = {{ kind = "matern52", lengthscale = 0.1 }}
noise_variance = {noise}
[grid]
N = 200
T = [5, 20]
delta = [0.1, 0.5]
design = ["fixed", "adaptive"]
method = ["pem-bo", "known-prior", "random"]
acquisition = ["gp-ucb", "pi"]
{extra}
"#
    );
    Plan::new(Study::parse("s.toml", &text).unwrap(), &Files::default()).unwrap()
}

fn count(plan: &Plan, of: impl Fn(&Policy) -> bool) -> usize {
    let cells = plan.cells.iter().filter(|cell| of(&cell.cell.policy));
    cells.map(|cell| rows(&plan.study, &cell.cell).len()).sum()
}

/// All rows of the family, means and own claims included.
fn family(plan: &Plan) -> u64 {
    let of = |cell: &Cell| {
        let study = &plan.study;
        rows(study, cell).len() + mean_rows(study, cell).len() + own_rows(study, cell).len()
    };
    plan.cells.iter().map(|cell| of(&cell.cell) as u64).sum()
}

/// By hand, at one t and delta: Lemma 1 in 3 claims of 3 forms, at the probe (fixed) or at 3 points
/// (adaptive); step.K; step.chebyshev in 2 forms at as many points; 3 forms at an observed point.
const LEMMA1: [usize; 2] = [9 + 1 + 2 + 3, 27 + 1 + 6 + 3];
const LEMMA5: usize = 3;

#[test]
fn rows_counted_by_hand() {
    let plan = plan_of("", "0.01");
    let [fixed, adaptive] = LEMMA1;
    assert_eq!(count(&plan, |p| matches!(p, Policy::Fixed(_))), 4 * (fixed + LEMMA5));
    // The theorem and its combination with Lemma 5 in the policy's form, 2 steps without a form, 3 of
    // 3 forms; the combination's budget of 2 delta is no claim at delta = 1/2.
    let ucb = adaptive + LEMMA5 + 1 + 2 + 9;
    let of = |level: f64| {
        count(&plan, |p| matches!(p, Policy::PemUcb { delta, .. } if delta.get() == level))
    };
    assert_eq!((of(0.1), of(0.5)), (2 * (ucb + 1), 2 * ucb));
    // Theorem and combination in 3 forms, 1 step without, 4 of 3 forms; all deltas.
    let pi = adaptive + LEMMA5 + 3 + 1 + 12;
    assert_eq!(count(&plan, |p| matches!(p, Policy::PemPi { .. })), 2 * (pi + 3) + 2 * pi);
    // Nothing about estimators: step.K and Lemma 5.
    assert_eq!(count(&plan, |p| matches!(p, Policy::KnownUcb { .. })), 2 * 2 * (1 + LEMMA5));
    assert_eq!(count(&plan, |p| matches!(p, Policy::KnownPi { .. })), 4 * (1 + LEMMA5));
    assert_eq!(count(&plan, |p| matches!(p, Policy::Random)), 4 * (1 + LEMMA5));
    assert_eq!(count(&plan, |_| true), 560);
    // Four means at each point and t: at the probe of the fixed cell, at 3 points of 3 adaptive cells.
    assert_eq!(plan.rows, 560 + 2 * 4 * (1 + 3 * 3));
    assert_eq!(plan.evidence, 25_600.0);
    assert_eq!(family(&plan), plan.rows);
}

#[test]
fn without_noise_there_is_no_information_gain() {
    let plan = plan_of("", "0.0");
    let [fixed, adaptive] = LEMMA1;
    assert_eq!(count(&plan, |p| matches!(p, Policy::Fixed(_))), 4 * (fixed + LEMMA5));
    assert_eq!(count(&plan, |p| matches!(p, Policy::PemPi { .. })), 4 * (adaptive + LEMMA5));
    assert_eq!(plan.rows, family(&plan));
}

#[test]
fn globs_select_and_small_n_excludes() {
    let plan = plan_of("[claims]\ntest = [\"lemma1.mean\", \"lemma5.*\"]", "0.01");
    let fixed = plan.cells.iter().find(|c| matches!(c.cell.policy, Policy::Fixed(_))).unwrap();
    let rows = rows(&plan.study, &fixed.cell);
    assert_eq!(rows.len(), 4 * (3 + LEMMA5));
    let first = &rows[0];
    assert_eq!(
        (first.claim.id, first.form, first.at),
        ("lemma1.mean", Some(Form::Printed), Some(At::Probe))
    );
    assert_eq!((first.t, first.delta.get(), first.budget), (5, 0.1, 0.05));
    assert_eq!((rows[1].t, rows[1].delta.get()), (5, 0.5));
    assert_eq!((rows[2].t, rows[2].delta.get()), (20, 0.1));
    // N = T + 2 can be run; at t = T the lemma needs one more.
    let small = Cell {
        policy: Policy::Fixed(crate::cell::Training {
            n: 22,
            ..fixed.cell.policy.training().unwrap()
        }),
        ..fixed.cell
    };
    let at = |t: u32| super::rows(&plan.study, &small).iter().filter(|row| row.t == t).count();
    assert_eq!((at(5), at(20)), (2 * (3 + LEMMA5), 2 * LEMMA5));
}

#[test]
fn which_rows_depend_on_rho_and_which_stop() {
    let plan = plan_of("", "0.01");
    let mut uses: Vec<&str> = Vec::new();
    let mut silent: Vec<&str> = Vec::new();
    for cell in &plan.cells {
        for row in rows(&plan.study, &cell.cell) {
            if row.uses_rho(&cell.cell) {
                uses.push(row.claim.id);
            }
            if !row.stops() {
                silent.push(row.claim.id);
            }
            let context = row.context(&cell.cell, 2.0, Some(3.0));
            row.claim.applies(&context).unwrap();
            assert_eq!((context.conditions.c, context.conditions.rho), (2.0, Some(3.0)));
        }
    }
    uses.sort_unstable();
    uses.dedup();
    silent.dedup();
    assert_eq!(uses, ["theorem2+lemma5", "theorem2.pi", "theorem2.ucb"]);
    assert_eq!(silent, ["theorem2.pi/step.numerator"]);
}

#[test]
fn the_count_needs_no_list() {
    let swept = "policy_constants = [\"printed\", \"corrected\"]\n\
                 \"prior.noise_variance\" = [0, 0.1, 0.2]\n\"prior.kernel.variance\" = [1, 2]";
    let plan = plan_of(swept, "0.01");
    assert_eq!(plan.rows, family(&plan));
}

/// Around every N from which on a claim applies, for small t and large.
#[test]
fn the_count_knows_where_claims_begin() {
    let all: Vec<String> = (22..90).map(|n| n.to_string()).collect();
    let text = format!(
        r#"
study = {{ name = "n", seed = 7, replicates = 100 }}
[prior]
domain = {{ kind = "grid", points = 80, dimension = 1 }}
kernel = {{ kind = "white" }}
noise_variance = 0.1
[grid]
N = [{}]
T = [1, 5, 20]
delta = [1e-6, 0.1, 0.9]
design = ["fixed", "adaptive"]
acquisition = "pi"
"#,
        all.join(", ")
    );
    let plan = Plan::new(Study::parse("s.toml", &text).unwrap(), &Files::default()).unwrap();
    assert_eq!(plan.rows, family(&plan));
}

#[test]
fn own_claims_belong_to_the_family() {
    let own = "[[claim]]\nid = \"mine.each\"\nholds = \"y > 0\"\nbudget = \"delta\"\n\
               [[claim]]\nid = \"mine.all\"\nholds = \"y > 0\"\nbudget = 0.5\nquantifier = \"all t\"\n\
               [claims]\ntest = \"lemma5.simple\"";
    let plan = plan_of(own, "0.01");
    // Per delta and t, and per delta; a policy with a delta has only its own.
    let of = |policy: fn(&Policy) -> bool| {
        let cell = plan.cells.iter().find(|cell| policy(&cell.cell.policy)).unwrap();
        own_rows(&plan.study, &cell.cell).len()
    };
    assert_eq!(of(|p| matches!(p, Policy::Random)), 2 * 2 + 2);
    assert_eq!(of(|p| matches!(p, Policy::PemUcb { .. })), 2 + 1);
    assert_eq!(plan.rows, family(&plan));
}

#[test]
fn a_hypothesis_that_fails_is_named() {
    let plan = plan_of("", "0.01");
    let ucb = plan.cells.iter().find(|c| matches!(c.cell.policy, Policy::PemUcb { .. })).unwrap();
    assert!(outside(&plan.study, &ucb.cell).is_empty());
    let Policy::PemUcb { training, delta, constants } = ucb.cell.policy else { unreachable!() };
    let training = crate::cell::Training { n: 30, ..training };
    let small = Cell { policy: Policy::PemUcb { training, delta, constants }, ..ucb.cell };
    let outside = outside(&plan.study, &small);
    let theorem = outside.iter().find(|row| row.claim.id == "theorem2.ucb").unwrap();
    assert_eq!(theorem.t, 20);
    assert!(theorem.reason.contains("use N >="), "{}", theorem.reason);
    // What is about PI is not said of GP-UCB at all.
    assert!(outside.iter().all(|row| !row.claim.id.contains(".pi")));
}
