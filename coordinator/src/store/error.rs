//! What can go wrong with a store, and what the user can do about it.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sqlx::error::DatabaseError as _;
use sqlx::sqlite::SqliteError;
use study::{CellId, StudyId};

/// A failure of the store. Cheap to clone: one failed group is reported to all that wait for it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// Another process works in the folder.
    #[error(
        "{} is in use by process {pid}: wait until it ends, or stop it, or choose another folder",
        dir.display()
    )]
    Locked {
        /// The folder.
        dir: PathBuf,
        /// The holder, as it wrote itself into the lock file.
        pid: String,
    },
    /// SQLite cannot rely on the file system.
    #[error(
        "{} is on a file system that other machines share ({kind}), and a SQLite ledger is not safe \
         there: choose a folder on a local disk, or keep the ledger in PostgreSQL with --ledger \
         postgres://USER@HOST/DATABASE",
        dir.display()
    )]
    Shared {
        /// The folder.
        dir: PathBuf,
        /// The kind of its file system.
        kind: String,
    },
    /// No room for what must be written.
    #[error(
        "the disk that holds {} is full: free {needed} bytes, then run the same command again; \
         nothing acknowledged is lost",
        path.display()
    )]
    DiskFull {
        /// What was written to.
        path: PathBuf,
        /// At least this much is needed to go on.
        needed: u64,
    },
    /// The file system is mounted read-only.
    #[error(
        "{} is on a read-only file system: make it writable or choose another folder, then run \
         the same command again",
        path.display()
    )]
    ReadOnly {
        /// What was written to.
        path: PathBuf,
    },
    /// The user may not do this.
    #[error(
        "no permission to {action} {}: change the permissions or choose another folder, then run \
         the same command again",
        path.display()
    )]
    Permission {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
    },
    /// Any other failure of the file system.
    #[error(
        "cannot {action} {}: {source}; nothing acknowledged is lost, run the same command again \
         once this is solved",
        path.display()
    )]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// The ledger's file is not what was written.
    #[error(
        "{} is corrupted ({detail}): move it away together with the files beside it that end in \
         -wal and -shm, then run the same command again; the ledger is rebuilt from the segments",
        path.display()
    )]
    Corrupt {
        /// The ledger.
        path: PathBuf,
        /// What SQLite or a checksum said.
        detail: String,
    },
    /// A row of a database on a server is not what was written.
    #[error(
        "{ledger} is corrupted ({detail}): restore it from a backup, or drop its tables: the \
         ledger is rebuilt from the segments then"
    )]
    CorruptDatabase {
        /// The ledger.
        ledger: String,
        /// What a checksum said.
        detail: String,
    },
    /// The segments are those of another ledger.
    #[error(
        "{place} does not hold the segments of this ledger: give every coordinator that shares the \
         ledger the same shared folder, or the same --store"
    )]
    OtherHome {
        /// Where segments were looked for.
        place: String,
    },
    /// Another process leads by now.
    #[error(
        "another coordinator leads now, and this one led under epoch {epoch}: it stops; nothing acknowledged is lost"
    )]
    Deposed {
        /// The epoch under which this one led.
        epoch: i64,
    },
    /// Any other failure of the database.
    #[error(
        "the ledger {} failed: {source}; nothing acknowledged is lost, run the same command again",
        path.display()
    )]
    Ledger {
        /// The ledger.
        path: PathBuf,
        /// What the database said.
        source: Arc<sqlx::Error>,
    },
    /// The ledger was written by a later version of this program.
    #[error(
        "{} has schema {found}, and this version knows {known}: use the newer regretta that wrote it",
        path.display()
    )]
    Newer {
        /// The ledger.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The latest schema that is known here.
        known: usize,
    },
    /// SQLite has a bug that can lose committed transactions.
    #[error("SQLite {found} is older than {needed}: build with the bundled one")]
    OldSqlite {
        /// The version that is linked.
        found: String,
        /// The oldest that will do.
        needed: &'static str,
    },
    /// The folder's records were computed by other arithmetic.
    #[error(
        "{} was computed under numerics {stored}, and this program has {running}: finish it with \
         the regretta that began it, or choose another folder",
        dir.display()
    )]
    OtherNumerics {
        /// The folder.
        dir: PathBuf,
        /// The digest that the folder is pinned to.
        stored: String,
        /// The digest of the running program.
        running: String,
    },
    /// The same trials, other records: one of the two workers is wrong.
    #[error(
        "workers {first} and {second} disagree on cell {cell}, replicates {} to {} of study \
         {study}: one of them computes wrongly",
        range.start,
        range.end
    )]
    Disagreement {
        /// The study.
        study: StudyId,
        /// The cell.
        cell: CellId,
        /// The replicates.
        range: Range<u64>,
        /// Who committed first.
        first: String,
        /// Who came later.
        second: String,
    },
    /// Part of the range is there already.
    #[error(
        "cell {cell}, replicates {} to {} from {worker} overlap replicates {} to {} from {other}",
        range.start,
        range.end,
        there.start,
        there.end
    )]
    Overlap {
        /// The cell.
        cell: CellId,
        /// The range that is refused.
        range: Range<u64>,
        /// Its worker.
        worker: String,
        /// The range that is there.
        there: Range<u64>,
        /// Its worker.
        other: String,
    },
    /// The cell holds shards with other checkpoints.
    #[error("cell {cell} holds shards with other checkpoints: it must be forgotten first")]
    OtherCheckpoints {
        /// The cell.
        cell: CellId,
    },
    /// Records are missing, or there are others.
    #[error(
        "the records of cell {cell}, replicates {} to {} do not add up: {found} came, {expected} are due, \
         or their digest differs; the shard is computed anew",
        range.start,
        range.end
    )]
    Incomplete {
        /// The cell.
        cell: CellId,
        /// The replicates.
        range: Range<u64>,
        /// Records that the shard has.
        expected: u64,
        /// Records that are there.
        found: u64,
    },
    /// Not a range of replicates.
    #[error("replicates {} to {} are not a range", range.start, range.end)]
    BadRange {
        /// What was given.
        range: Range<u64>,
    },
    /// The study was never put.
    #[error("study {0} is not in the store")]
    UnknownStudy(StudyId),
    /// A payload over the limit of a frame.
    #[error("a batch of {bytes} bytes is over the limit of {limit} bytes")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A frame is not what was written.
    #[error(
        "{} is damaged at byte {offset}: run the same command again; the shard it held is computed \
         anew",
        path.display()
    )]
    Damaged {
        /// The segment.
        path: PathBuf,
        /// Where the frame begins.
        offset: u64,
    },
    /// The shard is in the sealed dataset and no longer in a segment.
    #[error("the shard is sealed: read it from the dataset")]
    Sealed,
    /// A study's file is missing, or not what its digest says.
    #[error("{} {problem}: run the same command again with the original file", path.display())]
    File {
        /// The stored file.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// An object store refuses, or does not answer.
    #[error("cannot {action} {object}: {problem}")]
    Object {
        /// What was tried.
        action: &'static str,
        /// On what.
        object: String,
        /// What is wrong, and what to do about it.
        problem: String,
    },
    /// An object of a sealed dataset is not what was put.
    #[error(
        "{object} is not what was sealed: there is {found}; put back a good copy of it, or of the whole dataset"
    )]
    Altered {
        /// The object.
        object: String,
        /// What is there.
        found: String,
    },
    /// Another process has put a dataset.
    #[error("another coordinator has put a dataset to {place} meanwhile, which stays")]
    Replaced {
        /// Where.
        place: String,
    },
    /// The writer has ended.
    #[error("the store is closed")]
    Closed,
}

/// SQLite's code for a full disk under the file by which WAL mode shares memory.
const SHMSIZE: i32 = 4874;

/// What room SQLite needs beside a segment to take one more group.
const LEDGER_ROOM: u64 = 1 << 20;

impl Error {
    /// Whether the disk or the ledger refuses, so that a user has to see to it.
    pub fn needs_attention(&self) -> bool {
        matches!(
            self,
            Self::DiskFull { .. }
                | Self::ReadOnly { .. }
                | Self::Permission { .. }
                | Self::Io { .. }
                | Self::Corrupt { .. }
                | Self::CorruptDatabase { .. }
                | Self::Deposed { .. }
                | Self::Ledger { .. }
                | Self::Object { .. }
        )
    }

    /// From a failed file operation that had `bytes` to write.
    pub(super) fn io(action: &'static str, path: &Path, bytes: usize, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::DiskFull { path, needed: bytes as u64 + LEDGER_ROOM }
            }
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path },
            io::ErrorKind::PermissionDenied => Self::Permission { action, path },
            _ => Self::Io { action, path, source: Arc::new(source) },
        }
    }

    /// From a failed statement, by SQLite's primary result code.
    pub(super) fn sql(path: &Path, source: sqlx::Error) -> Self {
        let path = path.to_path_buf();
        match code(&source).map(|code| if code == SHMSIZE { 13 } else { code & 0xff }) {
            Some(13) => Self::DiskFull { path, needed: LEDGER_ROOM },
            Some(8) => Self::ReadOnly { path },
            Some(3) => Self::Permission { action: "open", path },
            Some(11 | 26) => Self::Corrupt { path, detail: source.to_string() },
            _ => Self::Ledger { path, source: Arc::new(source) },
        }
    }

    /// Whether another connection's lock was in the way.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self, Self::Ledger { source, .. } if code(source).is_some_and(|code| code & 0xff == 5))
    }

    /// Whether the ledger refused one shard, and nothing is wrong with the store.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Disagreement { .. }
                | Self::Overlap { .. }
                | Self::OtherCheckpoints { .. }
                | Self::Incomplete { .. }
                | Self::BadRange { .. }
                | Self::UnknownStudy(_)
        )
    }
}

/// SQLite's result code.
fn code(error: &sqlx::Error) -> Option<i32> {
    let error = error.as_database_error()?.try_downcast_ref::<SqliteError>()?;
    error.code()?.parse().ok()
}

/// Attaches what was tried, and on what, to an I/O error.
pub(super) trait At<T> {
    /// The error that says what to do.
    fn at(self, action: &'static str, path: &Path) -> Result<T, Error>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::io(action, path, 0, source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_becomes_what_to_do() {
        let text = |kind: io::ErrorKind| {
            Error::io("write to", Path::new("out/x.seg"), 1000, kind.into()).to_string()
        };
        assert_eq!(
            text(io::ErrorKind::StorageFull),
            "the disk that holds out/x.seg is full: free 1049576 bytes, then run the same command \
             again; nothing acknowledged is lost"
        );
        assert_eq!(text(io::ErrorKind::QuotaExceeded), text(io::ErrorKind::StorageFull));
        assert_eq!(
            text(io::ErrorKind::ReadOnlyFilesystem),
            "out/x.seg is on a read-only file system: make it writable or choose another folder, \
             then run the same command again"
        );
        assert_eq!(
            text(io::ErrorKind::PermissionDenied),
            "no permission to write to out/x.seg: change the permissions or choose another folder, \
             then run the same command again"
        );
    }
}
