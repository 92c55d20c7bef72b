//! The coordinator: what is to be computed next and by whom (`core`, `stopping`), what has been
//! computed and survives (`store`), and the services that workers and clients call (`server`).

pub mod core;
pub mod server;
#[cfg(test)]
#[expect(dead_code, reason = "tests of the command line use the rest")]
mod servers;
pub mod stopping;
pub mod store;
