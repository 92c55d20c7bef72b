//! What a rate is fitted to: values at sizes, with their Monte-Carlo errors.

/// A measured value at a size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The size n > 0; any real number, such as N - T.
    pub size: f64,
    /// The value measured there.
    pub value: f64,
    /// Its Monte-Carlo standard error, > 0.
    pub error: f64,
}

/// What is known of A in A + B n^-c.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Floor {
    /// Fitted.
    Free,
    /// Given; 0 where the quantity vanishes in the limit.
    Known(f64),
}

/// The least number of distinct sizes that a rate is fitted to.
pub const MIN_SIZES: usize = 5;

/// Why there is no fit.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum FitError {
    /// Three parameters on few sizes fit anything.
    #[error("{found} distinct sizes, of at least {MIN_SIZES} needed")]
    TooFewSizes {
        /// Distinct sizes found.
        found: usize,
    },
    /// A size or error that is not positive, a value that is not finite, or no usable sample.
    #[error("point {index} has no positive size, finite value and positive standard error")]
    InvalidPoint {
        /// Its place, from 0.
        index: usize,
    },
    /// B = 0 cannot be excluded, and then every c fits alike.
    #[error("no trend: a constant fits, with p = {p_value:.3}")]
    NoTrend {
        /// Of the chi-square test that the values are one constant (the floor, where it is known).
        p_value: f64,
    },
}

/// Checks points, whose number of distinct sizes decides first.
pub(super) fn check(points: &[Point]) -> Result<(), FitError> {
    let sound = |p: &Point| {
        let positive = p.size > 0.0 && p.error > 0.0;
        positive && p.size.is_finite() && p.error.is_finite() && p.value.is_finite()
    };
    let mut sizes: Vec<f64> = points.iter().map(|point| point.size).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    if sizes.len() < MIN_SIZES {
        return Err(FitError::TooFewSizes { found: sizes.len() });
    }
    match points.iter().position(|point| !sound(point)) {
        Some(index) => Err(FitError::InvalidPoint { index }),
        None => Ok(()),
    }
}
