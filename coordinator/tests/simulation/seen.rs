//! What a simulation has met.

/// How often what happened, so that a simulation that tests nothing is noticed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) events: u64,
    pub(crate) crashes: u64,
    pub(crate) expired: u64,
    pub(crate) fenced: u64,
    pub(crate) superseded: u64,
    pub(crate) broken: u64,
    pub(crate) waited: u64,
    pub(crate) refused: u64,
    pub(crate) strange: u64,
    pub(crate) deaths: u64,
    pub(crate) quarantined: u64,
    /// Of these, without a trial that kills; not that they must occur.
    pub(crate) innocent: u64,
    pub(crate) checks: u64,
    pub(crate) alarms: u64,
    pub(crate) early_stops: u64,
    pub(crate) beyond: u64,
    pub(crate) forgotten: u64,
    pub(crate) done: u64,
    pub(crate) seconds: u64,
}

impl Seen {
    pub(crate) fn add(&mut self, other: &Self) {
        self.innocent += other.innocent;
        for (mine, more) in self.counts().into_iter().zip({ *other }.counts()) {
            *mine += *more;
        }
    }

    /// Everything that the simulation is for has happened.
    pub(crate) fn check_coverage(mut self) {
        let text = format!("a simulation of nothing: {self:?}");
        assert!(self.counts().iter().all(|count| **count > 10), "{text}");
    }

    fn counts(&mut self) -> [&mut u64; 18] {
        [
            &mut self.events,
            &mut self.crashes,
            &mut self.expired,
            &mut self.fenced,
            &mut self.superseded,
            &mut self.broken,
            &mut self.waited,
            &mut self.refused,
            &mut self.strange,
            &mut self.deaths,
            &mut self.quarantined,
            &mut self.checks,
            &mut self.alarms,
            &mut self.early_stops,
            &mut self.beyond,
            &mut self.forgotten,
            &mut self.done,
            &mut self.seconds,
        ]
    }
}
