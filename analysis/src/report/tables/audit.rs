//! The proof audit: a row per step.

use super::{size, verdict};
use crate::Analysis;
use crate::audit::Step;
use crate::tables::{Align, Cell, Column, Table, Words};

pub(super) fn table(analysis: &Analysis) -> Table {
    let column = |key: &str, head: &str, align| Column::new(key, head, align);
    let mut table = Table::new(
        "proof-audit",
        "Proof audit: each step with what the paper budgets for it and the largest share of trials that violates it, \
         relative to that budget, over all places of the study",
        vec![
            column("claim", "step", Align::Left),
            column("constants", "constants", Align::Left),
            column("at", "at", Align::Left),
            column("statement", "statement", Align::Wrap),
            column("budget", "budget", Align::Center),
            column("allowed", "allowed", Align::Right),
            column("violated", "violated", Align::Right),
            column("where", "where", Align::Left),
            column("verdict", "verdict there", Align::Center),
            column("refuted", "refuted", Align::Right),
            column("confirmed", "confirmed", Align::Right),
            column("undecided", "undecided", Align::Right),
            column("refuted_under_conclusion", "refuted though conclusion holds", Align::Right),
        ],
    );
    for audit in &analysis.audits {
        table.group(audit.title);
        for step in &audit.conclusions {
            table.push(row(step, true));
        }
        for step in &audit.steps {
            table.push(row(step, false));
        }
    }
    table
}

fn row(step: &Step, conclusion: bool) -> Vec<Cell> {
    let worst = &step.worst;
    let coverage = worst.coverage.unwrap_or(1.0);
    let error = worst.coverage_se().unwrap_or(0.0);
    let optional = |value: &Option<String>| value.as_deref().map_or(Cell::Empty, Cell::text);
    let name = match (conclusion, step.design.as_str()) {
        (true, _) => format!("{} (conclusion)", step.claim),
        (false, "adaptive") if step.claim.starts_with("lemma1") => {
            format!("{} (in use)", step.claim)
        }
        _ => step.claim.clone(),
    };
    vec![
        Cell::text(name),
        optional(&step.constants),
        optional(&step.at),
        Cell::text(Words::math(step.statement, step.latex)),
        Cell::text(step.budget.as_str()),
        Cell::Number { value: 1.0 - worst.required.unwrap_or(1.0), digits: 3 },
        Cell::Estimate { value: 1.0 - coverage, error },
        Cell::text(place(step)),
        verdict(step.verdict()),
        size(step.refuted),
        size(step.confirmed),
        size(step.undecided),
        if conclusion { Cell::Empty } else { size(step.refuted_under_conclusion) },
    ]
}

fn place(step: &Step) -> String {
    let worst = &step.worst;
    let mut place = Vec::new();
    if let Some(n) = worst.n {
        place.push(format!("N = {n}"));
    }
    if let Some(t) = worst.t {
        place.push(format!("t = {t}"));
    }
    if let Some(delta) = worst.delta {
        place.push(format!("δ = {delta}"));
    }
    place.join(", ")
}
