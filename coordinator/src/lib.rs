//! Scheduling, ledger, segments, stopping and the server.
