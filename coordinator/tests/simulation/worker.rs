//! A simulated worker: asks, computes, reports until it is answered.

use std::collections::BTreeMap;

use coordinator::core::{Grant, LeaseEpoch, WorkerId};

use crate::rng::mix;
use crate::scenario::{CellPlan, Millis, Scenario, WorkerPlan};
use crate::truth;
use crate::world::{Message, Report};

/// What the coordinator answers.
#[derive(Clone)]
pub(crate) enum Reply {
    /// On this connection.
    Registered(WorkerId, u32),
    Unknown(WorkerId),
    Lease(WorkerId, Grant, CellPlan),
    Over(LeaseEpoch),
}

pub(crate) struct Job {
    pub(crate) grant: Grant,
    pub(crate) plan: CellPlan,
    pub(crate) computed: bool,
}

#[derive(Default)]
pub(crate) struct Worker {
    pub(crate) name: String,
    /// Its process, counted.
    pub(crate) life: u32,
    pub(crate) up: bool,
    pub(crate) stalled_until: Millis,
    pub(crate) id: Option<WorkerId>,
    /// The id under which it was known before its connection broke.
    pub(crate) previous: Option<WorkerId>,
    pub(crate) stream: Option<u64>,
    /// Its connection to the coordinator, counted.
    pub(crate) connection: u32,
    pub(crate) draining: bool,
    pub(crate) jobs: BTreeMap<LeaseEpoch, Job>,
}

impl Worker {
    /// The process ends; the id under which it was known.
    pub(crate) fn stop(&mut self) -> Option<WorkerId> {
        self.jobs.clear();
        self.up = false;
        self.draining = false;
        self.life += 1;
        (self.previous, self.stream) = (None, None);
        self.id.take()
    }

    /// The connection broke: it drops what it held, and registers anew.
    pub(crate) fn start_over(&mut self) {
        self.jobs.clear();
        self.stream = None;
        self.connection += 1;
        self.previous = self.id.take().or(self.previous);
    }

    /// Shards that it would like to have: its slots, and one in stock.
    pub(crate) fn wanted(&self, plan: &WorkerPlan) -> u32 {
        let busy = self.jobs.values().filter(|job| !job.computed).count() as u32;
        if self.draining { 0 } else { (plan.slots + 1).saturating_sub(busy) }
    }

    /// How many batches a lease has. Of a summary there may be none.
    fn batches(grant: &Grant) -> u64 {
        if grant.check { 0 } else { (grant.range.start + grant.range.end) % 4 }
    }

    /// The batches of a lease that it has computed.
    pub(crate) fn parts(&self, epoch: LeaseEpoch) -> impl Iterator<Item = Message> + use<> {
        let batches = self.jobs.get(&epoch).map_or(0, |job| Self::batches(&job.grant));
        (0..batches).map(move |batch| Message::Part { epoch, batch })
    }

    /// What it reports of a lease that it has computed.
    pub(crate) fn finish(&self, plan: &WorkerPlan, epoch: LeaseEpoch) -> Option<Message> {
        let Job { grant, plan: cell, .. } = self.jobs.get(&epoch)?;
        let salt = mix(epoch.0);
        let lie = if plan.lies && salt.is_multiple_of(3) { salt | 1 } else { 0 };
        let trials = grant.range.end - grant.range.start;
        let report = Report {
            digest: truth::digest(grant.study, cell, &grant.range, lie),
            tally: truth::tally(grant.study, cell, &grant.range),
            trials,
            seconds: (cell.cost * plan.slowness * trials) as f64 / 1e5,
        };
        Some(Message::Finish { epoch, batches: Self::batches(grant), report })
    }

    /// Whether a lease contains a trial that kills its process.
    pub(crate) fn is_fatal(&self, epoch: LeaseEpoch, scenario: &Scenario) -> bool {
        let Some(Job { grant, .. }) = self.jobs.get(&epoch) else { return false };
        let of = |replicate| (grant.study, grant.cell, replicate);
        scenario.killers.range(of(grant.range.start)..of(grant.range.end)).next().is_some()
    }
}
