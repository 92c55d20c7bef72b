//! When a cell has seen enough: anytime-valid stopping at batch ends (docs/mathematics.md, section 8).
//!
//! A cell stops at the end of the first batch by which each of its rows with a budget q > 0 has had
//! E >= `evidence`, for refuting or for confirming, at the end of that or an earlier batch. E is
//! computed from all trials of the completed batches, so the stop is a function of the trials alone:
//! neither the order in which shards arrive nor their sizes can move it.
//!
//! A row that was written down when the cell had r replicates counts from the first batch that begins at
//! or after r, so that a cell that had stopped goes on until its fresh trials decide, or to its maximum.
//! Claims of one's own are not counted here. Where one is late, all rows of its cell count anew from
//! there: it gets as many trials as it would have got in a cell that begins then.

use std::sync::Arc;

use study::CellId;
use study::family::{Changes, Late};
use study::plan::{Plan, PlannedCell, Replicates};
use study::rows::{self, Row};
use study::tally::{RowCounts, Tally};
use theory::evidence::{Counts, Mixture};

/// What stopping needs to know of a verdict row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowRule {
    /// The row's budget q in [0, 1); a row of budget 0 never holds a cell up.
    pub budget: f64,
}

/// The stopping rule of one cell, and which of its rows are decided by now.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// By row, `None` for a budget of 0. Clones share it: cells of the same rows have one.
    mixtures: Arc<[Option<Mixture>]>,
    decided: Vec<bool>,
    ln_evidence: f64,
    /// Batches that have ended.
    ended: u64,
    /// By row, where any is late.
    starts: Vec<Start>,
}

/// Where a late row begins to count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Start {
    batch: u64,
    /// Counts of the batches before.
    before: RowCounts,
}

impl Rule {
    /// The rule of a planned cell; `None` where the study has no batches and its cells never stop early.
    pub fn of(plan: &Plan, cell: &PlannedCell) -> Option<Self> {
        Self::of_rows(plan, &rows::rows(&plan.study, &cell.cell))
    }

    /// The same for a cell that has these rows.
    pub(crate) fn of_rows(plan: &Plan, rows: &[Row]) -> Option<Self> {
        let Replicates::Batched { .. } = plan.replicates else { return None };
        let rows: Vec<RowRule> = rows.iter().map(|row| RowRule { budget: row.budget }).collect();
        Some(Self::new(&rows, plan.study.alpha, plan.study.n_opt, plan.evidence))
    }

    /// For rows in the order of the cell's tallies; alpha and n_opt are the study's, `evidence` the
    /// least E that decides a row.
    ///
    /// # Panics
    /// Where alpha is not in (0, 1/2).
    pub fn new(rows: &[RowRule], alpha: f64, n_opt: f64, evidence: f64) -> Self {
        let mixture =
            |rule: &RowRule| (rule.budget > 0.0).then(|| Mixture::new(rule.budget, alpha, n_opt));
        Self {
            mixtures: rows.iter().map(mixture).collect(),
            decided: vec![false; rows.len()],
            ln_evidence: libm::log(evidence),
            ended: 0,
            starts: Vec::new(),
        }
    }

    /// The rule of a cell whose study was changed when there were trials. The default level of evidence takes
    /// account of the rows that the study had before, as the verdicts do.
    #[must_use]
    pub fn after(mut self, plan: &Plan, cell: CellId, changes: &Changes) -> Self {
        if plan.study.evidence.is_none() {
            self.ln_evidence += libm::log1p(changes.dropped as f64 / plan.rows.max(1) as f64);
        }
        let size = plan.replicates.batch_size();
        if let Some(late) = changes.late.get(&cell) {
            self.starts = starts(late, self.rows(), size);
        }
        self
    }

    /// Takes the end of the next batch, with the counts of all trials so far, and says whether the
    /// cell stops there. A cell without a row to decide never stops early.
    ///
    /// # Panics
    /// Where the tally has other rows than the rule.
    pub fn batch_ended(&mut self, cumulative: &Tally) -> bool {
        assert_eq!(self.decided.len(), cumulative.0.len(), "a tally has its cell's rows");
        let batch = self.ended;
        self.ended += 1;
        let (mut tested, mut open) = (0, 0);
        let rows = self.mixtures.iter().zip(&mut self.decided).zip(&cumulative.0).enumerate();
        for (place, ((mixture, decided), counts)) in rows {
            let Some(mixture) = mixture else { continue };
            tested += 1;
            match self.starts.get_mut(place) {
                Some(start) if batch < start.batch => start.before = *counts,
                start => {
                    let before = start.map_or_else(RowCounts::default, |start| start.before);
                    let counted = counts.minus(&before);
                    *decided = *decided || reaches(mixture, counted, self.ln_evidence);
                }
            }
            open += usize::from(!*decided);
        }
        tested > 0 && open == 0
    }

    /// The number of rows that a tally must have.
    pub fn rows(&self) -> usize {
        self.decided.len()
    }
}

/// Empty where no row is late.
fn starts(late: &Late, rows: usize, size: u64) -> Vec<Start> {
    if late.own == 0 && late.rows.is_empty() {
        return Vec::new();
    }
    let since = |place| late.rows.get(&place).copied().unwrap_or(0).max(late.own);
    let start = |place| Start { batch: since(place).div_ceil(size.max(1)), ..Start::default() };
    (0..rows).map(start).collect()
}

fn reaches(mixture: &Mixture, row: RowCounts, ln_evidence: f64) -> bool {
    let counts = |violations| Counts { trials: row.trials, violations, failures: row.failures };
    mixture.ln_e_refute(counts(row.refuting)) >= ln_evidence
        || mixture.ln_e_confirm(counts(row.confirming)) >= ln_evidence
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALPHA: f64 = 0.05;
    const N_OPT: f64 = 2000.0;

    fn rule(budgets: &[f64], evidence: f64) -> Rule {
        let rows: Vec<RowRule> = budgets.iter().map(|&budget| RowRule { budget }).collect();
        Rule::new(&rows, ALPHA, N_OPT, evidence)
    }

    fn row(trials: u64, refuting: u64, confirming: u64, failures: u64) -> RowCounts {
        RowCounts { trials, refuting, confirming, failures }
    }

    #[test]
    fn stops_once_a_clean_row_could_be_confirmed() {
        let least = Mixture::new(0.05, ALPHA, N_OPT).least_n_to_confirm(libm::log(800.0)).unwrap();
        let mut rule = rule(&[0.05], 800.0);
        assert!(!rule.batch_ended(&Tally(vec![row(least - 1, 0, 0, 0)])));
        assert!(rule.batch_ended(&Tally(vec![row(least, 0, 0, 0)])));
    }

    #[test]
    fn a_row_stays_decided() {
        let mut rule = rule(&[0.05, 0.5], 800.0);
        assert!(!rule.batch_ended(&Tally(vec![row(1000, 0, 0, 0), row(1000, 500, 500, 0)])));
        // By now the first row alone would be open again.
        assert!(rule.batch_ended(&Tally(vec![row(2000, 100, 100, 0), row(2000, 500, 500, 0)])));
    }

    #[test]
    fn rows_of_budget_zero_neither_hold_up_nor_stop() {
        assert!(!rule(&[0.0], 20.0).batch_ended(&Tally(vec![row(9, 9, 9, 0)])));
        assert!(!rule(&[], 20.0).batch_ended(&Tally(vec![])));
        let both = Tally(vec![row(1000, 0, 0, 0); 2]);
        assert!(rule(&[0.0, 0.05], 20.0).batch_ended(&both));
    }

    #[test]
    fn an_open_bracket_of_rho_keeps_a_row_open() {
        // Refuted only with rho's lower end, confirmed only with its upper end: neither counts.
        let tally = Tally(vec![row(1000, 0, 300, 0)]);
        assert!(!rule(&[0.1], 20.0).batch_ended(&tally));
    }

    fn late(own: u64, rows: &[(usize, u64)]) -> Late {
        Late { rows: rows.iter().copied().collect(), own }
    }

    /// Two rows of 100 trials a batch, of which the second was written down at replicate 150.
    #[test]
    fn a_late_row_counts_from_the_first_batch_after_it_was_written_down() {
        let ended = |late: &Late, batches: &[u64]| {
            let mut rule = rule(&[0.05, 0.05], 800.0);
            rule.starts = starts(late, 2, 100);
            let mut cumulative = Tally(vec![RowCounts::default(); 2]);
            batches.iter().position(|&violations| {
                cumulative.plus(&Tally(vec![row(100, violations, violations, 0); 2]));
                rule.batch_ended(&cumulative)
            })
        };
        let clean = [0; 9];
        let unchanged = ended(&Late::default(), &clean).unwrap();
        assert_eq!(ended(&late(0, &[(1, 150)]), &clean), Some(unchanged + 2));
        assert_eq!(ended(&late(0, &[(1, 200)]), &clean), Some(unchanged + 2));
        assert_eq!(ended(&late(0, &[(1, 201)]), &clean), Some(unchanged + 3));
        // What was seen before decides nothing, though it would refute the row.
        assert_eq!(ended(&late(0, &[(1, 200)]), &[90, 90, 0, 0, 0, 0, 0]), Some(unchanged + 2));
        assert_eq!(ended(&late(0, &[(1, 900)]), &clean), None);
        // One of the study's own claims waits as if the cell began anew.
        assert_eq!(ended(&late(200, &[]), &clean), Some(unchanged + 2));
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(6),
            ..ProptestConfig::default() })]
        #[test]
        fn agrees_with_a_direct_recomputation(
            batches in prop::collection::vec(
                prop::collection::vec((0_u64..200, 0_u64..8, 0_u64..8, 0_u64..3), 3), 1..12),
            evidence in 2.0_f64..1e4,
        ) {
            let budgets = [0.05, 0.0, 0.2];
            let mut rule = rule(&budgets, evidence);
            let mut cumulative = Tally(vec![RowCounts::default(); 3]);
            let mut largest = [f64::NEG_INFINITY; 3];
            for batch in batches {
                let batch = batch.iter().map(|&(n, a, b, f)| row(n, a.min(b).min(n), b.min(n), f));
                cumulative.plus(&Tally(batch.collect()));
                for ((e, counts), budget) in largest.iter_mut().zip(&cumulative.0).zip(budgets) {
                    let mixture = Mixture::new(budget, ALPHA, N_OPT);
                    let of = |violations| Counts {
                        trials: counts.trials, violations, failures: counts.failures };
                    let sides = [mixture.ln_e_refute(of(counts.refuting)),
                        mixture.ln_e_confirm(of(counts.confirming))];
                    for side in sides {
                        if side > *e { *e = side; }
                    }
                }
                let expected = libm::exp(largest[0]) >= evidence && libm::exp(largest[2]) >= evidence;
                // Equal up to rounding of exp at the threshold, which the inputs do not hit.
                prop_assert_eq!(rule.batch_ended(&cumulative), expected);
            }
        }
    }
}
