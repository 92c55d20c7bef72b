//! Verdicts: every claim that applies, everywhere in a study, with the error of the whole family
//! controlled.
//!
//! E-values are taken over completed batches (docs/mathematics.md); Holm's step-down gives the family
//! alpha/2 for refuting and alpha/2 for confirming. A row that was written down when trials existed is
//! planned for the trials since; on all of them it is exploratory, marked, and judged in a family apart.
//! What an earlier family planned and the present one does not keeps the verdict that it had.

mod assemble;
mod counted;
mod evidence;
mod exact;
mod means;
mod row;
mod sealed;
mod sentence;

pub use evidence::{Evidence, weigh};
pub use row::{Kind, VerdictRow};
pub(crate) use sealed::sort;

use rayon::prelude::*;
use study::CellId;
use study::tally::RowCounts;
use theory::evidence::{Verdict, decide};

use crate::dataset::{DataCell, Dataset};
use crate::manifest::Family;
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
    /// The sealed counts lack a batch, or have one that the trials do not come to.
    #[error(
        "the sealed counts of cell {cell} are of {found} batches, its trials of {expected}: batch {batch} is {}; \
         the dataset is damaged or was made by another version; `regretta verify` tells more",
        if found < expected { "missing" } else { "one too many" }
    )]
    Batches {
        /// The cell.
        cell: CellId,
        /// The first batch that only one of them has, from 0.
        batch: u64,
        /// Batches in the counts.
        found: u64,
        /// Batches by the trials.
        expected: u64,
    },
    /// The sealed counts are not in order, or of a cell that the dataset has not.
    #[error(
        "counts.parquet has batch {batch} of cell {cell} where it should not be: the dataset is damaged or was \
         made by another version; `regretta verify` tells more"
    )]
    Misplaced {
        /// The cell.
        cell: CellId,
        /// The batch.
        batch: u64,
    },
    /// Counting the records anew gives other numbers than the workers counted.
    #[error(
        "batch {batch} of cell {cell} holds {found} violations of {claim} at t = {t} in {found_trials} trials, the \
         sealed counts {sealed} in {sealed_trials}: the dataset is damaged or was made by another version; \
         `regretta verify` tells more"
    )]
    Differs {
        /// The cell.
        cell: CellId,
        /// The batch, from 0.
        batch: u64,
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
    /// A dataset without counts: this version seals none.
    #[error(
        "the dataset has no counts.parquet, so that the verdicts cannot be checked against what the workers \
         counted; run the study again to seal it anew"
    )]
    NoCounts,
}

/// A row before its verdict: what Holm's procedure takes, and what is shown.
struct Candidate {
    group: Group,
    /// log E (or -log p) against and for the claim; `None` where it is not tested.
    evidence: Option<(f64, f64)>,
    row: VerdictRow,
    /// A row that the next family has, too, is shown there.
    is_shown: bool,
}

/// Rows that are judged together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    /// What the study plans.
    Planned,
    /// What was written down when the trials were there, and what the analysis was asked for.
    Exploratory,
    /// What an earlier family planned, on the trials that it had.
    Earlier(usize),
}

/// All verdicts, in the order of the registry, then of cells.
pub fn verdicts(sources: &Sources<'_>) -> Result<Vec<VerdictRow>, Error> {
    let mut candidates = assemble::candidates(sources)?;
    let dataset = sources.dataset;
    let dropped = dropped(dataset);
    let earlier = (0..dataset.earlier.len()).map(Group::Earlier);
    for group in [Group::Planned, Group::Exploratory].into_iter().chain(earlier) {
        let mut family: Vec<&mut Candidate> =
            candidates.iter_mut().filter(|one| one.group == group).collect();
        let evidence: Vec<Option<(f64, f64)>> = family.iter().map(|one| one.evidence).collect();
        let Family { rows, alpha, .. } = family_of(dataset, group);
        // A claim that fails on the trials must not lower the thresholds of the others.
        let unevaluated = family.iter().filter(|one| one.row.unevaluated).count() as u64;
        let untested = match group {
            Group::Planned => dropped[dataset.earlier.len()].saturating_add(unevaluated),
            Group::Exploratory => unevaluated,
            Group::Earlier(family) => {
                // Rows about trials that it did not come to were planned all the same.
                let tested = evidence.iter().flatten().count() as u64;
                rows.saturating_sub(tested).saturating_add(dropped[family])
            }
        };
        for (candidate, verdict) in family.iter_mut().zip(decide(&evidence, untested, alpha)) {
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
    candidates.retain(|candidate| candidate.is_shown);
    let mut rows: Vec<VerdictRow> = candidates.into_iter().map(|candidate| candidate.row).collect();
    for row in &mut rows {
        row.sentence = sentence::of(row, sources.dataset);
    }
    Ok(rows)
}

/// By family, the present one last: rows that were taken away from it when trials existed. To choose rows
/// by their trials must not lower the thresholds of those that stay, so they keep their share of the level.
fn dropped(dataset: &Dataset) -> Vec<u64> {
    let families = dataset.earlier.len() + 1;
    if !dataset.is_changed() {
        return vec![0; families];
    }
    let of_cell = |cell: &DataCell| {
        let id = cell.id.to_string();
        let records = &dataset.manifest.earlier_families;
        let had_cell = |family: usize| records[family].replicates.contains_key(&id);
        let members = dataset.membership(cell);
        (0..families).map(|family| members.dropped(family, had_cell)).collect::<Vec<u64>>()
    };
    let add = |one: Vec<u64>, other: Vec<u64>| one.iter().zip(&other).map(|(a, b)| a + b).collect();
    dataset.cells.par_iter().map(of_cell).reduce(|| vec![0; families], add)
}

/// Rows that earlier families planned and no later one continued, on replicates that they had: what a summary
/// cannot judge any more, because it has counts of the present rows alone.
pub fn ended(dataset: &Dataset) -> u64 {
    if !dataset.is_changed() {
        return 0;
    }
    let of_cell = |cell: &DataCell| {
        let members = dataset.membership(cell);
        let had_trials = |family: &usize| cell.replaced_at[*family] > 0;
        (0..dataset.earlier.len())
            .filter(had_trials)
            .map(|family| members.ending(family))
            .sum::<u64>()
    };
    dataset.cells.par_iter().map(of_cell).sum()
}

/// The family by whose level a group is judged.
fn family_of(dataset: &Dataset, group: Group) -> Family {
    match group {
        Group::Planned | Group::Exploratory => dataset.manifest.family,
        Group::Earlier(family) => dataset.earlier[family].family,
    }
}

#[cfg(test)]
mod tests;
