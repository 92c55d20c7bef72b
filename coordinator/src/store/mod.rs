//! What survives: the ledger, the segment logs and the files that studies name.
//!
//! A shard is acknowledged when its records are synced in a segment and its row is committed in
//! the ledger, in this order; an acknowledged shard is there after any crash, and one that was
//! not is either there in full or not at all. One process has a folder at a time; where the ledger is
//! in PostgreSQL, one process leads.
//!
//! ```text
//! DIR/lock              the holder's process id, locked
//! DIR/ledger.db         which shards are durable, and where (SQLite)
//! DIR/segments/*.seg    EPOCH-NUMBER: records and all that the ledger is rebuilt from
//! DIR/files/<digest>    what studies name
//! ```

mod body;
mod committer;
pub mod dataset;
mod disk;
mod error;
mod files;
mod frame;
mod ledger;
mod location;
mod lock;
mod mount;
mod opening;
mod reader;
mod rebuild;
mod recovery;
mod remote;
mod row;
mod scan;
pub(crate) mod segment;
mod shelf;
#[cfg(test)]
pub(crate) mod tests;
mod writer;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use study::{CellId, StudyId};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use committer::Committer;
use error::At;
use ledger::{Lead, Ledger, Number, Studies};
use lock::Lock;
use opening::Opened;
use segment::Segments;
use shelf::Shelf;
use writer::Change;

pub(crate) use dataset::names;
pub use disk::{Disk, FileSystem, Log, Medium};
pub use error::Error;
pub use frame::MAX_PAYLOAD;
pub use location::{Bucket, LedgerAt, LocationError, Postgres, RecordsAt, Storage, has_password};
pub use mount::shared;
pub use reader::Reader;
pub use row::{
    Check, Committed, DamagedShard, DamagedStudy, Death, Held, Place, SealedCell, ShardRow, State,
    StoredShard, StoredStudy, Sum,
};
pub use writer::{Draft, Writer};

/// What a store is opened with.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The digest that proves this program's arithmetic; a store is pinned to its first.
    pub numerics: &'a str,
    /// The program's version.
    pub version: &'a str,
}

/// What was found in the folder.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// The first lease epoch of this run; above every one of the runs before.
    pub first_epoch: u64,
    /// The studies that are as they were put, in the order in which they were first put.
    pub studies: Vec<StoredStudy>,
    /// The others.
    pub damaged_studies: Vec<DamagedStudy>,
    /// Bytes cut from the last segment, none of them acknowledged.
    pub torn_bytes: u64,
    /// Committed shards that did not survive and were dropped from the ledger.
    pub damaged: Vec<DamagedShard>,
    /// Whether the ledger was missing and has been rebuilt from the segments.
    pub rebuilt: bool,
}

/// An open store.
#[derive(Debug)]
pub struct Store {
    shelf: Shelf,
    ledger: Ledger,
    writer: Writer,
    thread: JoinHandle<()>,
    lead: Option<Lead>,
    lock: Option<Arc<Lock>>,
}

impl Store {
    /// Waits until nobody uses the store, and its folder is free.
    pub(crate) async fn let_go(self: Arc<Self>) {
        let lock = self.lock.as_ref().map(Arc::downgrade);
        drop(self);
        while lock.as_ref().is_some_and(|lock| lock.strong_count() > 0) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Opens or creates the store in a folder, recovers what a crash left behind, and starts the
    /// writer.
    pub async fn open(dir: &Path, options: Options<'_>) -> Result<(Self, Recovered), Error> {
        Self::open_at(dir, &Storage::default(), options).await
    }

    /// The same for a store of which a part is kept elsewhere. With PostgreSQL this waits, for as
    /// long as it takes, until this process leads.
    pub async fn open_at(
        dir: &Path,
        storage: &Storage,
        options: Options<'_>,
    ) -> Result<(Self, Recovered), Error> {
        Self::open_on(dir, storage, options, None).await
    }

    /// The same on another medium than what the place asks for, for tests of disks that fail.
    pub async fn open_on(
        dir: &Path,
        storage: &Storage,
        options: Options<'_>,
        medium: Option<Medium>,
    ) -> Result<(Self, Recovered), Error> {
        let (folder, records) = (dir.to_path_buf(), storage.records.clone());
        let shelf = blocking(move || Shelf::open(&folder, &records)).await?;
        let opened = opening::open(dir, &shelf, &storage.ledger, options).await?;
        let Opened { ledger, origin, rebuilt, lead, lock } = opened;
        let mut recovered = Recovered { rebuilt, ..Recovered::default() };
        recovered.first_epoch = u64::from(origin.restarts) << 32;
        let Studies { sound, damaged } = ledger.studies().await?;
        let damaged: BTreeMap<Number, DamagedStudy> = damaged.into_iter().collect();
        // With a damaged id, none of a study's shards would seem to be its own.
        let is_sound = |study| !damaged.contains_key(&study);
        recovered.damaged = recovery::verify(&shelf, &ledger, is_sound).await?;
        let Medium { disk, segment, room } = medium.unwrap_or_else(|| shelf.medium());
        let mut segments = Segments::new(shelf.dir(), (disk, segment), origin, sound.clone());
        segments.deleted = ledger.deleted().await?;
        if !damaged.is_empty() {
            segments.studies.extend(rebuild::others(&shelf, &sound).await?);
        }
        let taken = |id: StudyId| sound.iter().any(|study| study.id == id);
        recovered.damaged_studies =
            damaged.into_values().filter(|study| !taken(study.id)).collect();
        recovered.studies = sound;
        let there = shelf.clone();
        let carried = blocking(move || {
            let last = there.list()?.last().copied();
            let torn_bytes = last.map_or(Ok(0), |last| recovery::cut(&there, last))?;
            // This run's origin must be on disk before a lease of it is out.
            segments.carry().map_err(|failure| failure.0)?;
            Ok((segments, torn_bytes))
        });
        let segments;
        (segments, recovered.torn_bytes) = carried.await?;
        let store = Self::start(shelf, segments, room, ledger, lead, lock.map(Arc::new))?;
        store.writer.prune().await?;
        Ok((store, recovered))
    }

    fn start(
        shelf: Shelf,
        segments: Segments,
        room: usize,
        ledger: Ledger,
        lead: Option<Lead>,
        lock: Option<Arc<Lock>>,
    ) -> Result<Self, Error> {
        let (writer, messages) = Writer::new(room);
        let task = Committer::new(shelf.clone(), segments, ledger.clone(), lock.clone());
        let runtime = Handle::current();
        let thread = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || runtime.block_on(task.run(messages)))
            .at("start a thread for", &shelf.name())?;
        Ok(Self { shelf, ledger, writer, thread, lead, lock })
    }

    /// Whether files and segments are in an object store.
    pub(crate) fn is_remote(&self) -> bool {
        self.shelf.is_remote()
    }

    /// Gives up the lead, if there is one: a standby takes over at once. Nothing can be written then.
    pub async fn resign(&self) -> Result<(), Error> {
        self.ledger.resign().await
    }

    /// Cancelled once this process must not write any more, because another leads.
    pub fn lost(&self) -> CancellationToken {
        self.lead.as_ref().map(Lead::lost).unwrap_or_default()
    }

    /// Puts a study, or its grown definition; it is active then. Its files must have been put.
    pub async fn put_study(
        &self,
        study: StudyId,
        file_name: &str,
        text: &str,
        files: &[(String, [u8; 32])],
    ) -> Result<(), Error> {
        let (file_name, text) = (file_name.to_owned(), text.to_owned());
        let change = Change::Put { file_name, text, files: files.to_vec(), earlier: None };
        self.writer.change(study, change).await
    }

    /// The same with the families of claims that the study had before, in one transaction.
    pub async fn put_study_after(
        &self,
        study: StudyId,
        file_name: &str,
        text: &str,
        files: &[(String, [u8; 32])],
        earlier: String,
    ) -> Result<(), Error> {
        let (file_name, text) = (file_name.to_owned(), text.to_owned());
        let change = Change::Put { file_name, text, files: files.to_vec(), earlier: Some(earlier) };
        self.writer.change(study, change).await
    }

    /// Notes what has become of a study, and why.
    pub async fn set_state(&self, study: StudyId, state: State, reason: &str) -> Result<(), Error> {
        self.writer.change(study, Change::State { state, reason: reason.to_owned() }).await
    }

    /// All studies that are as they were put, in the order in which they were first put.
    pub async fn studies(&self) -> Result<Vec<StoredStudy>, Error> {
        Ok(self.ledger.studies().await?.sound)
    }

    /// Deletes a study, damaged or not, with its shards, deaths and checks. Put again it starts afresh,
    /// whatever becomes of the ledger. Files that studies name stay: others may name them.
    pub async fn delete_study(&self, study: StudyId) -> Result<(), Error> {
        self.writer.change(study, Change::Delete).await
    }

    /// Looks after the shards of a study that was damaged when the store was opened, and has been put
    /// again: drops those that did not survive.
    pub async fn verify_study(&self, study: StudyId) -> Result<Vec<DamagedShard>, Error> {
        let owner = self.ledger.owner(study).await?;
        recovery::verify(&self.shelf, &self.ledger, |study| Some(study) == owner).await
    }

    /// The shards of a study, by cell and replicate.
    pub async fn shards(&self, study: StudyId) -> Result<Vec<StoredShard>, Error> {
        self.ledger.shards(study).await
    }

    /// Drops a cell's shards, deaths and checks, because its checkpoints are others now.
    pub async fn forget_cell(&self, study: StudyId, cell: CellId) -> Result<(), Error> {
        self.writer.change(study, Change::Forget { cell }).await
    }

    /// Drops shards of which records are lost; there is work again.
    pub async fn give_up(
        &self,
        study: StudyId,
        shards: &[(CellId, Range<u64>)],
    ) -> Result<(), Error> {
        self.writer.change(study, Change::GiveUp { shards: shards.to_vec() }).await
    }

    /// Notes that a dataset holds every shard of the cells below their number of replicates. All
    /// other shards of the study are dropped, and segments that nothing needs are deleted.
    pub async fn mark_sealed(
        &self,
        study: StudyId,
        dataset: [u8; 32],
        cells: &[SealedCell],
    ) -> Result<(), Error> {
        self.writer.change(study, Change::Seal { dataset, cells: cells.to_vec() }).await
    }

    /// Notes how often a range has killed its worker.
    pub async fn record_death(&self, study: StudyId, death: &Death) -> Result<(), Error> {
        let mut write = self.ledger.write().await?;
        let mut group = write.group().await?;
        group.put_death(study, death).await?;
        group.commit().await
    }

    /// The ranges of a study that killed workers.
    pub async fn deaths(&self, study: StudyId) -> Result<Vec<Death>, Error> {
        self.ledger.deaths(study).await
    }

    /// Notes the outcome of a second computation.
    pub async fn record_check(&self, study: StudyId, check: &Check) -> Result<(), Error> {
        let mut write = self.ledger.write().await?;
        let mut group = write.group().await?;
        group.put_check(study, check).await?;
        group.commit().await
    }

    /// The shards of a study that were computed a second time.
    pub async fn checks(&self, study: StudyId) -> Result<Vec<Check>, Error> {
        self.ledger.checks(study).await
    }

    /// Keeps a file under the digest of its content; it is moved.
    pub async fn keep_file(&self, digest: [u8; 32], from: &Path) -> Result<(), Error> {
        let (shelf, from) = (self.shelf.clone(), from.to_path_buf());
        blocking(move || files::keep(&shelf, digest, &from)).await
    }

    /// Where the file that has a digest is on this machine; its content is not checked.
    pub async fn file_place(&self, digest: [u8; 32]) -> Result<PathBuf, Error> {
        let shelf = self.shelf.clone();
        blocking(move || files::place(&shelf, digest)).await
    }

    /// The file that has a digest.
    pub async fn file(&self, digest: [u8; 32]) -> Result<Bytes, Error> {
        let shelf = self.shelf.clone();
        blocking(move || files::get(&shelf, digest)).await
    }

    /// A handle for writing records.
    pub fn writer(&self) -> Writer {
        self.writer.clone()
    }

    /// A reader of records.
    pub fn reader(&self) -> Reader {
        Reader::new(self.shelf.clone())
    }

    /// Ends the writer after what is queued, and closes the ledger. A store that is dropped
    /// instead loses nothing that was acknowledged.
    pub async fn close(self) -> Result<(), Error> {
        self.writer.close();
        let ended = tokio::task::spawn_blocking(move || self.thread.join());
        // A writer that panicked has told every caller already.
        let _ = ended.await;
        self.ledger.resign().await?;
        drop(self.lead);
        self.ledger.close().await?;
        drop(self.lock);
        Ok(())
    }
}

/// Studies and their shards in a folder that another process may have open; `None` where there is no
/// ledger. Nothing of it is changed.
pub async fn peek(dir: &Path) -> Result<Option<Vec<(StoredStudy, Vec<StoredShard>)>>, Error> {
    peek_at(dir, &LedgerAt::Folder).await
}

/// The same for a ledger that may be in a database.
pub async fn peek_at(
    dir: &Path,
    at: &LedgerAt,
) -> Result<Option<Vec<(StoredStudy, Vec<StoredShard>)>>, Error> {
    let path = dir.join("ledger.db");
    let ledger = match at {
        LedgerAt::Postgres(at) => Ledger::postgres(at).await?,
        LedgerAt::Folder if path.exists() => Ledger::open(&path).await?,
        LedgerAt::Folder => return Ok(None),
    };
    let mut studies = Vec::new();
    for study in ledger.sound_studies().await? {
        let shards = ledger.shards(study.id).await?;
        studies.push((study, shards));
    }
    ledger.close().await?;
    Ok(Some(studies))
}

/// Runs what blocks on a thread where that is fine.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(Error::Closed),
        },
    }
}
