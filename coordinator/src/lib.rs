//! Scheduling, ledger, segments, stopping and the server.

pub mod store;
