//! A new dataset in the place of an old one, at once.
//!
//! Everything is written into a folder `sealing.tmp-..`, of a name that nobody else uses. Renaming that
//! folder to `sealing.done` is the moment at which the new dataset replaces the old one; moving its parts to
//! their places follows, and whoever opens the folder after a crash finishes it. The manifest moves last.
//! Moving is a list of steps that depends only on what is there, so that it can start over at any point.
//!
//! Whoever begins to seal removes what others have staged: they were interrupted, or hang and do not lead
//! any more, and then have nothing to put in place when they wake up.

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use crate::manifest::{self, Manifest};
use crate::parquet::FileError;

const STAGED: &str = "sealing.tmp";
const DECIDED: &str = "sealing.done";
const REPLACED: &str = "sealing.old";
const RECORDS: &str = "records";

/// Files beside the records, of which a dataset may lack some.
const OTHERS: [&str; 4] = ["counts.parquet", "domain.parquet", "priors.json", "codebook.csv"];

/// A dataset that is being written. It is removed unless it is published.
#[derive(Debug)]
pub struct Staging {
    out: PathBuf,
    folder: PathBuf,
}

impl Staging {
    /// An empty one. What an interrupted sealing left is finished or removed.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn create(out: &Path) -> Result<Self, FileError> {
        fs::create_dir_all(out).map_err(FileError::io("create", out))?;
        recover(out)?;
        for entry in fs::read_dir(out).map_err(FileError::io("read", out))? {
            let entry = entry.map_err(FileError::io("read", out))?;
            if entry.file_name().to_string_lossy().starts_with(STAGED) {
                Step::Remove(entry.path()).perform()?;
            }
        }
        // Its keys are random; process ids are not unique where machines share the folder.
        let unique = RandomState::new().build_hasher().finish();
        let folder = out.join(format!("{STAGED}-{unique:016x}"));
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
    /// Something cannot be moved.
    pub fn publish(self) -> Result<(), FileError> {
        decide(&self.out, &self.folder).iter().try_for_each(Step::perform)?;
        install(&self.out)?.iter().try_for_each(Step::perform)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // After publishing there is nothing; after an error, room on the disk matters more than
        // whether this succeeds.
        _ = fs::remove_dir_all(&self.folder);
    }
}

/// Finishes a swap that a crash interrupted. Does nothing to any other folder.
pub fn recover(out: &Path) -> Result<(), FileError> {
    if !out.join(DECIDED).exists() && !out.join(REPLACED).exists() {
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

/// The steps that make the new dataset the one.
fn decide(out: &Path, staged: &Path) -> Vec<Step> {
    vec![
        Step::Sync(staged.join(RECORDS)),
        Step::Sync(staged.to_owned()),
        Step::Decide(staged.to_owned(), out.join(DECIDED)),
        Step::Sync(out.to_owned()),
    ]
}

/// The steps that are left to bring the parts of the new dataset to their places.
fn install(out: &Path) -> Result<Vec<Step>, FileError> {
    let decided = out.join(DECIDED);
    let replaced = out.join(REPLACED);
    let mut steps = Vec::new();
    if decided.join(RECORDS).exists() {
        if out.join(RECORDS).exists() {
            steps.push(Step::Remove(replaced.clone()));
            steps.push(Step::Rename(out.join(RECORDS), replaced.clone()));
        }
        steps.push(Step::Rename(decided.join(RECORDS), out.join(RECORDS)));
    }
    let manifest = match Manifest::read(&decided) {
        Ok(manifest) => Some(manifest),
        // In its place already, and so is everything else.
        Err(manifest::Error::Absent { .. }) => None,
        Err(error) => {
            let source = io::Error::new(io::ErrorKind::InvalidData, error);
            return Err(FileError::io("read", &decided.join(manifest::NAME))(source));
        }
    };
    if let Some(manifest) = manifest {
        for name in OTHERS {
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
mod tests {
    use super::*;
    use crate::manifest::tests::manifest;
    use crate::manifest::{FileEntry, NAME};

    /// A dataset of two files, one of the records, each holding the dataset's name.
    fn write(folder: &Path, name: &str, other: &str) {
        fs::create_dir_all(folder.join(RECORDS)).unwrap();
        let file = |name: String| FileEntry { name, bytes: 0, blake3: String::new() };
        let files = [format!("{RECORDS}/{name}"), other.to_owned()].map(file);
        for FileEntry { name: file, .. } in &files {
            fs::write(folder.join(file), name).unwrap();
        }
        let manifest = Manifest { name: name.into(), files: files.into(), ..manifest() };
        fs::write(folder.join(NAME), manifest.text()).unwrap();
    }

    fn assert_holds(out: &Path, name: &str, other: &str) {
        let found: Vec<PathBuf> =
            crate::fixture::contents(out).into_iter().map(|(path, _)| path).collect();
        let mut expected =
            [NAME.into(), format!("{RECORDS}/{name}"), other.into()].map(PathBuf::from);
        expected.sort();
        assert_eq!(found, expected);
        assert_eq!(Manifest::read(out).unwrap().name, name);
        assert_eq!(fs::read_to_string(out.join(other)).unwrap(), name);
        let folders = [STAGED, DECIDED, REPLACED].map(|name| out.join(name).exists());
        assert_eq!(folders, [false; 3]);
    }

    /// The steps of a whole swap are `decide` and, once those are done, `install`.
    fn perform(out: &Path, steps: usize) -> bool {
        let decide = decide(out, &out.join(STAGED));
        let first = steps.min(decide.len());
        decide[..first].iter().for_each(|step| step.perform().unwrap());
        if first < decide.len() {
            return false;
        }
        let install = install(out).unwrap();
        let second = (steps - first).min(install.len());
        install[..second].iter().for_each(|step| step.perform().unwrap());
        second == install.len()
    }

    #[test]
    fn a_crash_between_any_two_steps_leaves_the_old_or_the_new() {
        let mut outcomes = Vec::new();
        for steps in 0.. {
            let folder = tempfile::tempdir().unwrap();
            let out = folder.path();
            write(out, "old", "counts.parquet");
            write(&out.join(STAGED), "new", "priors.json");
            let finished = perform(out, steps);
            recover(out).unwrap();
            recover(out).unwrap();
            let new = !out.join(STAGED).exists();
            // What opens the folder next for sealing starts from nothing staged.
            drop(Staging::create(out).unwrap());
            if new {
                assert_holds(out, "new", "priors.json");
            } else {
                assert_holds(out, "old", "counts.parquet");
            }
            outcomes.push(new);
            if finished {
                break;
            }
        }
        // Old up to the renaming that decides, new from there on.
        assert_eq!(outcomes.iter().filter(|&&new| !new).count(), 3);
        assert!(outcomes.is_sorted() && outcomes.len() > 12);
    }

    #[test]
    fn a_crash_during_recovery_is_recovered_from() {
        for crash in 0..20 {
            let folder = tempfile::tempdir().unwrap();
            let out = folder.path();
            write(out, "old", "counts.parquet");
            write(&out.join(STAGED), "new", "priors.json");
            // The old records are aside, the new ones not in place; then another crash.
            perform(out, decide(out, &out.join(STAGED)).len() + 2);
            install(out).unwrap().iter().take(crash).for_each(|step| step.perform().unwrap());
            recover(out).unwrap();
            assert_holds(out, "new", "priors.json");
        }
    }

    #[test]
    fn a_removal_that_was_begun_is_finished() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path();
        write(out, "new", "priors.json");
        fs::create_dir_all(out.join(REPLACED)).unwrap();
        fs::write(out.join(REPLACED).join("part"), "old").unwrap();
        fs::create_dir_all(out.join(DECIDED)).unwrap();
        recover(out).unwrap();
        assert_holds(out, "new", "priors.json");
    }

    #[test]
    fn whoever_hung_while_another_sealed_has_nothing_to_put_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path();
        let hung = Staging::create(out).unwrap();
        write(&hung.folder, "hung", "counts.parquet");
        let other = Staging::create(out).unwrap();
        assert_ne!(hung.folder, other.folder);
        write(&other.folder, "new", "priors.json");
        assert!(hung.publish().is_err());
        other.publish().unwrap();
        assert_holds(out, "new", "priors.json");
        // The same after the other has finished.
        let hung = Staging { out: out.to_owned(), folder: out.join("sealing.tmp-gone") };
        assert!(hung.publish().is_err());
        assert_holds(out, "new", "priors.json");
    }

    #[test]
    fn reading_a_folder_without_leftovers_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "old", "priors.json");
        write(&folder.path().join(STAGED), "half", "priors.json");
        recover(folder.path()).unwrap();
        assert!(folder.path().join(STAGED).exists(), "another process may be sealing");
        recover(&folder.path().join("nowhere")).unwrap();
    }
}
