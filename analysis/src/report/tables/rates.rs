//! Rates: regret by N and T beside the theory, and fitted exponents.

use super::{integer, number, size, text, verdict};
use crate::Analysis;
use crate::rates::{Estimate, RateFit, RatePoint};
use crate::statistics::Floor;
use crate::tables::{Align, Cell, Column, Table};
use crate::words;

pub(super) fn tables(analysis: &Analysis) -> Vec<Table> {
    vec![exponents(analysis), points(analysis)]
}

fn points(analysis: &Analysis) -> Table {
    let column = |key: &str, head: &str, align| Column::new(key, head, align);
    let mut table = Table::new(
        "rates",
        "Regret by N and T, beside what the theory says there: means with Monte-Carlo errors, median and \
         (1 − δ)-quantile of r_T; excess over the run with the known prior on the same functions",
        vec![
            column("method", "method", Align::Left),
            column("prior", "prior", Align::Right),
            column("N", "N", Align::Right),
            column("T", "T", Align::Right),
            column("delta", "δ", Align::Right),
            column("failures", "failed", Align::Right),
            column("best_sample_regret", "r_T", Align::Right),
            column("median", "median r_T", Align::Right),
            column("quantile", "quantile r_T", Align::Right),
            column("simple_regret", "R_T", Align::Right),
            column("cumulative_regret", "cumulative", Align::Right),
            column("excess", "excess", Align::Right),
            column("bound", "bound", Align::Right),
            column("rho_lo", "ρ_T from", Align::Right),
            column("rho_hi", "ρ_T to", Align::Right),
            column("lambda", "λ_T", Align::Right),
            column("least_variance", "min k", Align::Right),
            column("cap", "its cap", Align::Right),
            column("rms_error", "RMS error", Align::Right),
        ],
    );
    for point in &analysis.points {
        table.push(point_row(analysis, point));
    }
    table
}

fn estimate(estimate: Option<Estimate>) -> Cell {
    estimate.map_or(Cell::Empty, |Estimate { value, error }| Cell::Estimate { value, error })
}

fn point_row(analysis: &Analysis, point: &RatePoint) -> Vec<Cell> {
    let cell = &analysis.dataset.cells[point.cell];
    let regret = cell.cell.policy.design() != "fixed";
    let only = |cell: Cell| if regret { cell } else { Cell::Empty };
    let n = cell.cell.policy.training().map(|training| training.n);
    vec![
        text(Some(words::short_policy(&cell.cell))),
        size(cell.prior),
        integer(n),
        Cell::Integer(point.t.into()),
        Cell::Exact(point.delta),
        Cell::Integer(point.failures.cast_signed()),
        estimate(point.best),
        number(point.median.map(|median| median.value), 3),
        number(point.quantile.map(|quantile| quantile.value), 3),
        estimate(point.simple),
        estimate(point.cumulative),
        only(estimate(point.excess)),
        number(point.bound, 4),
        number(point.rho.map(|rho| rho.0), 4),
        number(point.rho.map(|rho| rho.1), 4),
        number(point.lambda, 4),
        estimate(point.least_variance),
        number(point.cap, 4),
        estimate(point.rms_error),
    ]
}

fn exponents(analysis: &Analysis) -> Table {
    let column = |key: &str, head: &str, align| Column::new(key, head, align);
    let mut table = Table::new(
        "exponents",
        "Empirical against theoretical rates: A + B n^{−c} fitted with weights 1/MCSE², 95 % interval of c from 2,000 \
         joint resamples of the replicates. The theory is contradicted only where the interval lies below its exponent",
        vec![
            column("quantity", "quantity", Align::Left),
            column("against", "against", Align::Left),
            column("of", "of", Align::Left),
            column("N", "N", Align::Right),
            column("T", "T", Align::Right),
            column("sizes", "sizes", Align::Right),
            column("floor", "A", Align::Right),
            column("scale", "B", Align::Right),
            column("exponent", "c", Align::Right),
            column("interval", "95 % interval", Align::Right),
            column("theory", "theory", Align::Right),
            column("p_value", "fit's p", Align::Right),
            column("verdict", "verdict", Align::Center),
        ],
    );
    for fit in &analysis.fits {
        table.push(exponent_row(fit));
    }
    table
}

fn exponent_row(fit: &RateFit) -> Vec<Cell> {
    let comparison = &fit.comparison;
    let found = comparison.measured.as_ref().ok();
    let floor = match (fit.floor, found) {
        (Floor::Known(value), _) => Cell::Exact(value),
        (Floor::Free, Some(found)) => Cell::Number { value: found.fit.a, digits: 3 },
        (Floor::Free, None) => Cell::Empty,
    };
    vec![
        Cell::text(fit.quantity.name()),
        Cell::text(fit.against.name()),
        Cell::text(fit.of.as_str()),
        integer(fit.n),
        integer(fit.t.map(u64::from)),
        size(fit.points.len()),
        floor,
        number(found.map(|found| found.fit.b), 3),
        number(found.map(|found| found.fit.c), 3),
        found.map_or(Cell::Empty, |found| Cell::Interval {
            low: found.low,
            high: found.high,
            digits: 2,
        }),
        Cell::Number { value: comparison.claimed, digits: 3 },
        number(found.map(|found| found.fit.p_value), 2),
        verdict(comparison.verdict.name()),
    ]
}
