//! Coverage by t, with a row for every other axis: one table per family of claims.

use std::collections::BTreeSet;

use super::tone;
use crate::Analysis;
use crate::description::Scalar;
use crate::tables::{AxisValue, Cell, PivotRow, Table, Tone, pivot};
use crate::verdicts::VerdictRow;

/// The families, by what their ids begin with.
const FAMILIES: [(&str, &str, &str); 5] = [
    ("lemma1", "coverage-lemma1", "Coverage of Lemma 1 and of its proof's steps by t"),
    ("theorem2", "coverage-theorem2", "Coverage of Theorem 2 and of its proof's steps by T"),
    ("lemma5", "coverage-lemma5", "Coverage of Lemma 5 and of its proof's steps by T"),
    ("lemma3", "coverage-lemma3", "Coverage of Lemma 3 by t"),
    ("theorem4", "coverage-theorem4", "Coverage of Theorem 4 and of its proof's steps by T"),
];

pub(super) fn tables(analysis: &Analysis) -> Vec<Table> {
    let mut tables = Vec::new();
    let known =
        |row: &VerdictRow| FAMILIES.iter().any(|(family, ..)| row.claim.starts_with(family));
    for (family, id, caption) in FAMILIES {
        tables.extend(table(analysis, id, caption, |row| row.claim.starts_with(family)));
    }
    tables.extend(table(
        analysis,
        "coverage-own",
        "Coverage of the study's own claims by t",
        |row| !known(row),
    ));
    tables
}

fn table(
    analysis: &Analysis,
    id: &str,
    caption: &str,
    of: impl Fn(&VerdictRow) -> bool,
) -> Option<Table> {
    let rows: Vec<&VerdictRow> = analysis
        .verdicts
        .iter()
        .filter(|row| of(row) && row.coverage.is_some() && row.verdict != "not-applicable")
        .collect();
    if rows.is_empty() {
        return None;
    }
    let cells: Vec<PivotRow> =
        rows.iter().map(|row| PivotRow { axes: axes(row), cell: cell(row) }).collect();
    // Only axes along which something varies are worth a column; the claim always is.
    let varies = |axis: &str| {
        let values: BTreeSet<AxisValue> = cells.iter().map(|cell| value(cell, axis)).collect();
        values.len() > 1
    };
    let mut names: Vec<String> = cells[0].axes.iter().map(|(name, _)| name.clone()).collect();
    names.retain(|name| name != "t" && (name == "claim" || varies(name)));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut table = pivot(&cells, &names, "t").ok()?;
    id.clone_into(&mut table.id);
    caption.clone_into(&mut table.caption);
    table.note("* refuted, ? undecided, otherwise confirmed.");
    let fixed: Vec<String> = cells[0]
        .axes
        .iter()
        .filter(|(name, value)| {
            let implied = name == "exploratory" && value.label() == "no";
            name != "t" && name != "claim" && !varies(name) && *value != AxisValue::Null && !implied
        })
        .map(|(name, value)| format!("{name} = {}", value.label()))
        .collect();
    if !fixed.is_empty() {
        table.note(format!("All with {}.", fixed.join(", ")));
    }
    Some(table)
}

fn value(row: &PivotRow, axis: &str) -> AxisValue {
    let found = row.axes.iter().find(|(name, _)| name == axis);
    found.map_or(AxisValue::Null, |(_, value)| value.clone())
}

/// Every axis along which a verdict may lie, by the names of `verdicts.json`.
pub(crate) fn axes(row: &VerdictRow) -> Vec<(String, AxisValue)> {
    let text =
        |value: Option<&str>| value.map_or(AxisValue::Null, |text| AxisValue::Text(text.into()));
    let mut axes = vec![
        ("claim".to_owned(), text(Some(&row.claim))),
        ("constants".to_owned(), text(row.constants.as_deref())),
        ("at".to_owned(), text(row.at.as_deref())),
        ("among".to_owned(), text(Some(&row.among))),
        ("design".to_owned(), text(Some(&row.design))),
        ("method".to_owned(), text(Some(&row.method))),
        ("acquisition".to_owned(), text(row.acquisition.as_deref())),
        ("policy_constants".to_owned(), text(row.policy_constants.as_deref())),
    ];
    for (key, value) in &row.swept {
        let value = match value {
            Scalar::Integer(value) => AxisValue::Integer(*value),
            Scalar::Float(value) => AxisValue::Float(*value),
            Scalar::Text(value) => AxisValue::Text(value.clone()),
        };
        axes.push((key.clone(), value));
    }
    let number = |value: Option<f64>| value.map_or(AxisValue::Null, AxisValue::Float);
    let integer = |value: Option<u64>| {
        value.map_or(AxisValue::Null, |value| AxisValue::Integer(value.cast_signed()))
    };
    let counted = row.family.as_deref().map(|family| &family[..12.min(family.len())]);
    axes.push(("family".to_owned(), text(counted)));
    let exploratory = if row.exploratory { "yes" } else { "no" };
    axes.push(("exploratory".to_owned(), text(Some(exploratory))));
    axes.push(("N".to_owned(), integer(row.n)));
    axes.push(("delta".to_owned(), number(row.delta)));
    axes.push(("required".to_owned(), number(row.required)));
    axes.push(("t".to_owned(), integer(row.t.map(u64::from))));
    axes
}

/// A coverage with its error, marked by its verdict.
pub(crate) fn cell(row: &VerdictRow) -> Cell {
    match (row.coverage, row.coverage_se()) {
        (Some(value), Some(error)) => {
            let tone = tone(&row.verdict);
            let mark = match tone {
                Tone::Refuted => "*",
                Tone::Undecided => "?",
                Tone::Confirmed | Tone::Aside => "",
            };
            Cell::Judged { value, error, mark, tone }
        }
        _ => Cell::Empty,
    }
}
