//! The registry of claims: every statement of the paper that trials can test, the steps of its
//! proofs, and the invariants of our own code.
//!
//! A claim is a named statement with its place in the paper, its hypotheses, the failure
//! probability it allows, and a predicate on a [`Measurement`](crate::Measurement). Steps are taken at
//! tau = argmin_{s <= T} k_{s-1}(x_s), with iota_{tau-1} and b_{tau-1}.

mod applicability;
mod claim;
mod context;
mod invariant;
mod lemma;
mod pi;
mod simple;
mod steps;
mod trial;
mod ucb;

pub use claim::{Budget, Claim, Origin, Outcome, Scope, Test};
pub use context::{
    Acquisition, At, Barrier, Conditions, Constants, Context, Design, Method, Setting,
};
pub use trial::{LANES, Predicate, Quantities, Quantity, Statistic, Trial, Trials};

use crate::measurement::CompactNoise;
use trial::{predicate, statistic};

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
#[inline(always)]
fn outcome(holds: Option<bool>) -> Outcome {
    match holds {
        Some(true) => Outcome::Holds,
        Some(false) => Outcome::Violated,
        None => Outcome::NotApplicable,
    }
}

/// sigma_bar^2 of a trial of the compact setting.
#[inline]
fn compact_noise(m: &impl Trial) -> Option<CompactNoise> {
    let (star, tau) = (m.get(Quantity::SigmaBarStar), m.value(Quantity::SigmaBarTau));
    star.map(|star| CompactNoise { star, tau })
}

/// The bound of a claim about regret, for tightness and vacuity.
#[derive(Clone, Copy, Debug)]
pub struct RegretBound {
    /// Whether it is about simple regret R_T rather than best-sample regret r_T.
    pub simple: bool,
    /// Its bound, which may depend on the trial.
    pub bound: Statistic,
}

impl RegretBound {
    const fn best_sample(bound: Statistic) -> Self {
        Self { simple: false, bound }
    }

    const fn simple(bound: Statistic) -> Self {
        Self { simple: true, bound }
    }

    /// The regret that it bounds.
    pub const fn regret(self) -> Quantity {
        if self.simple { Quantity::SimpleRegret } else { Quantity::BestSampleRegret }
    }

    /// Whether trials' regrets are within their bounds, NaN for none.
    pub fn within(self, trials: &Trials, bounds: &[f64; LANES], outcomes: &mut [Outcome; LANES]) {
        let pairs = trials.column(self.regret()).iter().zip(bounds);
        for (result, (&regret, &bound)) in outcomes.iter_mut().zip(pairs) {
            *result = outcome((!bound.is_nan()).then_some(is_within(regret, bound)));
        }
    }
}

/// A regret bound holds.
#[inline]
fn is_within(regret: f64, bound: f64) -> bool {
    regret <= bound
}

#[cfg(test)]
mod tests;
