//! Priors, estimators, posteriors, policies and the trial.
//!
//! A trial is a pure function of (study seed, cell, replicate): see [`trial`].

pub mod bench;
pub mod client;
mod columns;
mod estimator;
pub mod golden;
mod posterior;
pub mod prior;
pub mod random;
mod simd;
mod sweep;
pub mod trial;

pub use simd::Cpu;
