//! Verdicts over a family of rows, Holm's step-down at half the level on either side.

use std::fmt;

/// What the evidence says about one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The violation rate exceeds the budget.
    Refuted,
    /// The violation rate is below the budget.
    Confirmed,
    /// Neither is established.
    Undecided,
    /// The cell is outside the claim's hypotheses.
    NotApplicable,
    /// Both were established: a bug, or an event of probability at most alpha.
    Inconsistent,
}

impl Verdict {
    /// The word used in `verdicts.json` and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Refuted => "refuted",
            Self::Confirmed => "confirmed",
            Self::Undecided => "undecided",
            Self::NotApplicable => "not-applicable",
            Self::Inconsistent => "inconsistent",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Which hypotheses Holm's step-down rejects at `level`, given log e-values (p = 1/E).
///
/// The k-th largest (from 0) of m is rejected while log E >= log((m - k)/level). The family has
/// `untested` further hypotheses with E = 1: they count in m and are never rejected.
pub fn holm(ln_e: &[f64], untested: u64, level: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..ln_e.len()).collect();
    order.sort_by(|&i, &j| ln_e[j].total_cmp(&ln_e[i]));
    let mut rejected = vec![false; ln_e.len()];
    for (k, &i) in order.iter().enumerate() {
        let left = (ln_e.len() - k) as f64 + untested as f64;
        if ln_e[i] < libm::log(left / level) {
            break;
        }
        rejected[i] = true;
    }
    rejected
}

/// The verdicts of a family from (largest log E_refute, largest log E_confirm) per row; `None`
/// for a row to which its claim does not apply, which then takes no share of the level. The family
/// has `untested` further rows, about which there is no evidence and which take their share.
pub fn decide(rows: &[Option<(f64, f64)>], untested: u64, alpha: f64) -> Vec<Verdict> {
    let tested: Vec<(f64, f64)> = rows.iter().copied().flatten().collect();
    let refute: Vec<f64> = tested.iter().map(|row| row.0).collect();
    let confirm: Vec<f64> = tested.iter().map(|row| row.1).collect();
    let mut decisions = holm(&refute, untested, 0.5 * alpha)
        .into_iter()
        .zip(holm(&confirm, untested, 0.5 * alpha))
        .map(|pair| match pair {
            (true, true) => Verdict::Inconsistent,
            (true, false) => Verdict::Refuted,
            (false, true) => Verdict::Confirmed,
            (false, false) => Verdict::Undecided,
        });
    rows.iter()
        .map(|row| row.and_then(|_| decisions.next()).unwrap_or(Verdict::NotApplicable))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn step_down_uses_what_is_left() {
        // Thresholds at level .05 for three: log 60, log 40, log 20.
        let ln = |e: f64| libm::log(e);
        assert_eq!(holm(&[ln(21.0), ln(61.0), ln(41.0)], 0, 0.05), [true, true, true]);
        assert_eq!(holm(&[ln(21.0), ln(61.0), ln(39.0)], 0, 0.05), [false, true, false]);
        assert_eq!(holm(&[f64::INFINITY, 0.0], 0, 0.05), [true, false]);
        assert!(holm(&[], 7, 0.05).is_empty());
    }

    /// A manifest may say any number of them, so they are never listed.
    #[test]
    fn untested_rows_count_like_rows_without_evidence() {
        let ln_e = [1.0, 5.5, 4.2, -0.3, 5.0];
        for untested in [0, 1, 3, 40] {
            let mut listed = ln_e.to_vec();
            listed.resize(ln_e.len() + untested as usize, 0.0);
            let expected = &holm(&listed, 0, 0.05)[..ln_e.len()];
            assert_eq!(holm(&ln_e, untested, 0.05), expected, "{untested}");
        }
        assert_eq!(holm(&[f64::INFINITY, 40.0], u64::MAX, 0.05), [true, false]);
        assert_eq!(decide(&[Some((30.0, 0.0))], 1_000_000_000_000_000, 0.05), [Verdict::Undecided]);
    }

    #[test]
    fn rows_keep_their_places() {
        let rows = [None, Some((9.0, -1.0)), Some((-1.0, 9.0)), Some((0.0, 0.0)), Some((9.0, 9.0))];
        let names: Vec<&str> = decide(&rows, 0, 0.05).into_iter().map(Verdict::name).collect();
        let expected = ["not-applicable", "refuted", "confirmed", "undecided", "inconsistent"];
        assert_eq!(names, expected);
    }

    proptest! {
        #[test]
        fn holm_is_at_least_bonferroni(ln_e in proptest::collection::vec(-2.0_f64..12.0, 1..30)) {
            let level = libm::log(ln_e.len() as f64 / 0.05);
            for (value, rejected) in ln_e.iter().zip(holm(&ln_e, 0, 0.05)) {
                prop_assert!(rejected || *value < level);
                prop_assert!(!rejected || *value >= libm::log(20.0));
            }
        }
    }
}
