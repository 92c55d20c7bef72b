//! Claims with the number of their verdicts: the first thing that a reader sees.

use std::collections::BTreeMap;

use super::{number, text};
use crate::Analysis;
use crate::tables::{Align, Cell, Column, Table};
use crate::verdicts::VerdictRow;

type Key<'a> = (usize, &'a str, Option<&'a str>, Option<&'a str>, &'a str, bool);

pub(super) fn table(analysis: &Analysis) -> Table {
    let column = |key: &str, head: &str, align| Column::new(key, head, align);
    let mut table = Table::new(
        "summary",
        "Verdicts by claim, form of the constants and point, over all cells, t and δ; lowest coverage with what is \
         required there",
        vec![
            column("claim", "claim", Align::Left),
            column("constants", "constants", Align::Left),
            column("at", "at", Align::Left),
            column("design", "design", Align::Left),
            column("confirmed", "confirmed", Align::Right),
            column("refuted", "refuted", Align::Right),
            column("undecided", "undecided", Align::Right),
            column("lowest_coverage", "lowest coverage", Align::Right),
            column("required", "required", Align::Right),
            column("exact_coverage", "exact", Align::Right),
        ],
    );
    for (key, rows) in groups(&analysis.verdicts) {
        let (_, claim, constants, at, design, exploratory) = key;
        let count = |verdict: &str| {
            Cell::Integer(rows.iter().filter(|row| row.verdict == verdict).count() as i64)
        };
        let gap = |row: &VerdictRow| row.coverage.zip(row.required).map(|(c, r)| c - r);
        let lowest = rows
            .iter()
            .filter(|row| row.coverage.is_some())
            .min_by(|a, b| gap(a).unwrap_or(1.0).total_cmp(&gap(b).unwrap_or(1.0)));
        let coverage = lowest.and_then(|row| {
            Some(Cell::Estimate { value: row.coverage?, error: row.coverage_se()? })
        });
        let name = if exploratory { format!("{claim} (exploratory)") } else { claim.to_owned() };
        table.push(vec![
            Cell::text(name),
            text(constants),
            text(at),
            text(Some(design)),
            count("confirmed"),
            count("refuted"),
            count("undecided"),
            coverage.unwrap_or(Cell::Empty),
            number(lowest.and_then(|row| row.required), 4),
            number(lowest.and_then(|row| row.exact_coverage), 4),
        ]);
    }
    table
}

/// Rows with a verdict, in the order in which they come.
fn groups(verdicts: &[VerdictRow]) -> BTreeMap<Key<'_>, Vec<&VerdictRow>> {
    let mut seen: Vec<&str> = Vec::new();
    let mut groups: BTreeMap<Key<'_>, Vec<&VerdictRow>> = BTreeMap::new();
    for row in verdicts.iter().filter(|row| row.verdict != "not-applicable") {
        let claim = row.claim.as_str();
        let place = seen.iter().position(|known| *known == claim).unwrap_or_else(|| {
            seen.push(claim);
            seen.len() - 1
        });
        let key = (
            place,
            claim,
            row.constants.as_deref(),
            row.at.as_deref(),
            row.design.as_str(),
            row.exploratory,
        );
        groups.entry(key).or_default().push(row);
    }
    groups
}
