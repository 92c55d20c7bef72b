//! Coverages that are known without a single trial.

use study::Cell;
use study::rows::Row;
use theory::claims::{At, Context};
use theory::special::chi2_cdf;
use theory::{Form, lemma1};

/// The exact coverage of a row, by the exact laws of error, ratio and K for a design that is fixed in
/// advance (docs/mathematics.md); `None` where no law is known, as for every adaptive design.
pub(super) fn coverage(row: &Row, cell: &Cell) -> Option<f64> {
    if cell.policy.design() != "fixed" {
        return None;
    }
    let (t, delta) = (row.t, row.delta);
    let form = row.form.unwrap_or(Form::Printed);
    let n = cell.policy.training()?.n;
    match (row.claim.id, row.at) {
        ("lemma1.mean", Some(At::Probe)) => lemma1::coverage_mean(n, t, delta, form),
        ("lemma1.variance", Some(At::Probe)) => lemma1::coverage_variance(n, t, delta, form),
        ("lemma1.joint", Some(At::Probe)) => lemma1::coverage_joint(n, t, delta, form),
        // K = (y - mu)^T (k + sigma^2 I)^-1 (y - mu) has the law chi2_t.
        ("lemma1/step.K", None) => Some(chi2_cdf(f64::from(t), lemma1::k_bound(t, delta))),
        _ => None,
    }
}

/// The constants that a row's predicate compares with, where they are the same for all trials.
pub(super) fn limits(row: &Row, context: &Context) -> Vec<(&'static str, f64)> {
    let mut limits = Vec::new();
    let mut put = |name, value: Option<f64>| {
        if let Some(value) = value {
            limits.push((name, value));
        }
    };
    match row.claim.id {
        "lemma1.mean" => put("a", context.a()),
        "lemma1.joint" | "lemma1.observed" | "lemma1.variance" => {
            if row.claim.id != "lemma1.variance" {
                put("a", context.a());
            }
            put("ratio_low", context.variance_interval().map(|interval| interval.0));
            put("ratio_high", context.variance_interval().map(|interval| interval.1));
        }
        "lemma1/step.K" => put("k_bound", Some(lemma1::k_bound(row.t, row.delta))),
        _ => {}
    }
    limits
}
