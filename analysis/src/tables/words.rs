//! Words for people: as Unicode, and as LaTeX.

use super::formula;

/// The same words twice: for a screen, and for LaTeX in text mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// Unicode, unescaped.
    pub plain: String,
    /// LaTeX, ready for text mode.
    pub latex: String,
}

impl Words {
    /// Words whose LaTeX follows from their Unicode: specials are escaped, formulas become maths.
    pub fn new(plain: impl Into<String>) -> Self {
        let plain = plain.into();
        let latex = formula::latex(&plain);
        Self { plain, latex }
    }

    /// A formula with LaTeX of its own, given without the dollars.
    pub fn math(plain: impl Into<String>, latex: &str) -> Self {
        Self { plain: plain.into(), latex: format!("${latex}$") }
    }
}

impl From<&str> for Words {
    fn from(plain: &str) -> Self {
        Self::new(plain)
    }
}

impl From<String> for Words {
    fn from(plain: String) -> Self {
        Self::new(plain)
    }
}
