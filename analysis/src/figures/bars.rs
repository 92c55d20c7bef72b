//! Measured values against what was allowed for each, such as the steps of a proof.

use super::axis::Axis;
use super::csv::{self, Table};
use super::rows;
use super::scene::{Colour, Scene};

/// Horizontal bars in groups, with a table of their values and verdicts at the right.
///
/// On a log axis a value of zero stands left of the scale, at a 0 of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// What is measured.
    pub x: Axis,
    /// What the budgets are called, such as "allowed".
    pub budget: String,
    /// The groups, from top to bottom.
    pub groups: Vec<Group>,
}

/// Bars under a heading.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// What they have in common.
    pub heading: String,
    /// The bars, from top to bottom.
    pub bars: Vec<Bar>,
}

/// One measured value.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// What was measured.
    pub label: String,
    /// The value.
    pub value: f64,
    /// The lower and upper end of its interval.
    pub interval: Option<(f64, f64)>,
    /// What is allowed.
    pub budget: Option<f64>,
    /// What follows.
    pub status: Status,
}

/// What a comparison with a budget says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The budget is exceeded.
    Refuted,
    /// The budget is kept.
    Confirmed,
    /// The data do not say.
    Undecided,
    /// Nothing was claimed.
    Descriptive,
}

impl Status {
    pub(super) const ALL: [Self; 4] =
        [Self::Refuted, Self::Confirmed, Self::Undecided, Self::Descriptive];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Refuted => "refuted",
            Self::Confirmed => "confirmed",
            Self::Undecided => "undecided",
            Self::Descriptive => "descriptive",
        }
    }

    /// The fill of its bars, and their outline. Different in grey too: dark, light, white and
    /// hatched, light without an outline.
    pub(super) fn colours(self) -> (Colour, Option<Colour>) {
        match self {
            Self::Refuted => (Colour(213, 94, 0), Some(Colour(120, 50, 0))),
            Self::Confirmed => (Colour(150, 205, 240), Some(Colour(0, 90, 145))),
            Self::Undecided => (Colour(255, 255, 255), Some(Colour(80, 80, 80))),
            Self::Descriptive => (Colour(205, 205, 205), None),
        }
    }
}

impl Bars {
    pub(super) fn scene(&self) -> Scene {
        rows::draw(self)
    }

    /// Group, label, value, low, high, budget, status.
    pub(super) fn csv(&self) -> String {
        let mut table = Table::new(&["group", "label", "value", "low", "high", "budget", "status"]);
        for group in &self.groups {
            for bar in &group.bars {
                let (low, high) = bar.interval.unzip();
                let [value, low, high, budget] =
                    [Some(bar.value), low, high, bar.budget].map(csv::number);
                let status = bar.status.word().to_owned();
                table.row(
                    [csv::text(&group.heading), csv::text(&bar.label)],
                    [value, low, high, budget, status],
                );
            }
        }
        table.finish()
    }
}
