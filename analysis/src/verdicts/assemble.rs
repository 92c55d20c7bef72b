//! The rows of a study with their numbers, before any verdict.

use std::collections::BTreeMap;

use rayon::prelude::*;
use study::rows::{self, OwnRow, Row};
use study::tally::{Contexts, RowCounts};
use theory::claims::{self, Claim};

use super::evidence::{Evidence, weigh};
use super::{Candidate, Error, Sources, VerdictRow, exact, means};
use crate::dataset::{DataCell, Dataset};
use crate::own::OwnResult;
use crate::pass::{AtResult, CellResult, RowResult, Series};

/// A logarithm that JSON can hold: a budget of 0 is refuted with infinite evidence.
const MOST: f64 = 1e308;

/// All rows, in the order of the registry, then of cells.
pub(super) fn candidates(sources: &Sources<'_>) -> Result<Vec<Candidate>, Error> {
    let dataset = sources.dataset;
    let by_cell =
        dataset.cells.par_iter().enumerate().map(|(place, cell)| of_cell(sources, place, cell));
    let by_cell = by_cell.collect::<Result<Vec<_>, Error>>()?;
    let mut all: Vec<Candidate> = by_cell.into_iter().flatten().collect();
    all.extend(sources.own.iter().map(|own| own_candidate(dataset, own)));
    let order = order(dataset);
    all.sort_by_cached_key(|candidate| order(&candidate.row));
    Ok(all)
}

fn of_cell(sources: &Sources<'_>, place: usize, cell: &DataCell) -> Result<Vec<Candidate>, Error> {
    let dataset = sources.dataset;
    let mut all = Vec::new();
    let records = sources.records.map(|records| &records[place]);
    let sealed = sources.sealed.map(|sealed| sealed[place].as_slice());
    tested(dataset, cell, records, sealed, &mut all)?;
    means::candidates(dataset, cell, records, &mut all);
    for outside in rows::outside(&dataset.study, &cell.cell) {
        let mut row = blank(dataset, cell, outside.claim);
        row.constants = outside.form.map(|form| form.name().to_owned());
        row.at = outside.at.map(|at| at.to_string());
        row.t = Some(outside.t);
        row.delta = Some(outside.delta.get());
        row.reason = Some(outside.reason);
        all.push(Candidate { evidence: None, row });
    }
    Ok(all)
}

/// By claim, form, point, then by cell as a reader would list them.
fn order(dataset: &Dataset) -> impl Fn(&VerdictRow) -> OrderKey + use<> {
    let own = dataset.study.claims.iter().map(|claim| claim.id.clone());
    let ids: Vec<String> = claims::all().map(|claim| claim.id.to_owned()).chain(own).collect();
    let places: BTreeMap<String, usize> =
        ids.into_iter().enumerate().map(|(place, id)| (id, place)).collect();
    move |row| {
        let form = match row.constants.as_deref() {
            None => 0,
            Some("printed") => 1,
            Some("corrected") => 2,
            Some(_) => 3,
        };
        (
            (places.get(&row.claim).copied(), form, row.at.clone(), row.exploratory),
            (row.among.clone(), row.design.clone(), row.method.clone(), row.acquisition.clone()),
            (row.policy_constants.clone(), row.prior, row.n),
            (row.delta.map(f64::to_bits), row.t, row.cell.clone()),
        )
    }
}

type OrderKey = (
    (Option<usize>, u8, Option<String>, bool),
    (String, String, String, Option<String>),
    (Option<String>, u32, Option<u64>),
    (Option<u64>, Option<u32>, String),
);

/// A row about a cell of which nothing is known yet.
pub(super) fn blank(dataset: &Dataset, cell: &DataCell, claim: &Claim) -> VerdictRow {
    VerdictRow {
        claim: claim.id.to_owned(),
        origin: claim.origin.name().to_owned(),
        ..about(dataset, cell)
    }
}

fn about(dataset: &Dataset, cell: &DataCell) -> VerdictRow {
    let policy = &cell.cell.policy;
    let setting = dataset.prior(cell).spec["setting"].as_str().unwrap_or("finite");
    VerdictRow {
        among: "all".to_owned(),
        n: policy.training().map(|training| training.n),
        setting: setting.to_owned(),
        design: policy.design().to_owned(),
        method: policy.method().to_owned(),
        acquisition: policy.acquisition().map(str::to_owned),
        policy_constants: policy.constants().map(|constants| constants.form().to_string()),
        cell: cell.id.to_string(),
        prior: cell.prior as u32,
        swept: cell.swept.iter().cloned().collect(),
        ..VerdictRow::default()
    }
}

/// The rows of the plan, those at further deltas, and the descriptive ones.
fn tested(
    dataset: &Dataset,
    cell: &DataCell,
    records: Option<&CellResult>,
    sealed: Option<&[Vec<RowCounts>]>,
    all: &mut Vec<Candidate>,
) -> Result<(), Error> {
    let Some(records) = records else {
        let planned = rows::rows(&dataset.study, &cell.cell);
        let sealed = sealed.ok_or(Error::NoCounts)?;
        for (place, (row, contexts)) in
            planned.iter().zip(dataset.contexts(cell, &planned)).enumerate()
        {
            let batches: Vec<RowCounts> = sealed.iter().map(|batch| batch[place]).collect();
            let row =
                RowResult { row: *row, exploratory: false, batches, unseen: None, slack: None };
            all.push(candidate(dataset, cell, &row, &contexts, None));
        }
        return Ok(());
    };
    if let Some(sealed) = sealed {
        compare(cell, records, sealed)?;
    }
    let listed: Vec<Row> = records.rows.iter().map(|row| row.row).collect();
    for (row, contexts) in records.rows.iter().zip(dataset.contexts(cell, &listed)) {
        let at = records.at.iter().find(|at| at.t == row.row.t);
        all.push(candidate(dataset, cell, row, &contexts, at));
        all.extend(descriptive(dataset, cell, row));
    }
    Ok(())
}

/// The workers' counts and those of the records have to be the same: two implementations agree.
fn compare(cell: &DataCell, records: &CellResult, sealed: &[Vec<RowCounts>]) -> Result<(), Error> {
    for (place, row) in records.rows.iter().filter(|row| !row.exploratory).enumerate() {
        for (found, sealed) in row.batches.iter().zip(sealed) {
            let sealed = sealed[place];
            if *found != sealed {
                return Err(Error::Differs {
                    cell: cell.id,
                    claim: row.row.claim.id,
                    t: row.row.t,
                    found: found.refuting,
                    found_trials: found.trials,
                    sealed: sealed.refuting,
                    sealed_trials: sealed.trials,
                });
            }
        }
    }
    Ok(())
}

fn candidate(
    dataset: &Dataset,
    cell: &DataCell,
    result: &RowResult,
    contexts: &Contexts,
    at: Option<&AtResult>,
) -> Candidate {
    let planned = result.row;
    let family = dataset.manifest.family;
    let evidence = weigh(&result.batches, planned.budget, family, dataset.is_stopped());
    let mut row = blank(dataset, cell, planned.claim);
    row.constants = planned.form.map(|form| form.name().to_owned());
    row.at = planned.at.map(|at| at.to_string());
    row.t = Some(planned.t);
    row.delta = Some(planned.delta.get());
    row.exploratory = result.exploratory;
    row.exact_coverage = exact::coverage(&planned, &cell.cell);
    row.limits = exact::limits(&planned, &contexts.refuting)
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    if let Some(slack) = &result.slack {
        row.bound = Some(slack.bound).filter(|bound| bound.is_finite());
        row.tightness = slack.tightness;
        row.shrink = slack.shrink;
        row.worst_case_coverage = slack.worst_case;
        row.random_coverage = slack.random;
        row.vacuous = slack.worst_case.map(|share| share >= 1.0 - planned.budget);
    }
    if planned.claim.id == "lemma1.mean" && row.at.as_deref() == Some("probe") {
        row.tightness = row.limits.get("a").zip(at).and_then(|(a, at)| {
            let errors = at.of(Series::Error).sample.as_ref()?;
            let above = (planned.budget * errors.count() as f64) as usize;
            let quantile = errors.at(errors.count().checked_sub(above + 1)?);
            (quantile > 0.0).then(|| a / quantile)
        });
    }
    weighed(dataset, row, &evidence, planned.budget)
}

/// Puts the evidence into a row.
fn weighed(dataset: &Dataset, mut row: VerdictRow, evidence: &Evidence, budget: f64) -> Candidate {
    let counts = evidence.counts;
    row.trials = counts.trials;
    row.failures = counts.failures;
    row.required = Some(1.0 - budget);
    if counts.trials == 0 {
        row.reason = Some(match counts.failures {
            0 => "no trial has this quantity".to_owned(),
            failures => format!("all {failures} trials failed before this t"),
        });
        // Failures count neither way, so that the row stays in the family and is undecided.
        return Candidate { evidence: Some((0.0, 0.0)), row };
    }
    row.violations = Some(counts.confirming);
    row.violations_refuting = Some(counts.refuting);
    row.coverage = Some(1.0 - counts.confirming as f64 / counts.trials as f64);
    row.ci_low = Some(evidence.low);
    row.ci_high = Some(evidence.high);
    let kind = if dataset.is_stopped() { "confidence-sequence" } else { "clopper-pearson" };
    row.interval = Some(kind.to_owned());
    row.log_e_refute = Some(finite(evidence.ln_e_refute));
    row.log_e_confirm = Some(finite(evidence.ln_e_confirm));
    Candidate { evidence: Some((evidence.ln_e_refute, evidence.ln_e_confirm)), row }
}

pub(super) fn finite(value: f64) -> f64 {
    if value > MOST { MOST } else { value }
}

/// A step of a proof among the trials in which x* was not observed before tau: without a budget.
fn descriptive(dataset: &Dataset, cell: &DataCell, result: &RowResult) -> Option<Candidate> {
    let counts = result.unseen.filter(|_| !result.exploratory)?;
    let planned = result.row;
    let mut row = blank(dataset, cell, planned.claim);
    "x_star_unseen".clone_into(&mut row.among);
    row.constants = planned.form.map(|form| form.name().to_owned());
    row.t = Some(planned.t);
    row.delta = Some(planned.delta.get());
    row.trials = counts.trials;
    row.failures = counts.failures;
    row.reason = Some("descriptive: the paper budgets nothing for these trials alone".to_owned());
    if counts.trials > 0 {
        row.violations = Some(counts.confirming);
        row.violations_refuting = Some(counts.refuting);
        row.coverage = Some(1.0 - counts.confirming as f64 / counts.trials as f64);
    }
    Some(Candidate { evidence: None, row })
}

fn own_candidate(dataset: &Dataset, own: &OwnResult) -> Candidate {
    let cell = &dataset.cells[own.cell];
    let OwnRow { claim, t, delta } = own.row;
    let mut row = about(dataset, cell);
    row.claim.clone_from(&dataset.study.claims[claim].id);
    "ours".clone_into(&mut row.origin);
    row.t = t;
    row.delta = Some(delta.get());
    let family = dataset.manifest.family;
    let evidence = weigh(&own.batches, own.budget, family, dataset.is_stopped());
    let mut candidate = weighed(dataset, row, &evidence, own.budget);
    if evidence.counts.trials == 0 && evidence.counts.failures == 0 {
        candidate.evidence = None;
        candidate.row.reason =
            Some("the expression is null in every trial of this cell".to_owned());
    }
    candidate
}
