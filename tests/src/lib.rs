//! What the tests that cross crates share: statistics, priors, cells run to their records, and what
//! measurements need.

pub mod cells;
pub mod gaussian;
pub mod large;
pub mod priors;
#[cfg(target_os = "linux")]
pub mod process;
pub mod spread;
pub mod statistics;
