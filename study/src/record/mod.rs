//! The record: one trial at one checkpoint, and its columns.

mod columns;

use theory::Measurement;

pub use columns::{COLUMNS, Column, Kind, LEADING, Leading, Type};

use crate::cell::{Cell, CellId};
use crate::digest::Digest;

/// Why a trial has no measurement at a checkpoint. It counts in every table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The estimated variance of the chosen point was rounding error.
    #[error("the pivot of observation {step} is zero to working accuracy")]
    ZeroPivot {
        /// The observation that could not be conditioned on.
        step: u32,
    },
    /// A true predictive variance fell below the accuracy floor, so that ratios to it mean nothing.
    #[error("at observation {step} a predictive variance is below the accuracy floor")]
    AccuracyFloor {
        /// The observation that could not be conditioned on, or after which nothing could be measured.
        step: u32,
    },
    /// A point with a larger value than the maximum of f that was searched for (compact setting).
    #[error("at evaluation {step} f exceeds the maximum that was found")]
    MissedMaximum {
        /// The evaluation.
        step: u32,
    },
    /// The covariance matrix of a fitted kernel could not be factorised.
    #[error("at evaluation {step} no kernel could be fitted")]
    NoFit {
        /// The evaluation.
        step: u32,
    },
    /// The trial's code panicked; a bug, reported with its address.
    #[error("the trial panicked")]
    Panicked,
}

impl Failure {
    /// The names of all failures, in the order of their codes in batches, from 1.
    pub(crate) const NAMES: [&'static str; 5] =
        ["zero-pivot", "accuracy-floor", "panicked", "missed-maximum", "no-fit"];

    /// Every failure, in the same order, at that step.
    pub(crate) fn all(step: u32) -> [Self; 5] {
        [
            Self::ZeroPivot { step },
            Self::AccuracyFloor { step },
            Self::Panicked,
            Self::MissedMaximum { step },
            Self::NoFit { step },
        ]
    }

    /// `status` in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::ZeroPivot { .. } => "zero-pivot",
            Self::AccuracyFloor { .. } => "accuracy-floor",
            Self::Panicked => "panicked",
            Self::MissedMaximum { .. } => "missed-maximum",
            Self::NoFit { .. } => "no-fit",
        }
    }
}

/// One trial at one checkpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    /// The cell.
    pub cell: CellId,
    /// The replicate, from 0.
    pub replicate: u64,
    /// The checkpoint.
    pub t: u32,
    /// What was measured, or why it could not be.
    pub outcome: Result<Measurement, Failure>,
}

/// A value of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Does not exist here.
    Null,
    /// A flag.
    Bool(bool),
    /// A count or an index.
    Integer(i64),
    /// A number, never NaN.
    Float(f64),
    /// A name.
    Text(&'static str),
}

impl From<Option<f64>> for Value {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Self::Null, Self::Float)
    }
}

impl Record {
    /// `status` in datasets: "ok", or the failure's name.
    pub fn status(&self) -> &'static str {
        self.outcome.as_ref().map_or_else(|failure| failure.name(), |_| "ok")
    }

    /// Feeds every value in the schema's order.
    pub fn feed(&self, digest: &mut Digest) {
        digest.u64(self.cell.0).u64(self.replicate).u64(self.t.into()).text(self.status());
        if let Ok(measurement) = &self.outcome {
            for column in COLUMNS {
                match (column.value)(measurement) {
                    Value::Null => digest.u64(0),
                    Value::Bool(flag) => digest.pair(1, flag.into()),
                    Value::Integer(value) => digest.pair(2, value.cast_unsigned()),
                    Value::Float(value) => digest.pair(3, value.to_bits()),
                    Value::Text(value) => digest.u64(4).text(value),
                };
            }
        }
    }
}

/// What a cell contributes to each of its rows: columns that do not change within the cell.
pub fn cell_columns(cell: &Cell) -> [(&'static str, Value); 7] {
    let policy = &cell.policy;
    let text = |value: Option<&'static str>| value.map_or(Value::Null, Value::Text);
    [
        ("setting", Value::Text(cell.ground.name())),
        ("design", Value::Text(policy.design())),
        ("method", Value::Text(policy.method())),
        ("acquisition", text(policy.acquisition())),
        ("policy_constants", text(policy.constants().map(|c| c.form().name()))),
        ("N", policy.training().map_or(Value::Null, |t| Value::Integer(t.n.cast_signed()))),
        ("delta", policy.delta().map(theory::Delta::get).into()),
    ]
}

#[cfg(test)]
mod tests;
