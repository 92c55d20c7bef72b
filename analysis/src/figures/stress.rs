//! Figures that strain the layout: many panels, long names, wide numbers, extreme values.

use super::{
    Axis, Bar, Bars, Categories, Cell, Chart, Colours, Figure, Group, HeatMap, Lines, Look, Mark,
    Panel, Point, Reference, Series, Status, verbatim,
};

const LONG: &str = "theorem2.ucb/step.variance-star of the posterior at x_{next}, by a union bound";

/// All of them.
pub(super) fn all() -> Vec<Figure> {
    vec![grid(true), grid(false), narrow(), extremes(), wide_map(), flat_map(), long_bars()]
}

fn figure(id: &str, chart: Chart) -> Figure {
    Figure { id: id.into(), title: id.into(), caption: "a \"sample\" <&>".into(), chart }
}

fn panel(title: &str, x: Axis, y: Axis, points: Vec<Point>) -> Panel {
    let series = Series { name: "measured".into(), look: Look::LineAndMarkers, points };
    Panel { title: title.into(), x, y, series: vec![series], references: vec![] }
}

/// Five panels in three columns, the last row incomplete.
fn grid(shared: bool) -> Figure {
    let panel = |i: usize| {
        let points = (1..=50).map(|t| {
            let (t, y) = (f64::from(t), 1e4 * f64::from(t) * (i + 1) as f64);
            Point::with_interval(t, y, y * 0.9, y * 1.15)
        });
        let y = Axis::linear("cumulative regret R_T of everything that was run");
        let mut panel =
            panel(if i == 1 { LONG } else { "N = 100" }, Axis::linear("t"), y, points.collect());
        let required = Reference::Horizontal { y: 1.5e6, label: "budget of the paper".into() };
        panel.references.push(required);
        panel
    };
    let lines = Lines { panels: (0..5).map(panel).collect(), columns: 3, shared };
    figure(if shared { "shared" } else { "own" }, Chart::Lines(lines))
}

/// Four columns of log axes with wide ranges and long labels.
fn narrow() -> Figure {
    let panel = |i: i32| {
        let points =
            (0..=9).map(|k| Point::new(f64::from(k * i) + 1e3, libm::pow(10.0, f64::from(-k))));
        panel(
            LONG,
            Axis::log("an axis with a rather long label"),
            Axis::log(LONG),
            points.collect(),
        )
    };
    let lines = Lines { panels: (1..=4).map(panel).collect(), columns: 4, shared: false };
    figure("narrow", Chart::Lines(lines))
}

/// The largest and smallest numbers there are, and limits that cut most of them off.
fn extremes() -> Figure {
    let values = [f64::MAX, f64::MIN_POSITIVE, -f64::MAX, 0.0, -0.0, 1.0, f64::NAN, 5e-324];
    let points = || -> Vec<Point> {
        let point = |(i, &y): (usize, &f64)| Point::with_interval(i as f64, y, -y, f64::MAX);
        values.iter().enumerate().map(point).collect()
    };
    let panels = vec![
        panel("linear", Axis::linear("x"), Axis::linear("y"), points()),
        panel("log", Axis::log("x"), Axis::log("y"), points()),
        panel("cut", Axis::linear("x"), Axis::linear("y").within(0.0, 2.0), points()),
        panel("cut log", Axis::linear("x"), Axis::log("y").within(0.1, 2.0), points()),
    ];
    figure("extremes", Chart::Lines(Lines { panels, columns: 2, shared: false }))
}

fn named(label: &str, names: Vec<String>) -> Categories {
    Categories { label: label.into(), names }
}

/// More columns than the width has room for, so that the figure grows.
fn wide_map() -> Figure {
    let cell = |i: usize, j: usize| {
        let value = Some(-1000.0 + (i * 13 + j) as f64 * 17.5);
        Cell { value, mark: [None, Some(Mark::Refuted), Some(Mark::Confirmed)][(i + j) % 3] }
    };
    let map = HeatMap {
        columns: named("x", (0..14).map(|j| verbatim(&format!("x_next {j}"))).collect()),
        rows: named("a label that is longer than the rows are high", vec![LONG.into(), "b".into()]),
        cells: (0..2).map(|i| (0..14).map(|j| cell(i, j)).collect()).collect(),
        colours: Colours::Diverging { centre: f64::NAN },
        value: "a value with a label that is too long".into(),
        decimals: 1,
    };
    figure("wide-map", Chart::HeatMap(map))
}

/// One cell.
fn flat_map() -> Figure {
    let map = HeatMap {
        columns: named("kernel and dimension", vec!["only".into()]),
        rows: named("hyperparameters", vec!["one".into()]),
        cells: vec![vec![Cell { value: Some(0.95), mark: None }]],
        colours: Colours::Diverging { centre: 0.95 },
        value: "coverage".into(),
        decimals: 3,
    };
    figure("flat-map", Chart::HeatMap(map))
}

fn long_bars() -> Figure {
    let bar = |i: i32, status| Bar {
        label: LONG.into(),
        value: libm::pow(10.0, f64::from(-i)),
        interval: Some((0.0, f64::INFINITY)).filter(|_| i == 3).or(Some((1e-9, 1.0))),
        budget: Some(if i == 2 { f64::NAN } else { 1e-6 }),
        status,
    };
    let statuses = [Status::Refuted, Status::Confirmed, Status::Undecided, Status::Descriptive];
    let bars = (0..).zip(statuses).map(|(i, status)| bar(i * 4 - 3, status)).collect();
    let groups = vec![Group { heading: LONG.into(), bars }];
    let bars = Bars { x: Axis::log(LONG), budget: "allowed by the paper".into(), groups };
    figure("long-bars", Chart::Bars(bars))
}
