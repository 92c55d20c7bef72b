//! The columns of records, as datasets and their codebook have them.

use theory::Measurement;
use theory::measurement::{Deviation, EstimatedAtTau};

use super::Value;

/// The type of a column. Every reader of Parquet knows these four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Flags.
    Bool,
    /// Signed 64-bit integers.
    Integer,
    /// 64-bit floating-point numbers, never NaN.
    Float,
    /// UTF-8 text.
    Text,
}

impl Type {
    /// The name in the codebook.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Integer => "i64",
            Self::Float => "f64",
            Self::Text => "string",
        }
    }
}

impl From<Kind> for Type {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Bool => Self::Bool,
            Kind::Integer => Self::Integer,
            Kind::Float => Self::Float,
        }
    }
}

/// A column that says which trial a row is of, and where.
#[derive(Clone, Copy, Debug)]
pub struct Leading {
    /// The name in datasets.
    pub name: &'static str,
    /// The type of its values.
    pub kind: Type,
    /// One line for the codebook.
    pub meaning: &'static str,
    /// Which rows lack a value; empty where none do.
    pub null: &'static str,
}

const fn leading(
    name: &'static str,
    kind: Type,
    meaning: &'static str,
    null: &'static str,
) -> Leading {
    Leading { name, kind, meaning, null }
}

/// The columns before those of swept keys.
pub const LEADING: [Leading; 12] = [
    leading("study", Type::Text, "the study: first 12 hexadecimal digits of its digest", ""),
    leading("cell", Type::Text, "the cell: 16 hexadecimal digits", ""),
    leading("replicate", Type::Integer, "the trial's number within its cell, from 0", ""),
    leading("status", Type::Text, "ok, or why nothing could be measured here", ""),
    leading("setting", Type::Text, "finite, compact or data", ""),
    leading(
        "design",
        Type::Text,
        "fixed: points drawn in advance; adaptive: chosen by the method",
        "",
    ),
    leading("method", Type::Text, "pem-bo, known-prior, random, plain, tlsm-bo, box or niw", ""),
    leading(
        "acquisition",
        Type::Text,
        "gp-ucb or pi; null where nothing is acquired",
        "fixed designs, random search",
    ),
    leading(
        "policy_constants",
        Type::Text,
        "form of the constants in zeta_t of GP-UCB",
        "fixed designs, random search, PI, known-prior, box",
    ),
    leading(
        "N",
        Type::Integer,
        "number of training functions; null where none are used",
        "known-prior, random search",
    ),
    leading(
        "delta",
        Type::Float,
        "level that the policy is set for; null where it has none",
        "fixed designs, random search, PI, box",
    ),
    leading("t", Type::Integer, "the checkpoint: number of observations", ""),
];

const COMPACT: &str = "compact setting";
const REAL_DATA: &str = "real data";
const NO_WEIGHT: &str = "fixed designs, random search, PI";
const NO_PROBE: &str =
    "any method but PEM-BO; learnt features; real data; no point is left unobserved";
const NO_STAR: &str = "any method but PEM-BO; learnt features; real data; x* has been observed";
const NO_NEXT: &str = "any method but PEM-BO; learnt features; real data; no x_{t+1} is chosen";
const NO_OBSERVED: &str =
    "any method but PEM-BO; learnt features; real data; k_t + sigma^2 below the accuracy floor";
const NO_ESTIMATE_AT_TAU: &str =
    "any method but PEM-BO and, on finite domains, known-prior; learnt features; real data";
const NOT_GIVEN: &str = "all but PEM-BO with given features in the compact setting";
const NOT_EXPECTED: &str =
    "all but PEM-BO with given features in the compact setting; a pivot lost to rounding";

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
    /// Where a trial that was measured has no such value; empty where it always has.
    pub null: &'static str,
    /// The value.
    pub value: fn(&Measurement) -> Value,
}

macro_rules! columns {
    ($($name:literal: $kind:ident, $meaning:literal, $null:expr, |$m:ident| $value:expr;)*) => {
        /// The measured columns, in the order of the schema.
        pub const COLUMNS: &[Column] = &[
            $(Column {
                name: $name,
                kind: Kind::$kind,
                meaning: $meaning,
                null: $null,
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
    "x": Integer, "index of x_t; none in the compact setting", COMPACT, |m| index(m.x);
    "y": Float, "observation y_t", "", |m| Value::Float(m.y);
    "f": Float, "f(x_t)", "", |m| Value::Float(m.f);
    "f_star": Float, "max f", "", |m| Value::Float(m.f_star);
    "x_star": Integer, "index of x*, the first maximiser of f; none in the compact setting", COMPACT, |m| index(m.x_star);
    "zeta": Float, "exploration weight zeta_t of GP-UCB", NO_WEIGHT, |m| m.zeta.into();
    "target": Float, "target value of PI", "fixed designs, random search, GP-UCB", |m| m.target.into();
    "best_sample_regret": Float, "r_t = max f - max_{s<=t} f(x_s)", "", |m| Value::Float(m.best_sample_regret);
    "simple_regret": Float, "R_t = max f - f at the largest observation", "", |m| Value::Float(m.simple_regret);
    "cumulative_regret": Float, "sum over s <= t of max f - f(x_s)", "", |m| Value::Float(m.cumulative_regret);
    "f_range": Float, "max f - min f", "", |m| Value::Float(m.f_range);
    "error_probe": Float, "(mu_hat_t - mu_t)^2/(k_t + sigma^2) at the probe", NO_PROBE, |m| error(m.probe);
    "signed_probe": Float, "(mu_hat_t - mu_t)/sqrt(k_t + sigma^2) at the probe", NO_PROBE, |m| signed(m.probe);
    "ratio_probe": Float, "k_hat_t/(k_t + sigma^2) at the probe", NO_PROBE, |m| ratio(m.probe);
    "error_star": Float, "the same error at x*, while unobserved", NO_STAR, |m| error(m.star);
    "signed_star": Float, "its signed root at x*", NO_STAR, |m| signed(m.star);
    "ratio_star": Float, "the same ratio at x*, while unobserved", NO_STAR, |m| ratio(m.star);
    "error_next": Float, "the same error at x_{t+1}", NO_NEXT, |m| error(m.next);
    "signed_next": Float, "its signed root at x_{t+1}", NO_NEXT, |m| signed(m.next);
    "ratio_next": Float, "the same ratio at x_{t+1}", NO_NEXT, |m| ratio(m.next);
    "error_observed": Float, "the same error at x_t, an observed point", NO_OBSERVED, |m| error(m.observed);
    "ratio_observed": Float, "the same ratio at x_t, an observed point", NO_OBSERVED, |m| ratio(m.observed);
    "k_xy": Float, "K = (y_t - mu)^T (k(x_t) + sigma^2 I)^-1 (y_t - mu)", REAL_DATA, |m| known(m, Value::Float(m.k_xy));
    "star_seen": Bool, "x* is among x_1..x_t", "", |m| Value::Bool(m.star_seen);
    "tau": Integer, "argmin_{s<=t} k_{s-1}(x_s)", REAL_DATA, |m| known(m, Value::Integer(m.at_tau.tau.into()));
    "mu_star_tau": Float, "mu_{tau-1}(x*)", REAL_DATA, |m| known(m, Value::Float(m.at_tau.mean_star));
    "mu_hat_star_tau": Float, "mu_hat_{tau-1}(x*)", NO_ESTIMATE_AT_TAU, |m| estimated(m, |e| e.mean_star);
    "k_star_tau": Float, "k_{tau-1}(x*)", REAL_DATA, |m| known(m, Value::Float(m.at_tau.variance_star));
    "k_hat_star_tau": Float, "k_hat_{tau-1}(x*)", NO_ESTIMATE_AT_TAU, |m| estimated(m, |e| e.variance_star);
    "mu_tau": Float, "mu_{tau-1}(x_tau)", REAL_DATA, |m| known(m, Value::Float(m.at_tau.mean_tau));
    "mu_hat_tau": Float, "mu_hat_{tau-1}(x_tau)", NO_ESTIMATE_AT_TAU, |m| estimated(m, |e| e.mean_tau);
    "k_tau": Float, "k_{tau-1}(x_tau)", REAL_DATA, |m| known(m, Value::Float(m.at_tau.variance_tau));
    "k_hat_tau": Float, "k_hat_{tau-1}(x_tau)", NO_ESTIMATE_AT_TAU, |m| estimated(m, |e| e.variance_tau);
    "f_tau": Float, "f(x_tau)", REAL_DATA, |m| known(m, Value::Float(m.at_tau.f_tau));
    "zeta_tau": Float, "zeta_tau of GP-UCB", "where `zeta` is, and on real data", |m| m.at_tau.zeta.into();
    "sigma_bar_star": Float, "sigma_bar^2(x*), compact setting", NOT_GIVEN, |m| m.at_tau.compact.map(|c| c.star).into();
    "sigma_bar_tau": Float, "sigma_bar^2(x_tau), compact setting", NOT_GIVEN, |m| m.at_tau.compact.map(|c| c.tau).into();
    "star_seen_tau": Bool, "x* is among x_1..x_{tau-1}", REAL_DATA, |m| known(m, Value::Bool(m.at_tau.star_seen));
    "y_max": Float, "largest observation so far", "", |m| Value::Float(m.y_max);
    "f_at_y_max": Float, "f where the largest observation was made", "", |m| Value::Float(m.f_at_y_max);
    "f_max": Float, "largest f among x_1..x_t", "", |m| Value::Float(m.f_max);
    "y_at_f_max": Float, "observation where f is largest among x_1..x_t", "", |m| Value::Float(m.y_at_f_max);
    "information": Float, "I_t = 1/2 sum_{s<=t} log(1 + k_{s-1}(x_s)/sigma^2)", "real data, and without noise", |m| m.information.into();
    "information_determinant": Float, "1/2 log det(I + k(x_t, x_t)/sigma^2), in every 16th replicate, t <= 256", "other replicates and longer t; without noise; compact setting and real data; a pivot lost to rounding",
        |m| m.information_determinant.into();
    "k_min": Float, "min_{s<=t} k_{s-1}(x_s)", REAL_DATA, |m| known(m, Value::Float(m.at_tau.variance_tau));
    "expected_signed_probe": Float, "exact mean of signed_probe given D_t, compact setting", NOT_EXPECTED,
        |m| m.expected.map(|e| e.signed).into();
    "expected_ratio_probe": Float, "exact mean of ratio_probe, compact setting", NOT_EXPECTED,
        |m| m.expected.map(|e| e.ratio).into();
}
