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
//! Where the file system has no locks, two writers may take the same steps at once. What one has put in place the
//! other then moves at most aside, under a name of its own, and back; and old records are deleted only once those that
//! the manifest lists are in place.
//!
//! Whoever begins to seal removes what others have staged: they were interrupted, or hang and do not lead
//! any more, and then have nothing to put in place when they wake up.

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use study::folder::{RECORDS, REPLACING, STUDY, TABLES, is_records};

use super::Lock;
use crate::manifest::{self, FileEntry, Manifest};
use crate::parquet::FileError;

const STAGED: &str = "sealing.tmp";

/// How the names of old records begin that were moved aside.
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
        lock.finish()?;
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
        lock.finish()?;
        // What cannot be put in place has to be known before anything moves.
        if staged(&self.folder)?.is_none() {
            return Err(self.overtaken());
        }
        decide(&self.out, &self.folder).iter().try_for_each(Step::perform)?;
        install(&self.out)?.iter().try_for_each(Step::perform)
    }

    /// Why nothing can be written to it or published any more, if that is so.
    pub(super) fn check(&self) -> Result<(), FileError> {
        if self.folder.is_dir() { Ok(()) } else { Err(self.overtaken()) }
    }

    fn overtaken(&self) -> FileError {
        let reason = "another process has begun to seal a dataset there since; let one at a time write to the folder";
        FileError::io("seal the dataset in", &self.out)(io::Error::new(
            io::ErrorKind::NotFound,
            reason,
        ))
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

/// Finishes a swap that a crash interrupted, before a dataset is sealed into the folder.
pub fn recover(out: &Path) -> Result<(), FileError> {
    if is_interrupted(out) { Lock::take(out)?.finish() } else { Ok(()) }
}

/// The same for an analysis, which leaves a swap alone where it cannot tell whether its writer is still at it.
pub fn recover_locked(out: &Path) -> Result<(), FileError> {
    if is_interrupted(out) { Lock::take(out).map(drop) } else { Ok(()) }
}

fn is_interrupted(out: &Path) -> bool {
    out.join(REPLACING).exists() || !asides(out).is_empty()
}

/// Old records that were moved aside.
fn asides(out: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(out).into_iter().flatten().flatten();
    let is_aside = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(REPLACED);
    entries.filter(is_aside).map(|entry| entry.path()).collect()
}

/// Whether the records are in place that the manifest lists.
fn has_its_records(out: &Path) -> bool {
    let Ok(manifest) = Manifest::read(out) else { return false };
    let is_there = |file: &FileEntry| {
        fs::metadata(out.join(&file.name)).is_ok_and(|found| found.len() == file.bytes)
    };
    manifest.files.iter().filter(|file| is_records(&file.name)).all(is_there)
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
    /// Moves old records aside, while there are new ones to take their place.
    SetAside(Records),
    /// Moves new records to their place. If another writer has done so, what was set aside are perhaps these.
    Replace(Records),
    /// Removes a file or a folder with all that is in it, if it is there.
    Remove(PathBuf),
    /// Removes a folder from which all was moved, unless a new dataset has come to its place.
    Clear(PathBuf),
    /// Removes the old records that were set aside, once a dataset has its new ones.
    RemoveAsides(PathBuf),
    /// Brings the names in a folder to the disk.
    Sync(PathBuf),
}

/// Records that replace others.
#[derive(Clone, Debug)]
struct Records {
    new: PathBuf,
    place: PathBuf,
    aside: PathBuf,
}

impl Records {
    fn set_aside(&self) -> io::Result<()> {
        if self.new.exists() {
            fs::rename(&self.place, &self.aside).or_else(absent)
        } else {
            Ok(())
        }
    }

    fn replace(&self) -> io::Result<()> {
        match fs::rename(&self.new, &self.place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            moved => return moved,
        }
        // Only into an empty place: where there are records, old ones were set aside.
        match fs::rename(&self.aside, &self.place) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            moved => moved.or_else(absent),
        }
    }
}

/// Renames a file. Of two links to one file the system leaves both.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    let id = |path: &Path| fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()));
    match (id(from), id(to)) {
        (Ok(left), Ok(moved)) if left == moved => fs::remove_file(from).or_else(absent),
        _ => Ok(()),
    }
}

/// Removes a folder that should be empty.
fn clear(folder: &Path) -> io::Result<()> {
    match fs::remove_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
        removed => return removed.or_else(absent),
    }
    if folder.join(manifest::NAME).exists() {
        return Ok(());
    }
    fs::remove_dir_all(folder).or_else(absent)
}

fn remove_asides(out: &Path) -> Result<(), FileError> {
    // In this order: what is set aside after this is not removed.
    let asides = asides(out);
    if !has_its_records(out) {
        return Ok(());
    }
    asides.into_iter().try_for_each(|aside| Step::Remove(aside).perform())
}

impl Step {
    fn perform(&self) -> Result<(), FileError> {
        match self {
            Self::Rename(from, to) => {
                rename(from, to).or_else(absent).map_err(FileError::io("rename", from))
            }
            Self::Decide(from, to) => fs::rename(from, to).map_err(FileError::io("rename", from)),
            Self::SetAside(records) => {
                records.set_aside().map_err(FileError::io("rename", &records.place))
            }
            Self::Replace(records) => {
                records.replace().map_err(FileError::io("rename", &records.new))
            }
            Self::Clear(path) => clear(path).map_err(FileError::io("remove", path)),
            Self::RemoveAsides(out) => remove_asides(out),
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
    let mut steps = Vec::new();
    let new = decided.join(RECORDS);
    if new.exists() {
        let aside = out.join(format!("{REPLACED}-{}", unique()));
        let records = Records { new, place: out.join(RECORDS), aside };
        steps.extend([Step::SetAside(records.clone()), Step::Replace(records)]);
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
    steps.push(Step::Clear(decided));
    steps.push(Step::RemoveAsides(out.to_owned()));
    steps.push(Step::Sync(out.to_owned()));
    Ok(steps)
}

#[cfg(test)]
mod tests;
