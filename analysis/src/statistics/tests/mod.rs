//! Checks of the whole module: against reference values, and of what its intervals promise.

mod coverage;
mod reference;
