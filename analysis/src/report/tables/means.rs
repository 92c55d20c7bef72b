//! Claims about means: unbiasedness, and the variance formula.

use super::{integer, number, text, verdict};
use crate::Analysis;
use crate::tables::{Align, Cell, Column, Table};

pub(super) fn table(analysis: &Analysis) -> Table {
    let column = |key: &str, head: &str, align| Column::new(key, head, align);
    let mut table = Table::new(
        "means",
        "Claims about means: refuted by a z-test, confirmed only within the margin (two one-sided tests); for a fixed \
         number of trials",
        vec![
            column("claim", "claim", Align::Left),
            column("constants", "constants", Align::Left),
            column("at", "at", Align::Left),
            column("design", "design", Align::Left),
            column("acquisition", "acquisition", Align::Left),
            column("N", "N", Align::Right),
            column("t", "t", Align::Right),
            column("mean", "mean", Align::Right),
            column("expected", "claimed", Align::Right),
            column("margin", "margin", Align::Right),
            column("verdict", "verdict", Align::Center),
        ],
    );
    for row in analysis.verdicts.iter().filter(|row| row.mean.is_some()) {
        let mean = row.mean.zip(row.mean_se);
        table.push(vec![
            Cell::text(row.name()),
            text(row.constants.as_deref()),
            text(row.at.as_deref()),
            text(Some(&row.design)),
            text(row.acquisition.as_deref()),
            integer(row.n),
            integer(row.t.map(u64::from)),
            mean.map_or(Cell::Empty, |(value, error)| Cell::Estimate { value, error }),
            row.mean_expected.map_or(Cell::Empty, Cell::Exact),
            number(row.mean_margin, 3),
            verdict(&row.verdict),
        ]);
    }
    table
}
