//! What a claim is.

use super::{At, Barrier, Conditions, Context, Predicate, RegretBound, Setting, Statistic};
use crate::{Delta, Form, Measurement};
use std::fmt;

/// Where a claim comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Stated in the paper.
    Stated,
    /// A step of a proof, with the budget that its union bound gives it; where the paper is silent
    /// the split is ours, and the claim's `place` says so.
    ProofSplit,
    /// Ours.
    Ours,
}

impl Origin {
    /// The word used in `verdicts.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stated => "stated",
            Self::ProofSplit => "proof split",
            Self::Ours => "ours",
        }
    }
}

/// A failure probability that is a fraction of delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Budget {
    /// delta is multiplied by this.
    pub times: u32,
    /// And divided by this.
    pub over: u32,
}

impl Budget {
    /// delta times `times`/`over`.
    pub const fn share(times: u32, over: u32) -> Self {
        Self { times, over }
    }

    /// The probability at a given delta; at 1 or above the claim says nothing.
    pub fn at(self, delta: Delta) -> f64 {
        delta.get() * f64::from(self.times) / f64::from(self.over)
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.times, self.over) {
            (0, _) => f.pad("0"),
            (1, 1) => f.pad("δ"),
            (1, over) => f.pad(&format!("δ/{over}")),
            (times, 1) => f.pad(&format!("{times}δ")),
            (times, over) => f.pad(&format!("{times}δ/{over}")),
        }
    }
}

/// What one trial says about a claim.
///
/// Numbered as the compiler numbers an optional truth value, so that making one of the other is nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Outcome {
    /// The statement held.
    Holds = 1,
    /// It did not.
    Violated = 0,
    /// The trial has no such quantity (x* already observed, no next point, no estimate).
    NotApplicable = 2,
}

/// How a claim is tested.
#[derive(Clone, Copy, Debug)]
pub enum Test {
    /// The violation rate against a budget.
    Probability {
        /// The allowed failure probability.
        budget: Budget,
        /// Whether a trial satisfies the statement.
        holds: Predicate,
    },
    /// The mean of a statistic against its expectation; fixed n.
    Mean {
        /// The statistic of a trial.
        statistic: Statistic,
        /// What its mean should be.
        expected: f64,
    },
    /// True in every trial: one violation is a bug of ours.
    Invariant {
        /// Whether a trial satisfies it.
        holds: Predicate,
        /// The relative rounding error that it is allowed.
        allowance: f64,
    },
}

/// Whether a claim is made at every t or about a whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// About the estimators given t observations.
    EachT,
    /// About a run of horizon T = t.
    Horizon,
}

/// A named, testable statement.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Its name in studies and reports.
    pub id: &'static str,
    /// Where the paper says it.
    pub place: &'static str,
    /// Who says it.
    pub origin: Origin,
    /// What it says, in Unicode.
    pub statement: &'static str,
    /// The same in LaTeX, without delimiters.
    pub latex: &'static str,
    /// Under which hypotheses, in words.
    pub hypotheses: &'static str,
    /// The setting it is about; `None` for both.
    pub setting: Option<Setting>,
    /// The forms of constants in which it exists; empty where it has no constant to choose.
    pub forms: &'static [Form],
    /// The points at which it is evaluated; empty where it names its own.
    pub at: &'static [At],
    /// Whether it is made at each t or at the horizon.
    pub scope: Scope,
    /// How it is tested.
    pub test: Test,
    /// The regret bound it speaks of, for tightness and vacuity.
    pub bound: Option<RegretBound>,
    /// The hypotheses as a check, with the reason where they do not hold.
    pub(super) check: fn(&Conditions) -> Result<(), String>,
}

impl Claim {
    /// Whether the claim is made in this context at all; if not, why, and what would be.
    pub fn applies(&self, context: &Context) -> Result<(), String> {
        self.applies_under(&context.conditions)
    }

    /// The same from the conditions alone, which is all that applicability depends on; of c and rho
    /// only whether rho is there matters.
    pub fn applies_under(&self, conditions: &Conditions) -> Result<(), String> {
        if self.setting.is_some_and(|setting| setting != conditions.setting) {
            return Err(format!("{} is not about the {} setting", self.id, conditions.setting));
        }
        if !self.forms.is_empty() && !self.forms.contains(&conditions.form) {
            return Err(format!("{} has no {} constants", self.id, conditions.form));
        }
        match conditions.at {
            Some(at) if !self.at.contains(&at) => {
                return Err(format!("{} is not evaluated at {at}", self.id));
            }
            None if !self.at.is_empty() => {
                return Err(format!("{} needs a point to be evaluated at", self.id));
            }
            _ => {}
        }
        if let Test::Probability { budget, .. } = self.test
            && budget.at(conditions.delta) >= 1.0
        {
            let most = f64::from(budget.over) / f64::from(budget.times);
            return Err(format!(
                "a failure probability of {budget} = {} is no claim; use delta < {most}",
                budget.at(conditions.delta)
            ));
        }
        (self.check)(conditions)?;
        match conditions.barrier {
            Some(barrier) if barrier == Barrier::RealData || self.is_about_estimates() => {
                Err(barrier.reason().to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Whether the claim is about estimators, or about runs that use them.
    fn is_about_estimates(&self) -> bool {
        !self.id.starts_with("lemma5") && !matches!(self.test, Test::Invariant { .. })
    }

    /// The allowed failure probability, where there is one.
    pub fn budget(&self) -> Option<Budget> {
        match self.test {
            Test::Probability { budget, .. } => Some(budget),
            Test::Mean { .. } | Test::Invariant { .. } => None,
        }
    }

    /// What one trial says; `NotApplicable` for claims about a mean.
    pub fn evaluate(&self, context: &Context, measurement: &Measurement) -> Outcome {
        match self.test {
            Test::Probability { holds, .. } | Test::Invariant { holds, .. } => {
                (holds.one)(context, measurement)
            }
            Test::Mean { .. } => Outcome::NotApplicable,
        }
    }
}
