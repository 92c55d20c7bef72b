//! Claims with the number of their verdicts: conclusions first, what uses them apart.

use std::collections::BTreeMap;

use super::{number, size, text};
use crate::Analysis;
use crate::tables::{Align, Cell, Column, Table};
use crate::verdicts::{Kind, VerdictRow};

type Key<'a> = (usize, String, Option<&'a str>, Option<&'a str>);

pub(super) fn tables(analysis: &Analysis) -> Vec<Table> {
    let own = "Verdicts by claim and form of the constants, over all cells, t and δ, for statements under their own \
               hypotheses; lowest coverage relative to what is required there";
    let used = "Verdicts on Lemma 1 at points that the method chose, as the theorem uses it: not the lemma's own hypothesis";
    vec![
        table(analysis, "summary", own, Kind::Conclusion),
        table(analysis, "summary-use", used, Kind::Use),
    ]
}

fn table(analysis: &Analysis, id: &str, caption: &str, kind: Kind) -> Table {
    let column = |key: &str, head: &str, align| Column::new(key, head, align);
    // Under its own hypotheses a statement is about one point, which its name tells.
    let shows_point = kind == Kind::Use;
    let mut columns =
        vec![column("claim", "claim", Align::Left), column("constants", "constants", Align::Left)];
    columns.extend(shows_point.then(|| column("at", "at", Align::Left)));
    columns.extend([
        column("confirmed", "confirmed", Align::Right),
        column("refuted", "refuted", Align::Right),
        column("undecided", "undecided", Align::Right),
        column("lowest_coverage", "lowest coverage", Align::Right),
        column("required", "required", Align::Right),
        column("exact_coverage", "exact", Align::Right),
    ]);
    let mut table = Table::new(id, caption, columns);
    let rows: Vec<&VerdictRow> =
        analysis.verdicts.iter().filter(|row| row.kind() == kind).collect();
    for (key, rows) in groups(&rows) {
        let (_, name, constants, at) = key;
        let count = |verdict: &str| size(rows.iter().filter(|row| row.verdict == verdict).count());
        let gap = |row: &VerdictRow| row.coverage.zip(row.required).map_or(1.0, |(c, r)| c - r);
        let lowest = rows
            .iter()
            .filter(|row| row.coverage.is_some())
            .min_by(|a, b| gap(a).total_cmp(&gap(b)));
        let coverage = lowest.and_then(|row| {
            Some(Cell::Estimate { value: row.coverage?, error: row.coverage_se()? })
        });
        let mut cells = vec![Cell::text(name), text(constants)];
        cells.extend(shows_point.then(|| text(at)));
        cells.extend([
            count("confirmed"),
            count("refuted"),
            count("undecided"),
            coverage.unwrap_or(Cell::Empty),
            number(lowest.and_then(|row| row.required), 4),
            number(lowest.and_then(|row| row.exact_coverage), 4),
        ]);
        table.push(cells);
    }
    table
}

/// Rows with a verdict, in the order in which they come.
fn groups<'a>(verdicts: &[&'a VerdictRow]) -> BTreeMap<Key<'a>, Vec<&'a VerdictRow>> {
    let mut seen: Vec<&str> = Vec::new();
    let mut groups: BTreeMap<Key<'_>, Vec<&VerdictRow>> = BTreeMap::new();
    for row in verdicts.iter().filter(|row| row.verdict != "not-applicable") {
        let claim = row.claim.as_str();
        let place = seen.iter().position(|known| *known == claim).unwrap_or_else(|| {
            seen.push(claim);
            seen.len() - 1
        });
        let key = (place, row.name(), row.constants.as_deref(), row.at.as_deref());
        groups.entry(key).or_default().push(row);
    }
    groups
}
