//! A lease being computed, chunk by chunk.
//!
//! All records are digested and counted; which of them are sent depends on the study's detail and on
//! whether the lease is a check. Chunks follow the time that trials take, so that a lease that was
//! taken back is dropped soon, and never exceed a part, so that memory is bounded.

use std::time::Duration;

use bytes::Bytes;
use proto::convert::{Finish, Handed, Lease};
use study::plan::Detail;
use study::tally::Tally;
use study::{Batch, Digest, Record};
use tokio::time::Instant;

use super::library::Setup;
use super::pack::Packer;
use super::sample::is_sampled;
use crate::trial::LANES;

/// A chunk that takes less than this is followed by one of twice the size.
const SHORT: Duration = Duration::from_millis(20);

/// Which records are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    /// All of them.
    All,
    /// Of trials that violate a claim, and of a random hundredth.
    Chosen,
    /// None.
    None,
}

/// A lease being computed.
#[derive(Debug)]
pub(super) struct Shard {
    setup: Setup,
    lease: Lease,
    next: u64,
    chunk: u64,
    most: u64,
    results: Results,
    spent: Duration,
}

/// What the trials so far gave.
#[derive(Debug)]
struct Results {
    sent: Sent,
    digest: Digest,
    /// Over what is sent, where that is a choice.
    sent_digest: Option<Digest>,
    tally: Tally,
    packer: Packer,
    /// The records of the trial at hand, until it is known whether they are sent.
    trial: Vec<Record>,
    /// Violations counted before the trial at hand.
    before: u64,
}

impl Shard {
    /// Nothing computed yet; parts have at most so many rows.
    pub(super) fn new(setup: Setup, lease: Lease, rows: usize) -> Self {
        let sent = match setup.known.plan.study.detail {
            _ if lease.check => Sent::None,
            Detail::Summary => Sent::Chosen,
            Detail::Checkpoints | Detail::Steps => Sent::All,
        };
        let lanes = LANES as u64;
        let most = (rows / setup.cell.checkpoints.len().max(1)) as u64 / lanes * lanes;
        let results = Results {
            sent,
            digest: Digest::new(),
            sent_digest: (sent == Sent::Chosen).then(Digest::new),
            tally: setup.counter.start(),
            packer: Packer::new(lease.epoch, Batch::new(lease.cell), rows),
            trial: Vec::new(),
            before: 0,
        };
        let next = lease.replicates.start;
        Self {
            setup,
            lease,
            next,
            chunk: lanes,
            most: most.max(lanes),
            results,
            spent: Duration::ZERO,
        }
    }

    /// Trials computed.
    pub(super) fn done(&self) -> u64 {
        self.next - self.lease.replicates.start
    }

    /// Computes the next chunk and adds what is to be sent; with the last one, the end of the lease.
    /// Whether more follows.
    pub(super) fn step(&mut self, out: &mut Vec<Handed>) -> bool {
        let begin = Instant::now();
        let chunk = self.next..self.lease.replicates.end.min(self.next + self.chunk);
        let (results, setup) = (&mut self.results, &self.setup);
        let trials = setup.trials().expect("a setup has been tried before it is used");
        let (study, counter) = (setup.known.plan.id, &setup.counter);
        let mut last = None;
        trials.run(chunk.clone(), &mut |record| {
            if last.is_some_and(|last| last != record.replicate) {
                results.end_trial(study, out);
            }
            last = Some(record.replicate);
            record.feed(&mut results.digest);
            counter.observe(&record, &mut results.tally);
            match results.sent {
                Sent::All => out.extend(results.packer.push(&record).map(Handed::Part)),
                Sent::Chosen => results.trial.push(record),
                Sent::None => {}
            }
        });
        results.end_trial(study, out);
        self.next = chunk.end;
        let took = begin.elapsed();
        self.spent += took;
        if took < SHORT {
            self.chunk = self.most.min(2 * self.chunk);
        }
        if self.next < self.lease.replicates.end {
            return true;
        }
        out.extend(self.results.packer.rest().map(Handed::Part));
        out.push(Handed::Finish(self.finish()));
        false
    }

    fn finish(&self) -> Finish {
        Finish {
            lease: self.lease.epoch,
            digest: self.results.digest.finish(),
            sent_digest: self.results.sent_digest.as_ref().map(Digest::finish),
            tally: Bytes::from(self.results.tally.encode()),
            records: self.records(),
            trials: self.done(),
            seconds: self.spent.as_secs_f64(),
        }
    }

    /// Records sent.
    pub(super) fn records(&self) -> u64 {
        self.results.packer.records()
    }
}

impl Results {
    /// Decides about the records of the trial at hand.
    fn end_trial(&mut self, study: study::StudyId, out: &mut Vec<Handed>) {
        let Some(first) = self.trial.first() else { return };
        let violations = self.tally.0.iter().map(|row| row.refuting + row.confirming).sum();
        if violations > self.before || is_sampled(study, first.cell, first.replicate) {
            for record in &self.trial {
                if let Some(digest) = &mut self.sent_digest {
                    record.feed(digest);
                }
                out.extend(self.packer.push(record).map(Handed::Part));
            }
        }
        self.before = violations;
        self.trial.clear();
    }
}

#[cfg(test)]
mod tests;
