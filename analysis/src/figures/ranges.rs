//! The ranges of the panels of a figure: each its own, or one for all.

use super::axis::{Axis, Range};
use super::lines::{Lines, Look, Panel, Point, Reference};

/// The ranges of x and y, or none for a panel without data.
pub(super) type Ranges = Option<(Range, Range)>;

/// The ranges of every panel.
pub(super) fn of(lines: &Lines) -> Vec<Ranges> {
    if !lines.shared {
        return lines.panels.iter().map(|panel| common(&panel.x, &panel.y, &[panel])).collect();
    }
    let panels: Vec<&Panel> = lines.panels.iter().collect();
    let all = panels.first().and_then(|first| common(&first.x, &first.y, &panels));
    panels.iter().map(|panel| all.filter(|_| points(panel).next().is_some())).collect()
}

/// Whether a panel compares its axes with each other.
pub(super) fn has_diagonal(panel: &Panel) -> bool {
    panel.references.iter().any(|reference| matches!(reference, Reference::Diagonal { .. }))
}

fn common(x: &Axis, y: &Axis, panels: &[&Panel]) -> Ranges {
    let xs = || panels.iter().flat_map(|panel| points(panel)).map(|(_, point)| point.x);
    let ys = || panels.iter().flat_map(|panel| heights(panel));
    // A diagonal means something only if both axes show the same.
    if panels.iter().any(|panel| has_diagonal(panel)) {
        let both = || xs().chain(ys());
        return x.range(both()).zip(y.range(both())).filter(|_| xs().next().is_some());
    }
    x.range(xs()).zip(y.range(ys())).filter(|_| xs().next().is_some())
}

fn points(panel: &Panel) -> impl Iterator<Item = (Look, Point)> {
    panel.series.iter().flat_map(|series| {
        series.points.iter().filter_map(|point| point.finite().map(|point| (series.look, point)))
    })
}

/// All that is drawn along the vertical axis.
fn heights(panel: &Panel) -> impl Iterator<Item = f64> {
    let values = points(panel).flat_map(|(look, Point { y, interval, .. })| {
        let (low, high) = interval.unzip();
        [low, high, (look != Look::Band).then_some(y)].into_iter().flatten()
    });
    let references = panel.references.iter().filter_map(|reference| match reference {
        Reference::Horizontal { y, .. } => Some(*y),
        Reference::Diagonal { .. } => None,
    });
    values.chain(references)
}
