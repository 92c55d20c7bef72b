//! The proof audit: every step of a proof against the probability that the paper budgets for it, and
//! which steps fail although the conclusion holds.

use std::collections::BTreeMap;

use theory::claims;

use crate::verdicts::VerdictRow;

/// A proof: its conclusion and the claims that are its steps.
struct Proof {
    title: &'static str,
    conclusion: &'static str,
    /// Ids, or beginnings of ids, of the steps.
    steps: &'static [&'static str],
}

const PROOFS: &[Proof] = &[
    Proof {
        title: "Lemma 1",
        conclusion: "lemma1.joint",
        steps: &["lemma1.mean", "lemma1.variance", "lemma1/step."],
    },
    Proof {
        title: "Theorem 2, GP-UCB",
        conclusion: "theorem2.ucb",
        steps: &["theorem2.ucb/step."],
    },
    Proof { title: "Theorem 2, PI", conclusion: "theorem2.pi", steps: &["theorem2.pi/step."] },
    Proof { title: "Lemma 5", conclusion: "lemma5.simple", steps: &["lemma5.simple/step."] },
    Proof {
        title: "Lemma 3",
        conclusion: "lemma3.joint",
        steps: &["lemma3.mean", "lemma3.variance", "lemma3/step."],
    },
    Proof {
        title: "Theorem 4, GP-UCB",
        conclusion: "theorem4.ucb",
        steps: &["theorem4.ucb/step."],
    },
    Proof { title: "Theorem 4, PI", conclusion: "theorem4.pi", steps: &["theorem4.pi/step."] },
];

/// The audit of one proof.
#[derive(Clone, Debug)]
pub struct Audit {
    /// Which proof.
    pub title: &'static str,
    /// The conclusion, in each form that was tested.
    pub conclusions: Vec<Step>,
    /// The steps, in the order of the registry.
    pub steps: Vec<Step>,
}

/// A statement over all places of the study at which it was tested.
#[derive(Clone, Debug)]
pub struct Step {
    /// The claim.
    pub claim: String,
    /// The form of its constants.
    pub constants: Option<String>,
    /// The point at which it is evaluated.
    pub at: Option<String>,
    /// The design, which makes it the lemma itself or its use.
    pub design: String,
    /// The statement, in Unicode.
    pub statement: &'static str,
    /// The same in LaTeX.
    pub latex: &'static str,
    /// What the paper budgets, as a share of delta.
    pub budget: String,
    /// Places at which it was refuted.
    pub refuted: usize,
    /// Places at which it was confirmed.
    pub confirmed: usize,
    /// Places at which it is undecided.
    pub undecided: usize,
    /// Places at which it was refuted although the conclusion was confirmed there.
    pub refuted_under_conclusion: usize,
    /// The place at which it was violated most, relative to its budget.
    pub worst: VerdictRow,
}

impl Step {
    /// The verdict at the worst place decides how a step is shown.
    pub fn verdict(&self) -> &str {
        &self.worst.verdict
    }
}

/// The audits of all proofs of which a step was tested.
pub fn audits(verdicts: &[VerdictRow]) -> Vec<Audit> {
    let tested: Vec<&VerdictRow> =
        verdicts.iter().filter(|row| row.is_tested() && row.coverage.is_some()).collect();
    PROOFS.iter().filter_map(|proof| audit(proof, &tested)).collect()
}

fn audit(proof: &Proof, tested: &[&VerdictRow]) -> Option<Audit> {
    let is_step = |row: &&&VerdictRow| {
        proof
            .steps
            .iter()
            .any(|step| row.claim == *step || (step.ends_with('.') && row.claim.starts_with(step)))
    };
    let conclusions: Vec<&VerdictRow> =
        tested.iter().copied().filter(|row| row.claim == proof.conclusion).collect();
    let steps = collect(tested.iter().filter(is_step).copied(), &conclusions);
    if steps.is_empty() {
        return None;
    }
    let conclusions = collect(conclusions.iter().copied(), &[]);
    Some(Audit { title: proof.title, conclusions, steps })
}

/// Rows by statement.
fn collect<'a>(
    rows: impl Iterator<Item = &'a VerdictRow>,
    conclusions: &[&VerdictRow],
) -> Vec<Step> {
    type Key = (usize, Option<String>, Option<String>, String);
    let order: BTreeMap<&str, usize> =
        claims::all().enumerate().map(|(place, claim)| (claim.id, place)).collect();
    let mut groups: BTreeMap<Key, Vec<&VerdictRow>> = BTreeMap::new();
    for row in rows {
        let place = order.get(row.claim.as_str()).copied().unwrap_or(usize::MAX);
        let key = (place, row.constants.clone(), row.at.clone(), row.design.clone());
        groups.entry(key).or_default().push(row);
    }
    groups.into_values().filter_map(|rows| step(&rows, conclusions)).collect()
}

fn step(rows: &[&VerdictRow], conclusions: &[&VerdictRow]) -> Option<Step> {
    let claim = claims::find(&rows.first()?.claim)?;
    let count = |verdict: &str| rows.iter().filter(|row| row.verdict == verdict).count();
    let under = |row: &&&VerdictRow| row.verdict == "refuted" && conclusion_holds(row, conclusions);
    let worst = rows.iter().max_by(|a, b| excess(a).total_cmp(&excess(b)))?;
    Some(Step {
        claim: claim.id.to_owned(),
        constants: worst.constants.clone(),
        at: worst.at.clone(),
        design: worst.design.clone(),
        statement: claim.statement,
        latex: claim.latex,
        budget: claim.budget().map_or_else(String::new, |budget| budget.to_string()),
        refuted: count("refuted"),
        confirmed: count("confirmed"),
        undecided: count("undecided"),
        refuted_under_conclusion: rows.iter().filter(under).count(),
        worst: (*worst).clone(),
    })
}

/// How far a row is beyond its budget: the ratio of measured to allowed violations.
fn excess(row: &VerdictRow) -> f64 {
    let violated = 1.0 - row.coverage.unwrap_or(1.0);
    let allowed = 1.0 - row.required.unwrap_or(1.0);
    if violated == 0.0 { 0.0 } else { violated / allowed }
}

/// Whether the conclusion was confirmed at the same cell, t and delta, in the step's form or, where
/// either has none, in any.
fn conclusion_holds(step: &VerdictRow, conclusions: &[&VerdictRow]) -> bool {
    let same = |row: &&&VerdictRow| {
        let form = match (&row.constants, &step.constants) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        form && row.cell == step.cell
            && (row.t, row.delta) == (step.t, step.delta)
            && (row.at.is_none() || step.at.is_none() || row.at == step.at)
    };
    conclusions.iter().filter(same).any(|row| row.verdict == "confirmed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(claim: &str, verdict: &str, coverage: f64, t: u32) -> VerdictRow {
        VerdictRow {
            claim: claim.into(),
            verdict: verdict.into(),
            coverage: Some(coverage),
            required: Some(0.9),
            t: Some(t),
            delta: Some(0.1),
            cell: "c".into(),
            trials: Some(100),
            ..VerdictRow::default()
        }
    }

    #[test]
    fn a_step_may_fail_where_the_conclusion_holds() {
        let verdicts = [
            row("theorem2.ucb", "confirmed", 1.0, 5),
            row("theorem2.ucb", "undecided", 0.9, 20),
            row("theorem2.ucb/step.f-star", "refuted", 0.5, 5),
            row("theorem2.ucb/step.f-star", "refuted", 0.4, 20),
            row("theorem2.ucb/step.f-tau", "confirmed", 1.0, 5),
        ];
        let audits = audits(&verdicts);
        let [audit] = audits.as_slice() else { panic!("{audits:?}") };
        let [star, tau] = audit.steps.as_slice() else { panic!("{audit:?}") };
        assert_eq!((star.refuted, star.refuted_under_conclusion), (2, 1));
        assert_eq!(star.worst.t, Some(20));
        assert_eq!((tau.confirmed, tau.refuted_under_conclusion), (1, 0));
        assert_eq!(audit.conclusions[0].confirmed, 1);
    }
}
