//! What receives records: workers' streams, leases that are held, and the way into the store.
//!
//! It does what the server does: what came of a lease is kept with the lease, is taken away when all of it is there, and
//! is forgotten when the core says that the lease is over.

use std::collections::VecDeque;

use coordinator::core::{Event, LeaseEpoch, WorkerId};
use study::tally::Tally;

use super::{Action, World};
use crate::scenario::Millis;
use crate::store::Write;
use crate::worker::Reply;

/// What a worker sends on its stream.
#[derive(Clone)]
pub(crate) enum Message {
    Part { epoch: LeaseEpoch, batch: u64 },
    Finish { epoch: LeaseEpoch, batches: u64, report: Report },
    Abandon { epoch: LeaseEpoch },
}

/// What a worker says of a shard.
#[derive(Clone)]
pub(crate) struct Report {
    pub(crate) digest: [u8; 32],
    pub(crate) tally: Tally,
    pub(crate) trials: u64,
    pub(crate) seconds: f64,
}

/// A connection of a worker.
pub(super) struct Stream {
    worker: usize,
    id: WorkerId,
    inbox: VecDeque<Message>,
    /// When the last message on the way arrives: they keep their order.
    arrives: Millis,
    /// What is on the way after this is lost.
    cut: Option<Millis>,
    /// The lease whose batch waits for room.
    blocked: Option<LeaseEpoch>,
}

/// A lease that is held.
pub(super) struct Held {
    worker: WorkerId,
    /// How many batches have come; nothing once all are there.
    came: Option<u64>,
    /// A batch waits for room.
    busy: bool,
}

impl World<'_> {
    pub(super) fn open_stream(&mut self, worker: usize, id: WorkerId) {
        self.opened += 1;
        let (inbox, arrives) = (VecDeque::new(), self.now);
        let stream = Stream { worker, id, inbox, arrives, cut: None, blocked: None };
        self.streams.insert(self.opened, stream);
        self.workers[worker].stream = Some(self.opened);
    }

    /// Sends on a worker's stream, which keeps the order.
    pub(super) fn send_on(&mut self, number: u64, message: Message) {
        let late = self.disturbed() && self.rng.chance(self.scenario.faults.late);
        let delay = self.rng.within(1, if late { 20_000 } else { 60 });
        let Some(stream) = self.streams.get_mut(&number) else { return };
        stream.arrives = stream.arrives.max(self.now + delay);
        let time = stream.arrives;
        self.at(time, Action::Arrive { stream: number, message });
    }

    pub(super) fn arrive(&mut self, number: u64, message: Message) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        if stream.cut.is_some_and(|cut| cut < self.now) {
            return;
        }
        stream.inbox.push_back(message);
        self.receive(number);
    }

    /// Deals with what has come, until a batch has to wait for room.
    pub(super) fn receive(&mut self, number: u64) {
        while let Some(stream) = self.streams.get_mut(&number).filter(|it| it.blocked.is_none()) {
            let Some(message) = stream.inbox.pop_front() else { return };
            let (worker, id) = (stream.worker, stream.id);
            let (Message::Part { epoch, .. }
            | Message::Finish { epoch, .. }
            | Message::Abandon { epoch }) = message;
            let busy = self.held.get(&epoch).is_some_and(|held| held.worker == id && held.busy);
            if busy && !matches!(message, Message::Abandon { .. }) {
                // On another stream of the worker.
                stream.inbox.push_front(message);
                self.after(5, 50, Action::Receive { stream: number });
                return;
            }
            self.heard[worker] = self.clock();
            match message {
                Message::Part { epoch, batch } => self.part(number, id, epoch, batch),
                Message::Finish { epoch, batches, report } => {
                    self.finish(id, epoch, batches, report);
                }
                Message::Abandon { epoch } => {
                    if self.scenario.planted {
                        self.drop_early(id, Some(epoch));
                    }
                    let reason = "by its worker".to_owned();
                    self.feed(Event::Abandoned { worker: id, epoch, reason });
                }
            }
        }
    }

    fn part(&mut self, number: u64, id: WorkerId, epoch: LeaseEpoch, batch: u64) {
        let Some(held) = self.held.get_mut(&epoch).filter(|held| held.worker == id) else {
            return self.answer(id, Reply::Over(epoch));
        };
        if held.came != Some(batch) {
            self.seen.strange += 1;
            return self.refuse(id, epoch);
        }
        held.came = Some(batch + 1);
        held.busy = !self.store.write(Write::Append { epoch, batch });
        if held.busy
            && let Some(stream) = self.streams.get_mut(&number)
        {
            stream.blocked = Some(epoch);
        }
        self.turn_disk();
    }

    fn finish(&mut self, id: WorkerId, epoch: LeaseEpoch, batches: u64, report: Report) {
        let Some(held) = self.held.get_mut(&epoch).filter(|held| held.worker == id) else {
            return self.answer(id, Reply::Over(epoch));
        };
        // Said again, it changes nothing.
        let Some(came) = held.came else { return };
        if came != batches {
            self.seen.strange += 1;
            return self.refuse(id, epoch);
        }
        held.came = None;
        self.received = Some((epoch, batches));
        let Report { digest, tally, trials, seconds } = report;
        self.feed(Event::Finished { worker: id, epoch, digest, tally, trials, seconds });
        if let Some((epoch, _)) = self.received.take() {
            self.discard(epoch);
        }
    }

    fn refuse(&mut self, id: WorkerId, epoch: LeaseEpoch) {
        if let Some(held) = self.held.get_mut(&epoch)
            && held.came.take().is_some()
        {
            self.discard(epoch);
        }
        self.answer(id, Reply::Over(epoch));
        let reason = "records were refused".to_owned();
        self.feed(Event::Abandoned { worker: id, epoch, reason });
    }

    pub(super) fn hold(&mut self, worker: WorkerId, epoch: LeaseEpoch) {
        let held = Held { worker, came: Some(0), busy: false };
        assert!(self.held.insert(epoch, held).is_none(), "{epoch} is granted twice");
    }

    /// The core says that a lease is over.
    pub(super) fn release(&mut self, epoch: LeaseEpoch) {
        // A batch that waits for room is forgotten once it has it.
        if self.held.remove(&epoch).is_some_and(|held| held.came.is_some() && !held.busy) {
            self.discard(epoch);
        }
    }

    /// The planted bug: a lease is forgotten by itself, though its shard may be on its way to the disk.
    pub(super) fn drop_early(&mut self, id: WorkerId, epoch: Option<LeaseEpoch>) {
        let held = self.held.iter().filter(|(of, held)| {
            held.worker == id && !held.busy && epoch.is_none_or(|epoch| epoch == **of)
        });
        let epochs: Vec<LeaseEpoch> = held.map(|(&epoch, _)| epoch).collect();
        for epoch in epochs {
            self.held.remove(&epoch);
            self.discard(epoch);
        }
    }

    fn discard(&mut self, epoch: LeaseEpoch) {
        self.store.write(Write::Discard { epoch });
        self.turn_disk();
    }

    /// Begins to write what waits for the disk.
    pub(super) fn turn_disk(&mut self) {
        if !self.store.begin() {
            return;
        }
        let (life, faults) = (self.life, &self.scenario.faults);
        let slow = self.disturbed() && self.rng.chance(faults.slow_commit);
        let (low, high) = if slow { (1_000, 60_000) } else { (1, 30) };
        let fails = self.disturbed() && self.rng.chance(faults.failed_commit);
        self.after(low, high, Action::Disk { life, fails });
    }

    /// A group is written.
    pub(super) fn disk(&mut self, fails: bool) {
        let written = self.store.end(fails);
        for (epoch, batches) in written.durable {
            self.durable(epoch, &batches);
        }
        let life = self.life;
        for epoch in written.refused {
            self.after(0, 10, Action::Written { life, epoch, durable: false });
        }
        for epoch in written.admitted {
            self.seen.waited += 1;
            match self.held.get_mut(&epoch) {
                Some(held) => held.busy = false,
                None => self.discard(epoch),
            }
            let blocked = self.streams.iter_mut().find(|(_, it)| it.blocked == Some(epoch));
            if let Some((&number, stream)) = blocked {
                stream.blocked = None;
                self.after(0, 5, Action::Receive { stream: number });
            }
        }
        self.turn_disk();
    }

    /// A connection breaks: what is on the way is lost, what has come is dealt with, and the worker starts over.
    pub(super) fn break_stream(&mut self, worker: usize) {
        let Some(number) = self.workers[worker].stream else { return };
        let cut = self.now + self.rng.within(0, 200);
        if let Some(stream) = self.streams.get_mut(&number) {
            stream.cut = Some(cut);
        }
        self.seen.broken += 1;
        self.workers[worker].start_over();
    }

    /// The server does not read a stream any more, sooner or later.
    pub(super) fn end_streams(&mut self, id: WorkerId) {
        let ended: Vec<u64> =
            self.streams.iter().filter(|(_, it)| it.id == id).map(|(&number, _)| number).collect();
        for stream in ended {
            self.after(0, 500, Action::EndStream { stream });
        }
    }

    /// Nothing is kept of what nobody holds.
    pub(super) fn check_kept(&self) {
        if !self.store.is_idle() {
            return;
        }
        for epoch in self.store.kept() {
            let open = self.held.get(&epoch).is_some_and(|held| held.came.is_some());
            assert!(open, "batches of {epoch} are kept for nobody");
        }
    }
}
