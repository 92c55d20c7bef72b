//! When a cell has seen enough: anytime-valid stopping at batch ends (docs/mathematics.md, section 8).
//!
//! A cell stops at the end of the first batch by which each of its rows with a budget q > 0 has had
//! E >= `evidence`, for refuting or for confirming, at the end of that or an earlier batch. E is
//! computed from all trials of the completed batches, so the stop is a function of the trials alone:
//! neither the order in which shards arrive nor their sizes can move it.

use std::sync::Arc;

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
        }
    }

    /// Takes the end of the next batch, with the counts of all trials so far, and says whether the
    /// cell stops there. A cell without a row to decide never stops early.
    ///
    /// # Panics
    /// Where the tally has other rows than the rule.
    pub fn batch_ended(&mut self, cumulative: &Tally) -> bool {
        assert_eq!(self.decided.len(), cumulative.0.len(), "a tally has its cell's rows");
        let (mut tested, mut open) = (0, 0);
        let rows = self.mixtures.iter().zip(&mut self.decided).zip(&cumulative.0);
        for ((mixture, decided), counts) in rows {
            if let Some(mixture) = mixture {
                *decided = *decided || reaches(mixture, *counts, self.ln_evidence);
                tested += 1;
                open += usize::from(!*decided);
            }
        }
        tested > 0 && open == 0
    }

    /// The number of rows that a tally must have.
    pub fn rows(&self) -> usize {
        self.decided.len()
    }
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
