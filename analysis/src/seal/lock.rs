//! One writer per folder at a time: an advisory lock that the system releases when its holder dies.
//!
//! It is held only while files are moved into their places, never while they are computed. Readers do not take it.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use study::folder::REPLACING;

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
}

impl Lock {
    /// Takes the lock of a folder, which is created if need be, and finishes the swap of a writer that was
    /// interrupted.
    pub fn take(folder: &Path) -> Result<Self, FileError> {
        Self::within(folder, PATIENCE)
    }

    fn within(folder: &Path, patience: Duration) -> Result<Self, FileError> {
        std::fs::create_dir_all(folder).map_err(FileError::io("create", folder))?;
        for name in [NAME, REPLACING, REPLACED] {
            refuse_link(&folder.join(name))?;
        }
        let path = folder.join(NAME);
        let mut options = File::options();
        let file = options.write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(FileError::io("open", &path))?;
        let began = Instant::now();
        while let Err(TryLockError::WouldBlock) = file.try_lock() {
            if began.elapsed() > patience {
                let busy = io::Error::new(
                    io::ErrorKind::WouldBlock,
                    "another process is writing to the folder; wait for it, or end it first",
                );
                return Err(FileError::io("lock", &path)(busy));
            }
            std::thread::sleep(PAUSE);
        }
        // On a file system without locks there is nothing to wait for: one writer at a time is the user's care.
        let lock = Self { folder: folder.to_owned(), file };
        swap::finish(folder)?;
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
        let error = Lock::within(&out, Duration::from_millis(30)).unwrap_err().to_string();
        assert!(error.contains("another process is writing"), "{error}");
        std::thread::scope(|scope| {
            let second = scope.spawn(|| Lock::take(&out).map(drop));
            std::thread::sleep(Duration::from_millis(30));
            assert!(!second.is_finished());
            drop(first);
            second.join().unwrap().unwrap();
        });
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
