//! The workers' side: what a worker has in hand, and how fast it is.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use coordinator::core::{Grant, LeaseEpoch, WorkerId};

/// A worker's process, in one of its lives.
pub(crate) struct Worker {
    pub(crate) number: u64,
    pub(crate) life: u64,
    pub(crate) up: bool,
    pub(crate) slots: usize,
    /// It has asked, and waits before it asks again.
    pub(crate) waits: bool,
    /// Since when it has asked in vain although there was work.
    pub(crate) hungry: Option<Duration>,
    pub(crate) running: BTreeMap<LeaseEpoch, Grant>,
    pub(crate) stock: VecDeque<Grant>,
    /// Times the usual duration of a trial.
    slowness: f64,
}

impl Worker {
    /// Every third worker has two slots. Speeds differ by a factor of two, and one worker in a
    /// hundred is ten times as slow.
    pub(crate) fn new(number: u64) -> Self {
        let slowness =
            if number % 100 == 7 { 10.0 } else { 0.7 + 0.7 * (number % 89) as f64 / 88.0 };
        Self {
            number,
            life: 0,
            up: false,
            slots: 1 + usize::from(number.is_multiple_of(3)),
            waits: false,
            hungry: None,
            running: BTreeMap::new(),
            stock: VecDeque::new(),
            slowness,
        }
    }

    /// The same machine, not yet started again.
    pub(crate) fn next_life(&self) -> Self {
        Self { life: self.life + 1, ..Self::new(self.number) }
    }

    /// Its id in this life.
    pub(crate) fn id(&self) -> WorkerId {
        WorkerId(self.life << 32 | self.number)
    }

    /// One lease runs and one waits for every slot.
    pub(crate) fn wanted(&self) -> u32 {
        (2 * self.slots).saturating_sub(self.running.len() + self.stock.len()) as u32
    }

    /// All that it holds.
    pub(crate) fn leases(&self) -> Vec<LeaseEpoch> {
        self.running.keys().copied().chain(self.stock.iter().map(|grant| grant.epoch)).collect()
    }

    /// Takes a lease in work if there is one in stock and a slot is free; how long it takes.
    pub(crate) fn start(&mut self) -> Option<(LeaseEpoch, Duration)> {
        if self.running.len() == self.slots {
            return None;
        }
        let grant = self.stock.pop_front()?;
        let (epoch, time) = (grant.epoch, self.time(&grant));
        self.running.insert(epoch, grant);
        Some((epoch, time))
    }

    /// How long it computes a lease. Trials of a cell take between 0.5 and 1.5 ms.
    pub(crate) fn time(&self, grant: &Grant) -> Duration {
        let trials = (grant.range.end - grant.range.start) as f64;
        let trial = 0.5e-3 + 1e-3 * (grant.cell.0 % 1009) as f64 / 1008.0;
        Duration::from_secs_f64(trials * trial * self.slowness)
    }

    /// The lease is not its own any more.
    pub(crate) fn lose(&mut self, epoch: LeaseEpoch) {
        self.running.remove(&epoch);
        self.stock.retain(|grant| grant.epoch != epoch);
    }
}
