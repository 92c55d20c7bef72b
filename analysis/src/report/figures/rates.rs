//! What falls with N - T, with its fitted curve.

use super::{MOST_PANELS, spread};
use crate::Analysis;
use crate::figures::{Axis, Chart, Figure, Lines, Look, Panel, Point, Series};
use crate::rates::{Against, Quantity, RateFit};

pub(super) fn figures(analysis: &Analysis) -> Vec<Figure> {
    let shown = [
        (Quantity::RmsError, Against::Functions, "rate-error", "RMS of (μ̂_t − μ_t)/√(k_t + σ²)"),
        (Quantity::Excess, Against::Functions, "rate-excess", "excess of r_T over the known prior"),
    ];
    shown
        .into_iter()
        .filter_map(|(quantity, against, id, label)| figure(analysis, quantity, against, id, label))
        .collect()
}

fn figure(
    analysis: &Analysis,
    quantity: Quantity,
    against: Against,
    id: &str,
    label: &str,
) -> Option<Figure> {
    let fits: Vec<&RateFit> = analysis
        .fits
        .iter()
        .filter(|fit| fit.quantity == quantity && fit.against == against)
        .collect();
    // A quantity without a trend has nothing to show; its numbers are in the table.
    let fits: Vec<&RateFit> =
        fits.into_iter().filter(|fit| fit.comparison.is_identified()).collect();
    let alone = fits.iter().all(|fit| fit.of == fits[0].of);
    let panels: Vec<Panel> =
        spread(&fits, MOST_PANELS).into_iter().map(|fit| panel(fit, label, alone)).collect();
    if panels.is_empty() {
        return None;
    }
    let of = if alone { format!(" {}.", fits[0].of) } else { String::new() };
    Some(Figure {
        id: id.into(),
        title: format!("{} against {}", quantity.name(), against.name()),
        caption: format!(
            "{} against {} with two Monte-Carlo standard errors, and the fitted A + B n^{{−c}} beside the theory's exponent \
             ({}); c is fitted, with its 95 % interval.{of}",
            quantity.name(),
            against.name(),
            fits[0].theory
        ),
        chart: Chart::Lines(Lines { columns: panels.len().min(3), panels, shared: false }),
    })
}

fn panel(fit: &RateFit, label: &str, alone: bool) -> Panel {
    let positive = fit.points.iter().all(|point| point.1 > 0.0);
    let points = fit.points.iter().map(|&(size, value, error)| {
        Point::with_interval(size, value, value - 2.0 * error, value + 2.0 * error)
    });
    let measured =
        Series { name: "measured".into(), look: Look::Markers, points: points.collect() };
    let mut series = vec![measured];
    if let Ok(found) = &fit.comparison.measured {
        let low = fit
            .points
            .iter()
            .map(|point| point.0)
            .fold(f64::INFINITY, |a, b| if b < a { b } else { a });
        let high =
            fit.points.iter().map(|point| point.0).fold(0.0, |a, b| if b > a { b } else { a });
        let at = |place: u32| low * libm::pow(high / low, f64::from(place) / 40.0);
        let curve = (0..=40).map(|place| Point::new(at(place), found.fit.at(at(place)))).collect();
        series.push(Series { name: "fit".into(), look: Look::Line, points: curve });
    }
    let mut title: Vec<String> = Vec::new();
    title.extend((!alone).then(|| fit.of.clone()));
    title.extend(fit.t.map(|t| format!("T = {t}")));
    if let Ok(found) = &fit.comparison.measured {
        title.push(format!("c = {:.2} [{:.2}, {:.2}]", found.fit.c, found.low, found.high));
    }
    Panel {
        title: title.join(", "),
        x: Axis::log(fit.against.name()),
        y: if positive { Axis::log(label) } else { Axis::linear(label) },
        series,
        references: vec![],
    }
}
