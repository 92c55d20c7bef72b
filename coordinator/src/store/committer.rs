//! The one task that writes: group commit.
//!
//! A group is whatever is queued. Its batches are flushed to the segment; then, inside one ledger
//! transaction, its shards are admitted, the commit frames of those that were are flushed, the
//! segment is synced, and the transaction commits; only then are the callers told. So a ledger
//! row never precedes its bytes, and a shard that the ledger refuses leaves no commit frame: of
//! two commit frames that overlap, the later one is the one that counts.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prost::Message as _;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::UnboundedReceiver;

use super::body::{self, Commit, Places};
use super::error::Error;
use super::frame::{HEAD, Kind, MAX_PAYLOAD};
use super::ledger::{Candidate, Ledger};
use super::lock::Lock;
use super::row::{Committed, Deleted, Place, ShardRow, State, StoredStudy, Sum};
use super::segment::{self, Lost, Segments};
use super::shelf::Shelf;
use super::writer::{Change, Message, Reply};

/// A group ends with the message that brings it to this size.
const GROUP: usize = 16 << 20;

/// How often, and for how long, a group that is smaller than the one before waits for the rest:
/// callers that were told together come back together, and would otherwise make a group of one
/// and one of the others. All of it is less than a sync.
const WAITS: u32 = 10;
const WAIT: Duration = Duration::from_micros(50);

/// How soon segments that could not be deleted are tried again.
const RETRY: Duration = Duration::from_secs(60);

/// Batches of a token that is not committed yet.
#[derive(Default)]
struct Pending {
    places: Vec<Place>,
    sum: Sum,
    failed: Option<Error>,
}

impl Pending {
    /// Refuses a shard of which batches are missing, or that has others.
    fn require(&mut self, row: &ShardRow, sum: Sum) {
        if self.failed.is_none() && (self.sum != sum || sum.records != row.records) {
            self.failed = Some(Error::Incomplete {
                cell: row.cell,
                range: row.range.clone(),
                expected: row.records,
                found: self.sum.records,
            });
        }
    }
}

/// A shard whose batches are all there.
struct Job {
    token: u64,
    row: ShardRow,
    pending: Pending,
    reply: Reply<Committed>,
}

/// The writer's task.
pub(super) struct Committer {
    shelf: Shelf,
    segments: Segments,
    ledger: Ledger,
    pending: HashMap<u64, Pending>,
    jobs: Vec<Job>,
    /// Whether the studies as the ledger has them are in a segment that stays.
    is_carried: bool,
    /// When to try again to delete segments.
    retry: Option<Instant>,
    /// Nobody else may open the folder before this task has ended.
    _lock: Option<Arc<Lock>>,
}

impl Committer {
    pub(super) fn new(
        shelf: Shelf,
        segments: Segments,
        ledger: Ledger,
        lock: Option<Arc<Lock>>,
    ) -> Self {
        Self {
            shelf,
            segments,
            ledger,
            pending: HashMap::new(),
            jobs: Vec::new(),
            is_carried: true,
            retry: None,
            _lock: lock,
        }
    }

    /// Serves until it is told to end. File operations block, so this has a thread to itself.
    pub(super) async fn run(mut self, mut messages: UnboundedReceiver<Message>) {
        let (mut open, mut expected) = (true, 0);
        while open && let Some(message) = messages.recv().await {
            let mut room: Option<OwnedSemaphorePermit> = None;
            let mut next = Some(message);
            let mut waits = 0;
            while let Some(message) = next.take() {
                open = self.take(message, &mut room).await.is_continue();
                if open && room.as_ref().is_none_or(|room| room.num_permits() < GROUP) {
                    next = messages.try_recv().ok();
                    while next.is_none() && waits < WAITS && self.jobs.len() < expected {
                        waits += 1;
                        std::thread::sleep(WAIT);
                        next = messages.try_recv().ok();
                    }
                }
            }
            expected = self.jobs.len();
            self.finish().await;
            if self.retry.is_some_and(|due| due <= Instant::now()) {
                self.tidy().await;
            }
        }
    }

    async fn take(
        &mut self,
        message: Message,
        group: &mut Option<OwnedSemaphorePermit>,
    ) -> ControlFlow<()> {
        match message {
            Message::Append { token, payload, sum, room } => {
                hold(group, room);
                self.append(token, &payload, sum);
            }
            Message::Commit { token, row, sum, room, reply } => {
                hold(group, room);
                let mut pending = self.pending.remove(&token).unwrap_or_default();
                pending.require(&row, sum);
                self.jobs.push(Job { token, row, pending, reply });
            }
            Message::Discard { token } => _ = self.pending.remove(&token),
            Message::Change { study, change, reply } => {
                let result = self.change(study, &change).await;
                let frees = matches!(
                    change,
                    Change::Seal { .. }
                        | Change::Forget { .. }
                        | Change::GiveUp { .. }
                        | Change::Delete
                );
                if result.is_ok() && frees {
                    self.tidy().await;
                }
                answer(reply, result);
            }
            Message::Prune { reply } => answer(reply, self.prune().await),
            Message::Close => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    fn append(&mut self, token: u64, payload: &[u8], sum: Sum) {
        if self.pending.get(&token).is_some_and(|pending| pending.failed.is_some()) {
            return;
        }
        match self.segments.stage(Kind::Payload, token, payload) {
            Ok(place) => {
                let pending = self.pending.entry(token).or_default();
                pending.places.push(place);
                pending.sum = sum;
            }
            Err(failure) => {
                let error = self.lose(*failure);
                self.pending.entry(token).or_default().failed = Some(error);
            }
        }
    }

    /// Fails every token that has a batch among what was lost.
    fn lose(&mut self, (error, lost): (Error, Option<Lost>)) -> Error {
        tracing::warn!(%error, "a write failed");
        let jobs = self.jobs.iter_mut().map(|job| &mut job.pending);
        for pending in self.pending.values_mut().chain(jobs) {
            let hit =
                lost.is_some_and(|lost| pending.places.iter().any(|place| lost.covers(place)));
            if hit && pending.failed.is_none() {
                pending.failed = Some(error.clone());
            }
        }
        error
    }

    /// Ends a group: all its shards are durable, or their callers know that they are not.
    async fn finish(&mut self) {
        if let Err(failure) = self.segments.flush() {
            self.lose(*failure);
        }
        if self.jobs.is_empty() {
            return;
        }
        let frames: Vec<Vec<u8>> = self.jobs.iter().map(Job::frame).collect();
        let bytes = frames.iter().map(|frame| HEAD + frame.len()).sum();
        let segment = self.segments.reserve(bytes).map_err(|failure| self.lose(*failure));
        let jobs = std::mem::take(&mut self.jobs);
        let (failed, jobs): (Vec<_>, Vec<_>) =
            jobs.into_iter().zip(frames).partition(|(job, _)| job.pending.failed.is_some());
        for (job, _) in failed {
            let error = job.pending.failed.unwrap_or(Error::Closed);
            answer(job.reply, Err(error));
        }
        let outcome = match segment {
            Ok(segment) => self.commit(&jobs, segment).await,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(results) => {
                for ((job, _), result) in jobs.into_iter().zip(results) {
                    answer(job.reply, result);
                }
            }
            Err(error) => {
                for (job, _) in jobs {
                    answer(job.reply, Err(error.clone()));
                }
            }
        }
    }

    /// The outer error fails the whole group, an inner one is the ledger's refusal of one shard.
    async fn commit(
        &mut self,
        jobs: &[(Job, Vec<u8>)],
        segment: u64,
    ) -> Result<Vec<Result<Committed, Error>>, Error> {
        let ledger = self.ledger.clone();
        let mut write = ledger.write().await?;
        let mut group = write.group().await?;
        let candidates: Vec<_> = jobs.iter().map(|(job, _)| job.candidate()).collect();
        let results = group.admit(&candidates, segment).await?;
        for ((job, frame), result) in jobs.iter().zip(&results) {
            if let Ok(Committed::New) = result {
                let staged = self.segments.stage(Kind::Commit, job.token, frame);
                staged.map_err(|failure| self.lose(*failure))?;
            }
        }
        self.durable()?;
        group.commit().await?;
        Ok(results)
    }

    fn durable(&mut self) -> Result<(), Error> {
        let written = self.segments.flush().and_then(|()| self.segments.sync());
        written.map_err(|failure| self.lose(*failure))
    }

    async fn change(&mut self, id: study::StudyId, change: &Change) -> Result<(), Error> {
        if matches!(change, Change::Delete) {
            return self.delete(id).await;
        }
        let known = self.segments.studies.iter().position(|study| study.id == id);
        let known = known.map(|at| &self.segments.studies[at]);
        let study = changed(id, known, change).ok_or(Error::UnknownStudy(id))?;
        let frame = body::Study::from(&study).encode_to_vec();
        if frame.len() > MAX_PAYLOAD {
            return Err(Error::TooLarge { bytes: frame.len(), limit: MAX_PAYLOAD });
        }
        self.segments.stage(Kind::Study, 0, &frame).map_err(|failure| self.lose(*failure))?;
        self.durable()?;
        let ledger = self.ledger.clone();
        let mut write = ledger.write().await?;
        let mut group = write.group().await?;
        group.put_study(&study).await?;
        match change {
            Change::Seal { cells, .. } => group.seal(id, cells).await?,
            Change::Forget { cell } => group.forget_cell(id, *cell).await?,
            Change::GiveUp { shards } => group.give_up(id, shards).await?,
            Change::Put { .. } | Change::State { .. } | Change::Delete => {}
        }
        group.commit().await?;
        match self.segments.studies.iter_mut().find(|study| study.id == id) {
            Some(known) => *known = study,
            None => self.segments.studies.push(study),
        }
        self.carry_later();
        Ok(())
    }

    /// The ledger has changed, and the change stands: a failure to carry it over is logged, and made good before
    /// any segment is deleted.
    fn carry_later(&mut self) {
        self.is_carried = false;
        _ = self.carry();
    }

    fn carry(&mut self) -> Result<(), Error> {
        self.segments.carry().map_err(|failure| self.lose(*failure))?;
        self.is_carried = true;
        Ok(())
    }

    /// Deletes a study. The ledger comes first, and what it has of the deletion gets into the segments
    /// by the next start at the latest: the other way round, a crash could leave a study whose shards a
    /// rebuilt ledger would not take.
    async fn delete(&mut self, study: study::StudyId) -> Result<(), Error> {
        let since = self.segments.cut().map_err(|failure| self.lose(*failure))?;
        let deleted = Deleted { study, since };
        let ledger = self.ledger.clone();
        let mut write = ledger.write().await?;
        let mut group = write.group().await?;
        group.delete_study(deleted).await?;
        group.commit().await?;
        self.segments.studies.retain(|known| known.id != study);
        self.segments.deleted.retain(|known| known.study != study);
        self.segments.deleted.push(deleted);
        self.carry_later();
        Ok(())
    }

    /// Deletes what a change has freed. The change is committed, so that this cannot fail it.
    async fn tidy(&mut self) {
        let pruned = self.prune().await;
        if let Err(error) = &pruned {
            tracing::warn!(%error, "unneeded segments could not be deleted; trying again later");
        }
        self.retry = pruned.err().map(|_| Instant::now() + RETRY);
    }

    /// Deletes the segments that hold nothing that is needed.
    async fn prune(&mut self) -> Result<(), Error> {
        if !self.is_carried {
            self.carry()?;
        }
        let live = self.ledger.live_segments().await?;
        let awaited: Vec<u64> = self
            .pending
            .values()
            .chain(self.jobs.iter().map(|job| &job.pending))
            .flat_map(|pending| pending.places.iter().map(|place| place.segment))
            .collect();
        self.shelf.delete(|number| {
            // What has a later epoch is a later leader's.
            segment::epoch(number) <= self.segments.epoch()
                && !self.segments.needs(number)
                && !awaited.contains(&number)
                && !live.iter().any(|(low, high)| (*low..=*high).contains(&number))
        })?;
        self.forget_deleted().await
    }

    /// Forgets deletions that are older than every segment that is left.
    async fn forget_deleted(&mut self) -> Result<(), Error> {
        if self.segments.deleted.is_empty() {
            return Ok(());
        }
        let oldest = self.shelf.list()?.first().copied().unwrap_or(u64::MAX);
        let old = |deleted: &Deleted| deleted.since <= oldest;
        let ledger = self.ledger.clone();
        let mut write = ledger.write().await?;
        let mut group = write.group().await?;
        for deleted in self.segments.deleted.iter().filter(|deleted| old(deleted)) {
            group.drop_deleted(deleted.study).await?;
        }
        group.commit().await?;
        self.segments.deleted.retain(|deleted| !old(deleted));
        Ok(())
    }
}

impl Job {
    fn candidate(&self) -> Candidate<'_> {
        let Pending { places, sum, .. } = &self.pending;
        Candidate { token: self.token, row: &self.row, places, kept: Some(sum.digest) }
    }

    fn frame(&self) -> Vec<u8> {
        let Pending { places, sum, .. } = &self.pending;
        Commit::new(self.token, &self.row, Places::new(places, Some(sum.digest))).encode_to_vec()
    }
}

/// The study after a change; none if the change needs one that is not there.
fn changed(
    id: study::StudyId,
    known: Option<&StoredStudy>,
    change: &Change,
) -> Option<StoredStudy> {
    if let Change::Put { file_name, text, files, earlier } = change {
        return Some(StoredStudy {
            id,
            file_name: file_name.clone(),
            text: text.clone(),
            files: files.clone(),
            state: State::Active,
            reason: String::new(),
            sealed: known.and_then(|study| study.sealed),
            earlier: match (earlier, known) {
                (Some(earlier), _) => earlier.clone(),
                (None, known) => known.map_or_else(String::new, |study| study.earlier.clone()),
            },
        });
    }
    let mut study = known?.clone();
    match change {
        Change::State { state, reason } => (study.state, study.reason) = (*state, reason.clone()),
        Change::Seal { dataset, .. } => study.sealed = Some(*dataset),
        Change::GiveUp { .. } => (study.state, study.reason) = (State::Active, String::new()),
        Change::Forget { .. } | Change::Put { .. } | Change::Delete => {}
    }
    Some(study)
}

fn hold(group: &mut Option<OwnedSemaphorePermit>, room: OwnedSemaphorePermit) {
    match group {
        Some(group) => group.merge(room),
        None => *group = Some(room),
    }
}

fn answer<T>(reply: Reply<T>, result: Result<T, Error>) {
    // A caller that has gone away has no use for the answer.
    let _ = reply.send(result);
}
