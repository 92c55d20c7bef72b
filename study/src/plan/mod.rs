//! The plan: what a study file says, with its files, as cells.
//!
//! A plan is a pure function of the study file's text and of the files that it names, so that a worker
//! who has both builds the same one; [`Plan::revision`] tells. Its size follows the number of cells,
//! never that of trials.

mod cells;
mod growth;
mod rewards;
mod size;

use std::fmt::Write as _;
use std::sync::Arc;

pub use crate::file::{Detail, PlannedPrior, Replicates, Scalar};
pub use cells::MOST_CELLS;
pub use growth::{DatasetCell, NotGrown};
pub use size::Size;

use crate::cell::{Cell, CellId};
use crate::digest::Digest;
use crate::family::EarlierFamily;
use crate::file::{FileError, Study};
use crate::id::StudyId;
use crate::prior::{Files, Invalid};
use crate::rows;

/// A cell of the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedCell {
    /// Its address within the study.
    pub id: CellId,
    /// The cell.
    pub cell: Cell,
    /// Its prior, as an index into [`Plan::priors`].
    pub prior: usize,
    /// The t of its records, ascending.
    pub checkpoints: Arc<[u32]>,
}

/// A study that can be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The study file.
    pub study: Study,
    /// Which study it is, however much it grows.
    pub id: StudyId,
    /// The priors of the grid; the same list as the study's.
    pub priors: Arc<[PlannedPrior]>,
    /// The cells, ascending by id.
    pub cells: Vec<PlannedCell>,
    /// Trials per cell.
    pub replicates: Replicates,
    /// The family's size: verdict rows over all cells.
    pub rows: u64,
    /// The E from which on a row counts as decided: `study.evidence`, or 2 * rows/alpha.
    pub evidence: f64,
}

impl Plan {
    /// Expands the grid and refuses what could not run.
    pub fn new(mut study: Study, files: &Files) -> Result<Self, FileError> {
        for prior in study.priors.iter() {
            let shape = prior.spec.validate(files).map_err(|error| invalid(&study, &error))?;
            cells::fits(&study, &prior.spec, shape.points)?;
        }
        rewards::resolve(&mut study, files)?;
        let cells = cells::expand(&study, files)?;
        let mut plan = Self {
            id: StudyId::new(&study.name, study.seed),
            priors: Arc::clone(&study.priors),
            cells,
            replicates: study.replicates,
            rows: 0,
            evidence: 0.0,
            study,
        };
        plan.rows = rows::row_count(&plan);
        // A study without rows is decided by nothing; its threshold stays a threshold.
        let default = || 2.0 * plan.rows.max(1) as f64 / plan.study.alpha;
        plan.evidence = plan.study.evidence.unwrap_or_else(default);
        Ok(plan)
    }

    /// The cell of that id.
    pub fn cell(&self, id: CellId) -> Option<&PlannedCell> {
        let at = self.cells.binary_search_by_key(&id, |cell| cell.id).ok()?;
        self.cells.get(at)
    }

    /// The most trials that the plan can take.
    pub fn trials(&self) -> u128 {
        self.cells.len() as u128 * u128::from(self.replicates.max())
    }

    /// A cell in words, for people: what runs, and the values of its axes.
    pub fn label(&self, cell: &PlannedCell) -> String {
        let policy = &cell.cell.policy;
        let mut label = match policy.acquisition() {
            Some(acquisition) => format!("{} {acquisition}", policy.method()),
            None if policy.design() == "fixed" => "fixed design".to_owned(),
            None => policy.method().to_owned(),
        };
        let mut add = |key: &str, value: &dyn std::fmt::Display| {
            _ = write!(label, ", {key} = {value}");
        };
        if let Some(training) = policy.training() {
            add("N", &training.n);
            if let Some(missing) = training.estimator.missing() {
                add("missing", &missing);
            }
        }
        if let Some(delta) = policy.delta() {
            add("delta", &delta);
        }
        if let Some(constants) = policy.constants() {
            add("policy_constants", &constants.form());
        }
        for (key, value) in &self.priors[cell.prior].swept {
            add(key, value);
        }
        label
    }

    /// BLAKE3 over all that the plan says: two who agree in it mean the same trials, records and
    /// verdicts by the same addresses.
    pub fn revision(&self) -> [u8; 32] {
        let study = &self.study;
        let mut digest = Digest::new();
        digest.tag("plan v1").bytes(&self.id.0).text(study.detail.name());
        digest.f64(study.alpha).f64(self.evidence).f64(study.n_opt).u64(self.rows);
        match self.replicates {
            Replicates::Fixed(all) => digest.tag("fixed").u64(all),
            Replicates::Batched { batch, max } => digest.tag("batched").u64(batch).u64(max),
        };
        digest.tag("T");
        study.grid.t.iter().for_each(|&t| _ = digest.u64(t.into()));
        digest.tag("delta");
        study.grid.delta.iter().for_each(|delta| _ = digest.f64(delta.get()));
        digest.tag("claims");
        study.test.iter().for_each(|glob| _ = digest.text(glob));
        for own in &study.claims {
            digest.tag("claim").text(&own.id).text(&own.holds).text(&own.budget);
            digest.u64(own.quantifier as u64);
        }
        for prior in self.priors.iter() {
            digest.tag("prior");
            for (key, value) in &prior.swept {
                digest.text(key).text(&value.to_string());
            }
        }
        for cell in &self.cells {
            // The shape has the digests of all files in it.
            digest.tag("cell").u64(cell.id.0).bytes(&cell.cell.shape).u64(cell.prior as u64);
        }
        digest.finish()
    }

    /// Whether this plan is an older one grown: all of its trials and records stay valid, and only
    /// what is new has to be computed.
    pub fn grows_from(&self, old: &Self) -> Result<(), NotGrown> {
        growth::check(old, self)
    }

    /// Whether a dataset of this study that is sealed already loses nothing in this plan: `was` is its study
    /// file, as far as that can be read.
    pub fn keeps(&self, was: Option<&Study>, sealed: &[DatasetCell]) -> Result<(), NotGrown> {
        growth::check_sealed(was, sealed, self)
    }

    /// Whether the records keep the columns of swept keys that claims of earlier families name.
    pub fn keeps_columns(&self, old: &Self, earlier: &[EarlierFamily]) -> Result<(), NotGrown> {
        growth::check_columns(old, self, earlier)
    }
}

/// A prior's own refusal, with its place in the file.
fn invalid(study: &Study, error: &Invalid) -> FileError {
    let text = error.to_string();
    let (reason, valid) = text.rsplit_once("; ").unwrap_or((&text, "see docs/study-file.md"));
    let key = error.key();
    let reason = reason.strip_prefix(key).unwrap_or(reason).trim_start();
    study.refuse(key, None, reason, valid)
}

#[cfg(test)]
mod tests;
