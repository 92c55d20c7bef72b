//! A page in one file: text, tables and figures, with its style inside and nothing from outside.
//!
//! No scripts, no fonts, no links but to files beside it: it can be mailed, archived and printed.
//! All text is escaped; `code` between backticks is the only markup.

mod block;
mod document;
mod markup;
mod style;
#[cfg(test)]
mod tests;

pub use block::{Block, Download};
pub use document::{Page, Section};
