//! Methods against each other: ranks and paired differences.

use super::size;
use crate::Analysis;
use crate::tables::{Align, Cell, Column, Table};

pub(super) fn table(analysis: &Analysis) -> Table {
    let column = |key: &str, head: &str, align| Column::new(key, head, align);
    let mut table = Table::new(
        "methods",
        "Methods by mean r_T on the same functions and noise. A rank is shared where the paired difference to the method \
         above cannot be told from 0; differences are paired, with 95 % intervals",
        vec![
            column("prior", "prior", Align::Right),
            column("T", "T", Align::Right),
            column("delta", "δ", Align::Right),
            column("rank", "rank", Align::Right),
            column("method", "method", Align::Left),
            column("regret", "r_T", Align::Right),
            column("difference", "difference", Align::Right),
            column("interval", "95 % interval", Align::Right),
            column("better", "better in", Align::Right),
        ],
    );
    for comparison in &analysis.comparisons {
        for entrant in &comparison.entrants {
            let difference = entrant.difference.as_ref();
            let sample = difference.map(|difference| difference.sample);
            let error = sample.and_then(|sample| sample.standard_error());
            let interval = difference.and_then(|difference| difference.interval);
            let better = difference.map(|difference| {
                let signs = difference.signs;
                let all = signs.wins + signs.ties + signs.losses;
                signs.wins as f64 / all as f64
            });
            table.push(vec![
                size(comparison.prior),
                Cell::Integer(comparison.t.into()),
                comparison.delta.map_or(Cell::Empty, Cell::Exact),
                size(entrant.rank),
                Cell::text(entrant.name.as_str()),
                Cell::Estimate { value: entrant.regret.value, error: entrant.regret.error },
                sample.zip(error).map_or(Cell::Empty, |(sample, error)| Cell::Estimate {
                    value: sample.mean,
                    error,
                }),
                interval.map_or(Cell::Empty, |interval| Cell::Interval {
                    low: interval.low,
                    high: interval.high,
                    digits: 2,
                }),
                better.map_or(Cell::Empty, |value| Cell::Number { value, digits: 3 }),
            ]);
        }
    }
    let references: std::collections::BTreeSet<&str> =
        analysis.comparisons.iter().map(|comparison| comparison.reference.as_str()).collect();
    for reference in references {
        table.note(format!("Differences are to {reference}; negative is better."));
    }
    table
}
