//! What survives: the ledger, the segment logs and the files that studies name.
//!
//! A shard is acknowledged when its records are synced in a segment and its row is committed in
//! the ledger, in this order; an acknowledged shard is there after any crash, and one that was
//! not is either there in full or not at all. One process has a folder at a time.
//!
//! ```text
//! DIR/lock              the holder's process id, locked
//! DIR/ledger.db         which shards are durable, and where (SQLite)
//! DIR/segments/*.seg    records and all that the ledger is rebuilt from
//! DIR/files/<digest>    what studies name
//! ```

mod body;
mod committer;
mod disk;
mod error;
mod files;
mod frame;
mod ledger;
mod lock;
mod reader;
mod rebuild;
mod recovery;
mod row;
mod scan;
mod segment;
#[cfg(test)]
mod tests;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use bytes::Bytes;
use study::{CellId, StudyId};
use tokio::runtime::Handle;

use body::Origin;
use committer::Committer;
use disk::{Disk, FileSystem};
use error::At;
use ledger::Ledger;
use lock::Lock;
use segment::Segments;
use writer::Change;

pub use error::Error;
pub use frame::MAX_PAYLOAD;
pub use reader::Reader;
pub use row::{
    Check, Committed, DamagedShard, Death, Held, Place, SealedCell, ShardRow, State, StoredShard,
    StoredStudy,
};
pub use writer::Writer;

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
    /// The studies, in the order in which they were first put.
    pub studies: Vec<StoredStudy>,
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
    dir: PathBuf,
    ledger: Ledger,
    writer: Writer,
    thread: JoinHandle<()>,
    lock: Arc<Lock>,
}

impl Store {
    /// Opens or creates the store in a folder, recovers what a crash left behind, and starts the
    /// writer.
    pub async fn open(dir: &Path, options: Options<'_>) -> Result<(Self, Recovered), Error> {
        Self::open_on(dir, options, (Box::new(FileSystem), segment::SIZE)).await
    }

    async fn open_on(
        dir: &Path,
        options: Options<'_>,
        disk: (Box<dyn Disk>, u64),
    ) -> Result<(Self, Recovered), Error> {
        for folder in [dir.join("segments"), dir.join("files")] {
            std::fs::create_dir_all(&folder).at("create", &folder)?;
        }
        let lock = Arc::new(Lock::take(dir)?);
        let mut recovered = Recovered::default();
        let last = segment::list(dir)?.last().copied();
        let path = dir.join("ledger.db");
        if last.is_some() && std::fs::metadata(&path).map_or(0, |file| file.len()) == 0 {
            rebuild::rebuild(dir, &path).await?;
            recovered.rebuilt = true;
        }
        let ledger = Ledger::open(&path).await?;
        if let Some(last) = last.filter(|_| !recovered.rebuilt) {
            // An older ledger would take the newer segments for garbage.
            let dir = dir.to_path_buf();
            let newest = blocking(move || recovery::restarts(&dir, last)).await?;
            if ledger.restarts().await? < newest.max(1) {
                let detail = "it is older than the segments".to_owned();
                return Err(Error::Corrupt { path, detail });
            }
        }
        let origin = register(dir, &ledger, options).await?;
        recovered.first_epoch = u64::from(origin.restarts) << 32;
        recovered.damaged = recovery::verify(dir, &ledger).await?;
        if let Some(last) = last {
            let dir = dir.to_path_buf();
            recovered.torn_bytes = blocking(move || recovery::cut(&dir, last)).await?;
        }
        recovered.studies = ledger.studies().await?;
        let next = last.map_or(1, |last| last + 1);
        let mut segments = Segments::new(dir, disk, origin, next, recovered.studies.clone());
        // This run's origin must be on disk before a lease of it is out.
        segments.reserve(0).map_err(|failure| failure.0)?;
        let store = Self::start(dir, segments, ledger, lock)?;
        store.writer.prune().await?;
        Ok((store, recovered))
    }

    fn start(
        dir: &Path,
        segments: Segments,
        ledger: Ledger,
        lock: Arc<Lock>,
    ) -> Result<Self, Error> {
        let dir = dir.to_path_buf();
        let (writer, messages) = Writer::new();
        let task = Committer::new(dir.clone(), segments, ledger.clone(), Arc::clone(&lock));
        let runtime = Handle::current();
        let thread = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || runtime.block_on(task.run(messages)))
            .at("start a thread for", &dir)?;
        Ok(Self { dir, ledger, writer, thread, lock })
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
        let change = Change::Put { file_name, text, files: files.to_vec() };
        self.writer.change(study, change).await
    }

    /// Notes what has become of a study, and why.
    pub async fn set_state(&self, study: StudyId, state: State, reason: &str) -> Result<(), Error> {
        self.writer.change(study, Change::State { state, reason: reason.to_owned() }).await
    }

    /// All studies, in the order in which they were first put.
    pub async fn studies(&self) -> Result<Vec<StoredStudy>, Error> {
        self.ledger.studies().await
    }

    /// The shards of a study, by cell and replicate.
    pub async fn shards(&self, study: StudyId) -> Result<Vec<StoredShard>, Error> {
        self.ledger.shards(study).await
    }

    /// Drops a cell's shards, deaths and checks, because its checkpoints are others now.
    pub async fn forget_cell(&self, study: StudyId, cell: CellId) -> Result<(), Error> {
        self.writer.change(study, Change::Forget { cell }).await
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
        let mut write = self.ledger.write().await;
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
        let mut write = self.ledger.write().await;
        let mut group = write.group().await?;
        group.put_check(study, check).await?;
        group.commit().await
    }

    /// The shards of a study that were computed a second time.
    pub async fn checks(&self, study: StudyId) -> Result<Vec<Check>, Error> {
        self.ledger.checks(study).await
    }

    /// Keeps a file under its digest.
    pub async fn put_file(&self, digest: [u8; 32], bytes: Bytes) -> Result<(), Error> {
        let dir = self.dir.clone();
        blocking(move || files::put(&dir, digest, &bytes)).await
    }

    /// The file that has a digest.
    pub async fn file(&self, digest: [u8; 32]) -> Result<Bytes, Error> {
        let dir = self.dir.clone();
        blocking(move || files::get(&dir, digest)).await
    }

    /// A handle for writing records.
    pub fn writer(&self) -> Writer {
        self.writer.clone()
    }

    /// A reader of records.
    pub fn reader(&self) -> Reader {
        Reader::new(&self.dir)
    }

    /// Ends the writer after what is queued, and closes the ledger. A store that is dropped
    /// instead loses nothing that was acknowledged.
    pub async fn close(self) -> Result<(), Error> {
        self.writer.close();
        let ended = tokio::task::spawn_blocking(move || self.thread.join());
        // A writer that panicked has told every caller already.
        let _ = ended.await;
        self.ledger.close().await?;
        drop(self.lock);
        Ok(())
    }
}

/// Studies and their shards in a folder that another process may have open; `None` where there is no
/// ledger. Nothing of it is changed.
pub async fn peek(dir: &Path) -> Result<Option<Vec<(StoredStudy, Vec<StoredShard>)>>, Error> {
    let path = dir.join("ledger.db");
    if !path.exists() {
        return Ok(None);
    }
    let ledger = Ledger::open(&path).await?;
    let mut studies = Vec::new();
    for study in ledger.studies().await? {
        let shards = ledger.shards(study.id).await?;
        studies.push((study, shards));
    }
    ledger.close().await?;
    Ok(Some(studies))
}

/// Pins a new store to this program's numerics, or refuses another one's; counts this opening.
async fn register(dir: &Path, ledger: &Ledger, options: Options<'_>) -> Result<Origin, Error> {
    let running = options.numerics.to_owned();
    if let Some(stored) = ledger.numerics().await?.filter(|stored| *stored != running) {
        return Err(Error::OtherNumerics { dir: dir.to_path_buf(), stored, running });
    }
    let version = options.version.to_owned();
    ledger.register(Origin { numerics: running, version, restarts: 1 }).await
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
