//! The registry of claims: every statement of the paper that trials can test, the steps of its
//! proofs, and the invariants of our own code.
//!
//! A claim is a named statement with its place in the paper, its hypotheses, the failure
//! probability it allows, and a predicate on a [`Measurement`]. Steps are taken at
//! tau = argmin_{s <= T} k_{s-1}(x_s), with iota_{tau-1} and b_{tau-1}.

mod applicability;
mod claim;
mod context;
mod invariant;
mod lemma;
mod pi;
mod simple;
mod steps;
mod ucb;

pub use claim::{Budget, Claim, Origin, Outcome, Predicate, Scope, Test};
pub use context::{Acquisition, At, Conditions, Context, Design, Method, Setting};

use crate::Measurement;

/// Every claim, in the order in which reports list them.
pub fn all() -> impl Iterator<Item = &'static Claim> {
    [lemma::CLAIMS, ucb::CLAIMS, pi::CLAIMS, simple::CLAIMS, invariant::CLAIMS]
        .into_iter()
        .flatten()
}

/// The claim of that id.
pub fn find(id: &str) -> Option<&'static Claim> {
    all().find(|claim| claim.id == id)
}

/// The claims whose id matches a glob, in which `*` stands for any text. A glob that ends in `.*`
/// names a statement with the steps of its proof: `lemma1.*` also matches `lemma1/step.K`.
pub fn matching(glob: &str) -> impl Iterator<Item = &'static Claim> {
    let steps = glob.strip_suffix(".*").map(|statement| format!("{statement}/*"));
    all().filter(move |claim| {
        matches(glob, claim.id) || steps.as_ref().is_some_and(|steps| matches(steps, claim.id))
    })
}

/// Whether `text` matches `glob`, piece by piece between the stars.
fn matches(glob: &str, text: &str) -> bool {
    let Some((head, tail)) = glob.split_once('*') else {
        return glob == text;
    };
    let Some(rest) = text.strip_prefix(head) else {
        return false;
    };
    rest.char_indices().map(|(at, _)| &rest[at..]).chain([""]).any(|end| matches(tail, end))
}

/// `Holds` or `Violated`, or `NotApplicable` where the comparison has no operands.
fn outcome(holds: Option<bool>) -> Outcome {
    match holds {
        Some(true) => Outcome::Holds,
        Some(false) => Outcome::Violated,
        None => Outcome::NotApplicable,
    }
}

/// The regret bound that a claim speaks of, for one trial.
type Bound = fn(&Context, &Measurement) -> Option<f64>;

#[cfg(test)]
mod tests;
