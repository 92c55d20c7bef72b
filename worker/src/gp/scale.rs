//! Responses brought to mean 0 and standard deviation 1, and predictions brought back.

/// (y - mean)/deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The responses' mean.
    pub mean: f64,
    /// Their standard deviation (divisor n); 1 where they are equal up to rounding.
    pub deviation: f64,
}

/// Deviations of so many times the largest |response| are rounding.
const ROUNDING: f64 = 10.0 * f64::EPSILON;

impl Scale {
    /// The scale of some responses; mean 0 and deviation 1 where there are none.
    pub fn of(responses: &[f64]) -> Self {
        if responses.is_empty() {
            return Self { mean: 0.0, deviation: 1.0 };
        }
        let n = responses.len() as f64;
        let mean = responses.iter().fold(0.0, |sum, y| sum + y) / n;
        let squares = responses.iter().fold(0.0, |sum, y| sum + (y - mean) * (y - mean));
        let largest =
            responses.iter().fold(0.0, |most, y| if y.abs() > most { y.abs() } else { most });
        let deviation = (squares / n).sqrt();
        Self { mean, deviation: if deviation > ROUNDING * largest { deviation } else { 1.0 } }
    }

    /// A response on the scale.
    pub fn standardise(&self, y: f64) -> f64 {
        (y - self.mean) / self.deviation
    }

    /// A mean on the scale, in units of the responses.
    pub fn mean(&self, mean: f64) -> f64 {
        self.mean + self.deviation * mean
    }

    /// A variance on the scale, in units of the responses.
    pub fn variance(&self, variance: f64) -> f64 {
        self.deviation * self.deviation * variance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let scale = Scale::of(&[1.0, 5.0, 1.0, 5.0]);
        assert_eq!(scale, Scale { mean: 3.0, deviation: 2.0 });
        assert_eq!((scale.standardise(7.0), scale.mean(2.0), scale.variance(2.0)), (2.0, 7.0, 8.0));
    }

    #[test]
    fn equal_responses_are_not_stretched() {
        assert_eq!(Scale::of(&[]), Scale { mean: 0.0, deviation: 1.0 });
        assert_eq!(Scale::of(&[0.0, 0.0]), Scale { mean: 0.0, deviation: 1.0 });
        for n in 1..50 {
            assert_eq!(Scale::of(&vec![0.1; n]).deviation, 1.0);
        }
        let close = Scale::of(&[1e6, 1e6 + 1e-6]).deviation;
        assert!((close / 5e-7 - 1.0).abs() < 1e-3, "{close}");
    }
}
