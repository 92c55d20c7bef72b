//! The paper as pure functions: its constants in three forms, the exact laws behind them, the
//! registry of claims, and the evidence for or against each.
//!
//! The paper is "Regret bounds for meta Bayesian optimization with an unknown Gaussian process
//! prior" (Wang, Kim, Kaelbling; NeurIPS 2018). No clock, no disk, no network, no randomness.

pub mod claims;
pub mod dense;
pub mod eigen;
pub mod evidence;
mod factor;
mod form;
pub mod information;
pub mod laws;
pub mod lemma1;
pub mod lemma3;
pub mod lemma5;
mod level;
pub mod measurement;
pub mod special;
pub mod theorem2;
pub mod theorem4;

pub use factor::{Factor, PANEL};
pub use form::Form;
pub use level::{Delta, InvalidLevel};
pub use measurement::Measurement;
