//! Figures: what a chart shows, as SVG for the page, PDF for print and CSV for whoever wants the
//! numbers.
//!
//! A figure is data alone. Drawing it is a pure function: the same figure gives the same bytes on
//! every machine. Charts lay themselves out into a `scene`, which `svg` and `pdf` print. Numbers
//! that are not finite are never drawn.
//!
//! Labels may hold `r_T`, `r_{T+1}` and `10^{−3}` for scripts, Greek letters and a combining hat;
//! [`verbatim`] protects names such as `x_next`.
//!
//! ```
//! # use analysis::figures::{Axis, Chart, Figure, Lines, Look, Panel, Point, Reference, Series};
//! let measured = Series {
//!     name: "measured, with 95 % interval".into(),
//!     look: Look::LineAndMarkers,
//!     points: vec![
//!         Point::with_interval(1.0, 0.962, 0.951, 0.971),
//!         Point::with_interval(5.0, 0.948, 0.935, 0.959),
//!     ],
//! };
//! let figure = Figure {
//!     id: "coverage".into(),
//!     title: "Coverage of Lemma 1".into(),
//!     caption: "How often |f − μ̂_t| is within the bound.".into(),
//!     chart: Chart::Lines(Lines {
//!         panels: vec![Panel {
//!             title: "N = 100".into(),
//!             x: Axis::log("t"),
//!             y: Axis::linear("coverage").within(0.9, 1.0),
//!             series: vec![measured],
//!             references: vec![Reference::Horizontal { y: 0.95, label: "required".into() }],
//!         }],
//!         columns: 1,
//!         shared: false,
//!     }),
//! };
//! assert!(figure.svg().starts_with("<svg"));
//! assert!(figure.pdf().starts_with(b"%PDF"));
//! assert!(figure.csv().starts_with("panel,series,x,y,low,high\n"));
//! ```

mod axis;
mod bar_axis;
mod bars;
mod cells;
mod clip;
mod colour_bar;
mod colours;
mod csv;
mod fonts;
mod frame;
mod grid;
mod hatch;
mod heat;
mod keys;
mod label;
mod legend;
mod lines;
mod palette;
mod panel;
mod pdf;
mod pdf_text;
mod ranges;
mod rows;
#[cfg(test)]
mod samples;
mod scene;
#[cfg(test)]
mod stress;
mod svg;
#[cfg(test)]
mod tests;
mod ticks;

pub use axis::{Axis, Scale};
pub use bars::{Bar, Bars, Group, Status};
pub use heat::{Categories, Cell, Colours, HeatMap, Mark};
pub use label::verbatim;
pub use lines::{Lines, Look, Panel, Point, Reference, Series};

/// The width of a figure, in points: that of a page's text.
const WIDTH: f64 = 480.0;

/// A chart, and what is said about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// A short name, unique on a page.
    pub id: String,
    /// What the figure is called. Not drawn: it is for whoever prints the figure, and for readers
    /// who do not see it.
    pub title: String,
    /// What the figure shows. Not drawn either.
    pub caption: String,
    /// What is drawn.
    pub chart: Chart,
}

/// What a figure shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Chart {
    /// Curves and points.
    Lines(Lines),
    /// Values of pairs of categories.
    HeatMap(HeatMap),
    /// Values against budgets.
    Bars(Bars),
}

impl Figure {
    /// A standalone SVG.
    pub fn svg(&self) -> String {
        svg::render(&self.scene(), &self.id, &self.title, &self.caption)
    }

    /// A standalone SVG of curves in another width, in points; other charts keep theirs. For screens that
    /// are narrower than a page.
    pub fn svg_within(&self, width: f64) -> String {
        let scene = match &self.chart {
            Chart::Lines(lines) => lines.scene(width),
            Chart::HeatMap(_) | Chart::Bars(_) => self.scene(),
        };
        svg::render(&scene, &self.id, &self.title, &self.caption)
    }

    /// A PDF of one page.
    pub fn pdf(&self) -> Vec<u8> {
        pdf::render(&self.scene(), &self.title)
    }

    /// The numbers that are drawn, one row each.
    pub fn csv(&self) -> String {
        match &self.chart {
            Chart::Lines(lines) => lines.csv(),
            Chart::HeatMap(map) => map.csv(),
            Chart::Bars(bars) => bars.csv(),
        }
    }

    fn scene(&self) -> scene::Scene {
        match &self.chart {
            Chart::Lines(lines) => lines.scene(WIDTH),
            Chart::HeatMap(map) => map.scene(),
            Chart::Bars(bars) => bars.scene(),
        }
    }
}

/// The larger of two numbers.
fn larger(a: f64, b: f64) -> f64 {
    if b > a { b } else { a }
}

/// The smaller of two numbers.
fn smaller(a: f64, b: f64) -> f64 {
    if b < a { b } else { a }
}
