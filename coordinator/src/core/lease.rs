//! Leases, by epoch, by expiry and by the time at which they straggle.
//!
//! Invariant: `expiry` holds exactly the leases that are running or superseded; `straggling` exactly
//! those that run alone on a shard to be stored. What is being written neither expires nor straggles.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use study::StudyId;
use study::tally::Tally;

use super::{LeaseEpoch, WorkerId};

/// How far a lease is.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    /// Its worker computes.
    Running,
    /// Its shard is being written.
    Committing {
        digest: [u8; 32],
        tally: Tally,
        /// The study was submitted anew without a place for this shard.
        orphaned: bool,
    },
    /// Another worker finished the same shard first; this one's digest is compared if it comes.
    Superseded { digest: [u8; 32], by: Arc<str> },
}

/// A shard in the hands of a worker.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) worker: WorkerId,
    /// The worker's name.
    pub(super) name: Arc<str>,
    pub(super) study: StudyId,
    /// The cell's place in the study.
    pub(super) cell: usize,
    pub(super) range: Range<u64>,
    pub(super) check: bool,
    pub(super) stage: Stage,
    pub(super) expires: Duration,
    /// From when on an idle worker may have a copy.
    pub(super) straggles: Duration,
}

impl Lease {
    /// Whether its worker computes, and its result is wanted.
    pub(super) fn is_running(&self) -> bool {
        matches!(self.stage, Stage::Running)
    }
}

/// All leases.
#[derive(Debug, Default)]
pub(super) struct Leases {
    all: BTreeMap<LeaseEpoch, Lease>,
    expiry: BTreeSet<(Duration, LeaseEpoch)>,
    straggling: BTreeSet<(Duration, LeaseEpoch)>,
}

impl Leases {
    /// A lease that runs; `alone` if it may have a copy.
    pub(super) fn add(&mut self, epoch: LeaseEpoch, lease: Lease, alone: bool) {
        self.expiry.insert((lease.expires, epoch));
        if alone {
            self.straggling.insert((lease.straggles, epoch));
        }
        self.all.insert(epoch, lease);
    }

    pub(super) fn get(&self, epoch: LeaseEpoch) -> Option<&Lease> {
        self.all.get(&epoch)
    }

    /// A lease, if this worker holds it.
    pub(super) fn held(&self, worker: WorkerId, epoch: LeaseEpoch) -> Option<&Lease> {
        self.all.get(&epoch).filter(|lease| lease.worker == worker)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (LeaseEpoch, &Lease)> {
        self.all.iter().map(|(&epoch, lease)| (epoch, lease))
    }

    pub(super) fn remove(&mut self, epoch: LeaseEpoch) -> Option<Lease> {
        let lease = self.all.remove(&epoch)?;
        self.expiry.remove(&(lease.expires, epoch));
        self.straggling.remove(&(lease.straggles, epoch));
        Some(lease)
    }

    /// A heartbeat named a running lease.
    pub(super) fn extend(&mut self, epoch: LeaseEpoch, expires: Duration) {
        if let Some(lease) = self.all.get_mut(&epoch) {
            self.expiry.remove(&(lease.expires, epoch));
            lease.expires = expires;
            self.expiry.insert((expires, epoch));
        }
    }

    /// The shard of a running lease is being written.
    pub(super) fn committing(&mut self, epoch: LeaseEpoch, digest: [u8; 32], tally: Tally) {
        if let Some(lease) = self.all.get_mut(&epoch) {
            self.expiry.remove(&(lease.expires, epoch));
            self.straggling.remove(&(lease.straggles, epoch));
            lease.stage = Stage::Committing { digest, tally, orphaned: false };
        }
    }

    /// A lease that is being written belongs to this cell of the study as submitted anew, or none.
    pub(super) fn adopt(&mut self, epoch: LeaseEpoch, adopted: Option<usize>) {
        if let Some(lease) = self.all.get_mut(&epoch)
            && let Stage::Committing { orphaned, .. } = &mut lease.stage
        {
            *orphaned = adopted.is_none();
            lease.cell = adopted.unwrap_or(lease.cell);
        }
    }

    /// Another worker finished first.
    pub(super) fn supersede(&mut self, epoch: LeaseEpoch, digest: [u8; 32], by: Arc<str>) {
        if let Some(lease) = self.all.get_mut(&epoch) {
            self.straggling.remove(&(lease.straggles, epoch));
            lease.stage = Stage::Superseded { digest, by };
        }
    }

    /// A lease has no copy (any more).
    pub(super) fn runs_alone(&mut self, epoch: LeaseEpoch) {
        if let Some(lease) = self.all.get(&epoch) {
            self.straggling.insert((lease.straggles, epoch));
        }
    }

    /// A lease has a copy.
    pub(super) fn has_copy(&mut self, epoch: LeaseEpoch) {
        if let Some(lease) = self.all.get(&epoch) {
            self.straggling.remove(&(lease.straggles, epoch));
        }
    }

    /// The lease that expired first, up to now.
    pub(super) fn expired(&self, now: Duration) -> Option<LeaseEpoch> {
        self.expiry.first().filter(|(expires, _)| *expires <= now).map(|&(_, epoch)| epoch)
    }

    /// Leases that straggle, the one most overdue first.
    pub(super) fn stragglers(&self, now: Duration) -> impl Iterator<Item = LeaseEpoch> + '_ {
        self.straggling.range(..=(now, LeaseEpoch(u64::MAX))).map(|&(_, epoch)| epoch)
    }

    /// Verifies the invariant, `alone` saying which running leases have no copy.
    pub(super) fn sanity_check(&self, alone: impl Fn(LeaseEpoch, &Lease) -> bool) {
        let (mut expiring, mut straggling) = (0, 0);
        for (&epoch, lease) in &self.all {
            let open = !matches!(lease.stage, Stage::Committing { .. });
            let may_straggle = lease.is_running() && !lease.check && alone(epoch, lease);
            expiring += usize::from(open);
            straggling += usize::from(may_straggle);
            assert_eq!(self.expiry.contains(&(lease.expires, epoch)), open, "{epoch} expires");
            let listed = self.straggling.contains(&(lease.straggles, epoch));
            assert_eq!(listed, may_straggle, "{epoch} straggles");
        }
        assert_eq!((self.expiry.len(), self.straggling.len()), (expiring, straggling));
    }
}
