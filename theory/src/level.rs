//! Probability levels that have been checked once.

use std::fmt;

/// A failure probability delta in (0, 1), as every statement of the paper takes one.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Delta(f64);

/// The smallest delta: no number of trials could tell a smaller one from 0, and the exact laws' upper
/// tails are accurate down to here.
const LEAST: f64 = 1e-20;

/// A level outside the open interval (0, 1), or too small to compute with.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("delta = {0:?} is not a probability strictly between 0 and 1 (at least 1e-20); try 0.1")]
pub struct InvalidLevel(pub f64);

impl Delta {
    /// Accepts any value strictly between 0 and 1, from 1e-20 on.
    pub fn new(value: f64) -> Result<Self, InvalidLevel> {
        if (LEAST..1.0).contains(&value) { Ok(Self(value)) } else { Err(InvalidLevel(value)) }
    }

    /// The probability itself.
    pub fn get(self) -> f64 {
        self.0
    }

    /// log(k / delta), the form in which the paper's constants use delta.
    pub(crate) fn log_ratio(self, k: f64) -> f64 {
        libm::log(k / self.0)
    }
}

impl fmt::Display for Delta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_open_interval_only() {
        for bad in [0.0, 1.0, 1e-21, -0.1, 2.0, f64::NAN, f64::INFINITY] {
            assert!(Delta::new(bad).is_err(), "{bad}");
        }
        assert_eq!(Delta::new(0.1).unwrap().get(), 0.1);
    }
}
