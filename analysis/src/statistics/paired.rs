//! Differences of pairs that share a replicate: the same function, the same noise.
//!
//! mean +- t_{n-1} MCSE, t the quantile of Student's law; and, free of any law, how often either
//! side was the smaller.

use super::{student_quantile, summary};
use theory::evidence::{Interval, MeanSample};

/// How often the first of a pair was smaller (a win: what is compared are regrets), equal, larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    /// Pairs with first < second.
    pub wins: u64,
    /// Pairs with first = second.
    pub ties: u64,
    /// Pairs with first > second.
    pub losses: u64,
}

/// Summary of first - second over pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedDifferences {
    /// Mean and variance of the differences.
    pub sample: MeanSample,
    /// Confidence interval of the mean; `None` for a single pair.
    pub interval: Option<Interval>,
    /// Who was smaller.
    pub signs: Signs,
}

/// Compares pairs (first, second), with an interval at confidence `level`; `None` without pairs.
///
/// # Panics
/// Where `level` is not in (0, 1).
pub fn paired_differences(
    pairs: impl IntoIterator<Item = (f64, f64)>,
    level: f64,
) -> Option<PairedDifferences> {
    let mut signs = Signs::default();
    let sample = summary(pairs.into_iter().map(|(first, second)| {
        signs.wins += u64::from(first < second);
        signs.ties += u64::from(first == second);
        signs.losses += u64::from(first > second);
        first - second
    }))?;
    let interval = sample.standard_error().map(|error| {
        let half = error * student_quantile((sample.count - 1) as f64, 0.5 * (1.0 + level));
        Interval { low: sample.mean - half, high: sample.mean + half }
    });
    Some(PairedDifferences { sample, interval, signs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wins_ties_and_losses() {
        let pairs = [(1.0, 2.0), (3.0, 3.0), (5.0, 1.0), (0.0, 4.0)];
        let paired = paired_differences(pairs, 0.95).unwrap();
        assert_eq!(paired.signs, Signs { wins: 2, ties: 1, losses: 1 });
        assert_eq!(paired.sample.mean, -0.25);
        let interval = paired.interval.unwrap();
        assert!(interval.low < -0.25 && -0.25 < interval.high);
        assert_eq!(paired_differences([], 0.95), None);
        assert_eq!(paired_differences([(1.0, 0.0)], 0.95).unwrap().interval, None);
    }
}
