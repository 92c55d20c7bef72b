//! Regret bounds: what they promise, what happens, and whether they say anything.

use super::{exact, integer, number, text, verdict};
use crate::Analysis;
use crate::tables::{Align, Cell, Column, Table};

pub(super) fn table(analysis: &Analysis) -> Table {
    let column = |key: &str, head: &str, align| Column::new(key, head, align);
    let mut table = Table::new(
        "regret-bounds",
        "Regret bounds against regret: tightness is the bound over the (1 − budget)-quantile of the regret; shrink is \
         the smallest factor by which the bound could shrink and still be confirmed; vacuous bounds are those that the \
         worst point of the domain satisfies at the claimed level",
        vec![
            column("claim", "claim", Align::Left),
            column("constants", "constants", Align::Left),
            column("policy_constants", "ζ_t", Align::Left),
            column("prior", "prior", Align::Right),
            column("N", "N", Align::Right),
            column("T", "T", Align::Right),
            column("delta", "δ", Align::Right),
            column("bound", "bound", Align::Right),
            column("coverage", "coverage", Align::Right),
            column("tightness", "tightness", Align::Right),
            column("shrink", "shrink", Align::Right),
            column("worst_case_coverage", "worst case", Align::Right),
            column("random_coverage", "random", Align::Right),
            column("vacuous", "vacuous", Align::Center),
            column("verdict", "verdict", Align::Center),
        ],
    );
    for row in analysis.verdicts.iter().filter(|row| row.bound.is_some()) {
        let coverage = row.coverage.zip(row.coverage_se());
        table.push(vec![
            Cell::text(row.name()),
            text(row.constants.as_deref()),
            text(row.policy_constants.as_deref()),
            Cell::Integer(row.prior.into()),
            integer(row.n),
            integer(row.t.map(u64::from)),
            exact(row.delta),
            number(row.bound, 4),
            coverage.map_or(Cell::Empty, |(value, error)| Cell::Estimate { value, error }),
            number(row.tightness, 3),
            number(row.shrink, 3),
            number(row.worst_case_coverage, 4),
            number(row.random_coverage, 4),
            row.vacuous
                .map_or(Cell::Empty, |vacuous| Cell::text(if vacuous { "yes" } else { "no" })),
            verdict(&row.verdict),
        ]);
    }
    table.note("Bounds are taken with the lower end of ρ_T's bracket; a mean over trials where they differ between them.");
    table
}
