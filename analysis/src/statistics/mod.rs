//! The statistics of rates: how fast a measured quantity falls with a size, and whether that is as
//! fast as the theory says.
//!
//! A log-log slope is wrong where there is a floor, so A + B n^-c is fitted, with weights from the
//! Monte-Carlo errors ([`fit_power_law`]). Cells of a study share their seeds and are therefore
//! dependent: intervals come from resampling whole replicates, in all cells at once
//! ([`exponent_interval`]). A theoretical exponent counts as contradicted only where the interval
//! lies on its slow side ([`compare`]).
//!
//! Everything here is a function of its arguments, to the last bit: sums run in a fixed order,
//! transcendental functions come from `libm`, and every resample has a random stream of its own.

mod bootstrap;
mod exponent;
mod fit;
mod interval;
mod minimum;
mod paired;
mod points;
mod profile;
mod quantile;
mod standard_errors;
mod student;
mod summary;
#[cfg(test)]
mod tests;

pub use bootstrap::{BLOCKS, RESAMPLES, Replicates, Resamples, Seed};
pub use exponent::{Comparison, ExponentVerdict, MISFIT, Reason, compare};
pub use fit::{Bound, EXPONENTS, Fit, Place, TREND_LEVEL, fit_power_law};
pub use interval::{FitInterval, LEVEL, Transform, exponent_interval, percentile_interval};
pub use paired::{PairedDifferences, Signs, paired_differences};
pub use points::{FitError, Floor, MIN_SIZES, Point};
pub use quantile::{QuantileLimits, Sample, rank_limits};
pub use standard_errors::StandardErrors;
pub use student::student_quantile;
pub use summary::summary;
