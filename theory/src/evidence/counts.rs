//! What the trials of one cell say about one claim.

/// Trials counted for a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Trials that ran to an answer.
    pub trials: u64,
    /// Among them, those in which the claim was violated.
    pub violations: u64,
    /// Trials that failed and so answered nothing; not among `trials`.
    pub failures: u64,
}

impl Counts {
    /// 1 - violations/trials; `None` without trials.
    pub fn coverage(self) -> Option<f64> {
        (self.trials > 0).then(|| 1.0 - self.violations as f64 / self.trials as f64)
    }

    /// Trials in which the claim held.
    ///
    /// # Panics
    /// Where more violations than trials were counted.
    pub fn held(self) -> u64 {
        self.trials.checked_sub(self.violations).expect("violations are among the trials")
    }

    /// The sum of two batches.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            trials: self.trials + other.trials,
            violations: self.violations + other.violations,
            failures: self.failures + other.failures,
        }
    }

    /// (S, n - S) when a failure counts against the claim, as confirming it must assume.
    pub(super) fn pessimistic(self) -> (f64, f64) {
        ((self.violations + self.failures) as f64, self.held() as f64)
    }

    /// (S, n - S) when a failure counts for the claim, as refuting it must assume.
    pub(super) fn optimistic(self) -> (f64, f64) {
        (self.violations as f64, (self.held() + self.failures) as f64)
    }
}
