//! How many trials a shard of a cell has.
//!
//! A shard starts small and follows the measured time of a trial towards the target, growing at
//! most fourfold over what was last finished. Sizes change how work is spread, never what comes out.

use super::Settings;

/// Workers run eight trials in lockstep, so that multiples of 8 waste nothing.
const LANES: u64 = 8;

/// The size of a cell's next shard, and what it was learnt from.
#[derive(Clone, Debug)]
pub(super) struct Sizing {
    size: u64,
    seconds_per_trial: Option<f64>,
}

impl Sizing {
    /// Nothing is known.
    pub(super) fn new() -> Self {
        Self { size: LANES, seconds_per_trial: None }
    }

    /// The estimated time of a trial, once one is known.
    pub(super) fn seconds_per_trial(&self) -> Option<f64> {
        self.seconds_per_trial
    }

    /// The estimated time of a shard.
    pub(super) fn seconds(&self, trials: u64, settings: &Settings) -> f64 {
        let target = settings.shard_target.as_secs_f64();
        self.seconds_per_trial.map_or(target, |each| each * trials as f64)
    }

    /// Learns from a shard.
    pub(super) fn learn(&mut self, trials: u64, seconds: f64, settings: &Settings) {
        if trials == 0 || !seconds.is_finite() || seconds <= 0.0 {
            return;
        }
        let measured = seconds / trials as f64;
        let each = self.seconds_per_trial.map_or(measured, |old| 0.7 * old + 0.3 * measured);
        self.seconds_per_trial = Some(each);
        let ideal = (settings.shard_target.as_secs_f64() / each) as u64;
        self.size = ideal.min(self.size.max(trials.saturating_mul(4))).max(1);
    }

    /// The size of the next shard of a study that has `open` trials to give to `slots`: near the
    /// end shards shrink, so that all slots end together.
    pub(super) fn next(&self, records_per_trial: u32, open: u64, slots: u64, s: &Settings) -> u64 {
        let most = (s.max_shard_records / u64::from(records_per_trial.max(1))).max(1);
        let share = open.div_ceil(2 * slots.max(1)).max(LANES);
        let size = self.size.min(most).min(share);
        if size < LANES { size } else { size - size % LANES }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: u64 = 1 << 40;

    #[test]
    fn grows_fourfold_at_a_time_towards_the_target() {
        let settings = Settings::default();
        let mut sizing = Sizing::new();
        let mut sizes = Vec::new();
        for _ in 0..6 {
            let size = sizing.next(1, MANY, 4, &settings);
            sizes.push(size);
            sizing.learn(size, size as f64 * 1e-3, &settings);
        }
        assert_eq!(sizes, [8, 32, 128, 512, 2000, 2000]);
    }

    #[test]
    fn is_bounded_by_records_and_by_what_is_left() {
        let settings = Settings::default();
        let mut sizing = Sizing::new();
        (0..20).for_each(|_| sizing.learn(1 << 20, 1e-3, &settings));
        assert_eq!(sizing.next(1, MANY, 4, &settings), 1 << 17);
        assert_eq!(sizing.next(1000, MANY, 4, &settings), 128);
        assert_eq!(sizing.next(1 << 20, MANY, 4, &settings), 1);
        assert_eq!(sizing.next(1, 800, 4, &settings), 96);
        assert_eq!(sizing.next(1, 3, 4, &settings), 8);
    }

    #[test]
    fn slow_trials_go_one_by_one_and_nonsense_teaches_nothing() {
        let settings = Settings::default();
        let mut sizing = Sizing::new();
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            sizing.learn(8, seconds, &settings);
        }
        assert_eq!(sizing.next(1, MANY, 4, &settings), 8);
        sizing.learn(8, 800.0, &settings);
        assert_eq!(sizing.next(1, MANY, 4, &settings), 1);
    }
}
