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
mod settings;
mod template;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use claim::{OwnClaim, Quantifier, check_expression};
pub use error::{FileError, nearest};
pub use grid::Grid;
pub(crate) use grid::{LONGEST, trains};
pub(crate) use prior::MOST_PRIORS;
pub use prior::{PlannedPrior, Scalar};
pub(crate) use settings::{ALPHAS, MOST_REPLICATES};
pub use settings::{Detail, Replicates, is_name};
pub use template::template;

use crate::prior::Setting;
use item::Section;
use prior::Expand;

/// The gap of PI where the study names none.
const PI_GAP: f64 = 0.0;

/// The weight of method "box" where the study names none.
const BOX_WEIGHT: f64 = 2.0;

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

/// A study with a few of its priors: those that the sizes of all others lie between.
pub(crate) struct Outline {
    pub(crate) study: Study,
    /// How many priors the study has.
    pub(crate) priors: usize,
    /// Whether the priors that are there speak for all others.
    pub(crate) complete: bool,
}

impl Outline {
    /// Reads a study file without expanding its priors.
    pub(crate) fn parse(file_name: &str, text: &str) -> Result<Self, FileError> {
        Study::read(file_name, text, Expand::Corners)
    }
}

impl Study {
    /// Reads a study file; `file_name` is what errors call it.
    pub fn parse(file_name: &str, text: &str) -> Result<Self, FileError> {
        Ok(Self::read(file_name, text, Expand::All)?.study)
    }

    fn read(file_name: &str, text: &str, expand: Expand) -> Result<Outline, FileError> {
        let table = tree::parse(file_name, text)?;
        let top = Section { file: file_name, key: String::new(), line: 1, table: &table };
        top.only(&keys::TABLES.map(|table| table.name))?;
        let section = |key: &str, example: &str| top.need(key, example)?.section();
        let study = section("study", "[study] with name, seed and replicates")?;
        let grid = section("grid", "[grid] with N, T and delta")?;
        let example = "[prior] with domain, kernel and noise_variance";
        let priors = prior::read(&top.need("prior", example)?, &grid::swept(&grid), expand)?;
        let (total, complete) = (priors.total, priors.complete);
        let own = top.get("claim").map(|item| claim::own(&item)).transpose()?.unwrap_or_default();
        let real = priors.planned.iter().any(|p| p.spec.setting == Setting::Data);
        let mut lines = priors.lines;
        let axes = grid::read(&grid, real)?;
        for section in [&study, &grid] {
            lines.insert(section.key.clone(), section.line);
            let keys = section.table.iter();
            lines.extend(keys.map(|(key, node)| (format!("{}.{key}", section.key), node.line)));
        }
        let detail = settings::detail(&study)?;
        refuse_own_claims(&top, detail)?;
        study.only(&keys::STUDY.names())?;
        let study = Self {
            file: file_name.to_owned(),
            name: settings::name(&study.need("name", "name = \"lemma1\"")?)?,
            seed: study.need("seed", "seed = 2018")?.count(0, settings::MOST)?,
            replicates: settings::replicates(&study.need("replicates", "replicates = 2000")?)?,
            detail,
            alpha: settings::alpha(&study)?,
            evidence: settings::evidence(&study)?,
            n_opt: settings::n_opt(&study)?,
            priors: priors.planned,
            grid: axes,
            pi_gap: policy_number(&top, "pi_gap", PI_GAP, "PI's target is an upper bound of f")?,
            box_weight: policy_number(&top, "box_weight", BOX_WEIGHT, "it multiplies deviations")?,
            test: match top.get("claims") {
                Some(item) => claim::tested(&item.section()?, &own)?,
                None => Vec::new(),
            },
            claims: own,
            lines,
        };
        Ok(Outline { study, priors: total, complete })
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
