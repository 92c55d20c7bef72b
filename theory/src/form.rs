//! The three forms in which every constant of the paper is computed.

use std::fmt;

/// Which version of a constant is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Form {
    /// The line of the statement as the paper prints it.
    Printed,
    /// The same proof with the factor N restored in the variance of the posterior mean
    /// (appendix, Lemma on the estimators: `N - 2 + K` should read `N - 2 + N K`).
    Corrected,
    /// The quantile of the exact law at the level that the paper's union bound allots.
    Sharp,
}

impl Form {
    /// All forms, in the order in which tables list them.
    pub const ALL: [Self; 3] = [Self::Printed, Self::Corrected, Self::Sharp];

    /// The name used in study files, records and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Printed => "printed",
            Self::Corrected => "corrected",
            Self::Sharp => "sharp",
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
