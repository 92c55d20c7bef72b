//! A verdict as one sentence that names prior, design and probability space.

use std::fmt::Write as _;
use theory::claims;

use super::VerdictRow;
use crate::dataset::Dataset;
use crate::words;

/// The sentence of a row whose verdict is known.
pub(super) fn of(row: &VerdictRow, dataset: &Dataset) -> String {
    let what = what(row, dataset);
    let place = place(row, dataset);
    if row.verdict == "not-applicable" {
        let reason = row.reason.as_deref().unwrap_or("its hypotheses do not hold");
        return format!("{what} is not applicable with {place}: {reason}.");
    }
    let outcome = match (row.mean, row.coverage, row.required) {
        (Some(mean), ..) => average(row, mean),
        (None, Some(coverage), Some(required)) => coverage_words(row, coverage, required),
        _ => format!("is undecided: {}", row.reason.as_deref().unwrap_or("no trial answered")),
    };
    let vacuous = match (row.vacuous, row.verdict.as_str()) {
        (Some(true), "confirmed") => {
            " The bound is vacuous here: even the worst point of the domain satisfies it."
        }
        _ => "",
    };
    format!("With {place}, {what} {outcome}.{vacuous}{}", planned(row))
}

/// Whether the row was planned for the trials that it counts, where that needs saying.
fn planned(row: &VerdictRow) -> String {
    if row.exploratory {
        return " Exploratory: it was written down after trials existed.".to_owned();
    }
    match (&row.family, row.replicates) {
        (Some(family), Some([_, end])) => format!(
            " An earlier family of claims ({family:.12}) planned it: this is its verdict on the {end} replicates \
             that there were when the claims were changed."
        ),
        (None, Some([first, _])) if first > 0 && row.trials > Some(0) => {
            format!(" It counts the replicates from {first} on, drawn since it was written down.")
        }
        _ => String::new(),
    }
}

fn what(row: &VerdictRow, dataset: &Dataset) -> String {
    let statement = claims::find(&row.claim).map(|claim| claim.statement.to_owned());
    let earlier = row.family.as_ref().and_then(|family| {
        dataset.earlier.iter().find(|earlier| earlier.family.digest.to_string() == *family)
    });
    let study = earlier.map_or(&dataset.study, |earlier| &earlier.study);
    let own = || study.claims.iter().find(|own| own.id == row.claim).map(|own| own.holds.clone());
    let statement = statement.or_else(own).unwrap_or_default();
    let form = row.constants.as_deref().map_or(String::new(), |form| format!(", {form} constants"));
    let at = match row.at.as_deref() {
        Some("probe") => " at a random unobserved point",
        Some("x_star") => " at x* while unobserved",
        Some("x_next") => " at the next selected point",
        Some("x_observed") => " at an observed point",
        _ => "",
    };
    format!("{} ({statement}{form}){at}", row.claim)
}

fn place(row: &VerdictRow, dataset: &Dataset) -> String {
    let cell = dataset.cells.iter().find(|cell| cell.id.to_string() == row.cell);
    let Some(cell) = cell else { return format!("cell {}", row.cell) };
    let mut text = format!(
        "{} on a GP prior with {}",
        words::policy(&cell.cell),
        words::prior(dataset.prior(cell))
    );
    if let Some(n) = row.n {
        _ = write!(text, ", N = {n}");
    }
    if let Some(t) = row.t {
        _ = write!(text, ", t = {t}");
    }
    if let Some(delta) = row.delta {
        _ = write!(text, ", δ = {delta}");
    }
    if let Some(form) = &row.policy_constants {
        _ = write!(text, ", ζ_t with {form} constants");
    }
    text
}

/// Over what the probability is taken.
fn space(row: &VerdictRow) -> &'static str {
    match (row.design.as_str(), row.method.as_str()) {
        ("fixed", _) => "f, the noise, the estimators, the design and the probe",
        (_, "pem-bo") => {
            "f, the noise, the estimators and the points that the method chose with them"
        }
        (_, "random") => "f, the noise and the random points",
        _ => "f, the noise and the points that the method chose",
    }
}

fn coverage_words(row: &VerdictRow, coverage: f64, required: f64) -> String {
    let interval = match (row.ci_low, row.ci_high) {
        (Some(low), Some(high)) => {
            format!(" (interval {} to {})", words::percent(low), words::percent(high))
        }
        _ => String::new(),
    };
    let exact = row.exact_coverage.map_or(String::new(), |exact| {
        format!("; by the exact law it holds with probability {}", words::percent(exact))
    });
    let verdict = match row.verdict.as_str() {
        "refuted" => "is refuted: it held",
        "confirmed" => "is confirmed: it held",
        "inconsistent" => "is both refuted and confirmed: it held",
        _ => "is undecided: it held",
    };
    let use_of = if row.design == "adaptive" && row.claim.starts_with("lemma1") {
        " This is about the lemma's use in the theorem, not about its own hypothesis"
    } else {
        ""
    };
    let stop = if use_of.is_empty() { "" } else { "." };
    format!(
        "{verdict} in {} of {} trials{interval} where {} is claimed, over {}{exact}{stop}{use_of}",
        words::percent(coverage),
        words::count(row.trials.unwrap_or(0)),
        words::percent(required),
        space(row)
    )
}

fn average(row: &VerdictRow, mean: f64) -> String {
    let verdict = match row.verdict.as_str() {
        "refuted" => "is refuted",
        "confirmed" => "is confirmed",
        _ => "is undecided",
    };
    let error = row.mean_se.unwrap_or(0.0);
    format!(
        "{verdict}: over {} trials the statistic has mean {} (standard error {}) where {} is claimed, over {}",
        words::count(row.trials.unwrap_or(0)),
        words::number(mean, 4),
        words::number(error, 2),
        row.mean_expected.unwrap_or(0.0),
        space(row)
    )
}
