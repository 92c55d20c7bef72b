//! One writer per folder at a time: an advisory lock that the system releases when its holder dies.
//!
//! It is held only while files are moved into their places, never while they are computed. Readers do not take it.
//!
//! On a file system without locks nobody can be kept out. Then only those who seal a dataset move what is there, in
//! steps of which none can lose records that another writer has just put in place ([`super::swap`]).

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use study::folder::{REPLACING, open_with};

use super::swap::{self, REPLACED};
use crate::parquet::FileError;

/// The file that is locked. It stays; only the lock on it counts.
const NAME: &str = ".lock";

/// How long another writer is waited for: longer than the largest dataset takes to be moved.
const PATIENCE: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(10);

/// The right to change what is in a dataset's folder.
#[derive(Debug)]
pub struct Lock {
    folder: PathBuf,
    file: File,
    /// Whether it keeps others out.
    exclusive: bool,
}

/// Tries to lock a file.
type TryLock = fn(&File) -> Result<(), TryLockError>;

impl Lock {
    /// Takes the lock of a folder, which is created if need be, and finishes the swap of a writer that was
    /// interrupted.
    pub fn take(folder: &Path) -> Result<Self, FileError> {
        Self::within(folder, PATIENCE, File::try_lock)
    }

    pub(super) fn within(
        folder: &Path,
        patience: Duration,
        try_lock: TryLock,
    ) -> Result<Self, FileError> {
        std::fs::create_dir_all(folder).map_err(FileError::io("create", folder))?;
        for name in [NAME, REPLACING, REPLACED] {
            refuse_link(&folder.join(name))?;
        }
        let path = folder.join(NAME);
        let file = open(&path).map_err(FileError::io("open", &path))?;
        let exclusive = lock(&file, patience, try_lock).map_err(FileError::io("lock", &path))?;
        let lock = Self { folder: folder.to_owned(), file, exclusive };
        if exclusive {
            swap::finish(folder)?;
        } else {
            warn_once(folder);
        }
        Ok(lock)
    }

    /// Replaces a file as a whole. Its name is a path within the folder.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<(), FileError> {
        let path = self.folder.join(name);
        let parent = path.parent().unwrap_or(&self.folder);
        if parent != self.folder {
            refuse_link(parent)?;
        }
        std::fs::create_dir_all(parent).map_err(FileError::io("create", parent))?;
        let beside = parent.join(format!(".{}.tmp", swap::unique()));
        // Nothing that somebody put there under this name is written to or through.
        let written = File::create_new(&beside).and_then(|mut file| file.write_all(bytes));
        let written = written.and_then(|()| std::fs::rename(&beside, &path));
        written.map_err(|error| {
            _ = std::fs::remove_file(&beside);
            FileError::io("write", &path)(error)
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Finishes the swap of an interrupted writer where taking the lock did not, because others cannot be kept out.
    pub(super) fn finish(&self) -> Result<(), FileError> {
        if self.exclusive { Ok(()) } else { swap::finish(&self.folder) }
    }
}

/// Opens the file that is locked. Whoever shares a folder with its group may lock it without writing to the file.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    match open_with(options.read(true).write(true).create(true).truncate(false), path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => study::folder::open(path),
        opened => opened,
    }
}

/// Locks a file; whether others are kept out by that.
fn lock(file: &File, patience: Duration, try_lock: TryLock) -> io::Result<bool> {
    let began = Instant::now();
    loop {
        match try_lock(file) {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(error)) if has_no_locks(&error) => return Ok(false),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if began.elapsed() > patience => {
                return Err(io::Error::new(
                    io::ErrorKind::WouldBlock,
                    "another process is writing to the folder; wait for it, or end it first",
                ));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
        }
    }
}

/// Whether the file system has no locks, as Lustre without `flock`, or the server that keeps them is not there.
fn has_no_locks(error: &io::Error) -> bool {
    let known = [Errno::NOLCK, Errno::NOSYS, Errno::OPNOTSUPP].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|found| known.contains(&found))
}

fn warn_once(folder: &Path) {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        tracing::warn!(
            "the file system of {} has no locks: let one process at a time write to the folder",
            folder.display()
        );
    });
}

/// Refuses what leads out of the folder: it may be a stranger's.
fn refuse_link(path: &Path) -> Result<(), FileError> {
    if !path.is_symlink() {
        return Ok(());
    }
    let reason = "it is a symbolic link; put a folder or nothing in its place";
    Err(FileError::io("write to", path)(io::Error::new(io::ErrorKind::InvalidInput, reason)))
}

impl Drop for Lock {
    /// A program that is being started shares the lock until it runs; closing the file alone would leave it held.
    fn drop(&mut self) {
        // What fails here ends with the file.
        _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_second_waits_for_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("new");
        let first = Lock::take(&out).unwrap();
        let error =
            Lock::within(&out, Duration::from_millis(30), File::try_lock).unwrap_err().to_string();
        assert!(error.contains("another process is writing"), "{error}");
        std::thread::scope(|scope| {
            let second = scope.spawn(|| Lock::take(&out).map(drop));
            std::thread::sleep(Duration::from_millis(30));
            assert!(!second.is_finished());
            drop(first);
            second.join().unwrap().unwrap();
        });
    }

    fn fails(errno: Errno) -> Result<(), TryLockError> {
        Err(TryLockError::Error(errno.into()))
    }

    #[test]
    fn only_what_means_that_there_are_no_locks_is_taken_for_that() {
        let folder = tempfile::tempdir().unwrap();
        let take = |try_lock: TryLock| Lock::within(folder.path(), Duration::ZERO, try_lock);
        assert!(take(File::try_lock).unwrap().exclusive);
        assert!(!take(|_| fails(Errno::NOLCK)).unwrap().exclusive);
        assert!(!take(|_| fails(Errno::NOSYS)).unwrap().exclusive);
        assert!(!take(|_| fails(Errno::OPNOTSUPP)).unwrap().exclusive);
        let error = take(|_| fails(Errno::IO)).unwrap_err().to_string();
        assert!(error.contains("cannot lock"), "{error}");
        assert!(take(|_| Err(TryLockError::WouldBlock)).is_err());
    }

    #[test]
    fn a_pipe_in_the_place_of_the_lock_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("mkfifo").arg(folder.path().join(NAME)).status();
        assert!(made.unwrap().success());
        let error = Lock::take(folder.path()).unwrap_err().to_string();
        assert!(error.contains("a pipe"), "{error}");
    }

    #[test]
    fn links_lead_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let (out, home) = (folder.path().join("out"), folder.path().join("home"));
        std::fs::create_dir_all(home.join("records")).unwrap();
        std::fs::create_dir(&out).unwrap();
        for name in [NAME, REPLACING, REPLACED] {
            symlink(&home, out.join(name)).unwrap();
            assert!(Lock::take(&out).unwrap_err().to_string().contains("symbolic link"));
            std::fs::remove_file(out.join(name)).unwrap();
        }
        symlink(&home, out.join("tables")).unwrap();
        symlink(home.join(".profile"), out.join("report.html")).unwrap();
        let lock = Lock::take(&out).unwrap();
        assert!(lock.put("tables/summary.csv", b"1").is_err());
        lock.put("report.html", b"1").unwrap();
        assert_eq!(std::fs::read(out.join("report.html")).unwrap(), b"1");
        lock.put("figures/a.csv", b"1").unwrap();
        let left = |folder: &Path| std::fs::read_dir(folder).unwrap().count();
        assert_eq!((left(&home), left(&home.join("records"))), (1, 0));
        // The lock, a link, two files in their places, and no others.
        assert_eq!((left(&out), left(&out.join("figures"))), (4, 1));
    }
}
