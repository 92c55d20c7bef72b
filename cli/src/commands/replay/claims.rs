//! What a trial says of every claim.

use serde::Serialize;
use study::rows::{Row, rows};
use study::tally::{Contexts, contexts};
use theory::Measurement;
use theory::claims::{self, Outcome, Test};

use super::Trial;

/// What the trial says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Result {
    /// The statement does not hold, whatever rho_t is.
    Violated,
    /// It holds with the upper end of rho_t's bracket and not with the lower.
    DependsOnRho,
    /// The statement holds, whatever rho_t is.
    Holds,
}

impl Result {
    /// For people.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Violated => "violated",
            Self::DependsOnRho => "depends on rho",
            Self::Holds => "holds",
        }
    }
}

/// A claim at one t and delta.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Tested {
    pub(super) claim: &'static str,
    /// The form of its constants.
    pub(super) constants: Option<&'static str>,
    /// The point at which it is evaluated.
    pub(super) at: Option<String>,
    pub(super) t: u32,
    /// `None` for invariants, which depend on none.
    pub(super) delta: Option<f64>,
    #[serde(rename = "outcome")]
    pub(super) result: Result,
    /// Whether it is a property of regretta itself.
    pub(super) invariant: bool,
}

/// The study's claims and the invariants that say something about the trial; violations first.
pub(super) fn judge(trial: &Trial<'_>) -> Vec<Tested> {
    let (cell, prior) = (&trial.cell.cell, &trial.prior);
    let horizon = trial.cell.checkpoints.last().copied().unwrap_or(0);
    let information = prior.information(horizon);
    let rho = |t: u32| information.get(t as usize - 1).copied();
    let listed = rows(&trial.loaded.plan.study, cell);
    let contexts = contexts(&listed, cell, prior.c(), rho);
    let mut found = Vec::new();
    for (row, contexts) in listed.iter().zip(&contexts) {
        found.extend(measured(trial, row.t).and_then(|m| tested(row, contexts, m)));
    }
    for row in invariants(trial) {
        let refuting = row.context(cell, prior.c(), rho(row.t).map(|(_, upper)| upper));
        if row.claim.applies(&refuting).is_ok() {
            let contexts = Contexts { refuting, confirming: None };
            found.extend(measured(trial, row.t).and_then(|m| tested(&row, &contexts, m)));
        }
    }
    found.sort_by_key(|row| row.result);
    found
}

/// Invariants are checked at every checkpoint, whatever the study tests.
fn invariants(trial: &Trial<'_>) -> impl Iterator<Item = Row> {
    let policy = &trial.cell.cell.policy;
    let delta = policy.delta().unwrap_or(trial.loaded.plan.study.grid.delta[0]);
    let all = claims::all().filter(|claim| matches!(claim.test, Test::Invariant { .. }));
    all.flat_map(move |claim| {
        let at = move |&t: &u32| Row { claim, form: None, at: None, t, delta, budget: 0.0 };
        trial.cell.checkpoints.iter().map(at)
    })
}

fn measured<'a>(trial: &'a Trial<'_>, t: u32) -> Option<&'a Measurement> {
    trial.records.iter().find(|record| record.t == t)?.outcome.as_ref().ok()
}

/// `None` where the trial has no such quantity.
fn tested(row: &Row, contexts: &Contexts, measurement: &Measurement) -> Option<Tested> {
    let evaluate = |context| row.claim.evaluate(context, measurement);
    let refuting = evaluate(&contexts.refuting);
    let confirming = contexts.confirming.as_ref().map_or(refuting, evaluate);
    let result = match (refuting, confirming) {
        (Outcome::NotApplicable, _) | (_, Outcome::NotApplicable) => return None,
        (Outcome::Violated, _) => Result::Violated,
        (_, Outcome::Violated) => Result::DependsOnRho,
        (Outcome::Holds, Outcome::Holds) => Result::Holds,
    };
    let invariant = matches!(row.claim.test, Test::Invariant { .. });
    Some(Tested {
        claim: row.claim.id,
        constants: row.form.map(theory::Form::name),
        at: row.at.map(|at| at.to_string()),
        t: row.t,
        delta: (!invariant).then(|| row.delta.get()),
        result,
        invariant,
    })
}
