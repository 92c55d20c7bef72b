//! The paper's figures: best value against evaluations, and against the amount of training data.

use std::collections::{BTreeMap, BTreeSet};

use super::{functions, id, of_prior, spread};
use crate::Analysis;
use crate::dataset::DataCell;
use crate::figures::{Axis, Chart, Figure, Lines, Look, Panel, Point, Series};
use crate::rates::{self, RatePoint};
use crate::report::tables::best::shown;
use crate::words;

/// Curves that a panel can show.
const MOST_CURVES: usize = 7;

pub(super) fn figures(analysis: &Analysis, prior: usize) -> Vec<Figure> {
    [evaluations(analysis, prior), learning(analysis, prior), missing(analysis, prior)]
        .into_iter()
        .flatten()
        .collect()
}

fn of_this(analysis: &Analysis, prior: usize) -> Vec<(&DataCell, &RatePoint)> {
    let points = shown(analysis).map(|point| (&analysis.dataset.cells[point.cell], point));
    points.filter(|(cell, _)| cell.prior == prior).collect()
}

fn point(x: f64, of: &RatePoint) -> Option<Point> {
    let best = of.best_value?;
    let (low, high) = (best.value - 2.0 * best.error, best.value + 2.0 * best.error);
    Some(Point::with_interval(x, best.value, low, high))
}

/// A curve for each method, N and share of missing entries; the largest N where there are many.
fn evaluations(analysis: &Analysis, prior: usize) -> Option<Figure> {
    if analysis.dataset.study.grid.t.len() < 2 {
        return None;
    }
    let mut curves: BTreeMap<(u64, usize), (String, Vec<Point>)> = BTreeMap::new();
    for (cell, of) in of_this(analysis, prior) {
        let key = (u64::MAX - functions(cell).unwrap_or(u64::MAX), of.cell);
        let curve = curves.entry(key).or_insert_with(|| (rates::name(cell), vec![]));
        curve.1.extend(point(f64::from(of.t), of));
    }
    let curves: Vec<(String, Vec<Point>)> = curves.into_values().collect();
    let series: Vec<Series> = spread(&curves, MOST_CURVES)
        .into_iter()
        .map(|(name, points)| Series { name, look: Look::LineAndMarkers, points })
        .collect();
    one_panel(
        id(analysis, prior, "best"),
        "Best value against evaluations",
        format!(
            "The best value found, max_{{t ≤ T}} f(x_t), against the number of evaluations T: means over functions with two \
             standard errors. {}",
            of_prior(analysis, prior)
        ),
        Axis::linear("T"),
        series,
    )
}

/// Best value against N, at the T of the grid.
fn learning(analysis: &Analysis, prior: usize) -> Option<Figure> {
    let points = of_this(analysis, prior);
    let sizes: BTreeSet<u64> = points.iter().filter_map(|(cell, _)| functions(cell)).collect();
    if sizes.len() < 2 {
        return None;
    }
    let mut curves: BTreeMap<(String, u32), Vec<Point>> = BTreeMap::new();
    for (cell, of) in points {
        if let Some(n) = functions(cell) {
            let mut name = words::short_policy(&cell.cell).to_owned();
            let estimator = cell.cell.policy.training().map(|training| training.estimator);
            if let Some(missing) = estimator.and_then(study::cell::Estimator::missing) {
                name = format!("{name}, {} missing", words::percent(missing));
            }
            curves.entry((name, of.t)).or_default().extend(point(n as f64, of));
        }
    }
    let last = curves.keys().map(|key| key.1).max()?;
    let series: Vec<Series> = curves
        .into_iter()
        .filter(|((_, t), _)| *t == last)
        .map(|((name, _), mut points)| {
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            Series { name, look: Look::LineAndMarkers, points }
        })
        .take(MOST_CURVES)
        .collect();
    one_panel(
        id(analysis, prior, "best-learning"),
        "Learning curve",
        format!(
            "The best value found after T = {last} evaluations against the number of training functions N: means over functions \
             with two standard errors. {}",
            of_prior(analysis, prior)
        ),
        Axis::log("N"),
        series,
    )
}

/// Best value against the share of missing entries.
fn missing(analysis: &Analysis, prior: usize) -> Option<Figure> {
    if analysis.dataset.study.grid.missing.len() < 2 {
        return None;
    }
    let mut curves: BTreeMap<(String, u64, u32), Vec<Point>> = BTreeMap::new();
    for (cell, of) in of_this(analysis, prior) {
        let Some(training) = cell.cell.policy.training() else { continue };
        let share = training.estimator.missing().unwrap_or(0.0);
        let name = words::short_policy(&cell.cell).to_owned();
        curves.entry((name, training.n, of.t)).or_default().extend(point(share, of));
    }
    let last = curves.keys().map(|key| key.2).max()?;
    let series: Vec<Series> = curves
        .into_iter()
        .filter(|((_, _, t), points)| *t == last && points.len() > 1)
        .map(|((name, n, _), mut points)| {
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            Series { name: format!("{name}, N = {n}"), look: Look::LineAndMarkers, points }
        })
        .take(MOST_CURVES)
        .collect();
    one_panel(
        id(analysis, prior, "best-missing"),
        "Best value against missing entries",
        format!(
            "The best value found after T = {last} evaluations against the share of training entries that are missing and were \
             filled in by nuclear-norm completion: means over functions with two standard errors. {}",
            of_prior(analysis, prior)
        ),
        Axis::linear("share missing"),
        series,
    )
}

fn one_panel(
    id: String,
    title: &str,
    caption: String,
    x: Axis,
    series: Vec<Series>,
) -> Option<Figure> {
    if series.iter().all(|series| series.points.len() < 2) {
        return None;
    }
    let panel = Panel {
        title: String::new(),
        x,
        y: Axis::linear("best value"),
        series,
        references: vec![],
    };
    let chart = Chart::Lines(Lines { panels: vec![panel], columns: 1, shared: true });
    Some(Figure { id, title: title.into(), caption, chart })
}
