//! The core, with the time of every call.

use std::time::{Duration, Instant};

use coordinator::core::{Command, Core, Event};
use tests::spread::Spread;

const KINDS: [&str; 5] =
    ["leases asked for", "heartbeats", "shards finished", "shards durable", "other"];

/// A core and how long its calls took.
pub(crate) struct Probe {
    core: Core,
    spreads: [Spread; KINDS.len()],
}

impl Probe {
    /// Nothing measured yet, with room for so many calls of a kind.
    pub(crate) fn new(core: Core, room: usize) -> Self {
        Self { core, spreads: std::array::from_fn(|_| Spread::with_room(room)) }
    }

    /// Hands an event to the core; whether there is work left, too, where a worker asked, since the
    /// server tells it how long to wait.
    pub(crate) fn handle(&mut self, now: Duration, event: Event) -> (Vec<Command>, bool) {
        let asks = matches!(event, Event::Request { .. });
        let kind = match event {
            Event::Request { .. } => 0,
            Event::Heartbeat { .. } => 1,
            Event::Finished { .. } => 2,
            Event::Committed { .. } => 3,
            _ => 4,
        };
        let began = Instant::now();
        let commands = self.core.handle(now, event);
        let has_work = asks && self.core.has_work();
        self.spreads[kind].add(began.elapsed());
        (commands, has_work)
    }

    /// Calls of all kinds.
    pub(crate) fn events(&self) -> usize {
        self.spreads.iter().map(Spread::count).sum()
    }

    /// Time in the core.
    pub(crate) fn total(&self) -> Duration {
        self.spreads.iter().map(Spread::total).sum()
    }

    /// Prints what a call takes. The longest ones are those during which this process was not running.
    pub(crate) fn print(&self) {
        for (kind, spread) in KINDS.iter().zip(&self.spreads) {
            println!("  {kind}: {spread}");
        }
    }

    /// Verifies the core's invariants.
    pub(crate) fn sanity_check(&self) {
        self.core.sanity_check();
    }
}
