//! Claims about means: refuted by a z-test, confirmed only by equivalence within a stated margin.
//!
//! Both tests are for a number of trials that is fixed in advance, so that a study with early stopping
//! does not test them.

use study::cell::Cell;
use study::rows::MeanRow;
use theory::claims::Test;
use theory::evidence::{MeanSample, Verdict, equivalence_test, z_test};
use theory::special::normal_quantile;
use theory::{Form, lemma1};

use super::assemble::{blank, finite};
use super::counted::{Counted, Judging};
use super::{Candidate, VerdictRow, family_of};
use crate::dataset::{DataCell, Dataset};
use crate::pass::CellResult;

/// The margin within which a mean is called equal, relative to the scale of its statistic: one
/// predictive standard deviation for the mean, the predictive variance for the variance, the exact
/// variance for its formula.
const MARGIN: f64 = 0.05;

pub(super) fn candidates(
    dataset: &Dataset,
    judging: &Judging<'_>,
    records: Option<&CellResult>,
    all: &mut Vec<Candidate>,
) {
    let cell = judging.cell;
    let Some(records) = records else {
        for mean in study::rows::mean_rows(&dataset.study, &cell.cell) {
            let counted = judging.planned(|| mean.key());
            all.extend(counted.iter().map(|one| candidate(dataset, cell, &mean, None, one)));
        }
        return;
    };
    for result in &records.means {
        for counted in judging.all(|| result.row.key(), result.asked) {
            let sample = Some(result.sample(counted.periods.clone()));
            all.push(candidate(dataset, cell, &result.row, sample, &counted));
        }
    }
}

fn candidate(
    dataset: &Dataset,
    cell: &DataCell,
    mean: &MeanRow,
    sample: Option<MeanSample>,
    counted: &Counted,
) -> Candidate {
    let judged = |evidence, row| {
        let (group, is_shown) = (counted.group, counted.is_shown);
        Candidate { group, evidence, row, is_shown }
    };
    let mut row = blank(dataset, cell, mean.claim);
    row.constants = mean.form.map(|form| form.name().to_owned());
    row.at = mean.at.map(|at| at.to_string());
    row.t = Some(mean.t);
    counted.mark(dataset, cell, &mut row);
    let Test::Mean { expected, .. } = mean.claim.test else {
        unreachable!("mean rows are of claims about means")
    };
    let margin = MARGIN * scale(mean, &cell.cell);
    row.mean_expected = Some(expected);
    row.mean_margin = Some(margin);
    let Some(sample) = sample else {
        row.reason = Some("a summary keeps no values to take a mean of".to_owned());
        return judged(None, row);
    };
    row.trials = Some(sample.count);
    if sample.count > 0 {
        row.mean = Some(sample.mean);
        row.mean_se = sample.standard_error();
    }
    if let Some(error) = row.mean_se {
        // The interval of the mean at level 1 - alpha, not of a coverage.
        let reach = error * normal_quantile(1.0 - 0.5 * family_of(dataset, counted.group).alpha);
        row.ci_low = Some(sample.mean - reach);
        row.ci_high = Some(sample.mean + reach);
        row.interval = Some("normal".to_owned());
    }
    if dataset.is_stopped() {
        row.reason = Some(
            "tests of means are for a fixed number of trials, and here the data decided it: use \
             replicates = NUMBER"
                .to_owned(),
        );
        return judged(None, row);
    }
    let tests = z_test(&sample, expected).zip(equivalence_test(&sample, expected, margin));
    let (refute, confirm) =
        tests.map_or((0.0, 0.0), |(differs, equal)| (-libm::log(differs), -libm::log(equal)));
    // In place of log E stands -log p, which Holm's procedure treats alike.
    row.log_e_refute = Some(finite(refute));
    row.log_e_confirm = Some(finite(confirm));
    row.reason = Some(format!(
        "fixed n: refuted by a z-test, confirmed only within ±{} of {expected}; log_e holds -log p",
        crate::words::number(margin, 3)
    ));
    judged(Some((refute, confirm)), row)
}

/// A mean that differs from the claimed one, and by less than the margin: both tests are right, and the claim, which
/// is one of equality, is false.
pub(super) fn settle(row: &mut VerdictRow) {
    Verdict::Refuted.name().clone_into(&mut row.verdict);
    let margin = crate::words::number(row.mean_margin.unwrap_or_default(), 3);
    row.reason = Some(format!(
        "fixed n: the mean differs (z-test), by less than ±{margin} (equivalence test); log_e holds -log p"
    ));
}

/// The size of the statistic.
fn scale(mean: &MeanRow, cell: &Cell) -> f64 {
    if mean.claim.id != "lemma1.variance-formula" {
        return 1.0;
    }
    // E[K] = t, so that this is the exact variance over the predictive variance.
    let n = cell.policy.training().map_or(0, |training| training.n);
    lemma1::variance_formula(n, mean.t, f64::from(mean.t), Form::Corrected).unwrap_or(1.0)
}
