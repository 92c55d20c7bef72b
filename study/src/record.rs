//! The record: one trial at one checkpoint, and its columns.

use theory::Measurement;
use theory::measurement::{Deviation, EstimatedAtTau};

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

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`Value::Bool`].
    Bool,
    /// [`Value::Integer`].
    Integer,
    /// [`Value::Float`].
    Float,
}

/// A measured column: its name, what it means, and where it stands in a measurement.
pub struct Column {
    /// The name in datasets.
    pub name: &'static str,
    /// The type of its values, all of which may be null.
    pub kind: Kind,
    /// One line for the codebook.
    pub meaning: &'static str,
    /// The value.
    pub value: fn(&Measurement) -> Value,
}

macro_rules! columns {
    ($($name:literal: $kind:ident, $meaning:literal, |$m:ident| $value:expr;)*) => {
        /// The measured columns, in the order of the schema.
        pub const COLUMNS: &[Column] = &[
            $(Column {
                name: $name,
                kind: Kind::$kind,
                meaning: $meaning,
                value: |$m| $value,
            }),*
        ];
    };
}

fn index(point: Option<u32>) -> Value {
    point.map_or(Value::Null, |point| Value::Integer(point.into()))
}

/// What depends on the prior is null where there is none.
fn known(m: &Measurement, value: Value) -> Value {
    if m.prior_known { value } else { Value::Null }
}

fn error(at: Option<Deviation>) -> Value {
    at.map(|d| d.error).into()
}

fn signed(at: Option<Deviation>) -> Value {
    at.map(|d| d.signed).into()
}

fn ratio(at: Option<Deviation>) -> Value {
    at.map(|d| d.ratio).into()
}

fn estimated(m: &Measurement, part: fn(EstimatedAtTau) -> f64) -> Value {
    m.at_tau.estimated.map(part).into()
}

columns! {
    "x": Integer, "index of x_t; none in the compact setting", |m| index(m.x);
    "y": Float, "observation y_t", |m| Value::Float(m.y);
    "f": Float, "f(x_t)", |m| Value::Float(m.f);
    "f_star": Float, "max f", |m| Value::Float(m.f_star);
    "x_star": Integer, "index of x*, the first maximiser of f; none in the compact setting", |m| index(m.x_star);
    "zeta": Float, "exploration weight zeta_t of GP-UCB", |m| m.zeta.into();
    "target": Float, "target value of PI", |m| m.target.into();
    "best_sample_regret": Float, "r_t = max f - max_{s<=t} f(x_s)", |m| Value::Float(m.best_sample_regret);
    "simple_regret": Float, "R_t = max f - f at the largest observation", |m| Value::Float(m.simple_regret);
    "cumulative_regret": Float, "sum over s <= t of max f - f(x_s)", |m| Value::Float(m.cumulative_regret);
    "f_range": Float, "max f - min f", |m| Value::Float(m.f_range);
    "error_probe": Float, "(mu_hat_t - mu_t)^2/(k_t + sigma^2) at the probe", |m| error(m.probe);
    "signed_probe": Float, "(mu_hat_t - mu_t)/sqrt(k_t + sigma^2) at the probe", |m| signed(m.probe);
    "ratio_probe": Float, "k_hat_t/(k_t + sigma^2) at the probe", |m| ratio(m.probe);
    "error_star": Float, "the same error at x*, while unobserved", |m| error(m.star);
    "signed_star": Float, "its signed root at x*", |m| signed(m.star);
    "ratio_star": Float, "the same ratio at x*, while unobserved", |m| ratio(m.star);
    "error_next": Float, "the same error at x_{t+1}", |m| error(m.next);
    "signed_next": Float, "its signed root at x_{t+1}", |m| signed(m.next);
    "ratio_next": Float, "the same ratio at x_{t+1}", |m| ratio(m.next);
    "error_observed": Float, "the same error at x_t, an observed point", |m| error(m.observed);
    "ratio_observed": Float, "the same ratio at x_t, an observed point", |m| ratio(m.observed);
    "k_xy": Float, "K = (y_t - mu)^T (k(x_t) + sigma^2 I)^-1 (y_t - mu)", |m| known(m, Value::Float(m.k_xy));
    "star_seen": Bool, "x* is among x_1..x_t", |m| Value::Bool(m.star_seen);
    "tau": Integer, "argmin_{s<=t} k_{s-1}(x_s)", |m| known(m, Value::Integer(m.at_tau.tau.into()));
    "mu_star_tau": Float, "mu_{tau-1}(x*)", |m| known(m, Value::Float(m.at_tau.mean_star));
    "mu_hat_star_tau": Float, "mu_hat_{tau-1}(x*)", |m| estimated(m, |e| e.mean_star);
    "k_star_tau": Float, "k_{tau-1}(x*)", |m| known(m, Value::Float(m.at_tau.variance_star));
    "k_hat_star_tau": Float, "k_hat_{tau-1}(x*)", |m| estimated(m, |e| e.variance_star);
    "mu_tau": Float, "mu_{tau-1}(x_tau)", |m| known(m, Value::Float(m.at_tau.mean_tau));
    "mu_hat_tau": Float, "mu_hat_{tau-1}(x_tau)", |m| estimated(m, |e| e.mean_tau);
    "k_tau": Float, "k_{tau-1}(x_tau)", |m| known(m, Value::Float(m.at_tau.variance_tau));
    "k_hat_tau": Float, "k_hat_{tau-1}(x_tau)", |m| estimated(m, |e| e.variance_tau);
    "f_tau": Float, "f(x_tau)", |m| known(m, Value::Float(m.at_tau.f_tau));
    "zeta_tau": Float, "zeta_tau of GP-UCB", |m| m.at_tau.zeta.into();
    "sigma_bar_star": Float, "sigma_bar^2(x*), compact setting", |m| m.at_tau.compact.map(|c| c.star).into();
    "sigma_bar_tau": Float, "sigma_bar^2(x_tau), compact setting", |m| m.at_tau.compact.map(|c| c.tau).into();
    "star_seen_tau": Bool, "x* is among x_1..x_{tau-1}", |m| known(m, Value::Bool(m.at_tau.star_seen));
    "y_max": Float, "largest observation so far", |m| Value::Float(m.y_max);
    "f_at_y_max": Float, "f where the largest observation was made", |m| Value::Float(m.f_at_y_max);
    "f_max": Float, "largest f among x_1..x_t", |m| Value::Float(m.f_max);
    "y_at_f_max": Float, "observation where f is largest among x_1..x_t", |m| Value::Float(m.y_at_f_max);
    "information": Float, "I_t = 1/2 sum_{s<=t} log(1 + k_{s-1}(x_s)/sigma^2)", |m| m.information.into();
    "information_determinant": Float, "1/2 log det(I + k(x_t, x_t)/sigma^2), in every 16th replicate, t <= 256",
        |m| m.information_determinant.into();
    "k_min": Float, "min_{s<=t} k_{s-1}(x_s)", |m| known(m, Value::Float(m.at_tau.variance_tau));
    "expected_signed_probe": Float, "exact mean of signed_probe given D_t, compact setting",
        |m| m.expected.map(|e| e.signed).into();
    "expected_ratio_probe": Float, "exact mean of ratio_probe, compact setting",
        |m| m.expected.map(|e| e.ratio).into();
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
