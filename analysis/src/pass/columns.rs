//! A row group's measured columns, and measurements made of their rows again.
//!
//! Nulls are NaN in here: no record holds one, so that a column is one slice of numbers.

use std::borrow::Cow;

use polars::prelude::{DataFrame, PolarsResult};
use study::record::{COLUMNS, Kind};
use theory::Measurement;
use theory::measurement::{AtTau, CompactNoise, Deviation, EstimatedAtTau};

/// Measured columns that no claim speaks of: they are not read.
pub(super) const UNUSED: [&str; 7] = ["x", "y", "f", "x_star", "zeta", "star_seen", "k_min"];

/// The measured columns of a frame, in the schema's order; those that are not read are empty.
pub(super) struct Columns<'f> {
    values: Vec<Cow<'f, [f64]>>,
}

/// The place of a column in the schema, known when this is compiled.
const fn place(name: &str) -> usize {
    let mut at = 0;
    while at < COLUMNS.len() {
        if same(COLUMNS[at].name.as_bytes(), name.as_bytes()) {
            return at;
        }
        at += 1;
    }
    panic!("no measured column has that name")
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

macro_rules! value {
    ($columns:expr, $row:expr, $name:literal) => {
        $columns.values[const { place($name) }][$row]
    };
}

impl<'f> Columns<'f> {
    /// The columns of a frame that has one chunk.
    pub(super) fn new(frame: &'f DataFrame) -> PolarsResult<Self> {
        let values = COLUMNS.iter().map(|column| numbers(frame, column.name, column.kind));
        Ok(Self { values: values.collect::<PolarsResult<_>>()? })
    }

    /// Whether the trial of a row failed: then nothing was measured.
    pub(super) fn is_measured(&self, row: usize) -> bool {
        !value!(self, row, "best_sample_regret").is_nan()
    }

    /// The measurement of a row that has one. What no claim asks for is left out: [`UNUSED`], and the
    /// sign of `observed`, which records do not have.
    pub(super) fn measurement(&self, row: usize, t: u32) -> Measurement {
        macro_rules! get {
            ($name:literal) => {
                value!(self, row, $name)
            };
        }
        macro_rules! deviation {
            ($error:literal, $signed:literal, $ratio:literal) => {
                some(get!($error)).map(|error| Deviation {
                    signed: get!($signed),
                    error,
                    ratio: get!($ratio),
                })
            };
        }
        Measurement {
            t,
            x: Some(0),
            y: 0.0,
            f: 0.0,
            f_star: get!("f_star"),
            x_star: Some(0),
            prior_known: true,
            expected: None,
            f_range: get!("f_range"),
            zeta: None,
            target: some(get!("target")),
            best_sample_regret: get!("best_sample_regret"),
            simple_regret: get!("simple_regret"),
            cumulative_regret: get!("cumulative_regret"),
            probe: deviation!("error_probe", "signed_probe", "ratio_probe"),
            star: deviation!("error_star", "signed_star", "ratio_star"),
            next: deviation!("error_next", "signed_next", "ratio_next"),
            observed: some(get!("error_observed")).map(|error| Deviation {
                signed: error.sqrt(),
                error,
                ratio: get!("ratio_observed"),
            }),
            k_xy: get!("k_xy"),
            star_seen: false,
            at_tau: self.at_tau(row),
            y_max: get!("y_max"),
            f_at_y_max: get!("f_at_y_max"),
            f_max: get!("f_max"),
            y_at_f_max: get!("y_at_f_max"),
            information: some(get!("information")),
            information_determinant: some(get!("information_determinant")),
        }
    }

    fn at_tau(&self, row: usize) -> AtTau {
        macro_rules! get {
            ($name:literal) => {
                value!(self, row, $name)
            };
        }
        AtTau {
            tau: get!("tau") as u32,
            mean_star: get!("mu_star_tau"),
            variance_star: get!("k_star_tau"),
            mean_tau: get!("mu_tau"),
            variance_tau: get!("k_tau"),
            f_tau: get!("f_tau"),
            zeta: some(get!("zeta_tau")),
            estimated: some(get!("mu_hat_star_tau")).map(|mean_star| EstimatedAtTau {
                mean_star,
                variance_star: get!("k_hat_star_tau"),
                mean_tau: get!("mu_hat_tau"),
                variance_tau: get!("k_hat_tau"),
            }),
            compact: some(get!("sigma_bar_star"))
                .map(|star| CompactNoise { star, tau: get!("sigma_bar_tau") }),
            star_seen: get!("star_seen_tau") != 0.0,
        }
    }
}

fn some(value: f64) -> Option<f64> {
    (!value.is_nan()).then_some(value)
}

fn numbers<'f>(frame: &'f DataFrame, name: &str, kind: Kind) -> PolarsResult<Cow<'f, [f64]>> {
    if UNUSED.contains(&name) {
        return Ok(Cow::Borrowed(&[]));
    }
    let column = frame.column(name)?;
    if column.null_count() == frame.height() {
        return Ok(vec![f64::NAN; frame.height()].into());
    }
    Ok(match kind {
        Kind::Bool => {
            let flag = |flag: Option<bool>| flag.map_or(f64::NAN, |flag| f64::from(u8::from(flag)));
            column.bool()?.iter().map(flag).collect()
        }
        Kind::Integer => {
            let number = |value: Option<i64>| value.map_or(f64::NAN, |value| value as f64);
            column.i64()?.iter().map(number).collect()
        }
        Kind::Float => {
            let values = column.f64()?;
            match values.cont_slice() {
                Ok(slice) => Cow::Borrowed(slice),
                Err(_) => values.iter().map(|value| value.unwrap_or(f64::NAN)).collect(),
            }
        }
    })
}
