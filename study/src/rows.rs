//! The rows of a study's verdicts: which claim is tested where.
//!
//! A row is a claim of the registry in one form of its constants, at one point, t and delta of a cell.
//! Which rows there are follows from the plan alone, so that the family is fixed before any trial.

use std::collections::{BTreeMap, HashMap};

use theory::claims::Acquisition;
use theory::claims::{self, At, Claim, Conditions, Context, Design, Method, Setting, Test};
use theory::{Delta, Form};

use crate::cell::{Cell, Policy, PolicyConstants};
use crate::digest::Digest;
use crate::plan::{Plan, PlannedCell};

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

    /// Whether a cell waits for this row: a budget of 0 can be refuted and never confirmed.
    pub fn stops(&self) -> bool {
        self.budget > 0.0
    }
}

/// The rows of a cell: by claim in the registry's order, then by form, point, t and delta. With
/// records of every step, verdicts are still on the T of the grid: the family is what was asked for.
pub fn rows(plan: &Plan, cell: &PlannedCell) -> Vec<Row> {
    let mut rows = Vec::new();
    each(plan, &tested(plan), cell, |row| rows.push(row));
    rows
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

/// The number of rows over all cells: the size of the family.
pub fn row_count(plan: &Plan) -> u64 {
    let tested = tested(plan);
    let mut known: HashMap<_, BTreeMap<u64, u64>> = HashMap::new();
    let mut total = 0;
    for cell in &plan.cells {
        let n = cell.cell.policy.training().map_or(NO_ESTIMATE, |training| training.n);
        let counts = known.entry(kind(&cell.cell)).or_default();
        let below = counts.range(..=n).next_back().map(|(_, count)| *count);
        let above = counts.range(n..).next().map(|(_, count)| *count);
        // Hypotheses ask for N to be large enough, so between two N of as many rows lie no others.
        total += below.filter(|_| below == above).unwrap_or_else(|| {
            let mut count = 0;
            each(plan, &tested, cell, |_| count += 1);
            counts.insert(n, count);
            count
        });
    }
    total
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
    )
}

/// The claims with a budget that the study tests.
fn tested(plan: &Plan) -> Vec<&'static Claim> {
    claims::all()
        .filter(|claim| matches!(claim.test, Test::Probability { .. }))
        .filter(|claim| claim.setting.is_none_or(|setting| setting == Setting::Finite))
        .filter(|claim| plan.study.tests(claim.id))
        .collect()
}

fn each(plan: &Plan, tested: &[&'static Claim], cell: &PlannedCell, mut found: impl FnMut(Row)) {
    let own = cell.cell.policy.delta();
    let deltas = own.as_ref().map_or(plan.study.grid.delta.as_slice(), std::slice::from_ref);
    for &claim in tested {
        let Some(budget) = claim.budget() else { continue };
        for form in choices(claim.forms) {
            for at in choices(claim.at) {
                for &t in &plan.study.grid.t {
                    for &delta in deltas {
                        let conditions = conditions(&cell.cell, Place { form, at, t, delta });
                        if claim.applies_under(&conditions).is_ok() {
                            let budget = budget.at(delta);
                            found(Row { claim, form, at, t, delta, budget });
                        }
                    }
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
        setting: Setting::Finite,
        design: if fixed { Design::Fixed } else { Design::Adaptive },
        method: match policy {
            Policy::Fixed(_) => None,
            Policy::PemUcb { .. } | Policy::PemPi { .. } => Some(Method::PemBo),
            Policy::KnownUcb { .. } | Policy::KnownPi { .. } => Some(Method::KnownPrior),
            Policy::Random => Some(Method::Random),
        },
        acquisition: match policy {
            Policy::PemUcb { .. } | Policy::KnownUcb { .. } => Some(Acquisition::GpUcb),
            Policy::PemPi { .. } | Policy::KnownPi { .. } => Some(Acquisition::Pi),
            Policy::Fixed(_) | Policy::Random => None,
        },
        policy_constants: policy.constants().map(PolicyConstants::form),
        at: place.at,
        c: 1.0,
        noise_variance: cell.noise_variance,
        rho: Some(1.0),
        basis: None,
    }
}

#[cfg(test)]
mod tests;
