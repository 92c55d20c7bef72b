//! What a range of trials says about the rows of its cell.

/// Trials counted for one verdict row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Trials that ran to an answer.
    pub trials: u64,
    /// Violations with rho's upper end.
    pub refuting: u64,
    /// Violations with rho's lower end.
    pub confirming: u64,
    /// Trials that failed; not among `trials`.
    pub failures: u64,
}

/// One count per verdict row of a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally(pub Vec<RowCounts>);

impl Tally {
    /// Adds the counts of other trials of the same cell.
    pub fn plus(&mut self, other: &Self) {
        for (mine, more) in self.0.iter_mut().zip(&other.0) {
            mine.trials += more.trials;
            mine.refuting += more.refuting;
            mine.confirming += more.confirming;
            mine.failures += more.failures;
        }
    }
}
