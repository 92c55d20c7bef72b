//! Figures of every kind with data as they come, for the tests.

use super::{
    Axis, Bar, Bars, Categories, Cell, Chart, Colours, Figure, Group, HeatMap, Lines, Look, Mark,
    Panel, Point, Reference, Series, Status,
};

/// All of them.
pub(super) fn all() -> Vec<Figure> {
    let mut figures = vec![coverage(), regret(), excess(), quantiles(), tightness(), map()];
    figures.extend([steps_map(), audit(), excess_bars(), empty_lines(), empty_map(), no_bars()]);
    figures
}

fn figure(id: &str, title: &str, chart: Chart) -> Figure {
    let caption = format!("{title}: \"sample\" data with t < T & N > 0.");
    Figure { id: id.to_owned(), title: title.to_owned(), caption, chart }
}

fn series(name: &str, look: Look, points: Vec<Point>) -> Series {
    Series { name: name.to_owned(), look, points }
}

fn required(y: f64) -> Reference {
    Reference::Horizontal { y, label: format!("required {y}") }
}

fn panel(title: &str, x: Axis, y: Axis, series: Vec<Series>) -> Panel {
    Panel { title: title.to_owned(), x, y, series, references: vec![] }
}

fn coverage() -> Figure {
    let names = ["plug-in mean", "empirical prior", "known prior"];
    let panels = [100.0, 500.0, 2000.0].map(|n| {
        let measured = |i: usize| {
            let points = [1.0, 5.0, 20.0, 50.0].map(|t: f64| {
                let y = 0.99 - 0.004 * i as f64 * t / 10.0 * (300.0 / (n + 200.0));
                Point::with_interval(t, y, y - 0.012, y + 0.006)
            });
            series(names[i], Look::LineAndMarkers, points.to_vec())
        };
        let (x, y) = (
            Axis::log("checkpoint t"),
            Axis::linear("coverage of |f − μ\u{302}_t| ≤ ζ_t σ\u{302}_t"),
        );
        let series = (0..3).map(measured).collect();
        Panel { references: vec![required(0.95)], ..panel(&format!("N = {n}"), x, y, series) }
    });
    let lines = Lines { panels: panels.to_vec(), columns: 3, shared: true };
    figure("coverage", "Coverage against t", Chart::Lines(lines))
}

fn regret() -> Figure {
    let panels = ["theorem2.ucb", "theorem2.pi", "theorem4.ucb/step.variance-star"].map(|title| {
        let at = |t: u32| (f64::from(t), 0.8 / f64::from(t) + 0.02);
        let curve = |factor: f64| {
            (1..=50).map(move |t| Point::new(at(t).0, at(t).1 * factor)).collect::<Vec<_>>()
        };
        let band = (1..=50).map(|t| {
            let (t, y) = at(t);
            Point::with_interval(t, y, y * 0.8, y * 1.3)
        });
        let name = "simple regret r_T: median, 5 % to 95 %";
        let series = vec![
            series(name, Look::LineAndMarkers, curve(1.0)),
            series(name, Look::Band, band.collect()),
            series("bound", Look::Line, curve(40.0)),
        ];
        panel(title, Axis::linear("horizon T"), Axis::log("regret"), series)
    });
    let lines = Lines { panels: panels.to_vec(), columns: 2, shared: false };
    figure("regret", "Regret and its bound", Chart::Lines(lines))
}

fn excess() -> Figure {
    let at = |d: f64| 3.0 / (d * 0.01);
    let measured = [50.0, 95.0, 180.0, 450.0, 1950.0]
        .map(|d: f64| Point::with_interval(d, at(d) * 1.04, at(d) * 0.9, at(d) * 1.2));
    let fitted = (0..60).map(|i| 50.0 + 32.2 * f64::from(i)).map(|d| Point::new(d, at(d)));
    let series = vec![
        series("measured", Look::Markers, measured.to_vec()),
        series("fitted c (N − T)^{−1}", Look::Line, fitted.collect()),
    ];
    let (x, y) = (Axis::log("N − T"), Axis::log("excess regret over the known prior"));
    let lines = Lines { panels: vec![panel("", x, y, series)], columns: 1, shared: false };
    figure("excess", "Excess regret", Chart::Lines(lines))
}

fn quantiles() -> Figure {
    let panels = ["T = 1", "T = 20", "T = 50"].map(|title| {
        let points = (1..60).map(|i| {
            let x = (f64::from(i) / 60.0 - 0.5) * 5.0;
            Point::new(x, x + 0.04 * x * x * x)
        });
        let series = vec![series("standardised error", Look::Markers, points.collect())];
        let diagonal = Reference::Diagonal { label: "y = x".to_owned() };
        let (x, y) = (Axis::linear("quantile of t_{N − 1}"), Axis::linear("sample quantile"));
        Panel { references: vec![diagonal], ..panel(title, x, y, series) }
    });
    let lines = Lines { panels: panels.to_vec(), columns: 3, shared: false };
    figure("quantiles", "Q-Q plots", Chart::Lines(lines))
}

fn tightness() -> Figure {
    let curves = (0..9).map(|i| {
        let name = format!("theorem{}.ucb/step.variance-{}", 2 + i % 3, ["star", "tau"][i % 2]);
        let points = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0].map(|t: f64| {
            let y = if i == 3 && t > 10.0 { 0.0 } else { t / (1.0 + i as f64) };
            Point::new(t, if i == 5 && t == 5.0 { f64::NAN } else { y })
        });
        series(&format!("{name} {i}"), Look::LineAndMarkers, points.to_vec())
    });
    let (x, y) = (Axis::log("T"), Axis::log("bound / measured"));
    let data = panel("", x, y, curves.collect());
    let lines = Lines { panels: vec![data], columns: 1, shared: true };
    figure("tightness", "Tightness", Chart::Lines(lines))
}

fn names(label: &str, names: &[&str]) -> Categories {
    Categories { label: label.to_owned(), names: names.iter().map(|&name| name.into()).collect() }
}

fn map() -> Figure {
    let cell = |i: usize, j: usize| {
        let value = 0.998 - 0.03 * j as f64 / (i + 1) as f64 - 0.015 * (j * j) as f64 / 4.0;
        let mark = Some(if value < 0.95 { Mark::Refuted } else { Mark::Confirmed });
        if (i, j) == (0, 3) { Cell::default() } else { Cell { value: Some(value), mark } }
    };
    let cells = (0..4).map(|i| (0..4).map(|j| cell(i, j)).collect()).collect();
    let map = HeatMap {
        columns: names("horizon T", &["1", "5", "20", "50"]),
        rows: names("trials N", &["100", "200", "500", "2000"]),
        cells,
        colours: Colours::Diverging { centre: 0.95 },
        value: "coverage (required 0.95)".to_owned(),
        decimals: 3,
    };
    figure("map", "Coverage over N and T", Chart::HeatMap(map))
}

fn steps_map() -> Figure {
    let claims = ["theorem2.ucb/step.variance-star", "theorem2.pi/step.numerator", "lemma1"];
    let steps = ["Matérn 5/2, d = 2", "SE, d = 1", "SE, d = 6", "linear", "periodic", "Matérn 1/2"];
    let value = |i: usize, j: usize| Some(-0.5 + (i * 7 + j * 3) as f64 * 0.13);
    let cell = |i: usize, j: usize| Cell { value: value(i, j), mark: None };
    let map = HeatMap {
        columns: names("kernel", &steps),
        rows: names("claim", &claims),
        cells: (0..3).map(|i| (0..6).map(|j| cell(i, j)).collect()).collect(),
        colours: Colours::Sequential,
        value: "log_{10} of slack".to_owned(),
        decimals: 2,
    };
    figure("steps", "Slack by claim and kernel", Chart::HeatMap(map))
}

fn bar(label: &str, value: f64, budget: Option<f64>, status: Status) -> Bar {
    let interval = Some(if value == 0.0 { (0.0, 3e-5) } else { (value * 0.7, value * 1.4) });
    Bar { label: label.to_owned(), value, interval, budget, status }
}

fn group(heading: &str, bars: Vec<Bar>) -> Group {
    Group { heading: heading.to_owned(), bars }
}

fn audit() -> Figure {
    use Status::{Confirmed, Descriptive, Refuted, Undecided};
    let lemma = vec![
        bar("lemma1/step.chebyshev", 2e-4, Some(0.05), Confirmed),
        bar("lemma1.mean", 0.0, Some(0.05), Confirmed),
        bar("lemma1.unbiased-variance", 0.044, Some(0.05), Undecided),
    ];
    let second = vec![
        bar("theorem2.ucb/step.f-star", 0.013, Some(0.01), Undecided),
        bar("theorem2.ucb/step.f-tau", 0.31, Some(0.01), Refuted),
        bar("theorem2.ucb/step.variance-star", 0.0, Some(0.02), Confirmed),
        bar("theorem2.ucb/step.variance-tau", 7e-4, Some(0.02), Confirmed),
        bar("theorem2.pi/step.numerator", 0.62, None, Descriptive),
    ];
    let fourth = vec![
        bar("theorem4.ucb/step.f-star", 0.004, Some(0.0125), Confirmed),
        bar("theorem4.ucb/step.f-tau", 0.11, Some(0.0125), Refuted),
        bar(
            "theorem4.pi/step.f-tau and all that follows from it, by a union bound",
            0.0,
            None,
            Descriptive,
        ),
        bar("theorem4.pi", f64::NAN, Some(0.05), Undecided),
    ];
    let groups =
        vec![group("Lemma 1", lemma), group("Theorem 2", second), group("Theorem 4", fourth)];
    let x = Axis::log("share of trials that violate the step");
    let bars = Bars { x, budget: "allowed".to_owned(), groups };
    figure("audit", "Proof audit", Chart::Bars(bars))
}

fn excess_bars() -> Figure {
    let bars = vec![
        bar("known prior", 0.12, Some(0.4), Status::Confirmed),
        bar("plug-in", 0.55, Some(0.4), Status::Refuted),
    ];
    let groups = vec![group("UCB", bars)];
    let bars = Bars { x: Axis::linear("mean r_T"), budget: "bound".to_owned(), groups };
    figure("bars", "Mean regret", Chart::Bars(bars))
}

fn empty_lines() -> Figure {
    let nothing = vec![series("nothing", Look::Line, vec![Point::new(f64::NAN, 1.0)])];
    let some =
        vec![series("nothing", Look::Line, vec![Point::new(1.0, 1.0), Point::new(2.0, 3.0)])];
    let axes = || (Axis::log("x"), Axis::linear("y").within(f64::NAN, f64::INFINITY));
    let blank = |title, series| panel(title, axes().0, axes().1, series);
    let panels = vec![blank("nothing", nothing), blank("none", vec![]), blank("some", some)];
    let lines = Lines { panels, columns: 2, shared: true };
    figure("empty", "Nothing to see", Chart::Lines(lines))
}

fn empty_map() -> Figure {
    let map = HeatMap {
        columns: names("x", &["a", "b"]),
        rows: names("", &["c"]),
        cells: vec![vec![Cell { value: Some(f64::INFINITY), mark: None }]],
        colours: Colours::Sequential,
        value: String::new(),
        decimals: 1,
    };
    figure("empty map", "Nothing measured", Chart::HeatMap(map))
}

fn no_bars() -> Figure {
    let bars = Bars { x: Axis::log("x"), budget: "allowed".to_owned(), groups: vec![] };
    figure("no-bars", "No bars", Chart::Bars(bars))
}
