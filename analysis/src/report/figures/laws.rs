//! Error and ratio against their exact laws, as Q-Q plots.

use theory::laws::{ErrorLaw, RatioLaw};

use super::{functions, id, of_prior, spread};
use crate::Analysis;
use crate::figures::{Axis, Chart, Figure, Lines, Look, Panel, Point, Reference, Series};
use crate::pass::{AtResult, Series as Kept};
use crate::statistics::Sample;

/// Points of a Q-Q plot: more would lie on each other.
const QUANTILES: usize = 60;

/// Laws shown.
const MOST: usize = 3;

pub(super) fn figures(analysis: &Analysis, prior: usize) -> Vec<Figure> {
    let Some(records) = &analysis.records else { return vec![] };
    let mut places: Vec<(u64, u32, &AtResult)> = Vec::new();
    for result in records {
        let cell = &analysis.dataset.cells[result.cell];
        if cell.prior != prior || cell.cell.policy.design() != "fixed" {
            continue;
        }
        let Some(n) = functions(cell) else { continue };
        let errors = |at: &AtResult| at.of(Kept::Error).sample.as_ref().map_or(0, Sample::count);
        let usable = |at: &&AtResult| n > u64::from(at.t) + 2 && errors(at) >= 20;
        places.extend(result.at.iter().filter(usable).map(|at| (n, at.t, at)));
    }
    places.sort_by_key(|place| (place.0, place.1));
    if places.is_empty() {
        return vec![];
    }
    let chosen = spread(&places, MOST);
    let error = chosen.iter().filter_map(|&(n, t, at)| {
        let law = ErrorLaw::new(n, t)?;
        let errors = at.of(Kept::Error).sample.as_ref()?;
        let value = |rank| errors.at(rank).sqrt();
        let law = |p: f64| law.upper_quantile(1.0 - p).sqrt();
        Some(panel(n, t, "error", errors.count(), value, law))
    });
    let ratio = chosen.iter().filter_map(|&(n, t, at)| {
        let law = RatioLaw::new(n, t)?;
        let ratios = at.of(Kept::Ratio).sample.as_ref()?;
        Some(panel(n, t, "ratio", ratios.count(), |rank| ratios.at(rank), |p| law.quantile(p)))
    });
    let panels: Vec<Panel> = error.chain(ratio).collect();
    vec![Figure {
        id: id(analysis, prior, "exact-laws"),
        title: "Error and ratio against their exact laws".into(),
        caption: format!(
            "Q-Q plots of the error |μ̂_t − μ_t|/√(k_t + σ²) and of the ratio k̂_t/(k_t + σ²) at the probe, design fixed in advance, \
             against their exact laws, which are free of kernel, σ and M. {}",
            of_prior(analysis, prior)
        ),
        chart: Chart::Lines(Lines {
            columns: panels.len().min(MOST).min(chosen.len()),
            panels,
            shared: false,
        }),
    }]
}

fn panel(
    n: u64,
    t: u32,
    what: &str,
    count: usize,
    value: impl Fn(usize) -> f64,
    law: impl Fn(f64) -> f64,
) -> Panel {
    // Both tails are where laws differ, so that levels are even in the logit, not in the level.
    let ends = libm::log((count as f64 - 0.5) / 0.5);
    let mut points: Vec<Point> = Vec::new();
    for place in 0..QUANTILES {
        let logit = ends * (2.0 * place as f64 / (QUANTILES - 1) as f64 - 1.0);
        let level = 1.0 / (1.0 + libm::exp(-logit));
        let rank = ((level * count as f64) as usize).min(count - 1);
        let level = (rank as f64 + 0.5) / count as f64;
        let point = Point::new(law(level), value(rank));
        if points.last() != Some(&point) {
            points.push(point);
        }
    }
    Panel {
        title: format!("{what}, N = {n}, t = {t}"),
        x: Axis::linear("exact quantile"),
        y: Axis::linear("measured quantile"),
        series: vec![Series { name: "trials".into(), look: Look::Markers, points }],
        references: vec![Reference::Diagonal { label: "exact law".into() }],
    }
}
