//! Curves and points in one or more panels.

use super::axis::Axis;
use super::csv::{self, Table};
use super::grid;
use super::scene::Scene;

/// A grid of panels with one legend below them.
///
/// A name stands for the same colour, marker and dashes in every panel, and is in the legend once.
/// Where several series with intervals share their x values, they are set a little apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines {
    /// The panels, row by row.
    pub panels: Vec<Panel>,
    /// How many panels are side by side.
    pub columns: usize,
    /// Whether all panels have the axes of the first, and one range for all of them.
    pub shared: bool,
}

/// One plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// What is above the plot; may be empty.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The data, drawn in this order.
    pub series: Vec<Series>,
    /// Lines that the data are compared with.
    pub references: Vec<Reference>,
}

/// Points that belong together. A line and a band of the same name share a colour and a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// How it is drawn.
    pub look: Look,
    /// The points, in drawing order. A point that is not finite is a gap.
    pub points: Vec<Point>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A marker at every point, joined by a line.
    LineAndMarkers,
    /// A marker at every point.
    Markers,
    /// A line.
    Line,
    /// The intervals of the points, filled.
    Band,
}

/// A value at a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The place.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// The lower and upper end of its interval.
    pub interval: Option<(f64, f64)>,
}

impl Point {
    /// A value without an interval.
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, interval: None }
    }

    /// A value and its interval.
    pub fn with_interval(x: f64, y: f64, low: f64, high: f64) -> Self {
        Self { x, y, interval: Some((low, high)) }
    }

    /// The point, if it can be drawn, with an interval only if that can be drawn.
    pub(super) fn finite(self) -> Option<Self> {
        let interval = self.interval.filter(|(low, high)| low.is_finite() && high.is_finite());
        (self.x.is_finite() && self.y.is_finite()).then_some(Self { interval, ..self })
    }
}

/// A line that the data are compared with.
#[derive(Clone, Debug, PartialEq)]
pub enum Reference {
    /// One value at every x.
    Horizontal {
        /// The value.
        y: f64,
        /// Its name in the legend.
        label: String,
    },
    /// y = x, as in a Q-Q plot.
    Diagonal {
        /// Its name in the legend.
        label: String,
    },
}

impl Reference {
    pub(super) fn label(&self) -> &str {
        match self {
            Self::Horizontal { label, .. } | Self::Diagonal { label } => label,
        }
    }
}

impl Lines {
    pub(super) fn scene(&self, width: f64) -> Scene {
        grid::draw(self, width)
    }

    /// Panel, series, x, y, low, high; reference lines have no x.
    pub(super) fn csv(&self) -> String {
        let mut table = Table::new(&["panel", "series", "x", "y", "low", "high"]);
        for panel in &self.panels {
            for series in &panel.series {
                for point in series.points.iter().filter_map(|point| point.finite()) {
                    let (low, high) = point.interval.unzip();
                    let numbers = [Some(point.x), Some(point.y), low, high].map(csv::number);
                    table.row([csv::text(&panel.title), csv::text(&series.name)], numbers);
                }
            }
            for reference in &panel.references {
                if let Reference::Horizontal { y, label } = reference
                    && y.is_finite()
                {
                    let numbers = [None, Some(*y), None, None].map(csv::number);
                    table.row([csv::text(&panel.title), csv::text(label)], numbers);
                }
            }
        }
        table.finish()
    }
}
