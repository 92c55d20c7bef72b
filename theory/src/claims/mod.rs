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
pub use context::{
    Acquisition, At, Barrier, Conditions, Constants, Context, Design, Method, Setting,
};

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

/// The claims whose id a glob names.
pub fn matching(glob: &str) -> impl Iterator<Item = &'static Claim> {
    all().filter(move |claim| names(glob, claim.id))
}

/// Whether a glob, in which `*` stands for any text, names a claim. One that ends in `.*` names a
/// statement with the steps of its proof: `lemma1.*` also names `lemma1/step.K`.
pub fn names(glob: &str, id: &str) -> bool {
    let step = || {
        let rest = glob.strip_suffix(".*")?;
        // The steps of a statement stand behind a slash: some split of the id at one must match.
        id.match_indices('/').find(|&(at, _)| matches(rest, &id[..at]))
    };
    matches(glob, id) || step().is_some()
}

/// Whether `text` matches `glob`. The leftmost place of each piece between the stars leaves the most
/// to the pieces after it, so no other needs to be tried.
fn matches(glob: &str, text: &str) -> bool {
    let mut pieces = glob.split('*');
    let head = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(head) else {
        return false;
    };
    let Some(tail) = pieces.next_back() else {
        return rest.is_empty();
    };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(tail)
}

/// `Holds` or `Violated`, or `NotApplicable` where the comparison has no operands.
fn outcome(holds: Option<bool>) -> Outcome {
    match holds {
        Some(true) => Outcome::Holds,
        Some(false) => Outcome::Violated,
        None => Outcome::NotApplicable,
    }
}

/// The bound of a claim about regret, for tightness and vacuity.
#[derive(Clone, Copy, Debug)]
pub struct RegretBound {
    /// Whether it is about simple regret R_T rather than best-sample regret r_T.
    pub simple: bool,
    /// Its bound, which may depend on the trial.
    pub bound: fn(&Context, &Measurement) -> Option<f64>,
}

impl RegretBound {
    const fn best_sample(bound: fn(&Context, &Measurement) -> Option<f64>) -> Self {
        Self { simple: false, bound }
    }

    const fn simple(bound: fn(&Context, &Measurement) -> Option<f64>) -> Self {
        Self { simple: true, bound }
    }

    /// The regret of a trial.
    pub fn regret(self, m: &Measurement) -> f64 {
        if self.simple { m.simple_regret } else { m.best_sample_regret }
    }

    /// Whether a trial's regret is within the bound.
    fn holds(self, context: &Context, m: &Measurement) -> Outcome {
        self.within(m, (self.bound)(context, m))
    }

    /// The same for a bound that is known.
    pub fn within(self, m: &Measurement, bound: Option<f64>) -> Outcome {
        outcome(bound.map(|bound| self.regret(m) <= bound))
    }
}

#[cfg(test)]
mod tests;
