//! Scheduling, ledger, segments, stopping and the server.

pub mod core;
pub mod stopping;
