//! A measured exponent beside the theoretical one.
//!
//! The theory bounds from above: "falls at least as fast as n^-e". It is contradicted only where the
//! whole interval of the measured exponent lies below e, on the slow side; decaying faster than
//! claimed is compatible. And an exponent is measured only where A + B n^-c describes the values: a
//! law that holds in the limit is not contradicted by a curve that does not fit.

use super::{EXPONENTS, FitError, FitInterval, LEVEL};
use std::fmt;

/// The p-value of a fit below which its exponent is not taken for one.
pub const MISFIT: f64 = 0.001;

/// What a measured exponent says about a claimed one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ExponentVerdict {
    /// The interval lies on the slow side of the claim.
    Contradicted,
    /// The interval holds the claim.
    Compatible,
    /// The interval lies on the fast side of the claim, with which that is compatible.
    FasterThanClaimed,
    /// No exponent was measured.
    NotIdentified(Reason),
}

/// Why an exponent is not identified.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Reason {
    /// There is no fit.
    #[error("{0}")]
    NoFit(FitError),
    /// A + B n^-c does not describe the values.
    #[error("A + B n^-c does not describe the values, p = {p_value:.1e}")]
    Misfit {
        /// Of the fit's chi-square.
        p_value: f64,
    },
    /// The interval is all that is searched.
    #[error("the interval is the whole range of exponents searched, {} to {}", EXPONENTS.0, EXPONENTS.1)]
    WholeRange,
    /// The claimed exponent is not among those that are searched.
    #[error("the claim is outside the exponents searched, {} to {}", EXPONENTS.0, EXPONENTS.1)]
    OutsideRange,
}

/// A verdict with what it rests on; its text is one sentence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// e of the claimed n^-e.
    pub claimed: f64,
    /// What was measured.
    pub measured: Result<FitInterval, FitError>,
    /// What follows.
    pub verdict: ExponentVerdict,
}

impl Comparison {
    /// Whether an exponent was measured.
    pub fn is_identified(&self) -> bool {
        !matches!(self.verdict, ExponentVerdict::NotIdentified(_))
    }
}

/// Compares a measured exponent with a claimed decay n^-`claimed`.
pub fn compare(claimed: f64, measured: Result<FitInterval, FitError>) -> Comparison {
    let verdict = match measured {
        Err(error) => ExponentVerdict::NotIdentified(Reason::NoFit(error)),
        Ok(found) => judge(claimed, &found),
    };
    Comparison { claimed, measured, verdict }
}

fn judge(claimed: f64, found: &FitInterval) -> ExponentVerdict {
    if claimed.is_nan() || claimed <= EXPONENTS.0 || claimed >= EXPONENTS.1 {
        ExponentVerdict::NotIdentified(Reason::OutsideRange)
    } else if found.fit.p_value < MISFIT {
        ExponentVerdict::NotIdentified(Reason::Misfit { p_value: found.fit.p_value })
    } else if found.low <= EXPONENTS.0 && found.high >= EXPONENTS.1 {
        ExponentVerdict::NotIdentified(Reason::WholeRange)
    } else if found.high < claimed {
        ExponentVerdict::Contradicted
    } else if found.low > claimed {
        ExponentVerdict::FasterThanClaimed
    } else {
        ExponentVerdict::Compatible
    }
}

impl ExponentVerdict {
    /// The word used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Contradicted => "contradicted",
            Self::Compatible => "compatible",
            Self::FasterThanClaimed => "faster-than-claimed",
            Self::NotIdentified(_) => "not-identified",
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let claimed = self.claimed;
        let relation = match self.verdict {
            ExponentVerdict::Contradicted => "slower than",
            ExponentVerdict::Compatible => "compatible with",
            ExponentVerdict::FasterThanClaimed => "faster than, and so compatible with,",
            ExponentVerdict::NotIdentified(reason) => {
                return write!(f, "No exponent to compare with the claimed {claimed}: {reason}.");
            }
        };
        let found = self.measured.expect("an identified exponent was measured");
        write!(
            f,
            "The measured exponent {:.3} ({:.0} % interval {:.3} to {:.3}) is {relation} the claimed {claimed}.",
            found.fit.c,
            100.0 * LEVEL,
            found.low,
            found.high,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Fit, Place};
    use super::*;

    fn measured(low: f64, c: f64, high: f64, p_value: f64) -> FitInterval {
        let place = Place::Inside;
        let fit =
            Fit { a: 0.0, b: 1.0, c, place, errors: None, chi_square: 3.0, degrees: 3, p_value };
        FitInterval { fit, low, high, refused: 0 }
    }

    #[test]
    fn only_the_slow_side_contradicts() {
        let text = |low, c, high| compare(0.5, Ok(measured(low, c, high, 0.4))).to_string();
        assert_eq!(
            text(0.21, 0.3, 0.44),
            "The measured exponent 0.300 (95 % interval 0.210 to 0.440) is slower than the claimed 0.5."
        );
        assert_eq!(
            text(0.41, 0.48, 0.5),
            "The measured exponent 0.480 (95 % interval 0.410 to 0.500) is compatible with the claimed 0.5."
        );
        assert_eq!(
            text(0.9, 1.0, 1.1),
            "The measured exponent 1.000 (95 % interval 0.900 to 1.100) is faster than, and so \
             compatible with, the claimed 0.5."
        );
        let name = |low, high| compare(0.5, Ok(measured(low, 0.5, high, 0.4))).verdict.name();
        assert_eq!(name(0.1, 0.4), "contradicted");
        assert_eq!(name(0.1, 0.5), "compatible");
        assert_eq!(name(0.6, 0.9), "faster-than-claimed");
    }

    #[test]
    fn what_is_not_identified_says_why() {
        let no_fit = compare(0.5, Err(FitError::TooFewSizes { found: 3 }));
        assert_eq!(
            no_fit.to_string(),
            "No exponent to compare with the claimed 0.5: 3 distinct sizes, of at least 5 needed."
        );
        let misfit = compare(0.5, Ok(measured(0.1, 0.2, 0.3, 1e-7)));
        assert_eq!(
            misfit.verdict,
            ExponentVerdict::NotIdentified(Reason::Misfit { p_value: 1e-7 })
        );
        assert_eq!(
            misfit.to_string(),
            "No exponent to compare with the claimed 0.5: A + B n^-c does not describe the values, \
             p = 1.0e-7."
        );
        let outside = compare(4.0, Ok(measured(3.0, 3.9, 3.95, 0.5)));
        assert_eq!(outside.verdict, ExponentVerdict::NotIdentified(Reason::OutsideRange));
        assert_eq!(outside.verdict.name(), "not-identified");
    }
}
