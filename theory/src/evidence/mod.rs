//! Evidence for and against a claim: anytime-valid e-values, confidence intervals, tests of means
//! and the verdicts that a family of claims gets.

mod counts;
mod interval;
mod means;
mod mixture;
mod verdict;

pub use counts::Counts;
pub use interval::{Interval, clopper_pearson, confidence_sequence};
pub use means::{MeanSample, equivalence_test, z_test};
pub use mixture::{BetaPrior, Mixture, anytime_p_value};
pub use verdict::{Verdict, decide, holm};
