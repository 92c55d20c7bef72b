//! Priors, estimators, posteriors, policies and the trial.
//!
//! A trial is a pure function of (study seed, cell, replicate): see [`trial`].

pub mod bench;
pub mod client;
mod columns;
pub mod compact;
pub mod completion;
pub mod data;
mod estimator;
pub mod golden;
pub mod gp;
mod method;
mod posterior;
pub mod prior;
pub mod problem;
pub mod random;
mod simd;
mod sweep;
pub mod trial;

pub use simd::Cpu;
