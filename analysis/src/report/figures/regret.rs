//! Regret against T with its bound, and how loose the bound is.

use std::collections::BTreeMap;

use super::{functions, id, of_prior, spread};
use crate::Analysis;
use crate::figures::{Axis, Chart, Figure, Lines, Look, Panel, Point, Reference, Series};
use crate::rates::RatePoint;
use crate::words;

/// Curves of N that a panel can show.
const MOST_CURVES: usize = 3;

pub(super) fn figures(analysis: &Analysis, prior: usize) -> Vec<Figure> {
    [regret(analysis, prior), tightness(analysis, prior)].into_iter().flatten().collect()
}

/// Points of one prior at its first delta, by acquisition function; those without one go everywhere.
fn of<'a>(analysis: &'a Analysis, prior: usize) -> Vec<(&'a RatePoint, Option<&'static str>)> {
    let Some(delta) = analysis.dataset.study.grid.delta.first() else { return vec![] };
    let points = analysis.points.iter().filter(|point| point.delta == delta.get());
    points
        .filter_map(|point| {
            let cell = &analysis.dataset.cells[point.cell];
            let here = cell.prior == prior && cell.cell.policy.design() != "fixed";
            here.then(|| (point, cell.cell.policy.acquisition()))
        })
        .collect()
}

fn regret(analysis: &Analysis, prior: usize) -> Option<Figure> {
    let points = of(analysis, prior);
    if analysis.dataset.study.grid.t.len() < 2 || points.is_empty() {
        return None;
    }
    let mut panels = Vec::new();
    for acquisition in ["gp-ucb", "pi"] {
        let mine: Vec<&RatePoint> = points
            .iter()
            .filter(|(_, of)| of.is_none_or(|of| of == acquisition))
            .map(|(point, _)| *point)
            .collect();
        if points.iter().any(|(_, of)| *of == Some(acquisition)) {
            panels.push(panel(analysis, acquisition, &mine));
        }
    }
    if panels.is_empty() {
        return None;
    }
    let columns = panels.len();
    let delta = analysis.dataset.study.grid.delta[0];
    Some(Figure {
        id: id(analysis, prior, "regret"),
        title: "Best-sample regret against T".into(),
        caption: format!(
            "Mean best-sample regret r_T against T with two Monte-Carlo standard errors, by method and N, and Theorem 2's bound, \
             which holds with probability {}. {}",
            1.0 - delta.get(),
            of_prior(analysis, prior)
        ),
        chart: Chart::Lines(Lines { panels, columns, shared: true }),
    })
}

fn panel(analysis: &Analysis, acquisition: &str, points: &[&RatePoint]) -> Panel {
    let mut curves: BTreeMap<(u8, u64, usize), Vec<&RatePoint>> = BTreeMap::new();
    for point in points {
        let cell = &analysis.dataset.cells[point.cell];
        let order = match cell.cell.policy.method() {
            "random" => 0,
            "pem-bo" => 1,
            _ => 2,
        };
        let n = functions(cell).unwrap_or(0);
        curves.entry((order, n, point.cell)).or_default().push(point);
    }
    let estimated: Vec<(u8, u64, usize)> =
        curves.keys().copied().filter(|key| key.0 == 1).collect();
    let shown = spread(&estimated, MOST_CURVES);
    let mut series = Vec::new();
    for (key, curve) in curves.iter().filter(|(key, _)| key.0 != 1 || shown.contains(key)) {
        let cell = &analysis.dataset.cells[key.2];
        let mut name = words::short_policy(&cell.cell).to_owned();
        if let Some(n) = functions(cell) {
            name = format!("{name}, N = {n}");
        }
        let measured = curve.iter().filter_map(|point| {
            let best = point.best?;
            let reach = 2.0 * best.error;
            Some(Point::with_interval(
                f64::from(point.t),
                best.value,
                best.value - reach,
                best.value + reach,
            ))
        });
        series.push(Series { name, look: Look::LineAndMarkers, points: measured.collect() });
    }
    if let Some(last) = shown.last().and_then(|key| curves.get(key)) {
        let bound =
            last.iter().filter_map(|point| Some(Point::new(f64::from(point.t), point.bound?)));
        let bound: Vec<Point> = bound.collect();
        if !bound.is_empty() {
            let n = shown.last().map_or(0, |key| key.1);
            let name = format!("Theorem 2's bound, N = {n}");
            series.push(Series { name, look: Look::Line, points: bound });
        }
    }
    let title = if acquisition == "pi" { "PI" } else { "GP-UCB" };
    Panel {
        title: title.into(),
        x: Axis::log("T"),
        y: Axis::log("r_T"),
        series,
        references: vec![],
    }
}

fn tightness(analysis: &Analysis, prior: usize) -> Option<Figure> {
    let mut panels = Vec::new();
    for (claim, title) in [("theorem2.ucb", "GP-UCB"), ("theorem2.pi", "PI")] {
        let mut curves: BTreeMap<(u64, String), Vec<Point>> = BTreeMap::new();
        let delta = analysis.dataset.study.grid.delta.first()?.get();
        for row in analysis.verdicts.iter().filter(|row| {
            row.claim == claim && row.prior as usize == prior && row.delta == Some(delta)
        }) {
            let (Some(t), Some(n), Some(tightness)) = (row.t, row.n, row.tightness) else {
                continue;
            };
            let form = row.constants.clone().unwrap_or_default();
            curves.entry((n, form)).or_default().push(Point::new(f64::from(t), tightness));
        }
        let keys: Vec<(u64, String)> = curves.keys().cloned().collect();
        let keys = spread(&keys, 6);
        let series: Vec<Series> = keys
            .iter()
            .map(|key| Series {
                name: format!("N = {}, {}", key.0, key.1),
                look: Look::LineAndMarkers,
                points: curves[key].clone(),
            })
            .collect();
        if series.iter().any(|series| series.points.len() > 1) {
            panels.push(Panel {
                title: title.into(),
                x: Axis::log("T"),
                y: Axis::log("bound / quantile of r_T"),
                series,
                references: vec![Reference::Horizontal { y: 1.0, label: "tight".into() }],
            });
        }
    }
    let columns = panels.len();
    (columns > 0).then(|| Figure {
        id: id(analysis, prior, "tightness"),
        title: "Tightness of Theorem 2".into(),
        caption: format!(
            "Theorem 2's bound over the (1 − δ)-quantile of the best-sample regret, against T: 1 would be tight. {}",
            of_prior(analysis, prior)
        ),
        chart: Chart::Lines(Lines { panels, columns, shared: true }),
    })
}
