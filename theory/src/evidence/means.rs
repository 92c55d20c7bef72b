//! Tests of a mean, for claims of unbiasedness. Fixed n: not valid under optional stopping.

use crate::special::{larger, normal_sf};

/// A sample of a statistic, as far as its mean's test needs it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanSample {
    /// Number of values.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Their sample variance (divisor count - 1).
    pub variance: f64,
}

impl MeanSample {
    /// The Monte-Carlo standard error of the mean; `None` below two values.
    pub fn standard_error(&self) -> Option<f64> {
        (self.count >= 2).then(|| (self.variance / self.count as f64).sqrt())
    }
}

/// Two-sided p-value of "the mean is `expected`"; small refutes unbiasedness.
pub fn z_test(sample: &MeanSample, expected: f64) -> Option<f64> {
    let gap = (sample.mean - expected).abs();
    Some(2.0 * tail(gap, sample.standard_error()?))
}

/// p-value of "the mean is at least `margin` away from `expected`": the larger of two one-sided
/// tests; small confirms equivalence within the margin.
pub fn equivalence_test(sample: &MeanSample, expected: f64, margin: f64) -> Option<f64> {
    let error = sample.standard_error()?;
    let gap = sample.mean - expected;
    Some(larger(tail(margin + gap, error), tail(margin - gap, error)))
}

/// P(Z > gap/error), also for an error of 0.
fn tail(gap: f64, error: f64) -> f64 {
    if error > 0.0 {
        normal_sf(gap / error)
    } else if gap > 0.0 {
        0.0
    } else {
        0.5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_two_errors_away() {
        let sample = MeanSample { count: 400, mean: 1.1, variance: 1.0 };
        assert!((sample.standard_error().unwrap() - 0.05).abs() < 1e-16);
        assert!((z_test(&sample, 1.0).unwrap() - 0.04550026389635842).abs() < 1e-13);
        let far = equivalence_test(&sample, 1.0, 0.2).unwrap();
        assert!((far - 0.02275013194817921).abs() < 1e-13);
        assert!(equivalence_test(&sample, 1.0, 0.05).unwrap() > 0.5);
    }

    #[test]
    fn degenerate_samples() {
        let one = MeanSample { count: 1, mean: 0.0, variance: 0.0 };
        assert_eq!(z_test(&one, 0.0), None);
        let constant = MeanSample { count: 9, mean: 1.0, variance: 0.0 };
        assert_eq!(z_test(&constant, 1.0), Some(1.0));
        assert_eq!(z_test(&constant, 2.0), Some(0.0));
        assert_eq!(equivalence_test(&constant, 1.0, 0.1), Some(0.0));
    }
}
