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
    cells.map(|cell| rows(plan, cell).len()).sum()
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
    assert_eq!(plan.rows, 560);
    assert_eq!(plan.evidence, 22_400.0);
    assert_eq!(count(&plan, |_| true), 560);
}

#[test]
fn without_noise_there_is_no_information_gain() {
    let plan = plan_of("", "0.0");
    let [fixed, adaptive] = LEMMA1;
    assert_eq!(count(&plan, |p| matches!(p, Policy::Fixed(_))), 4 * (fixed + LEMMA5));
    assert_eq!(count(&plan, |p| matches!(p, Policy::PemPi { .. })), 4 * (adaptive + LEMMA5));
    assert_eq!(plan.rows as usize, count(&plan, |_| true));
}

#[test]
fn globs_select_and_small_n_excludes() {
    let plan = plan_of("[claims]\ntest = [\"lemma1.mean\", \"lemma5.*\"]", "0.01");
    let fixed = plan.cells.iter().find(|c| matches!(c.cell.policy, Policy::Fixed(_))).unwrap();
    let rows = rows(&plan, fixed);
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
    let small = PlannedCell { cell: small, ..fixed.clone() };
    let at = |t: u32| super::rows(&plan, &small).iter().filter(|row| row.t == t).count();
    assert_eq!((at(5), at(20)), (2 * (3 + LEMMA5), 2 * LEMMA5));
}

#[test]
fn which_rows_depend_on_rho_and_which_stop() {
    let plan = plan_of("", "0.01");
    let mut uses: Vec<&str> = Vec::new();
    let mut silent: Vec<&str> = Vec::new();
    for cell in &plan.cells {
        for row in rows(&plan, cell) {
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
    assert_eq!(plan.rows as usize, count(&plan, |_| true));
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
    assert_eq!(plan.rows as usize, count(&plan, |_| true));
}
