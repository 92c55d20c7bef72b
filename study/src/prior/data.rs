//! Real data in place of a prior: every function is a row of a matrix of rewards.

use super::{Files, Invalid, invalid};
use serde::{Deserialize, Serialize};

/// Which rewards are good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sense {
    /// Large ones.
    #[default]
    Max,
    /// Small ones; their sign is turned on reading, so that records always hold values to be maximised.
    Min,
}

impl Sense {
    /// What rewards are multiplied by.
    pub fn sign(self) -> f64 {
        match self {
            Self::Max => 1.0,
            Self::Min => -1.0,
        }
    }
}

/// Which rows a trial is trained on; its own row, whose number is the replicate, is never among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// All others.
    #[default]
    LeaveOneOut,
    /// The first N of the others.
    First,
    /// N of the others at random; a larger N adds rows to those of a smaller one.
    Random,
}

/// How rewards are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSpec {
    /// Which are good.
    #[serde(default)]
    pub sense: Sense,
    /// Which train.
    #[serde(default)]
    pub protocol: Protocol,
}

/// Checks the rewards of a file: a row for each function, a column for each point.
pub(super) fn rewards(key: &str, path: &str, points: usize, files: &Files) -> Result<(), Invalid> {
    let key = format!("{key}.path");
    let needed = format!("at least 3 rows (one per function) of {points} columns (one per point)");
    files.shaped(&key, path, needed, |size| size.rows >= 3 && size.columns == points)
}

/// The number of columns of a file of rewards.
pub(super) fn points(key: &str, path: &str, files: &Files) -> Result<usize, Invalid> {
    let columns = files.size(&format!("{key}.path"), path)?.columns;
    invalid::count(&format!("{key}.points"), columns, u32::MAX as usize)?;
    Ok(columns)
}
