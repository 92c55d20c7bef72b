//! The rows of a study's verdicts: which claim is tested where.
//!
//! A row is a claim of the registry in one form of its constants, at one point, t and delta of a cell.
//! Which rows there are follows from the plan alone, so that the family is fixed before any trial.

use std::collections::{BTreeMap, HashMap};

use theory::claims::Acquisition;
use theory::claims::{self, At, Claim, Conditions, Context, Design, Setting, Test};
use theory::{Delta, Form};

use crate::cell::{Cell, Ground, Policy, PolicyConstants};
use crate::digest::Digest;
use crate::family::RowKey;
use crate::file::{OwnClaim, Quantifier, Study};
use crate::plan::{Plan, Replicates};

/// N of methods that estimate nothing: claims that no estimator enters hold for them too, and those
/// about estimators say themselves that they do not apply.
const NO_ESTIMATE: u64 = u64::MAX;

/// One row of the verdicts.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The claim.
    pub claim: &'static Claim,
    /// The form of its constants, where it has a choice.
    pub form: Option<Form>,
    /// Where it is evaluated, where it does not say so itself.
    pub at: Option<At>,
    /// t; the horizon of claims about regret.
    pub t: u32,
    /// delta.
    pub delta: Delta,
    /// The failure probability that is allowed.
    pub budget: f64,
}

impl Row {
    /// The conditions of this row's claim in a cell, for a prior with c >= max k and this rho_t.
    pub fn conditions(&self, cell: &Cell, c: f64, rho: Option<f64>) -> Conditions {
        let at = Place { form: self.form, at: self.at, t: self.t, delta: self.delta };
        Conditions { c, rho, ..conditions(cell, at) }
    }

    /// The context in which this row's claim is evaluated.
    pub fn context(&self, cell: &Cell, c: f64, rho: Option<f64>) -> Context {
        Context::new(self.conditions(cell, c, rho))
    }

    /// Whether the row's outcome depends on rho_t, so that it is evaluated at either end of its
    /// bracket.
    pub fn uses_rho(&self, cell: &Cell) -> bool {
        self.claim.applies_under(&self.conditions(cell, 1.0, None)).is_err()
    }

    /// What tells it from the cell's other rows, and from those of other families.
    pub fn key(&self) -> RowKey {
        let Self { claim, t, delta, budget, .. } = self;
        let place = place_key(self.form, self.at);
        format!("{} {place} {t} {} {budget}", claim.id, delta.get())
    }

    /// Whether a cell waits for this row: a budget of 0 can be refuted and never confirmed.
    pub fn stops(&self) -> bool {
        self.budget > 0.0
    }
}

/// A claim about a mean, tested at one point and t of a cell.
#[derive(Clone, Copy, Debug)]
pub struct MeanRow {
    /// The claim.
    pub claim: &'static Claim,
    /// The form of its constants, where it has a choice.
    pub form: Option<Form>,
    /// Where it is evaluated.
    pub at: Option<At>,
    /// t.
    pub t: u32,
}

impl MeanRow {
    /// As [`Row::key`].
    pub fn key(&self) -> RowKey {
        format!("{} {} {}", self.claim.id, place_key(self.form, self.at), self.t)
    }

    /// The context in which the row's statistic is computed; it depends on no delta, so that any will do.
    pub fn context(&self, cell: &Cell, delta: Delta, c: f64) -> Context {
        let place = Place { form: self.form, at: self.at, t: self.t, delta };
        Context::new(Conditions { c, rho: None, ..conditions(cell, place) })
    }
}

/// A claim of one's own, tested in a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnRow {
    /// Its place among the study's own claims.
    pub claim: usize,
    /// t; `None` where all checkpoints of a trial count at once.
    pub t: Option<u32>,
    /// delta.
    pub delta: Delta,
}

impl OwnRow {
    /// As [`Row::key`]; the study is the one that the claim is of. A claim about all t changes with the T
    /// of the grid. Spaces and line breaks between words make no difference.
    pub fn key(&self, study: &Study) -> RowKey {
        let OwnClaim { id, holds, budget, quantifier, .. } = &study.claims[self.claim];
        let t = self.t.map_or_else(|| study.grid.t.clone(), |t| vec![t]);
        let (holds, budget) = (spaced(holds), spaced(budget));
        format!("{id}\n{holds}\n{budget}\n{} {t:?} {}", quantifier.name(), self.delta.get())
    }
}

/// An expression with one space for every run of white space outside of quotes. Where it has a comment, an
/// escape or another kind of quote it stays as it is, because a line break may matter there.
fn spaced(expression: &str) -> String {
    if ["--", "/*", "#", "$", "\\"].iter().any(|sign| expression.contains(sign)) {
        return expression.to_owned();
    }
    let mut spaced = String::with_capacity(expression.len());
    let mut quote = None;
    for c in expression.trim().chars() {
        match quote {
            None if c.is_whitespace() => {
                if !spaced.ends_with(' ') {
                    spaced.push(' ');
                }
                continue;
            }
            None if "'\"`".contains(c) => quote = Some(c),
            Some(open) if open == c => quote = None,
            _ => {}
        }
        spaced.push(c);
    }
    spaced
}

fn place_key(form: Option<Form>, at: Option<At>) -> String {
    let at = at.map(|at| at.to_string()).unwrap_or_default();
    format!("{}@{at}", form.map_or("", Form::name))
}

/// A claim that would be tested in a cell if its hypotheses held.
#[derive(Clone, Debug)]
pub struct Outside {
    /// The claim.
    pub claim: &'static Claim,
    /// The form of its constants, where it has a choice.
    pub form: Option<Form>,
    /// Where it would be evaluated.
    pub at: Option<At>,
    /// t.
    pub t: u32,
    /// delta.
    pub delta: Delta,
    /// Which hypothesis fails, and what would be valid.
    pub reason: String,
}

/// The rows of a cell: by claim in the registry's order, then by form, point, t and delta. With
/// records of every step, verdicts are still on the T of the grid: the family is what was asked for.
pub fn rows(study: &Study, cell: &Cell) -> Vec<Row> {
    rows_at(study, cell, &study.grid.delta)
}

/// The same at other deltas, which a policy that has its own does not take.
pub fn rows_at(study: &Study, cell: &Cell, deltas: &[Delta]) -> Vec<Row> {
    let mut rows = Vec::new();
    each(study, &tested(study), cell, deltas, |row| rows.push(row));
    rows
}

/// The claims about means that are tested in a cell, in the same order.
pub fn mean_rows(study: &Study, cell: &Cell) -> Vec<MeanRow> {
    let mut rows = Vec::new();
    each_mean(study, &tested_means(study), cell, |row| rows.push(row));
    rows
}

/// The study's own claims in a cell: by claim, t and delta.
pub fn own_rows(study: &Study, cell: &Cell) -> Vec<OwnRow> {
    let mut rows = Vec::new();
    for (claim, own) in study.claims.iter().enumerate() {
        let each: Vec<Option<u32>> = match own.quantifier {
            Quantifier::EachT => study.grid.t.iter().copied().map(Some).collect(),
            Quantifier::AllT => vec![None],
        };
        for t in each {
            let deltas = deltas(cell, &study.grid.delta);
            rows.extend(deltas.into_iter().map(|delta| OwnRow { claim, t, delta }));
        }
    }
    rows
}

/// The claims that are made about this kind of cell and whose hypotheses fail in it: a larger N would
/// mend them.
pub fn outside(study: &Study, cell: &Cell) -> Vec<Outside> {
    let mut found = Vec::new();
    for claim in tested(study).into_iter().chain(tested_means(study)) {
        let mean = matches!(claim.test, Test::Mean { .. });
        let deltas = deltas(cell, &study.grid.delta);
        let deltas = &deltas[..if mean { 1 } else { deltas.len() }];
        places(study, claim, deltas, |place| {
            let conditions = conditions(cell, place);
            let larger = Conditions { n: NO_ESTIMATE, barrier: None, ..conditions };
            if let (Err(reason), Ok(())) =
                (claim.applies_under(&conditions), claim.applies_under(&larger))
            {
                let Place { form, at, t, delta } = place;
                found.push(Outside { claim, form, at, t, delta, reason });
            }
        });
    }
    found
}

/// The digest of a cell's rows: tallies are of the same rows where it is the same.
pub fn digest(rows: &[Row]) -> [u8; 32] {
    let mut digest = Digest::new();
    for row in rows {
        digest.tag("row").text(row.claim.id).text(row.form.map_or("", Form::name));
        digest.text(&row.at.map(|at| at.to_string()).unwrap_or_default());
        digest.u64(row.t.into()).f64(row.delta.get()).f64(row.budget);
    }
    digest.finish()
}

/// The number of rows over all cells, own claims and means included: the size of the family.
/// Means are tested where the number of trials is fixed in advance.
pub fn row_count(plan: &Plan) -> u64 {
    let study = &plan.study;
    let means = match plan.replicates {
        Replicates::Fixed(_) => tested_means(study),
        Replicates::Batched { .. } => vec![],
    };
    let tested = tested(study);
    let mut known: HashMap<_, BTreeMap<u64, u64>> = HashMap::new();
    let mut total = 0;
    for cell in &plan.cells {
        let cell = &cell.cell;
        let n = cell.policy.training().map_or(NO_ESTIMATE, |training| training.n);
        let counts = known.entry(kind(cell)).or_default();
        let below = counts.range(..=n).next_back().map(|(_, count)| *count);
        let above = counts.range(n..).next().map(|(_, count)| *count);
        // Hypotheses ask for N to be large enough, so between two N of as many rows lie no others.
        total += below.filter(|_| below == above).unwrap_or_else(|| {
            let mut count = own_rows(study, cell).len() as u64;
            each(study, &tested, cell, &study.grid.delta, |_| count += 1);
            each_mean(study, &means, cell, |_| count += 1);
            counts.insert(n, count);
            count
        });
    }
    total
}

/// The number of a cell's [`rows`].
pub(crate) fn count(study: &Study, cell: &Cell) -> u64 {
    let mut count = 0;
    each(study, &tested(study), cell, &study.grid.delta, |_| count += 1);
    count
}

/// Where claims could be made about a cell: no cell has more rows.
pub(crate) fn places_of_cell(study: &Study) -> u64 {
    let (horizons, deltas) = (study.grid.t.len() as u64, study.grid.delta.len() as u64);
    let choices = |all: usize| all.max(1) as u64;
    let places = tested(study)
        .into_iter()
        .map(|claim| choices(claim.forms.len()).saturating_mul(choices(claim.at.len())));
    places.sum::<u64>().saturating_mul(horizons).saturating_mul(deltas)
}

/// What a cell's rows depend on beside N: of the prior only whether there is noise. Checkpoints are the
/// same for every cell.
fn kind(cell: &Cell) -> impl Eq + std::hash::Hash + use<> {
    let policy = &cell.policy;
    (
        (policy.design(), policy.method(), policy.acquisition()),
        policy.delta().map(|delta| delta.get().to_bits()),
        policy.constants(),
        cell.noise_variance > 0.0,
        (cell.ground, cell.barrier()),
    )
}

/// The claims with a budget that the study tests.
fn tested(study: &Study) -> Vec<&'static Claim> {
    chosen(study, |test| matches!(test, Test::Probability { .. }))
}

/// The claims about means that the study tests.
fn tested_means(study: &Study) -> Vec<&'static Claim> {
    chosen(study, |test| matches!(test, Test::Mean { .. }))
}

fn chosen(study: &Study, of: impl Fn(&Test) -> bool) -> Vec<&'static Claim> {
    claims::all().filter(|claim| of(&claim.test)).filter(|claim| study.tests(claim.id)).collect()
}

/// The deltas at which claims are made about a cell: the policy's own, or all of these.
fn deltas(cell: &Cell, all: &[Delta]) -> Vec<Delta> {
    cell.policy.delta().map_or_else(|| all.to_vec(), |own| vec![own])
}

fn each(
    study: &Study,
    tested: &[&'static Claim],
    cell: &Cell,
    all: &[Delta],
    mut found: impl FnMut(Row),
) {
    let deltas = deltas(cell, all);
    for &claim in tested {
        let Some(budget) = claim.budget() else { continue };
        places(study, claim, &deltas, |place| {
            if claim.applies_under(&conditions(cell, place)).is_ok() {
                let Place { form, at, t, delta } = place;
                found(Row { claim, form, at, t, delta, budget: budget.at(delta) });
            }
        });
    }
}

fn each_mean(
    study: &Study,
    tested: &[&'static Claim],
    cell: &Cell,
    mut found: impl FnMut(MeanRow),
) {
    let deltas = deltas(cell, &study.grid.delta);
    for &claim in tested {
        places(study, claim, &deltas[..1], |place| {
            if claim.applies_under(&conditions(cell, place)).is_ok() {
                let Place { form, at, t, .. } = place;
                found(MeanRow { claim, form, at, t });
            }
        });
    }
}

/// Everywhere that a claim could be made, in order.
fn places(study: &Study, claim: &'static Claim, deltas: &[Delta], mut found: impl FnMut(Place)) {
    for form in choices(claim.forms) {
        for at in choices(claim.at) {
            for &t in &study.grid.t {
                for &delta in deltas {
                    found(Place { form, at, t, delta });
                }
            }
        }
    }
}

/// Every choice, or the one of having none.
fn choices<T: Copy>(all: &'static [T]) -> impl Iterator<Item = Option<T>> {
    all.iter().copied().map(Some).chain(all.is_empty().then_some(None))
}

/// Where a claim is made within a cell.
#[derive(Clone, Copy)]
struct Place {
    form: Option<Form>,
    at: Option<At>,
    t: u32,
    delta: Delta,
}

/// Conditions under which applicability can be told: it depends neither on c nor on the size of rho.
fn conditions(cell: &Cell, place: Place) -> Conditions {
    let policy = &cell.policy;
    let fixed = matches!(policy, Policy::Fixed(_));
    Conditions {
        n: policy.training().map_or(NO_ESTIMATE, |training| training.n),
        t: place.t,
        delta: place.delta,
        form: place.form.unwrap_or(Form::Printed),
        setting: setting(cell),
        design: if fixed { Design::Fixed } else { Design::Adaptive },
        method: policy.known(),
        acquisition: policy.acquisition().map(|name| match name {
            "pi" => Acquisition::Pi,
            _ => Acquisition::GpUcb,
        }),
        policy_constants: policy.constants().map(PolicyConstants::form),
        at: place.at,
        c: 1.0,
        noise_variance: cell.noise_variance,
        rho: Some(1.0),
        basis: cell.ground.basis(),
        barrier: cell.barrier(),
    }
}

/// The half of the paper that a cell is about; real data are closest to its finite setting.
fn setting(cell: &Cell) -> Setting {
    match cell.ground {
        Ground::Finite | Ground::Data => Setting::Finite,
        Ground::Compact { .. } => Setting::Compact,
    }
}

#[cfg(test)]
mod tests;
