//! How long to wait before trying again: 0.1 s, doubled with every failure up to 10 s, and of that a
//! part between a half and the whole, so that workers do not come back all at once.
//!
//! The part is a hash of the worker's name and the attempt: no clock and no generator, so that a
//! simulated run can be repeated.

use std::time::Duration;

use study::Digest;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(10);

/// Doublings after which the longest wait is reached.
const DOUBLINGS: u32 = 7;

/// Waits that grow until something succeeds.
#[derive(Debug)]
pub(super) struct Backoff {
    name: String,
    /// Over the whole life, so that two waits of the same length still differ.
    attempts: u64,
    failures: u32,
}

impl Backoff {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), attempts: 0, failures: 0 }
    }

    /// Something succeeded.
    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }

    /// The wait after one more failure.
    pub(super) fn next(&mut self) -> Duration {
        let whole = LONGEST.min(FIRST * (1 << self.failures.min(DOUBLINGS)));
        self.attempts += 1;
        self.failures = self.failures.saturating_add(1);
        let hash = Digest::new().tag("backoff").text(&self.name).u64(self.attempts).finish();
        let part =
            f64::from(u32::from_le_bytes([hash[0], hash[1], hash[2], 0])) / f64::from(1 << 24);
        whole.mul_f64(0.5 + 0.5 * part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_start_again() {
        let mut backoff = Backoff::new("a");
        for failure in 0..40 {
            let whole = LONGEST.min(FIRST * (1 << failure.min(20)));
            let wait = backoff.next();
            assert!((whole / 2..=whole).contains(&wait), "{failure}: {wait:?}");
        }
        backoff.reset();
        assert!(backoff.next() <= FIRST);
    }

    #[test]
    fn workers_do_not_wait_alike() {
        let waits = |name| {
            let mut backoff = Backoff::new(name);
            (0..5).map(|_| backoff.next()).collect::<Vec<_>>()
        };
        assert_eq!(waits("a"), waits("a"));
        assert!(waits("a").iter().zip(waits("b")).all(|(&a, b)| a != b));
    }
}
