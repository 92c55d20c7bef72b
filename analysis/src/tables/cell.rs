//! What a cell can hold, and how it reads to people.

use super::number::{self, Printed};
use super::words::Words;

/// The value of a cell. What is not finite prints as an en dash.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Nothing: the combination does not exist.
    Empty,
    /// Words.
    Text(Words),
    /// A count.
    Integer(i64),
    /// A number that was given, not measured: all its digits are shown.
    Exact(f64),
    /// A number to so many significant digits.
    Number {
        /// The number.
        value: f64,
        /// Significant digits.
        digits: u8,
    },
    /// A Monte-Carlo estimate, rounded by its standard error.
    Estimate {
        /// The estimate.
        value: f64,
        /// Its standard error; not finite where it is unknown.
        error: f64,
    },
    /// An estimate with a verdict on it: a mark behind it, and emphasis.
    Judged {
        /// The estimate.
        value: f64,
        /// Its standard error.
        error: f64,
        /// A sign that notes explain; empty where none is needed.
        mark: &'static str,
        /// How it is emphasised.
        tone: Tone,
    },
    /// An interval, rounded outwards: what is printed still covers.
    Interval {
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
        /// Significant digits of its width.
        digits: u8,
    },
    /// A word that must catch the eye, or must not.
    Flag {
        /// The word.
        words: Words,
        /// How it is emphasised.
        tone: Tone,
    },
}

/// Emphasis of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Bold: a statement fails.
    Refuted,
    /// Upright: as it should be.
    Confirmed,
    /// Italic: not known yet.
    Undecided,
    /// Set back: does not apply.
    Aside,
}

/// Stands where a number does not exist.
pub(super) const DASH: &str = "–";

impl Cell {
    /// Words in a cell.
    pub fn text(words: impl Into<Words>) -> Self {
        Self::Text(words.into())
    }

    /// A verdict in a cell.
    pub fn flag(words: impl Into<Words>, tone: Tone) -> Self {
        Self::Flag { words: words.into(), tone }
    }

    /// Unicode, unescaped, without emphasis.
    pub(super) fn plain(&self) -> String {
        match self {
            Self::Empty => String::new(),
            Self::Text(words) | Self::Flag { words, .. } => words.plain.clone(),
            _ => {
                let number = self.printed().map(|printed| printed.unicode());
                number.map_or_else(|| DASH.to_owned(), |number| number + self.mark())
            }
        }
    }

    /// LaTeX for text mode, without emphasis.
    pub(super) fn latex(&self) -> String {
        match self {
            Self::Empty => String::new(),
            Self::Text(words) | Self::Flag { words, .. } => words.latex.clone(),
            _ => {
                let number = self.printed().map(|printed| printed.latex());
                number.map_or_else(|| "--".to_owned(), |number| number + self.mark())
            }
        }
    }

    /// The emphasis of a flag.
    pub(super) fn tone(&self) -> Option<Tone> {
        match self {
            Self::Flag { tone, .. } | Self::Judged { tone, .. } => Some(*tone),
            _ => None,
        }
    }

    fn mark(&self) -> &'static str {
        if let Self::Judged { mark, .. } = self { mark } else { "" }
    }

    fn printed(&self) -> Option<Printed> {
        match *self {
            Self::Integer(value) => Some(Printed::integer(value)),
            Self::Exact(value) => number::exact(value),
            Self::Number { value, digits } => number::significant(value, digits),
            Self::Estimate { value, error } | Self::Judged { value, error, .. } => {
                number::estimate(value, error)
            }
            Self::Interval { low, high, digits } => number::interval(low, high, digits),
            Self::Empty | Self::Text(_) | Self::Flag { .. } => None,
        }
    }
}

impl Tone {
    /// Its class in HTML.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Refuted => "refuted",
            Self::Confirmed => "confirmed",
            Self::Undecided => "undecided",
            Self::Aside => "aside",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_finite_is_a_dash() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let cells = [
                Cell::Exact(value),
                Cell::Number { value, digits: 3 },
                Cell::Estimate { value, error: 1.0 },
                Cell::Interval { low: value, high: 1.0, digits: 2 },
                Cell::Interval { low: 0.0, high: value, digits: 2 },
            ];
            for cell in cells {
                assert_eq!((cell.plain().as_str(), cell.latex().as_str()), ("–", "--"));
            }
        }
        assert_eq!(Cell::Empty.plain(), "");
    }
}
