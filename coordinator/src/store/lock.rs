//! One process per folder: an advisory lock that the system releases when its holder dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use super::error::{At, Error};

/// The held lock. The file stays; only the lock on it counts.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "held until dropped")] File);

impl Lock {
    /// Takes the folder, or says who has it.
    pub(super) fn take(dir: &Path) -> Result<Self, Error> {
        let path = dir.join("lock");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).at("open", &path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                file.read_to_string(&mut pid).at("read", &path)?;
                return Err(Error::Locked { dir: dir.to_path_buf(), pid: pid.trim().to_owned() });
            }
            Err(TryLockError::Error(error)) => return Err(error).at("lock", &path),
        }
        file.set_len(0).at("write", &path)?;
        file.rewind().at("write", &path)?;
        writeln!(file, "{}", std::process::id()).at("write", &path)?;
        Ok(Self(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_of_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let first = Lock::take(dir.path()).unwrap();
        let error = Lock::take(dir.path()).unwrap_err();
        let pid = std::process::id().to_string();
        assert!(matches!(&error, Error::Locked { pid: holder, .. } if *holder == pid), "{error}");
        assert!(error.to_string().contains(&dir.path().display().to_string()));
        drop(first);
        Lock::take(dir.path()).unwrap();
    }
}
