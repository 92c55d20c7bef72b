//! The evidence of one row: e-values over completed batches, and the interval of its coverage.

use study::tally::RowCounts;
use theory::evidence::{Counts, Mixture, clopper_pearson, confidence_sequence};

use crate::manifest::Family;

/// What the batches of a row amount to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evidence {
    /// All trials.
    pub counts: RowCounts,
    /// Largest log E_refute over completed batches.
    pub ln_e_refute: f64,
    /// Largest log E_confirm.
    pub ln_e_confirm: f64,
    /// Lower end of the coverage, violations counted with rho's lower end.
    pub low: f64,
    /// Upper end of the coverage, violations counted with rho's upper end.
    pub high: f64,
}

/// Weighs the batches of a row in their order. With early stopping the interval is valid at every n.
pub fn weigh(batches: &[RowCounts], budget: f64, family: Family, stopped: bool) -> Evidence {
    let mixture = Mixture::new(budget, family.alpha, family.n_opt);
    let mut sum = RowCounts::default();
    // The e-values before any trial are 1.
    let (mut ln_e_refute, mut ln_e_confirm) = (0.0, 0.0);
    for batch in batches {
        sum.trials += batch.trials;
        sum.refuting += batch.refuting;
        sum.confirming += batch.confirming;
        sum.failures += batch.failures;
        let refute = mixture.ln_e_refute(counts(sum, sum.refuting));
        let confirm = mixture.ln_e_confirm(counts(sum, sum.confirming));
        ln_e_refute = if refute > ln_e_refute { refute } else { ln_e_refute };
        ln_e_confirm = if confirm > ln_e_confirm { confirm } else { ln_e_confirm };
    }
    let interval = |violations| {
        let counts = counts(sum, violations);
        if stopped {
            confidence_sequence(counts, &mixture, family.alpha)
        } else {
            clopper_pearson(counts, family.alpha)
        }
    };
    let (most, least) = (interval(sum.confirming).high, interval(sum.refuting).low);
    Evidence { counts: sum, ln_e_refute, ln_e_confirm, low: 1.0 - most, high: 1.0 - least }
}

fn counts(sum: RowCounts, violations: u64) -> Counts {
    Counts { trials: sum.trials, violations, failures: sum.failures }
}

#[cfg(test)]
mod tests {
    use study::family::FamilyDigest;

    use super::*;

    const FAMILY: Family = Family {
        rows: 3,
        alpha: 0.05,
        evidence: 120.0,
        n_opt: 2000.0,
        digest: FamilyDigest([0; 32]),
    };

    fn batch(trials: u64, violations: u64) -> RowCounts {
        RowCounts { trials, refuting: violations, confirming: violations, failures: 0 }
    }

    #[test]
    fn the_largest_e_value_of_the_batches_counts() {
        let good_then_bad = [batch(400, 0), batch(400, 120)];
        let at = |batches: &[RowCounts]| weigh(batches, 0.05, FAMILY, true);
        let (first, both) = (at(&good_then_bad[..1]), at(&good_then_bad));
        assert_eq!(both.ln_e_confirm, first.ln_e_confirm);
        assert!(both.ln_e_refute > 20.0 && first.ln_e_refute == 0.0);
        assert_eq!(both.counts.trials, 800);
    }

    #[test]
    fn either_end_of_rho_has_its_end_of_the_interval() {
        let counts = RowCounts { trials: 1000, refuting: 10, confirming: 100, failures: 0 };
        let evidence = weigh(&[counts], 0.05, FAMILY, false);
        let refuting = weigh(&[batch(1000, 10)], 0.05, FAMILY, false);
        let confirming = weigh(&[batch(1000, 100)], 0.05, FAMILY, false);
        assert_eq!((evidence.low, evidence.high), (confirming.low, refuting.high));
        // Neither end decides alone.
        assert_eq!(evidence.ln_e_refute, refuting.ln_e_refute);
        assert_eq!(evidence.ln_e_confirm, confirming.ln_e_confirm);
    }

    #[test]
    fn no_trials_say_nothing() {
        let nothing = weigh(&[], 0.05, FAMILY, false);
        assert_eq!((nothing.ln_e_refute, nothing.ln_e_confirm), (0.0, 0.0));
        assert_eq!((nothing.low, nothing.high), (0.0, 1.0));
        let failed =
            weigh(&[RowCounts { failures: 50, ..RowCounts::default() }], 0.05, FAMILY, false);
        assert_eq!((failed.low, failed.high), (0.0, 1.0));
        assert!(failed.ln_e_refute == 0.0 && failed.ln_e_confirm == 0.0);
    }
}
