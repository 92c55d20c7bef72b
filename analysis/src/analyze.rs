//! A dataset's analysis as a whole: what `regretta analyze` shows and writes.

use std::path::Path;

use theory::Delta;

use crate::audit::{self, Audit};
use crate::dataset::{self, Dataset};
use crate::own;
use crate::parquet::FileError;
use crate::pass::{self, CellResult, Extent, Trial};
use crate::rates::{self, Comparison, RateFit, RatePoint};
use crate::verdicts::{self, Sources, VerdictRow};

/// Why a dataset cannot be analysed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// Its records cannot be evaluated.
    #[error(transparent)]
    Pass(#[from] pass::Error),
    /// A claim of one's own cannot be evaluated.
    #[error(transparent)]
    Own(#[from] own::Error),
    /// Its counts are not its records'.
    #[error(transparent)]
    Verdicts(#[from] verdicts::Error),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A delta that the trials do not have.
    #[error(
        "delta = {delta} needs trials of its own, because GP-UCB's policy depends on delta; add it to the study \
         and run it again: what is there is kept\n\n[grid]\n{line}"
    )]
    NewDelta {
        /// The delta.
        delta: f64,
        /// The line of `[grid]` that has it.
        line: String,
    },
    /// No verdict is about the claim.
    #[error(
        "no trial of this dataset was judged by {claim}{near}; `regretta analyze DIR` lists what was tested"
    )]
    NotTested {
        /// The claim.
        claim: String,
        /// What may be meant.
        near: String,
    },
    /// A summary has counts at the planned deltas alone.
    #[error(
        "the dataset is a summary: it has counts at the deltas of the study and no records to count at \
         others; run the study with detail = \"checkpoints\""
    )]
    Summary,
}

impl Error {
    /// Whether the dataset was read and found to be another than it says.
    pub fn is_mismatch(&self) -> bool {
        match self {
            Self::Dataset(error) | Self::Pass(pass::Error::Dataset(error)) => error.is_mismatch(),
            Self::Pass(pass::Error::Misplaced { .. }) | Self::Verdicts(_) => true,
            _ => false,
        }
    }

    /// Whether it is a bug of ours.
    pub fn is_bug(&self) -> bool {
        matches!(self, Self::Pass(pass::Error::Invariant { .. }))
    }
}

/// A dataset with all that is known of it.
pub struct Analysis {
    /// How much was asked for.
    pub extent: Extent,
    /// The dataset.
    pub dataset: Dataset,
    /// What its records say; `None` for a summary.
    pub records: Option<Vec<CellResult>>,
    /// The verdicts.
    pub verdicts: Vec<VerdictRow>,
    /// The proofs, step by step.
    pub audits: Vec<Audit>,
    /// Regret by N and T.
    pub points: Vec<RatePoint>,
    /// Fitted exponents.
    pub fits: Vec<RateFit>,
    /// Methods against each other.
    pub comparisons: Vec<Comparison>,
}

impl Analysis {
    /// Analyses the dataset of a folder, at further deltas too. An analysis for verdicts alone has no rates
    /// and no comparisons, and its records no series.
    pub fn of(dir: &Path, further: &[Delta], extent: Extent) -> Result<Self, Error> {
        dataset::steadily(dir, || Self::of_steady(dir, further, extent))
    }

    fn of_steady(dir: &Path, further: &[Delta], extent: Extent) -> Result<Self, Error> {
        let dataset = Dataset::open(dir)?;
        let further: Vec<Delta> = further
            .iter()
            .copied()
            .filter(|delta| !dataset.study.grid.delta.contains(delta))
            .collect();
        check_deltas(&dataset, &further)?;
        let records = match dataset.has_all_records() {
            true => Some(pass::run(&dataset, &further, extent)?),
            false if further.is_empty() => None,
            false => return Err(Error::Summary),
        };
        let sealed = dataset::counts(dir)?.map(|counts| verdicts::sort(&dataset, counts));
        let sealed = sealed.transpose()?.transpose()?;
        let own = if records.is_some() { own::evaluate(&dataset)? } else { vec![] };
        let sources = Sources {
            dataset: &dataset,
            records: records.as_deref(),
            sealed: sealed.as_ref(),
            own: &own,
        };
        let verdicts = verdicts::verdicts(&sources)?;
        let all = records.as_deref().filter(|_| extent == Extent::All).unwrap_or_default();
        Ok(Self {
            extent,
            audits: audit::audits(&verdicts),
            points: rates::points(&dataset, all, &verdicts),
            fits: rates::fits(&dataset, all),
            comparisons: rates::compare(&dataset, all),
            verdicts,
            records,
            dataset,
        })
    }
}

impl Analysis {
    /// The trials that use most of a claim's bound, or violate it.
    pub fn worst(&self, claim: &str, count: usize) -> Result<Vec<Trial>, Error> {
        if !self.dataset.has_all_records() {
            return Err(Error::Summary);
        }
        if !self.verdicts.iter().any(|row| row.claim == claim && row.coverage.is_some()) {
            let mut tested: Vec<&str> =
                self.verdicts.iter().map(|row| row.claim.as_str()).collect();
            tested.dedup();
            let near = study::nearest(claim, &tested);
            let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
            return Err(Error::NotTested { claim: claim.to_owned(), near });
        }
        let found = pass::worst(&self.dataset, claim, count);
        self.dataset.confirm()?;
        Ok(found?)
    }

    /// The line of `[grid]` with further deltas, where some cells would need trials of their own.
    pub fn unanswered(&self, further: &[Delta]) -> Option<String> {
        let new = further.iter().any(|delta| !self.dataset.study.grid.delta.contains(delta));
        let uses = self.dataset.cells.iter().any(|cell| cell.cell.policy.delta().is_some());
        (new && uses).then(|| grid_line(&self.dataset, further))
    }
}

/// `[grid]`'s deltas with further ones.
fn grid_line(dataset: &Dataset, further: &[Delta]) -> String {
    let mut deltas: Vec<f64> =
        dataset.study.grid.delta.iter().chain(further).map(|delta| delta.get()).collect();
    deltas.sort_by(f64::total_cmp);
    deltas.dedup();
    let deltas: Vec<String> = deltas.iter().map(f64::to_string).collect();
    format!("delta = [{}]", deltas.join(", "))
}

/// A policy that uses delta has to run with it: only the other cells can be looked at anew.
fn check_deltas(dataset: &Dataset, further: &[Delta]) -> Result<(), Error> {
    let uses = dataset.cells.iter().any(|cell| cell.cell.policy.delta().is_some());
    let all = dataset.cells.iter().all(|cell| cell.cell.policy.delta().is_some());
    let Some(first) = further.first().filter(|_| uses && all) else { return Ok(()) };
    Err(Error::NewDelta { delta: first.get(), line: grid_line(dataset, further) })
}
