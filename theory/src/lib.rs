//! The paper as pure functions: its constants in three forms, the exact laws behind them, the
//! registry of claims, and the evidence for or against each.
//!
//! The paper is "Regret bounds for meta Bayesian optimization with an unknown Gaussian process
//! prior" (Wang, Kim, Kaelbling; NeurIPS 2018). No clock, no disk, no network, no randomness.

mod factor;
mod form;
mod level;
pub mod measurement;

pub use factor::{Factor, PANEL};
pub use form::Form;
pub use level::{Delta, InvalidLevel};
pub use measurement::Measurement;
