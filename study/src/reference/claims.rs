//! `docs/claims.md`: the registry, statement by statement, with the steps of a proof below what they prove.

use theory::Form;
use theory::claims::{self, Claim, Scope, Test};

use super::{Block, code, table};

/// What the parts of the page are called, and how the ids of their claims begin.
const PARTS: [(&str, &[&str]); 7] = [
    ("Lemma 1", &["lemma1.", "lemma1/"]),
    ("Theorem 2", &["theorem2."]),
    ("Lemma 3", &["lemma3.", "lemma3/"]),
    ("Theorem 4", &["theorem4."]),
    ("Lemma 5", &["lemma5."]),
    ("Theorems 2 and 4 with Lemma 5", &["theorem2+", "theorem4+"]),
    ("Invariants", &["invariant."]),
];

/// The generated part of `docs/claims.md`.
pub fn claims() -> Vec<Block> {
    let parts = PARTS.iter().map(|(title, starts)| {
        let of_part: Vec<&Claim> = claims::all()
            .filter(|claim| starts.iter().any(|start| claim.id.starts_with(start)))
            .collect();
        format!("## {title}\n\n{}", part(&of_part).join("\n"))
    });
    vec![Block { name: "claims", text: parts.collect::<Vec<_>>().join("\n") }]
}

/// Statements in the order of the registry; steps after the last statement that they belong to.
fn part(claims: &[&Claim]) -> Vec<String> {
    let is_step = |claim: &&&Claim| claim.id.contains("/step.");
    let mut texts = Vec::new();
    let mut proofs: Vec<&str> = Vec::new();
    for claim in claims.iter().filter(|claim| !is_step(claim)) {
        texts.push(statement(claim));
        proofs.push(claim.id);
        texts.extend(steps(claim.id, claims));
    }
    // Steps of a lemma whose statements share a proof.
    let shared = claims.iter().filter(is_step).filter_map(|claim| claim.id.split_once('/'));
    let mut shared: Vec<&str> =
        shared.map(|(proof, _)| proof).filter(|proof| !proofs.contains(proof)).collect();
    shared.dedup();
    texts.extend(shared.into_iter().filter_map(|proof| steps(proof, claims)));
    texts
}

fn statement(claim: &Claim) -> String {
    let mut lines = vec![
        format!("- Place: {}. Origin: {}.", claim.place, claim.origin.name()),
        format!("- Under: {}.", claim.hypotheses),
        format!("- {}", tested(claim)),
    ];
    if let Some(forms) = forms(claim) {
        lines.push(format!("- Constants: {forms}."));
    }
    format!(
        "### `{}`\n\n`{}`\n\n```math\n{}\n```\n\n{}\n",
        claim.id,
        claim.statement,
        claim.latex,
        lines.join("\n")
    )
}

/// How a claim is put to the test, and where.
fn tested(claim: &Claim) -> String {
    let at: Vec<String> = claim.at.iter().map(|at| code(&at.to_string())).collect();
    let at = if at.is_empty() { String::new() } else { format!(", at {}", at.join(", ")) };
    let scope = match claim.scope {
        Scope::EachT => format!("at each t{at}"),
        Scope::Horizon => format!("in a run of horizon T{at}"),
    };
    match claim.test {
        Test::Probability { budget, .. } => {
            format!("May fail with probability {budget}, {scope}.")
        }
        Test::Mean { expected, .. } => {
            format!("The mean of a statistic over trials, expected to be {expected}, {scope}.")
        }
        Test::Invariant { allowance, .. } => {
            format!(
                "Holds in every trial up to a relative rounding error of {allowance:e}, {scope}."
            )
        }
    }
}

fn forms(claim: &Claim) -> Option<String> {
    let names: Vec<&str> = claim.forms.iter().copied().map(Form::name).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// The steps of a proof: a table for each set of hypotheses; `None` where there are none.
fn steps(proof: &str, claims: &[&Claim]) -> Option<String> {
    let of_proof = |claim: &&&Claim| claim.id.split_once('/').is_some_and(|(of, _)| of == proof);
    let steps: Vec<&Claim> = claims.iter().filter(of_proof).copied().collect();
    let under = |step: &Claim| (step.hypotheses, step.origin);
    let tables = steps.chunk_by(|a, b| under(a) == under(b)).map(|alike| {
        let (hypotheses, origin) = under(alike[0]);
        let title = format!("Steps of the proof of `{proof}` (origin: {})", origin.name());
        format!("{title}, under: {hypotheses}.\n\n{}", steps_table(alike))
    });
    (!steps.is_empty()).then(|| tables.collect::<Vec<_>>().join("\n"))
}

fn steps_table(steps: &[&Claim]) -> String {
    let rows = steps.iter().map(|step| {
        let budget = step.budget().map_or_else(String::new, |budget| budget.to_string());
        let forms = forms(step).unwrap_or_default();
        [code(step.id), code(step.statement), budget, forms, step.place.to_owned()]
    });
    table(["step", "statement", "may fail with probability", "constants", "place"], rows)
}
