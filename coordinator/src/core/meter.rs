//! A rate that forgets.
//!
//! Trials count with weight exp(-age/tau); the weights of a constant rate r sum to
//! r tau (1 - exp(-time/tau)), by which they are divided.

use std::time::Duration;

/// Seconds over which a rate forgets.
const TAU: f64 = 30.0;

/// Trials per second of late.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    since: Duration,
    at: Duration,
    weight: f64,
}

impl Meter {
    /// Nothing yet.
    pub(super) fn new(now: Duration) -> Self {
        Self { since: now, at: now, weight: 0.0 }
    }

    /// Trials that were finished now.
    pub(super) fn add(&mut self, now: Duration, trials: u64) {
        self.weight = self.decayed(now) + trials as f64;
        self.at = now;
    }

    /// Trials per second.
    pub(super) fn rate(&self, now: Duration) -> f64 {
        let age = now.saturating_sub(self.since).as_secs_f64();
        // The first second is too short to tell.
        let age = if age > 1.0 { age } else { 1.0 };
        self.decayed(now) / (-TAU * libm::expm1(-age / TAU))
    }

    fn decayed(&self, now: Duration) -> f64 {
        self.weight * libm::exp(-now.saturating_sub(self.at).as_secs_f64() / TAU)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_rate_is_found_early_and_forgotten_later() {
        let mut meter = Meter::new(Duration::ZERO);
        for second in 1..=5 {
            meter.add(Duration::from_secs(second), 100);
        }
        let early = meter.rate(Duration::from_secs(5));
        assert!((early / 100.0 - 1.0).abs() < 0.1, "{early}");
        assert!(meter.rate(Duration::from_secs(600)) < 1e-3);
    }
}
