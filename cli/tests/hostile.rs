//! Attacks on a coordinator, with and without credentials, while honest workers compute a study.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
#[path = "common/rogue.rs"]
mod rogue;
#[path = "common/service.rs"]
mod service;
#[path = "common/siege.rs"]
mod siege;

#[path = "hostile/connections.rs"]
mod connections;
#[path = "hostile/leases.rs"]
mod leases;
#[path = "hostile/studies.rs"]
mod studies;
