//! Tables for papers, pages, terminals and other programs: one model, five renderings.
//!
//! A [`Table`] holds values, not strings: an estimate keeps its standard error, and the rule that
//! rounds it lives here once (`number`), so that the same result reads the same everywhere. The
//! bytes of a rendering depend on the table alone.

mod axis;
mod cell;
pub(crate) mod csv;
mod decimal;
#[cfg(test)]
mod fixture;
mod format;
mod formula;
pub(crate) mod html;
mod latex;
mod layout;
mod markdown;
mod model;
mod number;
mod pieces;
mod pivot;
mod plan;
mod script;
#[cfg(test)]
mod specimen;
mod symbols;
mod terminal;
mod words;

pub use axis::AxisValue;
pub use cell::{Cell, Tone};
pub use format::{Format, UnknownFormat, render};
pub use model::{Align, Column, Row, Table};
pub use pivot::{PivotError, PivotRow, pivot};
pub use terminal::terminal;
pub use words::Words;
