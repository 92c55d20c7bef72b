//! A dataset's folder: the files that it may hold, and whether they belong together right now.
//!
//! A writer replaces a dataset in steps, of which the manifest is the last. Readers never write: they look
//! at the folder before and after reading, and what they read counts only if nothing was moved in between.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// What the dataset is; it lists the other files.
pub const MANIFEST: &str = "manifest.json";

/// The study that was run.
pub const STUDY: &str = "study.toml";

/// The folder of the records.
pub const RECORDS: &str = "records";

/// Files beside the records, of which a dataset may lack some.
pub const TABLES: [&str; 4] = ["counts.parquet", "domain.parquet", "priors.json", "codebook.csv"];

/// A new dataset on its way into the folder, while parts of it are still in here.
pub const REPLACING: &str = "sealing.done";

/// Whether a dataset can hold a file of this name. Names from a manifest, an index or the network are joined to
/// a folder only if they are one of these.
pub fn is_file(name: &str) -> bool {
    name == MANIFEST || name == STUDY || is_listed(name)
}

/// Whether a manifest can list a file of this name: all files but itself and the study.
pub fn is_listed(name: &str) -> bool {
    TABLES.contains(&name) || is_records(name)
}

/// Whether this is the name of a file of records: `records/part-00000.parquet`.
pub fn is_records(name: &str) -> bool {
    let number = name.strip_prefix(RECORDS).and_then(|name| name.strip_prefix("/part-"));
    let number = number.and_then(|name| name.strip_suffix(".parquet")).unwrap_or_default();
    (1..=10).contains(&number.len()) && number.bytes().all(|digit| digit.is_ascii_digit())
}

/// Opens a file of somebody else's folder. Anything but a regular file is refused: a pipe or a device may never end,
/// or never begin.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), path)
}

/// The same with other options.
pub fn open_with(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let without_waiting = OFlags::NONBLOCK.bits().cast_signed();
    let file = options.custom_flags(without_waiting).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    let found = if kind.is_dir() { "a folder" } else { "a pipe, a device or a socket" };
    Err(io::Error::other(format!("it is {found}; give a regular file")))
}

/// All of a regular file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What a folder held at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    manifest: Option<[u8; 32]>,
    replacing: bool,
}

impl Moment {
    /// Looks at a folder. A manifest that is absent or unreadable is none.
    pub fn of(folder: &Path) -> Self {
        // In this order: a swap that ends in between shows in the manifest.
        let replacing = folder.join(REPLACING).join(MANIFEST).exists();
        let manifest = read(&folder.join(MANIFEST)).ok();
        Self { manifest: manifest.map(|text| blake3::hash(&text).into()), replacing }
    }

    /// Whether a writer is between the first and the last step of replacing the dataset, or was interrupted there.
    pub fn is_replacing(&self) -> bool {
        self.replacing
    }

    /// Whether all that was read of the folder since this moment is of one dataset.
    pub fn lasts(&self, folder: &Path) -> bool {
        !self.replacing && *self == Self::of(folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_a_dataset_are_named() {
        for name in ["manifest.json", "study.toml", "counts.parquet", "records/part-00000.parquet"]
        {
            assert!(is_file(name), "{name}");
        }
        assert!(
            is_listed("codebook.csv") && !is_listed("manifest.json") && !is_listed("study.toml")
        );
        for name in [
            "",
            ".",
            "..",
            ".profile",
            "/etc/passwd",
            "../study.toml",
            "./study.toml",
            "study.toml/",
            "study.toml\0",
            "records",
            "records/",
            "records/.part-00000.parquet",
            "records/part-.parquet",
            "records/part-0x1.parquet",
            "records/part-+1.parquet",
            "records/part-../../x.parquet",
            "records//part-00000.parquet",
            "records\\part-00000.parquet",
            "records/part-00000000000.parquet",
            "report.html",
            "C:study.toml",
        ] {
            assert!(!is_file(name) && !is_listed(name), "{name:?}");
        }
    }
}
