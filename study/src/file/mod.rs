//! The study file: TOML, every key checked, every error with its line.
//!
//! What [`Study::parse`] returns is valid by itself; what needs the files that the priors name, or two
//! keys at once, is checked by [`crate::plan::Plan::new`]. `docs/study-file.md` describes every key, from
//! the tables that the parser itself goes by (`keys`, `schema`).

mod claim;
mod error;
mod grid;
mod item;
pub(crate) mod keys;
mod prior;
mod rewards;
pub(crate) mod schema;
mod template;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use claim::{OwnClaim, Quantifier};
pub use error::{FileError, nearest};
pub use grid::Grid;
pub(crate) use grid::trains;
pub(crate) use prior::MOST_PRIORS;
pub use prior::{PlannedPrior, Scalar};
pub use template::template;

use crate::prior::Setting;
use item::{Item, Section};
use tree::Value;

/// The largest seed and the most replicates: TOML's integers are signed.
const MOST: u64 = i64::MAX as u64;

/// The gap of PI where the study names none.
const PI_GAP: f64 = 0.0;

/// The weight of method "box" where the study names none.
const BOX_WEIGHT: f64 = 2.0;

/// The family-wise level where the study names none.
const ALPHA: f64 = 0.05;

/// Valid levels. The e-value at which a family is decided, 2 * rows/alpha, has to be a number.
const ALPHAS: std::ops::Range<f64> = 1e-20..0.5;

/// What e-values are tuned to where the study says nothing.
const N_OPT: f64 = 2000.0;

/// The most replicates, so that sums over cells stay exact.
const MOST_REPLICATES: u64 = 1 << 53;

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
const DETAILS: [(&str, Detail); 3] = [
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

/// What a study file says.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// The study file, as errors name it.
    pub file: String,
    /// `study.name`.
    pub name: String,
    /// `study.seed`.
    pub seed: u64,
    /// `study.replicates`.
    pub replicates: Replicates,
    /// `study.detail`.
    pub detail: Detail,
    /// `study.alpha`: the family-wise level, below 1/2.
    pub alpha: f64,
    /// `study.evidence`: the E at which a row is decided, where it is given.
    pub evidence: Option<f64>,
    /// `study.n_opt`: the number of trials that the mixture is tuned to.
    pub n_opt: f64,
    /// `[prior]` with every combination of swept keys.
    pub priors: Arc<[PlannedPrior]>,
    /// `[grid]`, without the swept keys.
    pub grid: Grid,
    /// `policy.pi_gap`: PI's target is max f + gap.
    pub pi_gap: f64,
    /// `policy.box_weight`: the constant exploration weight of method "box".
    pub box_weight: f64,
    /// `claims.test`: globs; empty for all claims.
    pub test: Vec<String>,
    /// Every `[[claim]]`.
    pub claims: Vec<OwnClaim>,
    /// Where keys stand, for errors that planning finds.
    lines: BTreeMap<String, usize>,
}

impl Study {
    /// Reads a study file; `file_name` is what errors call it.
    pub fn parse(file_name: &str, text: &str) -> Result<Self, FileError> {
        let table = tree::parse(file_name, text)?;
        let top = Section { file: file_name, key: String::new(), line: 1, table: &table };
        top.only(&keys::TABLES.map(|table| table.name))?;
        let section = |key: &str, example: &str| top.need(key, example)?.section();
        let study = section("study", "[study] with name, seed and replicates")?;
        let grid = section("grid", "[grid] with N, T and delta")?;
        let example = "[prior] with domain, kernel and noise_variance";
        let priors = prior::read(&top.need("prior", example)?, &grid::swept(&grid))?;
        let own = top.get("claim").map(|item| claim::own(&item)).transpose()?.unwrap_or_default();
        let real = priors.priors.iter().any(|p| p.spec.setting == Setting::Data);
        let mut lines = priors.lines;
        let axes = grid::read(&grid, real)?;
        lines.insert(grid.key.clone(), grid.line);
        for (key, node) in grid.table {
            lines.insert(format!("grid.{key}"), node.line);
        }
        let detail = detail(&study)?;
        refuse_own_claims(&top, detail)?;
        study.only(&keys::STUDY.names())?;
        Ok(Self {
            file: file_name.to_owned(),
            name: name(&study.need("name", "name = \"lemma1\"")?)?,
            seed: study.need("seed", "seed = 2018")?.count(0, MOST)?,
            replicates: replicates(&study.need("replicates", "replicates = 2000")?)?,
            detail,
            alpha: alpha(&study)?,
            evidence: evidence(&study)?,
            n_opt: n_opt(&study)?,
            priors: priors.priors,
            grid: axes,
            pi_gap: policy_number(&top, "pi_gap", PI_GAP, "PI's target is an upper bound of f")?,
            box_weight: policy_number(&top, "box_weight", BOX_WEIGHT, "it multiplies deviations")?,
            test: match top.get("claims") {
                Some(item) => claim::tested(&item.section()?, &own)?,
                None => Vec::new(),
            },
            claims: own,
            lines,
        })
    }

    /// The files that any prior of the grid names, each once, as the study file writes them.
    pub fn paths(&self) -> Vec<String> {
        let paths: BTreeSet<&str> = self.priors.iter().flat_map(|p| p.spec.paths()).collect();
        paths.into_iter().map(str::to_owned).collect()
    }

    /// Whether `claims.test` names a claim.
    pub fn tests(&self, id: &str) -> bool {
        self.test.is_empty() || self.test.iter().any(|glob| theory::claims::names(glob, id))
    }

    /// An error about a key that planning refuses. A key that is not written in the file, such as one
    /// with a default, is looked for in the table that would hold it.
    pub(crate) fn refuse(
        &self,
        key: &str,
        value: Option<String>,
        reason: impl Into<String>,
        valid: impl Into<String>,
    ) -> FileError {
        let mut place = key;
        let line = loop {
            match (self.lines.get(place), place.rfind(['.', '['])) {
                (Some(line), _) => break *line,
                (None, Some(end)) => place = &place[..end],
                (None, None) => break 1,
            }
        };
        FileError {
            file: self.file.as_str().into(),
            line,
            key: key.to_owned(),
            value,
            reason: reason.into(),
            valid: valid.into(),
        }
    }
}

fn name(item: &Item<'_>) -> Result<String, FileError> {
    let text = item.text()?;
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let edges = text.starts_with(['.', '-']) || text.ends_with('.');
    if text.is_empty() || text.len() > 100 || edges || !text.chars().all(valid) {
        let valid = "valid are up to 100 letters, digits, - _ and ., no . or - first, no . last";
        return Err(item.refuse("cannot be the name of a folder", valid));
    }
    Ok(text.to_owned())
}

fn detail(study: &Section<'_>) -> Result<Detail, FileError> {
    study.get("detail").map_or(Ok(DETAILS[0].1), |item| item.choice(&DETAILS))
}

fn refuse_own_claims(top: &Section<'_>, detail: Detail) -> Result<(), FileError> {
    match top.get("claim") {
        Some(item) if detail == Detail::Summary => Err(FileError {
            value: None,
            ..item.refuse(
                "needs every record, which detail = \"summary\" does not keep",
                "use detail = \"checkpoints\" or leave the claim out",
            )
        }),
        _ => Ok(()),
    }
}

fn replicates(item: &Item<'_>) -> Result<Replicates, FileError> {
    if !matches!(item.node.value, Value::Table(_)) {
        return item.count(1, MOST_REPLICATES).map(Replicates::Fixed);
    }
    let section = item.section()?;
    section.only(&keys::REPLICATES)?;
    let batch = section.need("batch", "batch = 500")?.count(1, MOST_REPLICATES)?;
    let max = section.need("max", "max = 100000")?;
    Ok(Replicates::Batched { batch, max: max.count(batch, MOST_REPLICATES)? })
}

fn alpha(study: &Section<'_>) -> Result<f64, FileError> {
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

fn evidence(study: &Section<'_>) -> Result<Option<f64>, FileError> {
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

fn n_opt(study: &Section<'_>) -> Result<f64, FileError> {
    study.get("n_opt").map_or(Ok(N_OPT), |item| Ok(item.count(1, MOST_REPLICATES)? as f64))
}

/// A number of `[policy]` that is not negative.
fn policy_number(top: &Section<'_>, key: &str, default: f64, why: &str) -> Result<f64, FileError> {
    let Some(policy) = top.get("policy") else {
        return Ok(default);
    };
    let policy = policy.section()?;
    policy.only(&keys::POLICY.names())?;
    let Some(item) = policy.get(key) else {
        return Ok(default);
    };
    let number = item.number()?;
    if number < 0.0 {
        return Err(item.refuse("is negative", format!("{why}, so {key} >= 0")));
    }
    Ok(number)
}

#[cfg(test)]
mod tests;
