//! The workers' processes.

use coordinator::core::{Event, LeaseEpoch};

use super::{Action, Message, World};
use crate::worker::{Job, Reply};

impl World<'_> {
    pub(super) fn start_worker(&mut self, worker: usize) {
        let state = &mut self.workers[worker];
        if state.up {
            return;
        }
        state.up = true;
        let life = state.life;
        self.after(0, 100, Action::Step { worker, life });
        self.after(0, 5_000, Action::Beat { worker, life });
    }

    pub(super) fn stop_worker(&mut self, worker: usize) {
        if !self.workers[worker].up {
            return;
        }
        self.ended[worker] = true;
        let id = self.workers[worker].stop();
        // Sometimes the connection tells; otherwise there is only silence.
        if let Some(id) = id
            && self.rng.chance(60)
        {
            let event = Event::Disconnected { worker: id };
            self.send(Action::Hear { worker, event });
        }
        self.after(500, 10_000, Action::StartWorker { worker });
    }

    pub(super) fn drain(&mut self) {
        let worker = self.any_worker();
        let Some(id) = self.workers[worker].id else { return };
        self.workers[worker].draining = true;
        self.send(Action::Hear { worker, event: Event::Drain { worker: id } });
        let epochs: Vec<LeaseEpoch> = self.workers[worker].jobs.keys().copied().collect();
        for epoch in epochs {
            if self.rng.chance(50) {
                self.workers[worker].jobs.remove(&epoch);
                if let Some(stream) = self.workers[worker].stream {
                    self.send_on(stream, Message::Abandon { epoch });
                }
            }
        }
    }

    /// The worker, if this process of it runs; a stalled one acts when it wakes up.
    pub(super) fn awake(&mut self, worker: usize, life: u32, action: Action) -> bool {
        let state = &self.workers[worker];
        if !state.up || state.life != life {
            return false;
        }
        if self.now < state.stalled_until {
            self.at(state.stalled_until, action);
            return false;
        }
        true
    }

    pub(super) fn step(&mut self, worker: usize, life: u32) {
        if !self.awake(worker, life, Action::Step { worker, life }) {
            return;
        }
        let state = &self.workers[worker];
        let Some(id) = state.id else {
            let (previous, connection) = (state.previous, state.connection);
            self.send(Action::Join { worker, previous, connection });
            self.after(1_000, 3_000, Action::Step { worker, life });
            return;
        };
        if state.draining && state.jobs.is_empty() {
            self.stop_worker(worker);
            return;
        }
        let wanted = state.wanted(&self.scenario.workers[worker]);
        let computed = state.jobs.iter().filter(|(_, job)| job.computed);
        let computed: Vec<LeaseEpoch> = computed.map(|(&epoch, _)| epoch).collect();
        if wanted > 0 {
            self.send(Action::Hear { worker, event: Event::Request { worker: id, wanted } });
        }
        // The answer may be lost: it is asked for.
        computed.into_iter().for_each(|epoch| self.send_finish(worker, epoch));
        if self.scenario.workers[worker].hostile {
            self.harass(worker);
        }
        self.after(700, 2_500, Action::Step { worker, life });
    }

    fn send_finish(&mut self, worker: usize, epoch: LeaseEpoch) {
        let state = &self.workers[worker];
        let finish = state.finish(&self.scenario.workers[worker], epoch);
        if let (Some(stream), Some(finish)) = (state.stream, finish) {
            self.send_on(stream, finish);
        }
    }

    fn send_shard(&mut self, worker: usize, epoch: LeaseEpoch) {
        let Some(stream) = self.workers[worker].stream else { return };
        let again = self.scenario.workers[worker].hostile && self.rng.chance(20);
        for part in self.workers[worker].parts(epoch) {
            self.send_on(stream, part.clone());
            if again {
                self.send_on(stream, part);
            }
        }
        self.send_finish(worker, epoch);
    }

    /// Names leases of others, takes back what it has finished, sends on two streams.
    fn harass(&mut self, worker: usize) {
        let (Some(id), Some(stream)) = (self.workers[worker].id, self.workers[worker].stream)
        else {
            return;
        };
        let held: Vec<LeaseEpoch> = self.held.keys().copied().collect();
        if !held.is_empty() {
            let leases = held.clone();
            self.send(Action::Hear { worker, event: Event::Heartbeat { worker: id, leases } });
            let epoch = self.rng.pick(&held);
            let message = match self.rng.within(0, 2) {
                0 => Message::Abandon { epoch },
                1 => Message::Part { epoch, batch: self.rng.within(0, 1) },
                _ => match self.workers[worker].finish(&self.scenario.workers[worker], epoch) {
                    Some(finish) => finish,
                    None => return,
                },
            };
            self.send_on(stream, message);
        }
        if self.rng.chance(20) {
            // The server ends the earlier one.
            self.after(0, 500, Action::EndStream { stream });
            self.open_stream(worker, id);
            let epochs: Vec<LeaseEpoch> = self.workers[worker].jobs.keys().copied().collect();
            epochs.into_iter().for_each(|epoch| self.send_shard(worker, epoch));
        }
    }

    pub(super) fn beat(&mut self, worker: usize, life: u32) {
        if !self.awake(worker, life, Action::Beat { worker, life }) {
            return;
        }
        if let Some(id) = self.workers[worker].id {
            let leases = self.workers[worker].jobs.keys().copied().collect();
            self.send(Action::Hear { worker, event: Event::Heartbeat { worker: id, leases } });
        }
        self.after(5_000, 5_000, Action::Beat { worker, life });
    }

    pub(super) fn reply(&mut self, worker: usize, life: u32, reply: Reply) {
        if !self.awake(worker, life, Action::Reply { worker, life, reply: reply.clone() }) {
            return;
        }
        let state = &mut self.workers[worker];
        match reply {
            Reply::Registered(id, connection) => {
                if state.id.is_none() && state.connection == connection {
                    (state.id, state.previous) = (Some(id), None);
                    self.open_stream(worker, id);
                }
            }
            Reply::Unknown(id) if state.id == Some(id) => state.start_over(),
            Reply::Unknown(_) => {}
            Reply::Over(epoch) => drop(state.jobs.remove(&epoch)),
            Reply::Lease(id, grant, plan) => {
                if state.id != Some(id) || state.jobs.contains_key(&grant.epoch) {
                    return;
                }
                let (epoch, trials) = (grant.epoch, grant.range.end - grant.range.start);
                let time = trials * plan.cost * self.scenario.workers[worker].slowness / 100;
                state.jobs.insert(epoch, Job { grant, plan, computed: false });
                self.after(time, time + 50, Action::Computed { worker, life, epoch });
            }
        }
    }

    pub(super) fn computed(&mut self, worker: usize, life: u32, epoch: LeaseEpoch) {
        if !self.awake(worker, life, Action::Computed { worker, life, epoch }) {
            return;
        }
        if self.workers[worker].is_fatal(epoch, self.scenario) {
            self.stop_worker(worker);
            return;
        }
        if let Some(job) = self.workers[worker].jobs.get_mut(&epoch) {
            job.computed = true;
            self.send_shard(worker, epoch);
        }
    }
}
