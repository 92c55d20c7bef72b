//! A new dataset in the place of an old one, for readers all at once.
//!
//! Everything is written into a folder `sealing.tmp-..`, of a name that nobody else uses. Renaming that
//! folder to `sealing.done` is the moment at which the new dataset replaces the old one; moving its parts to
//! their places follows, the manifest last, and the next writer finishes it after a crash. Moving is a list of
//! steps that depends only on what is there, so that it can start over at any point.
//!
//! All this is for whoever holds the folder's [`Lock`]. Readers change nothing: while the manifest is still
//! in `sealing.done` they wait ([`study::folder::Moment`]).
//!
//! Whoever begins to seal removes what others have staged: they were interrupted, or hang and do not lead
//! any more, and then have nothing to put in place when they wake up.

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use study::folder::{RECORDS, REPLACING, STUDY, TABLES};

use super::Lock;
use crate::manifest::{self, Manifest};
use crate::parquet::FileError;

const STAGED: &str = "sealing.tmp";
pub(super) const REPLACED: &str = "sealing.old";

/// A dataset that is being written. It is removed unless it is published.
#[derive(Debug)]
pub struct Staging {
    out: PathBuf,
    folder: PathBuf,
}

impl Staging {
    /// An empty one. What an interrupted sealing left is removed.
    pub fn create(lock: &Lock) -> Result<Self, FileError> {
        let out = lock.folder();
        for entry in fs::read_dir(out).map_err(FileError::io("read", out))? {
            let entry = entry.map_err(FileError::io("read", out))?;
            if entry.file_name().to_string_lossy().starts_with(STAGED) {
                // Under another name first, so that nothing is added to it any more.
                let gone = out.join(format!("{STAGED}-{}", unique()));
                Step::Rename(entry.path(), gone.clone()).perform()?;
                Step::Remove(gone).perform()?;
            }
        }
        let folder = out.join(format!("{STAGED}-{}", unique()));
        let records = folder.join(RECORDS);
        fs::create_dir_all(&records).map_err(FileError::io("create", &records))?;
        Ok(Self { out: out.to_owned(), folder })
    }

    /// Where a file of the dataset is written.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Puts the dataset into its place, instead of the one that is there.
    ///
    /// # Errors
    /// Something cannot be moved, or another writer has begun since.
    pub fn publish(self) -> Result<(), FileError> {
        let lock = Lock::take(&self.out)?;
        self.publish_with(&lock)
    }

    /// The same for whoever holds the folder's lock.
    pub fn publish_with(self, lock: &Lock) -> Result<(), FileError> {
        debug_assert_eq!(lock.folder(), self.out);
        // What cannot be put in place has to be known before anything moves.
        staged(&self.folder)?;
        decide(&self.out, &self.folder).iter().try_for_each(Step::perform)?;
        install(&self.out)?.iter().try_for_each(Step::perform)
    }
}

/// Part of a name that nobody else uses.
pub(super) fn unique() -> String {
    // Its keys are random; process ids are not unique where machines share the folder.
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

impl Drop for Staging {
    fn drop(&mut self) {
        // After publishing there is nothing; after an error, room on the disk matters more than
        // whether this succeeds.
        _ = fs::remove_dir_all(&self.folder);
    }
}

/// Finishes a swap that a crash interrupted, for who is going to write to the folder.
pub fn recover(out: &Path) -> Result<(), FileError> {
    if is_interrupted(out) { Lock::take(out).map(drop) } else { Ok(()) }
}

fn is_interrupted(out: &Path) -> bool {
    out.join(REPLACING).exists() || out.join(REPLACED).exists()
}

/// The same for whoever holds the folder's lock.
pub(super) fn finish(out: &Path) -> Result<(), FileError> {
    if !is_interrupted(out) {
        return Ok(());
    }
    install(out)?.iter().try_for_each(Step::perform)
}

/// One change of the file system, which a crash leaves done or not done (a removal: begun).
#[derive(Debug)]
enum Step {
    /// Renames, replacing a file; nothing where there is nothing to rename.
    Rename(PathBuf, PathBuf),
    /// Renames a folder, which has to be there.
    Decide(PathBuf, PathBuf),
    /// Removes a file or a folder with all that is in it, if it is there.
    Remove(PathBuf),
    /// Brings the names in a folder to the disk.
    Sync(PathBuf),
}

impl Step {
    fn perform(&self) -> Result<(), FileError> {
        match self {
            Self::Rename(from, to) => {
                fs::rename(from, to).or_else(absent).map_err(FileError::io("rename", from))
            }
            Self::Decide(from, to) => fs::rename(from, to).map_err(FileError::io("rename", from)),
            Self::Remove(path) => {
                let folder = path.is_dir();
                let removed = if folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
                removed.or_else(absent).map_err(FileError::io("remove", path))
            }
            Self::Sync(path) => {
                let synced = File::open(path).and_then(|folder| folder.sync_all());
                synced.or_else(absent).map_err(FileError::io("flush to the disk", path))
            }
        }
    }
}

/// That nothing is there is no error.
fn absent(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// The manifest of a folder on its way, if it is there.
fn staged(folder: &Path) -> Result<Option<Manifest>, FileError> {
    match Manifest::read(folder) {
        Ok(manifest) => Ok(Some(manifest)),
        Err(manifest::Error::Absent { .. }) => Ok(None),
        Err(error) => {
            let source = io::Error::new(io::ErrorKind::InvalidData, error);
            Err(FileError::io("read", &folder.join(manifest::NAME))(source))
        }
    }
}

/// The steps that make the new dataset the one.
fn decide(out: &Path, staged: &Path) -> Vec<Step> {
    vec![
        Step::Sync(staged.join(RECORDS)),
        Step::Sync(staged.to_owned()),
        Step::Decide(staged.to_owned(), out.join(REPLACING)),
        Step::Sync(out.to_owned()),
    ]
}

/// The steps that are left to bring the parts of the new dataset to their places.
fn install(out: &Path) -> Result<Vec<Step>, FileError> {
    let decided = out.join(REPLACING);
    let replaced = out.join(REPLACED);
    let mut steps = Vec::new();
    if decided.join(RECORDS).exists() {
        if out.join(RECORDS).exists() {
            steps.push(Step::Remove(replaced.clone()));
            steps.push(Step::Rename(out.join(RECORDS), replaced.clone()));
        }
        steps.push(Step::Rename(decided.join(RECORDS), out.join(RECORDS)));
    }
    // Otherwise it is in its place already, and so is everything else.
    if let Some(manifest) = staged(&decided)? {
        // The study is no part of the manifest; without a new one the old one stays.
        steps.push(Step::Rename(decided.join(STUDY), out.join(STUDY)));
        for name in TABLES {
            if manifest.files.iter().any(|file| file.name == name) {
                steps.push(Step::Rename(decided.join(name), out.join(name)));
            } else {
                steps.push(Step::Remove(out.join(name)));
            }
        }
        steps.push(Step::Sync(out.to_owned()));
        steps.push(Step::Rename(decided.join(manifest::NAME), out.join(manifest::NAME)));
    }
    steps.push(Step::Sync(out.to_owned()));
    steps.push(Step::Remove(decided));
    steps.push(Step::Remove(replaced));
    steps.push(Step::Sync(out.to_owned()));
    Ok(steps)
}

#[cfg(test)]
mod tests;
