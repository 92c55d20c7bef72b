//! The rows of a study with their numbers, before any verdict.

use std::collections::BTreeMap;

use rayon::prelude::*;
use study::rows::{self, OwnRow, Row};
use study::tally::{Contexts, RowCounts};
use theory::claims::{self, Claim};

use super::counted::{Counted, Judging};
use super::evidence::{Evidence, weigh};
use super::{Candidate, Error, Group, Sources, VerdictRow, exact, family_of, means};
use crate::dataset::{DataCell, Dataset};
use crate::own::OwnResult;
use crate::pass::{Asked, AtResult, CellResult, RowResult, Series, Slack, Span, batches};

/// A logarithm that JSON can hold: a budget of 0 is refuted with infinite evidence.
const MOST: f64 = 1e308;

/// All rows, in the order of the registry, then of cells.
pub(super) fn candidates(sources: &Sources<'_>) -> Result<Vec<Candidate>, Error> {
    let dataset = sources.dataset;
    let by_cell =
        dataset.cells.par_iter().enumerate().map(|(place, cell)| of_cell(sources, place, cell));
    let by_cell = by_cell.collect::<Result<Vec<_>, Error>>()?;
    let mut all: Vec<Candidate> = by_cell.into_iter().flatten().collect();
    let judging: Vec<Judging<'_>> = match sources.own {
        [] => vec![],
        _ => dataset.cells.iter().map(|cell| Judging::new(dataset, cell)).collect(),
    };
    for own in sources.own {
        own_candidates(dataset, &judging[own.cell], own, &mut all);
    }
    let order = order(dataset);
    all.sort_by_cached_key(|candidate| order(&candidate.row));
    Ok(all)
}

fn of_cell(sources: &Sources<'_>, place: usize, cell: &DataCell) -> Result<Vec<Candidate>, Error> {
    let dataset = sources.dataset;
    let mut all = Vec::new();
    let records = sources.records.map(|records| &records[place]);
    let sealed = sources.sealed.map(|sealed| sealed[place].as_slice());
    let judging = Judging::new(dataset, cell);
    tested(dataset, &judging, records, sealed, &mut all)?;
    means::candidates(dataset, &judging, records, &mut all);
    for outside in rows::outside(&dataset.study, &cell.cell) {
        let mut row = blank(dataset, cell, outside.claim);
        row.constants = outside.form.map(|form| form.name().to_owned());
        row.at = outside.at.map(|at| at.to_string());
        row.t = Some(outside.t);
        row.delta = Some(outside.delta.get());
        row.reason = Some(outside.reason);
        all.push(Candidate { group: Group::Planned, evidence: None, row, is_shown: true });
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
            (places.get(&row.claim).copied().unwrap_or(usize::MAX), form, row.at.clone()),
            (row.family.clone(), row.exploratory),
            (row.among.clone(), row.design.clone(), row.method.clone(), row.acquisition.clone()),
            (row.policy_constants.clone(), row.prior, row.n),
            (row.delta.map(f64::to_bits), row.t, row.cell.clone()),
        )
    }
}

type OrderKey = (
    (usize, u8, Option<String>),
    (Option<String>, bool),
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

/// The rows of the plan, those at further deltas, those of earlier families, and the descriptive ones.
fn tested(
    dataset: &Dataset,
    judging: &Judging<'_>,
    records: Option<&CellResult>,
    sealed: Option<&[Vec<RowCounts>]>,
    all: &mut Vec<Candidate>,
) -> Result<(), Error> {
    let cell = judging.cell;
    let size = dataset.study.replicates.batch_size();
    let Some(records) = records else {
        let planned = rows::rows(&dataset.study, &cell.cell);
        let sealed = sealed.ok_or(Error::NoCounts)?;
        for (place, (row, contexts)) in
            planned.iter().zip(dataset.contexts(cell, &planned)).enumerate()
        {
            let span = |batch: u64| Span { batch, period: cell.period(batch * size) };
            let spans = (0..).map(span).zip(sealed.iter().map(|batch| batch[place]));
            let seen = Seen { row, spans: &spans.collect::<Vec<_>>(), slack: None, at: None };
            for counted in judging.planned(|| row.key()) {
                all.push(candidate(dataset, judging, &seen, &counted, &contexts));
            }
        }
        return Ok(());
    };
    match sealed {
        Some(sealed) => compare(cell, records, sealed)?,
        // Versions before did not seal any for all records.
        None if !dataset.manifest.is_checked() => {}
        None => return Err(Error::NoCounts),
    }
    let listed: Vec<Row> = records.rows.iter().map(|row| row.row).collect();
    for (result, contexts) in records.rows.iter().zip(dataset.contexts(cell, &listed)) {
        let RowResult { row, spans, slack, .. } = result;
        let at = records.at.iter().find(|at| at.t == row.t);
        let seen = Seen { row, spans, slack: slack.as_ref(), at };
        let counted = judging.all(|| row.key(), result.asked);
        let first = counted.first().map(|counted| counted.group);
        for counted in counted {
            all.push(candidate(dataset, judging, &seen, &counted, &contexts));
        }
        if first == Some(Group::Planned) {
            all.extend(descriptive(dataset, cell, result));
        }
    }
    Ok(())
}

/// The workers' counts and those of the records have to be the same: two implementations agree.
pub(super) fn compare(
    cell: &DataCell,
    records: &CellResult,
    sealed: &[Vec<RowCounts>],
) -> Result<(), Error> {
    let planned = records.rows.iter().filter(|row| row.asked == Asked::Planned);
    for (place, row) in planned.enumerate() {
        let counted = batches(&row.spans, 0..=usize::MAX);
        if counted.len() != sealed.len() {
            let (cell, batch) = (cell.id, counted.len().min(sealed.len()) as u64);
            let (found, expected) = (sealed.len() as u64, counted.len() as u64);
            return Err(Error::Batches { cell, batch, found, expected });
        }
        for (batch, (found, sealed)) in (0..).zip(counted.iter().zip(sealed)) {
            let sealed = sealed[place];
            if *found != sealed {
                return Err(Error::Differs {
                    cell: cell.id,
                    batch,
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

/// What the trials of a cell say about a row.
struct Seen<'a> {
    row: &'a Row,
    spans: &'a [(Span, RowCounts)],
    slack: Option<&'a Slack>,
    at: Option<&'a AtResult>,
}

fn candidate(
    dataset: &Dataset,
    judging: &Judging<'_>,
    seen: &Seen<'_>,
    counted: &Counted,
    contexts: &Contexts,
) -> Candidate {
    let (planned, cell) = (seen.row, judging.cell);
    let mut row = blank(dataset, cell, planned.claim);
    row.constants = planned.form.map(|form| form.name().to_owned());
    row.at = planned.at.map(|at| at.to_string());
    row.t = Some(planned.t);
    row.delta = Some(planned.delta.get());
    row.exact_coverage = exact::coverage(planned, &cell.cell);
    row.limits = exact::limits(planned, &contexts.refuting)
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    // What is not counted is of all trials.
    if counted.is_of_all(cell) {
        use_of_bound(&mut row, seen);
    }
    weighed(dataset, cell, row, seen.spans, counted, planned.budget)
}

/// How much of the bound is used.
fn use_of_bound(row: &mut VerdictRow, seen: &Seen<'_>) {
    let planned = seen.row;
    if let Some(slack) = seen.slack {
        row.bound = Some(slack.bound).filter(|bound| bound.is_finite());
        row.tightness = slack.tightness;
        row.shrink = slack.shrink;
        row.worst_case_coverage = slack.worst_case;
        row.random_coverage = slack.random;
        row.vacuous = slack.worst_case.map(|share| share >= 1.0 - planned.budget);
    }
    if planned.claim.id == "lemma1.mean" && row.at.as_deref() == Some("probe") {
        row.tightness = row.limits.get("a").zip(seen.at).and_then(|(a, at)| {
            let errors = at.of(Series::Error).sample.as_ref()?;
            let above = (planned.budget * errors.count() as f64) as usize;
            let quantile = errors.at(errors.count().checked_sub(above + 1)?);
            (quantile > 0.0).then(|| a / quantile)
        });
    }
}

/// Puts the evidence of what counts into a row.
fn weighed(
    dataset: &Dataset,
    cell: &DataCell,
    mut row: VerdictRow,
    spans: &[(Span, RowCounts)],
    counted: &Counted,
    budget: f64,
) -> Candidate {
    let family = family_of(dataset, counted.group);
    let counts = spans.partition_point(|(span, _)| span.batch < counted.batch);
    let batches = batches(&spans[counts..], counted.periods.clone());
    let evidence = weigh(&batches, budget, family, dataset.is_stopped());
    let Evidence { counts, ln_e_refute, ln_e_confirm, .. } = evidence;
    counted.mark(dataset, cell, &mut row);
    row.trials = Some(counts.trials);
    row.failures = Some(counts.failures);
    row.required = Some(1.0 - budget);
    let candidate = |row, evidence| {
        let (group, is_shown) = (counted.group, counted.is_shown);
        Candidate { group, evidence: Some(evidence), row, is_shown }
    };
    if counts.trials == 0 {
        row.reason = Some(match counts.failures {
            0 if counted.first > 0 => counted.awaits(dataset, cell),
            0 => "no trial has this quantity".to_owned(),
            failures => format!("all {failures} trials failed before this t"),
        });
        // Failures count neither way, so that the row stays in the family and is undecided.
        return candidate(row, (0.0, 0.0));
    }
    row.violations = Some(counts.confirming);
    row.violations_refuting = Some(counts.refuting);
    row.coverage = Some(1.0 - counts.confirming as f64 / counts.trials as f64);
    row.ci_low = Some(evidence.low);
    row.ci_high = Some(evidence.high);
    let kind = if dataset.is_stopped() { "confidence-sequence" } else { "clopper-pearson" };
    row.interval = Some(kind.to_owned());
    row.log_e_refute = Some(finite(ln_e_refute));
    row.log_e_confirm = Some(finite(ln_e_confirm));
    candidate(row, (ln_e_refute, ln_e_confirm))
}

pub(super) fn finite(value: f64) -> f64 {
    if value > MOST { MOST } else { value }
}

/// A step of a proof among the trials in which x* was not observed before tau: without a budget.
fn descriptive(dataset: &Dataset, cell: &DataCell, result: &RowResult) -> Option<Candidate> {
    let counts = result.unseen?;
    let planned = result.row;
    let mut row = blank(dataset, cell, planned.claim);
    "x_star_unseen".clone_into(&mut row.among);
    row.constants = planned.form.map(|form| form.name().to_owned());
    row.t = Some(planned.t);
    row.delta = Some(planned.delta.get());
    row.trials = Some(counts.trials);
    row.failures = Some(counts.failures);
    row.reason = Some("descriptive: the paper budgets nothing for these trials alone".to_owned());
    if counts.trials > 0 {
        row.violations = Some(counts.confirming);
        row.violations_refuting = Some(counts.refuting);
        row.coverage = Some(1.0 - counts.confirming as f64 / counts.trials as f64);
    }
    Some(Candidate { group: Group::Planned, evidence: None, row, is_shown: true })
}

fn own_candidates(
    dataset: &Dataset,
    judging: &Judging<'_>,
    own: &OwnResult,
    all: &mut Vec<Candidate>,
) {
    let study = own.family.map_or(&dataset.study, |family| &dataset.earlier[family].study);
    let OwnRow { claim, t, delta } = own.row;
    let counted = match own.family {
        None => judging.planned(|| own.row.key(study)),
        Some(family) => judging.before(&own.row.key(study), family).into_iter().collect(),
    };
    for counted in counted {
        let mut row = about(dataset, judging.cell);
        row.claim.clone_from(&study.claims[claim].id);
        "ours".clone_into(&mut row.origin);
        row.t = t;
        row.delta = Some(delta.get());
        let budget = match &own.budget {
            Ok(budget) => *budget,
            Err(reason) => {
                counted.mark(dataset, judging.cell, &mut row);
                row.reason = Some(reason.clone());
                row.unevaluated = true;
                let (group, is_shown) = (counted.group, counted.is_shown);
                all.push(Candidate { group, evidence: None, row, is_shown });
                continue;
            }
        };
        let mut candidate = weighed(dataset, judging.cell, row, &own.spans, &counted, budget);
        if own.spans.iter().all(|(_, counts)| counts.trials == 0 && counts.failures == 0) {
            candidate.evidence = None;
            candidate.row.reason =
                Some("the expression is null in every trial of this cell".to_owned());
        }
        all.push(candidate);
    }
}
