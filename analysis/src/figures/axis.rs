//! Axes: what is measured along one, its range, and the way from values to points.

use super::ticks::{self, Tick};
use super::{fonts, larger, smaller};

/// The size of the numbers at ticks.
pub(super) const TICK_SIZE: f64 = 8.5;
/// A log axis with at most this many distinct values has its ticks at them.
const FEW: usize = 7;

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences take equal lengths.
    Linear,
    /// Equal ratios take equal lengths. What is not positive is drawn on the floor, and marked.
    Log,
}

/// One axis of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What is measured, in the markup of labels.
    pub label: String,
    /// How it is spread.
    pub scale: Scale,
    /// The range, if it is not to be taken from the data.
    pub limits: Option<(f64, f64)>,
}

impl Axis {
    /// A linear axis whose range comes from the data.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Linear, limits: None }
    }

    /// A log axis whose range comes from the data.
    pub fn log(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Log, limits: None }
    }

    /// The same axis with a given range.
    #[must_use]
    pub fn within(mut self, low: f64, high: f64) -> Self {
        self.limits = Some((low, high));
        self
    }

    /// The range that shows these values, or none if there is nothing to show.
    pub(super) fn range(&self, values: impl IntoIterator<Item = f64>) -> Option<Range> {
        let range = |low, high| Range { scale: self.scale, low, high };
        let shown = |v: f64| v.is_finite() && (self.scale == Scale::Linear || v > 0.0);
        let given = self.limits.filter(|&(low, high)| shown(low) && shown(high) && low < high);
        if let Some((low, high)) = given {
            return Some(range(low, high));
        }
        let mut values = values.into_iter().filter(|&v| shown(v));
        let first = values.next()?;
        let (low, high) =
            values.fold((first, first), |(low, high), v| (smaller(low, v), larger(high, v)));
        let (low, high) = match self.scale {
            Scale::Linear => padded(low, high),
            Scale::Log => {
                let (low, high) = widened(libm::log10(low), libm::log10(high), 0.3);
                (libm::pow(10.0, low), libm::pow(10.0, high))
            }
        };
        (low.is_finite() && (high - low).is_finite() && shown(low) && low < high)
            .then(|| range(low, high))
    }
}

/// A little more than the data on both sides; not below zero for data that never is.
fn padded(low: f64, high: f64) -> (f64, f64) {
    let alone = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
    let (below, above) = widened(low, high, alone);
    (if low >= 0.0 { larger(below, 0.0) } else { below }, above)
}

/// A twentieth more on both sides, or `alone` where there is a single value.
fn widened(low: f64, high: f64, alone: f64) -> (f64, f64) {
    let more = if low == high { alone } else { (high - low) / 20.0 };
    (low - more, high + more)
}

/// The values an axis shows: `low < high`, both positive on a log axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Range {
    pub(super) scale: Scale,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Range {
    /// Lays the range between two places.
    pub(super) fn along(self, from: f64, to: f64) -> Ruler {
        Ruler { range: self, from, to }
    }
}

/// A range laid along a line of the page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ruler {
    pub(super) range: Range,
    pub(super) from: f64,
    pub(super) to: f64,
}

impl Ruler {
    /// Where a value lies. Values far outside lie just far enough away to be cut off.
    pub(super) fn at(&self, value: f64) -> f64 {
        let Range { scale, low, high } = self.range;
        let share = match scale {
            Scale::Linear => (value - low) / (high - low),
            Scale::Log if value <= 0.0 => 0.0,
            Scale::Log => libm::log10(value / low) / libm::log10(high / low),
        };
        let share = larger(smaller(share, 1e3), -1e3);
        self.from + share * (self.to - self.from)
    }

    /// Whether a value can only be drawn on the floor.
    pub(super) fn floors(&self, value: f64) -> bool {
        self.range.scale == Scale::Log && value <= 0.0
    }

    /// Vertical axes are laid from the bottom up, and y counts downwards.
    fn upright(&self) -> bool {
        self.from > self.to
    }

    /// Ticks whose labels do not touch. `values` are those of the data, for axes with few.
    pub(super) fn ticks(&self, values: &[f64]) -> Vec<Tick> {
        let Range { scale, low, high } = self.range;
        let few = distinct(values, low, high);
        if scale == Scale::Log && (1..=FEW).contains(&few.len()) {
            return self.thinned(ticks::exact(&few));
        }
        let length = (self.to - self.from).abs();
        let room = if self.upright() { 20.0 } else { 28.0 };
        let most = ((length / room) as usize).clamp(3, 8);
        let pick = |at_most| match scale {
            Scale::Linear => ticks::linear(low, high, at_most),
            Scale::Log => ticks::logarithmic(low, high, at_most),
        };
        let fitting =
            (2..=most).rev().map(pick).find(|ticks| self.thinned(ticks.clone()) == *ticks);
        fitting.unwrap_or_else(|| self.thinned(pick(2)))
    }

    /// Takes the labels away that would touch the one before.
    fn thinned(&self, mut ticks: Vec<Tick>) -> Vec<Tick> {
        let mut taken = f64::NEG_INFINITY;
        for tick in &mut ticks {
            let Some(label) = &tick.label else { continue };
            let room =
                if self.upright() { TICK_SIZE } else { fonts::width(label, TICK_SIZE, false) };
            let at = (self.at(tick.value) - self.from).abs();
            if at - room / 2.0 < taken {
                tick.label = None;
            } else {
                taken = at + room / 2.0 + 5.0;
            }
        }
        ticks
    }
}

fn distinct(values: &[f64], low: f64, high: f64) -> Vec<f64> {
    let mut few: Vec<f64> =
        values.iter().copied().filter(|&v| v.is_finite() && v >= low && v <= high).collect();
    few.sort_by(f64::total_cmp);
    few.dedup();
    few
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(ruler: &Ruler, values: &[f64]) -> Vec<String> {
        ruler.ticks(values).into_iter().filter_map(|tick| tick.label).collect()
    }

    #[test]
    fn ranges_hold_the_data() {
        let range = Axis::linear("x").range([0.2, 0.9, f64::NAN, f64::INFINITY]).unwrap();
        assert!(range.low < 0.2 && range.low >= 0.0 && range.high > 0.9 && range.high < 1.0);
        let range = Axis::log("x").range([0.0, -1.0, 10.0, 1000.0]).unwrap();
        assert!(range.low > 5.0 && range.low < 10.0 && range.high > 1000.0);
        assert_eq!(Axis::linear("x").range([0.0, 0.0]).unwrap().low, 0.0);
        assert!(Axis::log("x").range([0.0, f64::NAN]).is_none());
        assert!(Axis::linear("x").range([f64::MAX, -f64::MAX]).is_none());
        let given = Axis::log("x").within(0.0, 1.0).range([2.0, 3.0]).unwrap();
        assert!(given.low > 1.0, "limits that a log axis cannot have are not used");
    }

    #[test]
    fn ends_are_where_they_were_laid() {
        for axis in [Axis::linear("x").within(2.0, 50.0), Axis::log("x").within(2.0, 50.0)] {
            let ruler = axis.range([]).unwrap().along(100.0, 20.0);
            assert!((ruler.at(2.0) - 100.0).abs() < 1e-9);
            assert!((ruler.at(50.0) - 20.0).abs() < 1e-9);
            assert!(ruler.at(10.0) < 100.0 && ruler.at(10.0) > 20.0);
            assert!(ruler.at(f64::MAX).is_finite());
        }
    }

    #[test]
    fn few_values_have_ticks_of_their_own() {
        let values = [1.0, 5.0, 20.0, 50.0, 5.0];
        let ruler = Axis::log("T").range(values).unwrap().along(0.0, 200.0);
        assert_eq!(shown(&ruler, &values), ["1", "5", "20", "50"]);
        let ruler = Axis::log("N").range([100.0, 2000.0]).unwrap().along(0.0, 30.0);
        assert_eq!(shown(&ruler, &[100.0, 110.0, 2000.0]), ["100", "2000"], "labels never touch");
    }

    #[test]
    fn short_axes_have_labels_that_do_not_touch() {
        for length in [20.0, 50.0, 100.0, 400.0] {
            for (low, high) in [(0.0, 1.0), (1e4, 9e4), (0.99912, 0.99934)] {
                for axis in [Axis::linear("x"), Axis::log("x")] {
                    let ruler = axis.range([low, high]).unwrap().along(0.0, length);
                    let ticks = ruler.ticks(&[]);
                    assert_eq!(ruler.thinned(ticks.clone()), ticks);
                }
            }
        }
    }
}
