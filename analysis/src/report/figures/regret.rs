//! Regret against T with its bound, and how loose the bound is.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use study::cell::PolicyConstants;

use super::{functions, id, of_prior, spread};
use crate::Analysis;
use crate::figures::{Axis, Chart, Figure, Lines, Look, Panel, Point, Reference, Series};
use crate::rates::{Estimate, RatePoint};
use crate::words;

/// Curves of N that a panel can show.
const MOST_CURVES: usize = 3;

pub(super) fn figures(analysis: &Analysis, prior: usize) -> Vec<Figure> {
    [regret(analysis, prior), variance(analysis, prior), tightness(analysis, prior)]
        .into_iter()
        .flatten()
        .collect()
}

/// Points of one prior at its first delta, by acquisition function; those without one go everywhere.
fn of(analysis: &Analysis, prior: usize) -> Vec<(&RatePoint, Option<&'static str>)> {
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

/// What a panel shows of the points: a mean with its error, and the theory's bound on it.
struct Shown {
    label: &'static str,
    value: fn(&RatePoint) -> Option<Estimate>,
    bound: fn(&RatePoint) -> Option<f64>,
    /// The bound's name, and whether it depends on N.
    bound_name: &'static str,
    bound_of_n: bool,
}

fn regret(analysis: &Analysis, prior: usize) -> Option<Figure> {
    let shown = Shown {
        label: "r_T",
        value: |point| point.best,
        bound: |point| point.bound,
        bound_name: "Theorem 2's bound",
        bound_of_n: true,
    };
    let delta = analysis.dataset.study.grid.delta.first()?;
    Some(Figure {
        id: id(analysis, prior, "regret"),
        title: "Best-sample regret against T".into(),
        caption: format!(
            "Mean best-sample regret r_T against T with two Monte-Carlo standard errors, by method and N, and Theorem 2's bound, \
             which holds with probability {}. {}",
            1.0 - delta.get(),
            of_prior(analysis, prior)
        ),
        chart: by_acquisition(analysis, prior, &shown)?,
    })
}

fn variance(analysis: &Analysis, prior: usize) -> Option<Figure> {
    let shown = Shown {
        label: "min k_{t−1}(x_t)",
        value: |point| point.least_variance,
        bound: |point| point.cap,
        bound_name: "cap, 2cρ_T/(T log(1 + c/σ^2))",
        bound_of_n: false,
    };
    Some(Figure {
        id: id(analysis, prior, "regret-variance"),
        title: "Least posterior variance at the selected points against T".into(),
        caption: format!(
            "Mean of min k_{{t−1}}(x_t) over the first T points against T, by method and N, and the cap on it by which the regret bound \
             falls with T (upper end of ρ_T). {}",
            of_prior(analysis, prior)
        ),
        chart: by_acquisition(analysis, prior, &shown)?,
    })
}

fn by_acquisition(analysis: &Analysis, prior: usize, shown: &Shown) -> Option<Chart> {
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
            panels.push(panel(analysis, acquisition, &mine, shown));
        }
    }
    // On real data there is no posterior variance, for example.
    panels.retain(|panel| panel.series.iter().any(|series| !series.points.is_empty()));
    let columns = panels.len();
    (columns > 0).then_some(Chart::Lines(Lines { panels, columns, shared: true }))
}

/// By method, N and cell.
type Curves<'a> = BTreeMap<(u8, u64, usize), Vec<&'a RatePoint>>;

fn panel(analysis: &Analysis, acquisition: &str, points: &[&RatePoint], shown: &Shown) -> Panel {
    let mut curves = Curves::new();
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
    let kept = spread(&estimated, MOST_CURVES);
    let drawn = curves.iter().filter(|(key, _)| key.0 != 1 || kept.contains(key));
    let mut series: Vec<Series> =
        drawn.map(|(key, curve)| measured(analysis, key.2, curve, shown)).collect();
    series.extend(kept.last().and_then(|key| bound(&curves[key], key.1, shown)));
    Panel {
        title: if acquisition == "pi" { "PI" } else { "GP-UCB" }.into(),
        x: Axis::log("T"),
        y: Axis::log(shown.label),
        series,
        references: vec![],
    }
}

fn measured(analysis: &Analysis, cell: usize, curve: &[&RatePoint], shown: &Shown) -> Series {
    let cell = &analysis.dataset.cells[cell];
    let mut name = words::short_policy(&cell.cell).to_owned();
    if let Some(n) = functions(cell) {
        name = format!("{name}, N = {n}");
    }
    if cell.cell.policy.constants() == Some(PolicyConstants::Corrected) {
        name += ", corrected ζ_t";
    }
    let points = curve.iter().filter_map(|point| {
        let Estimate { value, error } = (shown.value)(point)?;
        let (low, high) = (value - 2.0 * error, value + 2.0 * error);
        Some(Point::with_interval(f64::from(point.t), value, low, high))
    });
    Series { name, look: Look::LineAndMarkers, points: points.collect() }
}

fn bound(curve: &[&RatePoint], n: u64, shown: &Shown) -> Option<Series> {
    let points: Vec<Point> = curve
        .iter()
        .filter_map(|point| Some(Point::new(f64::from(point.t), (shown.bound)(point)?)))
        .collect();
    let mut name = shown.bound_name.to_owned();
    if shown.bound_of_n {
        _ = write!(name, ", N = {n}");
    }
    (!points.is_empty()).then_some(Series { name, look: Look::Line, points })
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
