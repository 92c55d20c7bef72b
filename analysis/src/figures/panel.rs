//! The data of one panel: bands below, then reference lines, then the series.

use super::axis::Ruler;
use super::clip;
use super::lines::{Look, Panel, Point, Reference, Series};
use super::palette::{self, Style};
use super::scene::{Area, Place, Scene, Shape, Stroke};

/// Half the width of the bars at the ends of an interval.
const CAP: f64 = 2.2;
/// How far series with intervals are set apart.
const APART: f64 = 3.0;
/// A series with less room than this for a point is dense: clouds have small markers, and lines
/// have markers this far apart.
const MARKER_GAP: f64 = 10.0;

/// A plot area, its rulers and what draws into it.
pub(super) struct Plot<'a> {
    pub(super) area: Area,
    pub(super) x: Ruler,
    pub(super) y: Ruler,
    pub(super) scene: &'a mut Scene,
}

impl Plot<'_> {
    /// Draws a panel's data; the functions say which looks a name has.
    pub(super) fn draw(
        &mut self,
        panel: &Panel,
        style: impl Fn(&str) -> Style,
        reference: impl Fn(&str) -> usize,
    ) {
        for series in panel.series.iter().filter(|series| series.look == Look::Band) {
            self.band(series, style(&series.name));
        }
        for line in &panel.references {
            self.reference(line, reference(line.label()));
        }
        let shifts = self.shifts(panel);
        for (series, shift) in panel.series.iter().zip(shifts) {
            if series.look != Look::Band {
                self.series(series, style(&series.name), shift);
            }
        }
    }

    fn place(&self, point: &Point, shift: f64) -> Place {
        (self.x.at(point.x) + shift, self.y.at(point.y))
    }

    fn band(&mut self, series: &Series, style: Style) {
        for run in runs(&series.points) {
            let edge = |upper: bool| {
                run.iter().filter_map(move |point| {
                    let (low, high) = point.interval?;
                    Some((point.x, if upper { high } else { low }))
                })
            };
            let around: Vec<Place> = edge(true)
                .chain(edge(false).collect::<Vec<_>>().into_iter().rev())
                .map(|(x, y)| (self.x.at(x), self.y.at(y)))
                .collect();
            let inside = clip::polygon(&around, &self.area);
            if inside.len() > 2 {
                self.scene.add(Shape::polygon(inside, Some(style.band()), None));
            }
        }
    }

    fn reference(&mut self, reference: &Reference, index: usize) {
        let ends = match reference {
            Reference::Horizontal { y, .. } if y.is_finite() && !self.y.floors(*y) => {
                let at = self.y.at(*y);
                [(self.area.left, at), (self.area.right(), at)]
            }
            Reference::Horizontal { .. } => return,
            Reference::Diagonal { .. } => {
                let (x, y) = (&self.x.range, &self.y.range);
                let low = super::larger(x.low, y.low);
                let high = super::smaller(x.high, y.high);
                [low, high].map(|value| (self.x.at(value), self.y.at(value)))
            }
        };
        self.polyline(&ends, &palette::reference(index));
    }

    fn polyline(&mut self, points: &[Place], stroke: &Stroke) {
        for part in clip::polyline(points, &self.area) {
            self.scene.add(Shape::polyline(part, stroke.clone()));
        }
    }

    fn series(&mut self, series: &Series, style: Style, shift: f64) {
        for run in runs(&series.points) {
            let places: Vec<Place> = run.iter().map(|point| self.place(point, shift)).collect();
            let dense = run.len() as f64 * MARKER_GAP > self.area.width;
            for (point, place) in run.iter().zip(&places) {
                self.whisker(point, place.0, style, dense);
            }
            if series.look != Look::Markers {
                self.polyline(&places, &style.line());
            }
            if series.look != Look::Line {
                let thin = dense && series.look == Look::LineAndMarkers;
                let size = if dense && !thin { 0.6 } else { 1.0 };
                self.markers(&run, &places, style, size, if thin { MARKER_GAP } else { 0.0 });
            }
        }
    }

    /// Markers that are at least `apart` points from each other.
    fn markers(&mut self, run: &[Point], places: &[Place], style: Style, size: f64, apart: f64) {
        let mut last: Option<Place> = None;
        for (point, &place) in run.iter().zip(places) {
            let distance = |last: Place| libm::hypot(place.0 - last.0, place.1 - last.1);
            if !self.area.holds(place) || last.is_some_and(|last| distance(last) < apart) {
                continue;
            }
            last = Some(place);
            self.scene.add(if self.y.floors(point.y) {
                palette::floored(place, style.colour())
            } else {
                style.marker(place, size)
            });
        }
    }

    /// The interval of a point; in a dense series without bars at its ends.
    fn whisker(&mut self, point: &Point, x: f64, style: Style, dense: bool) {
        let Some((low, high)) = point.interval else { return };
        let (low, high) = ((x, self.y.at(low)), (x, self.y.at(high)));
        let stroke = style.whisker();
        self.polyline(&[low, high], &stroke);
        for (x, y) in [low, high] {
            if !dense && self.area.holds((x, y)) {
                self.scene.add(Shape::line((x - CAP, y), (x + CAP, y), stroke.clone()));
            }
        }
    }

    /// How far right each series is drawn of where it is: apart where intervals would hide each
    /// other and the x values leave room for it, otherwise not at all. Nor where there is a curve: points that lie on
    /// it would seem to lie beside it.
    fn shifts(&self, panel: &Panel) -> Vec<f64> {
        let bars = |series: &Series| {
            series.look != Look::Band && series.points.iter().any(|point| point.interval.is_some())
        };
        let several = panel.series.iter().filter(|series| bars(series)).count();
        let middle = several.saturating_sub(1) as f64 / 2.0;
        let mut xs: Vec<f64> = panel
            .series
            .iter()
            .filter(|series| bars(series))
            .flat_map(|series| &series.points)
            .filter(|point| point.x.is_finite())
            .map(|point| self.x.at(point.x))
            .collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        let tightest = xs.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::MAX, super::smaller);
        let curve = panel.series.iter().any(|series| series.look == Look::Line);
        let apart = !curve && tightest > APART * 2.0 * several as f64;
        let step = if apart { APART } else { 0.0 };
        let mut rank = 0.0;
        let mut shift = |series: &Series| {
            if !bars(series) {
                return 0.0;
            }
            rank += 1.0;
            (rank - 1.0 - middle) * step
        };
        panel.series.iter().map(&mut shift).collect()
    }
}

/// The points that can be drawn, split where one cannot.
fn runs(points: &[Point]) -> Vec<Vec<Point>> {
    let finite: Vec<Option<Point>> = points.iter().map(|point| point.finite()).collect();
    finite
        .split(Option::is_none)
        .map(|run| run.iter().copied().flatten().collect())
        .filter(|run: &Vec<Point>| !run.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_that_is_not_finite_is_a_gap() {
        let points = [1.0, 2.0, f64::NAN, 4.0].map(|y| Point::new(1.0, y));
        let lengths: Vec<usize> = runs(&points).iter().map(Vec::len).collect();
        assert_eq!(lengths, [2, 1]);
        assert!(runs(&[Point::new(f64::INFINITY, 1.0)]).is_empty());
        let half = Point::with_interval(1.0, 2.0, f64::NEG_INFINITY, 3.0);
        assert_eq!(runs(&[half])[0][0].interval, None);
    }
}
