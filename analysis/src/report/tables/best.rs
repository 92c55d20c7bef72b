//! Best values found, by method: what is compared where no regret bound is.

use super::size;
use crate::Analysis;
use crate::rates::{self, RatePoint};
use crate::tables::{Align, Cell, Column, Table};

pub(super) fn table(analysis: &Analysis) -> Table {
    let column = |key: &str, head: &str, align| Column::new(key, head, align);
    let mut table = Table::new(
        "best-values",
        "The best value found after T evaluations, max_{t ≤ T} f(x_t), averaged over functions, and what was missed of the \
         largest value that there is; on real data a function is a row",
        vec![
            column("prior", "prior", Align::Right),
            column("T", "T", Align::Right),
            column("method", "method", Align::Left),
            column("best", "best value", Align::Right),
            column("regret", "r_T", Align::Right),
            column("trials", "trials", Align::Right),
            column("failures", "failed", Align::Right),
        ],
    );
    let mut points: Vec<&RatePoint> = shown(analysis).collect();
    let order = |point: &RatePoint| {
        let value = point.best_value.map_or(f64::NEG_INFINITY, |best| best.value);
        (analysis.dataset.cells[point.cell].prior, point.t, -value)
    };
    points.sort_by(|a, b| {
        let (a, b) = (order(a), order(b));
        (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2))
    });
    let estimate = |value: Option<rates::Estimate>| match value {
        None => Cell::Empty,
        // The same in all trials, but for rounding.
        Some(e) if e.error <= 1e-12 * e.value.abs() => Cell::Number { value: e.value, digits: 4 },
        Some(e) => Cell::Estimate { value: e.value, error: e.error },
    };
    for point in points {
        let cell = &analysis.dataset.cells[point.cell];
        table.push(vec![
            size(cell.prior),
            Cell::Integer(point.t.into()),
            Cell::text(rates::name(cell).as_str()),
            estimate(point.best_value),
            estimate(point.best),
            size(point.trials as usize),
            size(point.failures as usize),
        ]);
    }
    table
}

/// One point for each cell and T, of those that choose by a method.
pub(in crate::report) fn shown(analysis: &Analysis) -> impl Iterator<Item = &RatePoint> {
    let mut seen = std::collections::BTreeSet::new();
    analysis.points.iter().filter(move |point| {
        let cell = &analysis.dataset.cells[point.cell];
        cell.cell.policy.design() != "fixed" && seen.insert((point.cell, point.t))
    })
}
