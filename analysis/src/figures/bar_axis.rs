//! The axis below a chart of bars, and the bars on it.
//!
//! A log axis has no zero. Where a value or an interval reaches it, a 0 of its own stands left of
//! the scale, with the axis broken between them.

use super::axis::{Axis, Range, Ruler, Scale};
use super::bars::{Bar, Bars, Status};
use super::frame::{self, Axle, LABEL_LINE, NUMBERS_BELOW};
use super::hatch::hatched;
use super::scene::{Anchor, Area, BLACK, Fill, INK, Place, Scene, Shape, Stroke, Text, WHITE};
use super::{larger, smaller};

/// The height of a bar.
pub(super) const BAR: f64 = 9.0;
/// Between the 0 of a log axis and its scale.
const ZERO: f64 = 22.0;
/// Half the length of the bars at the ends of an interval.
const CAP: f64 = 2.5;

/// The common axis of all bars.
pub(super) struct BarAxis {
    axle: Axle,
    /// Where bars begin.
    base: f64,
    /// Whether there is a 0 left of a log axis.
    zero: bool,
}

impl BarAxis {
    /// The axis that shows all bars in an area; none if there is nothing to show.
    pub(super) fn new(bars: &Bars, area: &Area) -> Option<Self> {
        let all =
            || bars.groups.iter().flat_map(|group| &group.bars).filter(|b| b.value.is_finite());
        let ends = all().flat_map(|bar| {
            let (low, high) = interval(bar).unzip();
            [Some(bar.value), low, high].into_iter().flatten()
        });
        let ends: Vec<f64> = ends.collect();
        let budgets = all().filter_map(|bar| bar.budget);
        let range = range(&bars.x, ends.iter().copied().chain(budgets).collect())?;
        ends.first()?;
        let log = bars.x.scale == Scale::Log;
        let zero = log && ends.iter().any(|&end| end <= 0.0);
        let from = area.left + if zero { ZERO } else { 0.0 };
        let ruler = range.along(from, area.right());
        let base = if log { area.left } else { inside(area, ruler.at(0.0)) };
        let axle = Axle { ruler, ticks: ruler.ticks(&[]), numbers: true };
        Some(Self { axle, base, zero })
    }

    fn at(&self, value: f64) -> f64 {
        if self.ruler().floors(value) { self.base } else { self.ruler().at(value) }
    }

    fn ruler(&self) -> &Ruler {
        &self.axle.ruler
    }

    /// Draws grid, axis and label, and says where they end.
    pub(super) fn draw(&self, scene: &mut Scene, area: &Area, label: &str) -> f64 {
        frame::grid(scene, area, Some(&self.axle), None);
        self.axle.below(scene, area);
        let (left, bottom) = (area.left, area.bottom());
        let line = || Stroke::solid(INK, 0.7);
        scene.add(Shape::line((left, area.top), (left, bottom), line()));
        scene.add(Shape::line((left, bottom), (area.right(), bottom), line()));
        if self.zero {
            scene.add(Shape::line((left, bottom), (left, bottom + 3.0), line()));
            let place = (left, bottom + 5.5 + super::axis::TICK_SIZE * 0.74);
            scene.text(Text::new(place, "0", super::axis::TICK_SIZE).anchored(Anchor::Middle));
            scene.extend(broken((left + ZERO / 2.0, bottom)));
        }
        let end = bottom + NUMBERS_BELOW;
        // The label may be wider than the plot: it has the room of the names as well.
        let lines = frame::label_lines(label, area.width + area.left);
        frame::label_below(scene, &lines, area.centre().0, end);
        end + LABEL_LINE * lines.len() as f64
    }

    /// Draws a bar with its interval and its budget.
    pub(super) fn bar(&self, scene: &mut Scene, area: &Area, bar: &Bar, middle: f64) {
        if !bar.value.is_finite() {
            return;
        }
        let at = |value: f64| inside(area, self.at(value));
        let (from, to) = (smaller(self.base, at(bar.value)), larger(self.base, at(bar.value)));
        let rest = Area { left: from, top: middle - BAR / 2.0, width: to - from, height: BAR };
        if rest.width > 0.0 {
            scene.extend(filled(&rest, bar.status));
        }
        if let Some((low, high)) = interval(bar) {
            scene.extend(whisker((at(low), middle), (at(high), middle)));
        }
        if bar.value == 0.0 {
            let (fill, stroke) = (Some(Fill::solid(WHITE)), Some(Stroke::solid(BLACK, 1.0)));
            scene.add(Shape::Circle { centre: (self.base, middle), radius: 2.4, fill, stroke });
        }
        let budget = bar.budget.filter(|budget| budget.is_finite()).map(|budget| self.at(budget));
        if let Some(x) = budget.filter(|&x| area.holds((x, middle))) {
            scene.add(budget_mark((x, middle)));
        }
    }
}

fn interval(bar: &Bar) -> Option<(f64, f64)> {
    bar.interval.filter(|(low, high)| low.is_finite() && high.is_finite())
}

/// A range that bars can begin in: with zero, or on a log axis with room below the least value.
fn range(axis: &Axis, mut values: Vec<f64>) -> Option<Range> {
    match axis.scale {
        Scale::Linear => values.push(0.0),
        Scale::Log => {
            let positive = values.iter().copied().filter(|&value| value > 0.0);
            let least = positive.fold(f64::INFINITY, smaller);
            values.push(least / 2.0);
        }
    }
    axis.range(values)
}

fn inside(area: &Area, x: f64) -> f64 {
    larger(smaller(x, area.right()), area.left)
}

/// A bar in the looks of a status.
pub(super) fn filled(area: &Area, status: Status) -> Vec<Shape> {
    let (fill, outline) = status.colours();
    let mut shapes = vec![area.shape(Some(Fill::solid(fill)), None)];
    if status == Status::Undecided {
        shapes.extend(hatched(area, 4.0, &Stroke::solid(INK, 0.5)));
    }
    let outline = outline.map(|colour| Stroke::solid(colour, 0.8));
    shapes.extend(outline.map(|stroke| area.shape(None, Some(stroke))));
    shapes
}

/// A horizontal interval with bars at its ends.
pub(super) fn whisker(low: Place, high: Place) -> Vec<Shape> {
    let line = || Stroke::solid(BLACK, 0.9);
    let cap = |(x, y): Place| Shape::line((x, y - CAP), (x, y + CAP), line());
    vec![Shape::line(low, high, line()), cap(low), cap(high)]
}

/// The tick of a budget: black on white, so that it is seen on any bar.
pub(super) fn budget_mark((x, y): Place) -> Shape {
    let half = BAR / 2.0 + 2.0;
    let area = Area { left: x - 1.2, top: y - half, width: 2.4, height: 2.0 * half };
    area.shape(Some(Fill::solid(BLACK)), Some(Stroke::solid(WHITE, 0.6)))
}

/// Two slashes across an axis.
fn broken((x, y): Place) -> Vec<Shape> {
    let gap = vec![(x - 3.0, y + 3.0), (x, y - 3.0), (x + 3.0, y - 3.0), (x, y + 3.0)];
    let slash =
        |dx: f64| Shape::line((x + dx - 3.0, y + 3.0), (x + dx, y - 3.0), Stroke::solid(INK, 0.7));
    vec![Shape::polygon(gap, Some(Fill::solid(WHITE)), None), slash(0.0), slash(3.0)]
}
