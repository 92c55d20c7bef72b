//! `[study]`: the values of its keys.

use super::error::FileError;
use super::item::{Item, Section};
use super::keys;
use super::tree::Value;

/// The largest seed: TOML's integers are signed.
pub(super) const MOST: u64 = i64::MAX as u64;

/// The family-wise level where the study names none.
pub(super) const ALPHA: f64 = 0.05;

/// Valid levels. The e-value at which a family is decided, 2 * rows/alpha, has to be a number.
pub(crate) const ALPHAS: std::ops::Range<f64> = 1e-20..0.5;

/// What e-values are tuned to where the study says nothing.
pub(super) const N_OPT: f64 = 2000.0;

/// The most replicates, so that sums over cells stay exact.
pub(crate) const MOST_REPLICATES: u64 = 1 << 53;

/// What is kept of the trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// A record for every T of the grid.
    Checkpoints,
    /// A record for every t up to the longest T.
    Steps,
    /// Counts of all trials; records of violations and of a random hundredth.
    Summary,
}

/// Details by name, the default first.
pub(super) const DETAILS: [(&str, Detail); 3] = [
    (Detail::Checkpoints.name(), Detail::Checkpoints),
    (Detail::Steps.name(), Detail::Steps),
    (Detail::Summary.name(), Detail::Summary),
];

impl Detail {
    /// The name in study files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Checkpoints => "checkpoints",
            Self::Steps => "steps",
            Self::Summary => "summary",
        }
    }
}

/// How many trials a cell has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replicates {
    /// So many.
    Fixed(u64),
    /// Batch after batch until the evidence suffices; the last batch may be shorter.
    Batched {
        /// Trials in a batch.
        batch: u64,
        /// Trials at most.
        max: u64,
    },
}

impl Replicates {
    /// Trials after which evidence is weighed: all of them without early stopping.
    pub fn batch_size(self) -> u64 {
        match self {
            Self::Fixed(all) => all,
            Self::Batched { batch, .. } => batch,
        }
    }

    /// The most trials that a cell can have.
    pub fn max(self) -> u64 {
        match self {
            Self::Fixed(all) => all,
            Self::Batched { max, .. } => max,
        }
    }

    /// The most batches.
    pub fn batches(self) -> u64 {
        self.max().div_ceil(self.batch_size())
    }
}

/// Whether a study can have this name, which is also that of its folder.
pub fn is_name(text: &str) -> bool {
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let edges = text.starts_with(['.', '-']) || text.ends_with('.');
    !text.is_empty() && text.len() <= 100 && !edges && text.chars().all(valid)
}

pub(super) fn name(item: &Item<'_>) -> Result<String, FileError> {
    let text = item.text()?;
    if !is_name(text) {
        let valid = "valid are up to 100 letters, digits, - _ and ., no . or - first, no . last";
        return Err(item.refuse("cannot be the name of a folder", valid));
    }
    Ok(text.to_owned())
}

pub(super) fn detail(study: &Section<'_>) -> Result<Detail, FileError> {
    study.get("detail").map_or(Ok(DETAILS[0].1), |item| item.choice(&DETAILS))
}

pub(super) fn replicates(item: &Item<'_>) -> Result<Replicates, FileError> {
    if !matches!(item.node.value, Value::Table(_)) {
        return item.count(1, MOST_REPLICATES).map(Replicates::Fixed);
    }
    let section = item.section()?;
    section.only(&keys::REPLICATES)?;
    let batch = section.need("batch", "batch = 500")?.count(1, MOST_REPLICATES)?;
    let max = section.need("max", "max = 100000")?;
    Ok(Replicates::Batched { batch, max: max.count(batch, MOST_REPLICATES)? })
}

pub(super) fn alpha(study: &Section<'_>) -> Result<f64, FileError> {
    let Some(item) = study.get("alpha") else {
        return Ok(ALPHA);
    };
    let alpha = item.number()?;
    if ALPHAS.contains(&alpha) {
        return Ok(alpha);
    }
    Err(item
        .refuse("is not a level between 0 and 1/2", "valid are numbers below 0.5, from 1e-20 on"))
}

pub(super) fn evidence(study: &Section<'_>) -> Result<Option<f64>, FileError> {
    let Some(item) = study.get("evidence") else {
        return Ok(None);
    };
    let evidence = item.number()?;
    if evidence > 1.0 {
        return Ok(Some(evidence));
    }
    Err(item.refuse(
        "is no evidence",
        "any value above 1 is valid, and without the key it is 2 * rows/alpha",
    ))
}

pub(super) fn n_opt(study: &Section<'_>) -> Result<f64, FileError> {
    study.get("n_opt").map_or(Ok(N_OPT), |item| Ok(item.count(1, MOST_REPLICATES)? as f64))
}
