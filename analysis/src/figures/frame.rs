//! What surrounds the data of a plot: grid, axis lines, ticks, numbers and axis labels.

use super::axis::{Ruler, TICK_SIZE};
use super::scene::{Anchor, Area, FAINT, GREY, INK, Scene, Shape, Stroke, Text};
use super::ticks::Tick;
use super::{fonts, label};

/// The size of axis labels.
pub(super) const LABEL_SIZE: f64 = 9.5;
/// The height of a line of axis label.
pub(super) const LABEL_LINE: f64 = 12.0;
/// The height of the numbers below a plot, with their ticks.
pub(super) const NUMBERS_BELOW: f64 = 15.0;

const TICK: f64 = 3.0;
const MINOR: f64 = 1.8;
/// Between a tick and its number.
const APART: f64 = 2.5;

/// The width of the numbers left of a plot, with their ticks.
pub(super) fn numbers_beside(ticks: &[Tick]) -> f64 {
    let labels = ticks.iter().filter_map(|tick| tick.label.as_deref());
    fonts::widest(labels, TICK_SIZE) + TICK + APART + 2.0
}

/// Grid lines at the labelled ticks; they go below the data.
pub(super) fn grid(scene: &mut Scene, area: &Area, x: Option<&Axle>, y: Option<&Axle>) {
    let faint = || Stroke::solid(FAINT, 0.6);
    for at in x.into_iter().flat_map(Axle::labelled) {
        scene.add(Shape::line((at, area.top), (at, area.bottom()), faint()));
    }
    for at in y.into_iter().flat_map(Axle::labelled) {
        scene.add(Shape::line((area.left, at), (area.right(), at), faint()));
    }
}

/// A ruler with its ticks, and whether their numbers are written.
pub(super) struct Axle {
    pub(super) ruler: Ruler,
    pub(super) ticks: Vec<Tick>,
    pub(super) numbers: bool,
}

impl Axle {
    fn labelled(&self) -> impl Iterator<Item = f64> {
        self.ticks.iter().filter(|tick| tick.label.is_some()).map(|tick| self.ruler.at(tick.value))
    }

    /// Draws the axis below a plot.
    pub(super) fn below(&self, scene: &mut Scene, area: &Area) {
        let bottom = area.bottom();
        for Tick { value, label } in &self.ticks {
            let at = self.ruler.at(*value);
            let length = if label.is_some() { TICK } else { MINOR };
            scene.add(Shape::line((at, bottom), (at, bottom + length), axis_line()));
            if let Some(label) = label.as_ref().filter(|_| self.numbers) {
                let place = (at, bottom + TICK + APART + TICK_SIZE * 0.74);
                scene.text(Text::new(place, label, TICK_SIZE).anchored(Anchor::Middle));
            }
        }
    }

    /// Draws the axis left of a plot.
    pub(super) fn beside(&self, scene: &mut Scene, area: &Area) {
        for Tick { value, label } in &self.ticks {
            let at = self.ruler.at(*value);
            let length = if label.is_some() { TICK } else { MINOR };
            scene.add(Shape::line((area.left - length, at), (area.left, at), axis_line()));
            if let Some(label) = label.as_ref().filter(|_| self.numbers) {
                let place = (area.left - TICK - APART, at + TICK_SIZE * 0.35);
                scene.text(Text::new(place, label, TICK_SIZE).anchored(Anchor::End));
            }
        }
    }
}

fn axis_line() -> Stroke {
    Stroke::solid(INK, 0.7)
}

/// The left and the lower border of a plot.
pub(super) fn border(scene: &mut Scene, area: &Area) {
    let corner = (area.left, area.bottom());
    let points = vec![(area.left, area.top), corner, (area.right(), area.bottom())];
    scene.add(Shape::polyline(points, axis_line()));
}

/// What is said where there is nothing to draw.
pub(super) fn no_data(scene: &mut Scene, area: &Area) {
    scene.add(area.shape(None, Some(Stroke::solid(FAINT, 0.8))));
    let (x, y) = area.centre();
    let text = Text::new((x, y + 3.0), "no data", 9.0);
    scene.text(text.anchored(Anchor::Middle).coloured(GREY));
}

/// An axis label broken to a length.
pub(super) fn label_lines(label: &str, length: f64) -> Vec<String> {
    label::wrap(label, length, LABEL_SIZE, false)
}

/// Writes the label of a horizontal axis: centred at x, its first line below `top`.
pub(super) fn label_below(scene: &mut Scene, lines: &[String], x: f64, top: f64) {
    for (i, line) in lines.iter().enumerate() {
        let baseline = top + LABEL_LINE * i as f64 + LABEL_SIZE;
        scene.text(Text::new((x, baseline), line, LABEL_SIZE).anchored(Anchor::Middle));
    }
}

/// Writes the label of a vertical axis: upwards, centred at y, its first line right of `left`.
pub(super) fn label_beside(scene: &mut Scene, lines: &[String], left: f64, y: f64) {
    for (i, line) in lines.iter().enumerate() {
        let baseline = left + LABEL_LINE * i as f64 + LABEL_SIZE;
        let text = Text::new((baseline, y), line, LABEL_SIZE);
        scene.text(text.anchored(Anchor::Middle).turned(90.0));
    }
}
