//! What the tests that cross crates share: statistics, priors, and cells run to their records.

pub mod cells;
pub mod gaussian;
pub mod priors;
pub mod statistics;
