//! Verdicts: every claim that applies, everywhere in a study, with the error of the whole family
//! controlled.
//!
//! E-values are taken over completed batches (docs/mathematics.md); Holm's step-down gives the family
//! alpha/2 for refuting and alpha/2 for confirming. Rows at deltas that were added after the data were
//! seen are a family of their own and are marked.

mod assemble;
mod evidence;
mod exact;
mod means;
mod row;
mod sealed;
mod sentence;

pub use evidence::{Evidence, weigh};
pub use row::{Kind, VerdictRow};
pub(crate) use sealed::sort;

use study::CellId;
use study::tally::RowCounts;
use theory::evidence::{Verdict, decide};

use crate::dataset::Dataset;
use crate::own::OwnResult;
use crate::pass::CellResult;

/// What the verdicts are made of.
pub struct Sources<'a> {
    /// The dataset.
    pub dataset: &'a Dataset,
    /// What its records say; `None` for a summary, which has counts alone.
    pub records: Option<&'a [CellResult]>,
    /// The counts that were sealed: by cell, batch and row.
    pub sealed: Option<&'a Sealed>,
    /// The claims of one's own.
    pub own: &'a [OwnResult],
}

/// Sealed counts: for each cell of the dataset, by batch, the rows of the plan in order.
pub type Sealed = Vec<Vec<Vec<RowCounts>>>;

/// Counts that disagree, or are not there.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The sealed counts are of other rows than the study's.
    #[error(
        "counts.parquet does not count the verdict rows of cell {cell}; run the study again to seal it anew"
    )]
    OtherRows {
        /// The cell.
        cell: CellId,
    },
    /// Counting the records anew gives other numbers than the workers counted.
    #[error(
        "the records of cell {cell} hold {found} violations of {claim} at t = {t} in {found_trials} trials, the \
         sealed counts {sealed} in {sealed_trials}: the dataset is damaged or was made by another version; \
         `regretta verify` tells more"
    )]
    Differs {
        /// The cell.
        cell: CellId,
        /// The claim.
        claim: &'static str,
        /// t.
        t: u32,
        /// Violations in the records.
        found: u64,
        /// Trials in the records.
        found_trials: u64,
        /// Violations in the counts.
        sealed: u64,
        /// Trials in the counts.
        sealed_trials: u64,
    },
    /// A summary without counts.
    #[error(
        "the dataset is a summary and has no counts.parquet, so that nothing can be said about any claim"
    )]
    NoCounts,
}

/// A row before its verdict: what Holm's procedure takes, and what is shown.
struct Candidate {
    /// log E (or -log p) against and for the claim; `None` where it is not tested.
    evidence: Option<(f64, f64)>,
    row: VerdictRow,
}

/// All verdicts, in the order of the registry, then of cells.
pub fn verdicts(sources: &Sources<'_>) -> Result<Vec<VerdictRow>, Error> {
    let mut candidates = assemble::candidates(sources)?;
    let alpha = sources.dataset.manifest.family.alpha;
    for exploratory in [false, true] {
        let mut family: Vec<&mut Candidate> =
            candidates.iter_mut().filter(|one| one.row.exploratory == exploratory).collect();
        let evidence: Vec<Option<(f64, f64)>> = family.iter().map(|one| one.evidence).collect();
        for (candidate, verdict) in family.iter_mut().zip(decide(&evidence, alpha)) {
            verdict.name().clone_into(&mut candidate.row.verdict);
            if verdict == Verdict::Inconsistent && candidate.row.mean_expected.is_some() {
                means::settle(&mut candidate.row);
            } else if verdict == Verdict::Inconsistent {
                candidate.row.reason = Some(format!(
                    "both refuted and confirmed: a bug, or an event of probability at most {alpha}"
                ));
            }
        }
    }
    let mut rows: Vec<VerdictRow> = candidates.into_iter().map(|candidate| candidate.row).collect();
    for row in &mut rows {
        row.sentence = sentence::of(row, sources.dataset);
    }
    Ok(rows)
}
