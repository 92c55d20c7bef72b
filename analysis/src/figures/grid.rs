//! The layout of a grid of panels: what room titles, numbers and labels need, and what is left
//! for the plots.

use super::axis::Axis;
use super::frame::{self, Axle, LABEL_LINE, NUMBERS_BELOW};
use super::keys::Keys;
use super::legend::Legend;
use super::lines::{Lines, Look, Panel};
use super::panel::Plot;
use super::ranges::{self, Ranges};
use super::scene::{Anchor, Area, Scene, Text};
use super::{label, larger, smaller};

const TITLE_SIZE: f64 = 9.5;
const TITLE_LINE: f64 = 12.0;
/// Between panels, and at the right for the half of a number that hangs over.
const GAP: f64 = 12.0;
const TOP: f64 = 6.0;
/// Where labels leave less than this for a plot, the figure grows.
const NARROWEST: f64 = 72.0;

/// Draws all panels and the legend in a width.
pub(super) fn draw(lines: &Lines, width: f64) -> Scene {
    let keys = Keys::of(lines);
    let sheet = Sheet::new(lines, width);
    let mut scene = Scene { width: sheet.total(), ..Scene::default() };
    let mut top = TOP;
    for row in 0..sheet.rows() {
        top = sheet.draw_row(&mut scene, &keys, row, top) + GAP;
    }
    top -= GAP;
    if lines.shared {
        top = sheet.draw_outer_labels(&mut scene, top);
    }
    let legend = Legend::new(keys.entries(sheet.floors()), scene.width);
    let height = legend.height;
    if height > 0.0 {
        top += 9.0;
    }
    legend.draw(&mut scene, 0.0, top);
    scene.height = top + height + 4.0;
    scene
}

struct Sheet<'a> {
    lines: &'a Lines,
    /// The width of the whole, where labels leave enough for the plots.
    whole: f64,
    columns: usize,
    ranges: Vec<Ranges>,
    /// The height of every plot.
    height: f64,
    /// The width of every plot.
    width: f64,
    /// What is left of the plots of each column.
    margins: Vec<f64>,
    /// What is left of everything, where square plots do not fill the width.
    inset: f64,
}

impl<'a> Sheet<'a> {
    fn new(lines: &'a Lines, whole: f64) -> Self {
        let columns = lines.columns.clamp(1, lines.panels.len().max(1));
        let square = lines.panels.iter().any(ranges::has_diagonal);
        let height = match columns {
            _ if square => smaller(whole / columns as f64 - 44.0, 260.0),
            1 => smaller(whole * 0.55, 220.0),
            2 => 145.0,
            3 => 120.0,
            _ => 100.0,
        };
        let ranges = ranges::of(lines);
        let mut sheet =
            Self { lines, whole, columns, ranges, height, width: 0.0, margins: vec![], inset: 0.0 };
        sheet.margins = (0..columns).map(|column| sheet.margin(column)).collect();
        let taken: f64 = sheet.margins.iter().sum::<f64>() + GAP * columns as f64;
        sheet.width = larger((whole - taken) / columns as f64, NARROWEST);
        if square {
            let full = sheet.width;
            sheet.width = smaller(full, height);
            sheet.height = sheet.width;
            sheet.inset = (full - sheet.width) * columns as f64 / 2.0;
        }
        sheet
    }

    /// The width of the figure.
    fn total(&self) -> f64 {
        larger(self.left(self.columns - 1) + self.width + GAP, self.whole)
    }

    fn rows(&self) -> usize {
        self.lines.panels.len().div_ceil(self.columns)
    }

    fn floors(&self) -> bool {
        let floored = |(panel, ranges): (&Panel, &Ranges)| {
            let Some((_, y)) = ranges else { return false };
            let ruler = y.along(1.0, 0.0);
            panel.series.iter().filter(|s| !matches!(s.look, Look::Band | Look::Line)).any(|s| {
                s.points.iter().any(|point| point.finite().is_some() && ruler.floors(point.y))
            })
        };
        self.lines.panels.iter().zip(&self.ranges).any(floored)
    }

    /// The axes of a panel.
    fn axes(&self, panel: usize) -> (&'a Axis, &'a Axis) {
        let panel = &self.lines.panels[if self.lines.shared { 0 } else { panel }];
        (&panel.x, &panel.y)
    }

    /// Whether the numbers of a panel's vertical and horizontal axis are written.
    fn numbers(&self, panel: usize) -> (bool, bool) {
        let lowest = panel + self.columns >= self.lines.panels.len();
        let leftmost = panel.is_multiple_of(self.columns);
        (!self.lines.shared || leftmost, !self.lines.shared || lowest)
    }

    fn margin(&self, column: usize) -> f64 {
        let panels = (column..self.lines.panels.len()).step_by(self.columns);
        let margin = |panel: usize| {
            let numbers = match self.ranges[panel] {
                Some((_, y)) if self.numbers(panel).0 => {
                    frame::numbers_beside(&y.along(self.height, 0.0).ticks(&[]))
                }
                _ => 0.0,
            };
            let labels = match self.lines.shared {
                true if column > 0 => 0.0,
                true => {
                    frame::label_lines(&self.axes(panel).1.label, self.grid_height()).len() as f64
                }
                false => frame::label_lines(&self.axes(panel).1.label, self.height).len() as f64,
            };
            numbers + labels * LABEL_LINE
        };
        larger(panels.map(margin).fold(0.0, larger), 2.0)
    }

    /// About how high all plots are together.
    fn grid_height(&self) -> f64 {
        self.height * self.rows() as f64
    }

    fn left(&self, column: usize) -> f64 {
        let before = (self.width + GAP) * column as f64;
        self.inset + self.margins[..=column].iter().sum::<f64>() + before
    }

    /// The x values that may get ticks of their own: where there are markers.
    fn xs(&self, panel: usize) -> Vec<f64> {
        let panels = &self.lines.panels;
        let panels = if self.lines.shared { &panels[..] } else { &panels[panel..=panel] };
        let all = || panels.iter().flat_map(|panel| &panel.series);
        let marked = |look: Look| matches!(look, Look::LineAndMarkers | Look::Markers);
        let some = all().any(|series| marked(series.look));
        let points = all().filter(|s| !some || marked(s.look)).flat_map(|s| &s.points);
        points.filter_map(|point| point.finite()).map(|point| point.x).collect()
    }

    fn title(&self, panel: usize) -> Vec<String> {
        label::wrap(&self.lines.panels[panel].title, self.width + 6.0, TITLE_SIZE, true)
    }

    fn panels(&self, row: usize) -> std::ops::Range<usize> {
        row * self.columns..self.lines.panels.len().min((row + 1) * self.columns)
    }

    fn title_height(&self, row: usize) -> f64 {
        let lines = self.panels(row).map(|panel| self.title(panel).len()).max().unwrap_or(0);
        if lines > 0 { TITLE_LINE * lines as f64 + 3.0 } else { 0.0 }
    }

    /// Draws a row of panels and says where it ends.
    fn draw_row(&self, scene: &mut Scene, keys: &Keys, row: usize, top: f64) -> f64 {
        let top = top + self.title_height(row);
        let mut end = top + self.height;
        for panel in self.panels(row) {
            let left = self.left(panel % self.columns);
            let area = Area { left, top, width: self.width, height: self.height };
            self.draw_title(scene, panel, &area);
            let bottom = self.draw_panel(scene, keys, panel, area);
            end = larger(end, bottom);
        }
        end
    }

    fn draw_title(&self, scene: &mut Scene, panel: usize, area: &Area) {
        let lines = self.title(panel);
        for (i, line) in lines.iter().rev().enumerate() {
            let place = (area.left + area.width / 2.0, area.top - 5.0 - TITLE_LINE * i as f64);
            scene.text(Text::new(place, line, TITLE_SIZE).bold().anchored(Anchor::Middle));
        }
    }

    /// Draws a panel and says where what is below it ends.
    fn draw_panel(&self, scene: &mut Scene, keys: &Keys, panel: usize, area: Area) -> f64 {
        let Some((x, y)) = self.ranges[panel] else {
            frame::no_data(scene, &area);
            return area.bottom() + 4.0;
        };
        let numbers = self.numbers(panel);
        let (x, y) = (x.along(area.left, area.right()), y.along(area.bottom(), area.top));
        let below = Axle { ruler: x, ticks: x.ticks(&self.xs(panel)), numbers: numbers.1 };
        let beside = Axle { ruler: y, ticks: y.ticks(&[]), numbers: numbers.0 };
        frame::grid(scene, &area, Some(&below), Some(&beside));
        below.below(scene, &area);
        beside.beside(scene, &area);
        frame::border(scene, &area);
        let data = &self.lines.panels[panel];
        Plot { area, x, y, scene }.draw(data, |name| keys.style(name), |name| keys.reference(name));
        let end = area.bottom() + if numbers.1 { NUMBERS_BELOW } else { 4.0 };
        if self.lines.shared { end } else { self.draw_labels(scene, panel, &area, end) }
    }

    fn draw_labels(&self, scene: &mut Scene, panel: usize, area: &Area, end: f64) -> f64 {
        let (x, y) = self.axes(panel);
        let (middle, centre) = area.centre();
        let lines = frame::label_lines(&y.label, self.height);
        let column = panel % self.columns;
        frame::label_beside(scene, &lines, area.left - self.margins[column], centre);
        let lines = frame::label_lines(&x.label, self.width);
        frame::label_below(scene, &lines, middle, end);
        end + LABEL_LINE * lines.len() as f64
    }

    /// Writes the labels that all panels share, and says where they end.
    fn draw_outer_labels(&self, scene: &mut Scene, bottom: f64) -> f64 {
        if self.ranges.iter().all(Option::is_none) {
            return bottom;
        }
        let (x, y) = self.axes(0);
        let right = self.left(self.columns - 1) + self.width;
        let lines = frame::label_lines(&y.label, self.grid_height());
        let plots = (TOP + self.title_height(0), bottom - NUMBERS_BELOW);
        frame::label_beside(scene, &lines, self.inset, f64::midpoint(plots.0, plots.1));
        let lines = frame::label_lines(&x.label, right - self.left(0));
        frame::label_below(scene, &lines, f64::midpoint(self.left(0), right), bottom);
        bottom + LABEL_LINE * lines.len() as f64
    }
}
