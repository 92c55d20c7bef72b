//! The store's queue: room is limited, so that batches and commits wait for it, first come, first served; what is
//! forgotten does not wait. A group is written at a time, which may take long, and may fail.

use std::collections::{BTreeMap, VecDeque};

use coordinator::core::LeaseEpoch;

/// A message to the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    /// A batch, by its number within the shard.
    Append {
        epoch: LeaseEpoch,
        batch: u64,
    },
    /// A shard of so many batches.
    Commit {
        epoch: LeaseEpoch,
        batches: u64,
    },
    Discard {
        epoch: LeaseEpoch,
    },
}

/// Batches of a shard that is not committed.
#[derive(Default)]
struct Pending {
    batches: Vec<u64>,
    failed: bool,
}

/// A shard in the group that is being written.
struct Job {
    epoch: LeaseEpoch,
    batches: Vec<u64>,
    failed: bool,
}

/// What is being written.
#[derive(Default)]
struct Group {
    jobs: Vec<Job>,
    staged: Vec<LeaseEpoch>,
    room: usize,
}

/// What became of a group.
#[derive(Default)]
pub(crate) struct Written {
    /// Shards that are durable, with the batches that they have.
    pub(crate) durable: Vec<(LeaseEpoch, Vec<u64>)>,
    pub(crate) refused: Vec<LeaseEpoch>,
    /// Batches that waited for room, and have it.
    pub(crate) admitted: Vec<LeaseEpoch>,
}

pub(crate) struct Store {
    room: usize,
    waiting: VecDeque<Write>,
    queue: VecDeque<Write>,
    pending: BTreeMap<LeaseEpoch, Pending>,
    group: Option<Group>,
    /// Whether a shard whose batches do not add up is refused.
    careful: bool,
}

impl Store {
    pub(crate) fn new(room: usize, careful: bool) -> Self {
        let (waiting, queue) = (VecDeque::new(), VecDeque::new());
        Self { room, waiting, queue, pending: BTreeMap::new(), group: None, careful }
    }

    /// Whether it is queued; otherwise it waits for room.
    pub(crate) fn write(&mut self, write: Write) -> bool {
        let forgets = matches!(write, Write::Discard { .. });
        if !forgets && (self.room == 0 || !self.waiting.is_empty()) {
            self.waiting.push_back(write);
            return false;
        }
        self.room -= usize::from(!forgets);
        self.queue.push_back(write);
        true
    }

    /// Begins to write what is queued; whether there is anything to write.
    pub(crate) fn begin(&mut self) -> bool {
        if self.group.is_some() || self.queue.is_empty() {
            return false;
        }
        let mut group = Group::default();
        for write in std::mem::take(&mut self.queue) {
            group.room += usize::from(!matches!(write, Write::Discard { .. }));
            match write {
                Write::Append { epoch, batch } => {
                    self.pending.entry(epoch).or_default().batches.push(batch);
                    group.staged.push(epoch);
                }
                Write::Discard { epoch } => drop(self.pending.remove(&epoch)),
                Write::Commit { epoch, batches } => {
                    let pending = self.pending.remove(&epoch).unwrap_or_default();
                    let short = self.careful && pending.batches.len() as u64 != batches;
                    let failed = pending.failed || short;
                    group.jobs.push(Job { epoch, batches: pending.batches, failed });
                }
            }
        }
        self.group = Some(group);
        true
    }

    /// The group is written, or has failed as a whole.
    pub(crate) fn end(&mut self, fails: bool) -> Written {
        let group = self.group.take().expect("a group is being written");
        let mut written = Written::default();
        for Job { epoch, batches, failed } in group.jobs {
            if fails || failed {
                written.refused.push(epoch);
            } else {
                written.durable.push((epoch, batches));
            }
        }
        for epoch in group.staged.iter().filter(|_| fails) {
            if let Some(pending) = self.pending.get_mut(epoch) {
                pending.failed = true;
            }
        }
        self.room += group.room;
        while self.room > 0
            && let Some(write) = self.waiting.pop_front()
        {
            self.room -= 1;
            self.queue.push_back(write);
            if let Write::Append { epoch, .. } = write {
                written.admitted.push(epoch);
            }
        }
        written
    }

    /// Shards of which something is kept.
    pub(crate) fn kept(&self) -> impl Iterator<Item = LeaseEpoch> {
        self.pending.keys().copied()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.group.is_none() && self.queue.is_empty() && self.waiting.is_empty()
    }
}
