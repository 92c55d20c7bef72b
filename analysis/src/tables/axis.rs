//! Values along an axis of a study, in the order in which a reader expects them.

use super::cell::Cell;
use super::csv::full;
use std::cmp::Ordering;

/// A value of an axis. Numbers come first, by size, whole or not; then text, in which runs of digits
/// count as numbers; then what has no value.
#[derive(Clone, Debug)]
pub enum AxisValue {
    /// A whole number.
    Integer(i64),
    /// A number.
    Float(f64),
    /// A name.
    Text(String),
    /// No value.
    Null,
}

impl AxisValue {
    /// For people.
    pub fn label(&self) -> String {
        self.cell().plain()
    }

    /// As a cell at the left of a row.
    pub(super) fn cell(&self) -> Cell {
        match self {
            Self::Integer(value) => Cell::Integer(*value),
            Self::Float(value) => Cell::Exact(*value),
            Self::Text(text) => Cell::text(text.as_str()),
            // Prints as a dash, and leaves a field of CSV empty.
            Self::Null => Cell::Exact(f64::NAN),
        }
    }

    /// For names of columns that machines read.
    pub(super) fn key(&self) -> String {
        match self {
            Self::Integer(value) => value.to_string(),
            Self::Float(value) => full(*value),
            Self::Text(text) => text.clone(),
            Self::Null => "null".to_owned(),
        }
    }

    /// Whether it is set as a number.
    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Integer(_) | Self::Float(_))
    }

    /// Its size; the second part tells whole numbers apart that are the same f64.
    fn size(&self) -> Option<(f64, i128)> {
        match self {
            Self::Integer(value) => Some((*value as f64, i128::from(*value))),
            // Adding zero makes −0 equal to 0.
            Self::Float(value) => Some((*value + 0.0, *value as i128)),
            Self::Text(_) | Self::Null => None,
        }
    }
}

impl Ord for AxisValue {
    fn cmp(&self, other: &Self) -> Ordering {
        let rank = |value: &Self| match value {
            Self::Integer(_) | Self::Float(_) => 0,
            Self::Text(_) => 1,
            Self::Null => 2,
        };
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => natural(a, b).then_with(|| a.cmp(b)),
            _ => match (self.size(), other.size()) {
                (Some(a), Some(b)) => a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)),
                _ => rank(self).cmp(&rank(other)),
            },
        }
    }
}

impl PartialOrd for AxisValue {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for AxisValue {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for AxisValue {}

/// Compares text with its runs of digits taken as numbers: t9 before t10.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let ((number_a, rest_a), (number_b, rest_b)) = (digits(a), digits(b));
        if !number_a.is_empty() && !number_b.is_empty() {
            let (x, y) = (number_a.trim_start_matches('0'), number_b.trim_start_matches('0'));
            let order = x.len().cmp(&y.len()).then_with(|| x.cmp(y));
            if order != Ordering::Equal {
                return order;
            }
            (a, b) = (rest_a, rest_b);
            continue;
        }
        let (mut chars_a, mut chars_b) = (a.chars(), b.chars());
        match (chars_a.next(), chars_b.next()) {
            (Some(x), Some(y)) if x == y => (a, b) = (chars_a.as_str(), chars_b.as_str()),
            (x, y) => return x.cmp(&y),
        }
    }
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_the_readers() {
        use AxisValue::{Float, Integer, Null, Text};
        let text = |text: &str| Text(text.to_owned());
        let sorted = [
            Float(-0.5),
            Integer(0),
            Float(0.05),
            Float(0.1),
            Integer(9),
            Float(9.5),
            Integer(10),
            Integer(i64::MAX - 1),
            Integer(i64::MAX),
            text(""),
            text("10"),
            text("a"),
            text("matern-3"),
            text("matern-12"),
            text("matern-12b"),
            Null,
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(a.cmp(b), i.cmp(&j), "{a:?} {b:?}");
            }
        }
        assert_eq!(Integer(10), Float(10.0));
        assert_eq!(Float(-0.0), Float(0.0));
        assert_ne!(text("a01"), text("a1"));
    }

    #[test]
    fn labels() {
        assert_eq!(AxisValue::Float(0.1).label(), "0.1");
        assert_eq!(AxisValue::Integer(-4).label(), "−4");
        assert_eq!(AxisValue::Null.label(), "–");
        assert_eq!(AxisValue::Float(1e-7).label(), "1 × 10⁻⁷");
        assert_eq!(AxisValue::Float(1e-7).key(), "0.0000001");
        assert_eq!(AxisValue::Integer(-4).key(), "-4");
    }
}
