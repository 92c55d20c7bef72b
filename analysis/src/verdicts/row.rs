//! One verdict, as `verdicts.json` has it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::description::Scalar;

/// A claim at one place of the study, and what the trials say about it. `None` where a value does not
/// apply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VerdictRow {
    /// The claim's id.
    pub claim: String,
    /// "stated", "proof split" or "ours".
    pub origin: String,
    /// The form of the constants: "printed", "corrected" or "sharp".
    pub constants: Option<String>,
    /// Where Lemma 1 is evaluated: "probe", "x_star", "x_next" or "x_observed".
    pub at: Option<String>,
    /// "all", or "x_star_unseen" for descriptive rows.
    pub among: String,
    /// N.
    #[serde(rename = "N")]
    pub n: Option<u64>,
    /// t; the horizon of claims about regret, `None` for claims about all t at once.
    pub t: Option<u32>,
    /// delta.
    pub delta: Option<f64>,
    /// "finite" or "compact".
    pub setting: String,
    /// "fixed" or "adaptive".
    pub design: String,
    /// The method.
    pub method: String,
    /// The acquisition function.
    pub acquisition: Option<String>,
    /// The form of zeta_t with which the policy ran.
    pub policy_constants: Option<String>,
    /// The cell.
    pub cell: String,
    /// Trials with an answer.
    pub trials: Option<u64>,
    /// Trials that failed; not among `trials`.
    pub failures: Option<u64>,
    /// Violations; with rho's lower end where the claim depends on rho.
    pub violations: Option<u64>,
    /// 1 - violations/trials.
    pub coverage: Option<f64>,
    /// Lower end of the coverage's interval at level 1 - alpha.
    pub ci_low: Option<f64>,
    /// Upper end; with rho's upper end where the claim depends on rho.
    pub ci_high: Option<f64>,
    /// The coverage that is claimed: 1 - budget.
    pub required: Option<f64>,
    /// Largest log E against the claim over completed batches.
    pub log_e_refute: Option<f64>,
    /// Largest log E for it.
    pub log_e_confirm: Option<f64>,
    /// "refuted", "confirmed", "undecided", "not-applicable" or "inconsistent".
    pub verdict: String,
    /// Why it is not applicable, or what else should be known.
    pub reason: Option<String>,
    /// Whether its claim cannot be evaluated: not even the trials that there are decide it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unevaluated: bool,
    /// The coverage by the exact law, where one is known.
    pub exact_coverage: Option<f64>,
    /// How many times larger the bound is than the quantile that it bounds.
    pub tightness: Option<f64>,
    /// Whether even the worst possible regret satisfies the bound at the claimed level.
    pub vacuous: Option<bool>,
    /// All of it in a sentence.
    pub sentence: String,

    /// The prior's number in `priors.json`.
    pub prior: u32,
    /// Swept keys and their values.
    pub swept: BTreeMap<String, Scalar>,
    /// Violations with rho's upper end: what a refutation counts.
    pub violations_refuting: Option<u64>,
    /// How the interval is made: "clopper-pearson", "confidence-sequence" or "normal".
    pub interval: Option<String>,
    /// Whether the row was added after the data were seen; it is then judged in a family of its own.
    pub exploratory: bool,
    /// The digest of the earlier family that planned the row, where the present one does not.
    pub family: Option<String>,
    /// The replicates that count, from the first to before the second.
    pub replicates: Option<[u64; 2]>,
    /// The bound on regret (its mean over trials where it differs), with rho's lower end.
    pub bound: Option<f64>,
    /// The smallest factor by which the bound could shrink and still be confirmed.
    pub shrink: Option<f64>,
    /// Share of trials in which even the worst point satisfies the bound.
    pub worst_case_coverage: Option<f64>,
    /// Share of trials of random search that satisfy the bound.
    pub random_coverage: Option<f64>,
    /// For claims about a mean: the mean of the statistic.
    pub mean: Option<f64>,
    /// Its Monte-Carlo standard error.
    pub mean_se: Option<f64>,
    /// What it should be.
    pub mean_expected: Option<f64>,
    /// Within which margin of that it is called equal.
    pub mean_margin: Option<f64>,
    /// The constants that the predicate used: a_t; ends of the ratio's interval.
    pub limits: BTreeMap<String, f64>,
}

/// What a verdict is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A statement under its own hypotheses.
    Conclusion,
    /// A step of a proof.
    Step,
    /// A lemma at points that a method chose, as the theorem uses it: not its own hypothesis.
    Use,
}

impl VerdictRow {
    /// The Monte-Carlo standard error of the coverage.
    pub fn coverage_se(&self) -> Option<f64> {
        let coverage = self.coverage?;
        Some((coverage * (1.0 - coverage) / self.trials? as f64).sqrt())
    }

    /// What kind of statement the row is, for readers who look for conclusions first.
    pub fn kind(&self) -> Kind {
        let lemma = self.claim.starts_with("lemma1") || self.claim.starts_with("lemma3");
        if self.claim.contains("/step.") {
            Kind::Step
        } else if lemma && self.design == "adaptive" {
            Kind::Use
        } else {
            Kind::Conclusion
        }
    }

    /// Whether it is a verdict of the study's family.
    pub fn is_tested(&self) -> bool {
        self.verdict != "not-applicable" && self.is_planned()
    }

    /// Whether the study's family has it: it is neither exploratory nor of a family before.
    pub fn is_planned(&self) -> bool {
        !self.exploratory && self.family.is_none()
    }

    /// The claim, and what it counts as where it is not planned.
    pub fn name(&self) -> String {
        match (&self.family, self.exploratory) {
            (Some(_), _) => format!("{} (earlier)", self.claim),
            (None, true) => format!("{} (exploratory)", self.claim),
            (None, false) => self.claim.clone(),
        }
    }
}
