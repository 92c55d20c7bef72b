//! One table of verdicts, shaped as asked.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use theory::claims;

use super::tables::{axes, footnote_of, verdict, verdict_cell};
use crate::manifest::{self, Manifest};
use crate::tables::{AxisValue, Cell, PivotError, PivotRow, Table, pivot};
use crate::verdicts::VerdictRow;

/// What a table should show.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// An id, or a glob.
    pub claim: String,
    /// Axes of the rows.
    pub rows: Vec<String>,
    /// The axis of the columns.
    pub columns: String,
    /// Axes with the value that they must have.
    pub conditions: Vec<(String, String)>,
    /// What stands in the cells.
    pub show: Show,
}

macro_rules! shows {
    ($($variant:ident, $name:literal, $meaning:literal;)*) => {
        /// What stands in the cells of a table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Show {
            $(#[doc = $meaning] $variant,)*
        }

        impl Show {
            const NAMES: &[(&str, Self)] = &[$(($name, Self::$variant)),*];
        }
    };
}

shows! {
    Coverage, "coverage", "Coverage with its standard error and a mark for its verdict.";
    Violations, "violations", "The share of violations with its standard error.";
    Verdict, "verdict", "The verdict.";
    Required, "required", "The coverage that is claimed.";
    Exact, "exact", "The coverage by the exact law.";
    Tightness, "tightness", "The bound over the quantile that it bounds.";
    Bound, "bound", "The bound.";
    Shrink, "shrink", "The smallest factor with which the bound would still be confirmed.";
    Random, "random", "The share of random search's trials within the bound.";
    WorstCase, "worst-case", "The share of trials in which the worst point satisfies the bound.";
    LogERefute, "log-e-refute", "The log of the e-value against the claim.";
    LogEConfirm, "log-e-confirm", "The log of the e-value for it.";
}

impl FromStr for Show {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, show)| *show).ok_or_else(|| {
            let names: Vec<&str> = Self::NAMES.iter().map(|(name, _)| *name).collect();
            format!("valid are {}", names.join(", "))
        })
    }
}

/// Why there is no such table.
#[derive(Debug, thiserror::Error)]
pub enum ShapeError {
    /// No manifest.
    #[error(transparent)]
    Manifest(#[from] manifest::Error),
    /// The dataset was not analysed.
    #[error("{} cannot be read ({reason}); `regretta analyze {}` writes it", path.display(), dir.display())]
    Verdicts {
        /// The file.
        path: PathBuf,
        /// The dataset.
        dir: PathBuf,
        /// Why.
        reason: String,
    },
    /// No verdict is about such a claim.
    #[error("no verdict is about {claim:?}; there are verdicts about {known}")]
    Claim {
        /// The glob.
        claim: String,
        /// The claims with verdicts.
        known: String,
    },
    /// All verdicts about the claim are of rows that are shown only when asked for.
    #[error(
        "{claim} is planned no longer and was tested by an earlier family of claims alone; add \
         --where family={family:.12} to see its verdicts"
    )]
    Earlier {
        /// The glob.
        claim: String,
        /// The digest of the family.
        family: String,
    },
    /// No row is left.
    #[error("{claim} was tested nowhere: {reason}")]
    Untested {
        /// The glob.
        claim: String,
        /// Why.
        reason: String,
    },
    /// A condition that no verdict meets.
    #[error("no verdict of {claim} has {axis} = {value}; valid are {known}")]
    Condition {
        /// The glob.
        claim: String,
        /// The axis.
        axis: String,
        /// The value.
        value: String,
        /// Values that occur.
        known: String,
    },
    /// The shape does not fit the verdicts.
    #[error("{0}; fix an axis with --where AXIS=VALUE, or add it to --rows")]
    Pivot(#[from] PivotError),
}

/// The table that is asked for, of the verdicts in a dataset's folder.
pub fn shape(dir: &Path, wanted: &Wanted) -> Result<Table, ShapeError> {
    let manifest = Manifest::read(dir)?;
    shape_of(&manifest, &read(dir)?, wanted)
}

/// The same of verdicts that are at hand.
pub fn shape_of(
    manifest: &Manifest,
    verdicts: &[VerdictRow],
    wanted: &Wanted,
) -> Result<Table, ShapeError> {
    let claim = &wanted.claim;
    let named = |row: &&VerdictRow| row.claim == *claim || claims::names(claim, &row.claim);
    let mut rows: Vec<&VerdictRow> = verdicts.iter().filter(named).collect();
    if rows.is_empty() {
        let mut known: Vec<&str> = verdicts.iter().map(|row| row.claim.as_str()).collect();
        known.dedup();
        return Err(ShapeError::Claim { claim: claim.clone(), known: known.join(", ") });
    }
    // Descriptive rows have to be asked for.
    if !asked(wanted, "among") {
        rows.retain(|row| row.among == "all");
    }
    let reason = rows.iter().find_map(|row| row.reason.clone());
    rows.retain(|row| row.verdict != "not-applicable" || row.among != "all");
    if rows.is_empty() {
        let reason = reason.unwrap_or_else(|| "no row is applicable".to_owned());
        return Err(ShapeError::Untested { claim: claim.clone(), reason });
    }
    // What was planned stands before what is exploratory there, and both before what was planned once.
    if !asked(wanted, "family") {
        let family = rows.iter().rev().find_map(|row| row.family.clone());
        rows.retain(|row| row.family.is_none());
        if let (true, Some(family)) = (rows.is_empty(), family) {
            return Err(ShapeError::Earlier { claim: claim.clone(), family });
        }
    }
    if !asked(wanted, "exploratory") {
        let place = |row: &VerdictRow| {
            let axes = axes(row).into_iter().filter(|(axis, _)| axis != "exploratory");
            axes.map(|(_, value)| value).collect::<Vec<_>>()
        };
        let planned: BTreeSet<_> =
            rows.iter().filter(|row| !row.exploratory).map(|row| place(row)).collect();
        rows.retain(|row| !row.exploratory || !planned.contains(&place(row)));
    }
    for (axis, value) in &wanted.conditions {
        rows = condition(wanted, rows, axis, value)?;
    }
    let cells: Vec<PivotRow> =
        rows.iter().map(|row| PivotRow { axes: axes(row), cell: cell(row, wanted.show) }).collect();
    let names: Vec<&str> = wanted.rows.iter().map(String::as_str).collect();
    let mut table = pivot(&cells, &names, &wanted.columns)?;
    table.id = claim.replace(['.', '/', '+', '*'], "-");
    table.caption = caption(wanted);
    if wanted.show == Show::Coverage {
        table.note("* refuted, ? undecided, otherwise confirmed.");
    }
    table.note(footnote_of(manifest));
    Ok(table)
}

fn asked(wanted: &Wanted, axis: &str) -> bool {
    wanted.rows.iter().chain([&wanted.columns]).any(|name| name == axis)
        || wanted.conditions.iter().any(|(name, _)| name == axis)
}

fn caption(wanted: &Wanted) -> String {
    let name =
        Show::NAMES.iter().find(|(_, show)| *show == wanted.show).map_or("", |(name, _)| name);
    let mut caption = format!("{name} of {}", wanted.claim);
    if let Some(first) = caption.get(..1) {
        caption = first.to_uppercase() + &caption[1..];
    }
    for (axis, value) in &wanted.conditions {
        _ = write!(caption, ", {axis} = {value}");
    }
    caption
}

fn read(dir: &Path) -> Result<Vec<VerdictRow>, ShapeError> {
    let path = dir.join("verdicts.json");
    let refused =
        |reason: String| ShapeError::Verdicts { path: path.clone(), dir: dir.to_owned(), reason };
    let text = std::fs::read(&path).map_err(|error| refused(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| refused(error.to_string()))
}

fn condition<'a>(
    wanted: &Wanted,
    rows: Vec<&'a VerdictRow>,
    axis: &str,
    value: &str,
) -> Result<Vec<&'a VerdictRow>, ShapeError> {
    let at = |row: &VerdictRow| {
        axes(row).into_iter().find(|(name, _)| name == axis).map(|(_, value)| value)
    };
    let is = |found: &AxisValue| match found {
        AxisValue::Integer(found) => value.parse() == Ok(*found),
        AxisValue::Float(found) => value.parse() == Ok(*found),
        AxisValue::Text(found) => found == value,
        AxisValue::Null => value == "null" || value == "none",
    };
    let (kept, other): (Vec<&VerdictRow>, Vec<&VerdictRow>) =
        rows.into_iter().partition(|row| at(row).as_ref().is_some_and(is));
    if !kept.is_empty() {
        return Ok(kept);
    }
    let mut known: Vec<AxisValue> = other.iter().filter_map(|row| at(row)).collect();
    known.sort();
    known.dedup();
    let known: Vec<String> = known.iter().map(AxisValue::label).collect();
    let known = if known.is_empty() { "other axes".to_owned() } else { known.join(", ") };
    let (claim, axis, value) = (wanted.claim.clone(), axis.to_owned(), value.to_owned());
    Err(ShapeError::Condition { claim, axis, value, known })
}

fn cell(row: &VerdictRow, show: Show) -> Cell {
    let number =
        |value: Option<f64>| value.map_or(Cell::Empty, |value| Cell::Number { value, digits: 4 });
    match show {
        Show::Coverage => verdict_cell(row),
        Show::Violations => row
            .coverage
            .zip(row.coverage_se())
            .map_or(Cell::Empty, |(value, error)| Cell::Estimate { value: 1.0 - value, error }),
        Show::Verdict => verdict(&row.verdict),
        Show::Required => number(row.required),
        Show::Exact => number(row.exact_coverage),
        Show::Tightness => number(row.tightness),
        Show::Bound => number(row.bound),
        Show::Shrink => number(row.shrink),
        Show::Random => number(row.random_coverage),
        Show::WorstCase => number(row.worst_case_coverage),
        Show::LogERefute => number(row.log_e_refute),
        Show::LogEConfirm => number(row.log_e_confirm),
    }
}
