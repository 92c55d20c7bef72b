//! How long something took, many times over.

use std::fmt;
use std::time::Duration;

/// Durations, in seconds; six digits of each.
#[derive(Clone, Debug, Default)]
pub struct Spread(Vec<f32>);

impl Spread {
    /// None yet, with room for so many.
    pub fn with_room(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }

    /// One more.
    pub fn add(&mut self, duration: Duration) {
        self.0.push(duration.as_secs_f32());
    }

    /// All of another's.
    pub fn append(&mut self, other: &mut Self) {
        self.0.append(&mut other.0);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// All together.
    pub fn total(&self) -> Duration {
        Duration::from_secs_f64(self.0.iter().copied().map(f64::from).sum())
    }

    /// The longest.
    pub fn max(&self) -> Duration {
        Duration::from_secs_f32(self.0.iter().copied().fold(0.0, f32::max))
    }

    /// The one that this fraction of them does not exceed.
    pub fn quantile(&self, fraction: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable_by(f32::total_cmp);
        let rank = (fraction * sorted.len() as f64).ceil() as usize;
        Duration::from_secs_f32(sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0))
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mean = self.total() / (self.count() as u32).max(1);
        let (median, late) = (self.quantile(0.5), self.quantile(0.99));
        write!(f, "{}, mean {mean:.1?}, ", self.count())?;
        write!(f, "median {median:.1?}, 99 % {late:.1?}, max {:.1?}", self.max())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_among_what_was_added() {
        let mut spread = Spread::default();
        (1..=200).for_each(|second| spread.add(Duration::from_secs(second)));
        assert_eq!(spread.quantile(0.5), Duration::from_secs(100));
        assert_eq!(spread.quantile(0.99), Duration::from_secs(198));
        assert_eq!(spread.max(), Duration::from_secs(200));
        assert_eq!(spread.total(), Duration::from_secs(20_100));
        assert_eq!(Spread::default().quantile(0.5), Duration::ZERO);
    }
}
