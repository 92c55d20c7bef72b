//! `manifest.json`: what a dataset is, and the digests that prove it.

mod cell;

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use study::family::{Claims, EarlierFamily};

pub use cell::CellEntry;
pub use study::family::Family;

/// The schema of datasets that this version writes and reads.
pub const SCHEMA: u32 = 1;

/// The manifest's name in a dataset's folder.
pub const NAME: &str = "manifest.json";

/// What a dataset's folder holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the schema of records and of this file.
    pub schema: u32,
    /// BLAKE3 over the values of all records, then of all counts, in canonical order.
    pub digest: String,
    /// Trials that ran.
    pub trials: u64,
    /// Rows of `records/`.
    pub records: u64,
    /// Trials with at least one failed record.
    pub failures: u64,
    /// The study: 12 hexadecimal digits.
    pub study: String,
    /// The study: 64 hexadecimal digits.
    pub study_digest: String,
    /// The study's name.
    pub name: String,
    /// The study's seed.
    pub seed: u64,
    /// Version of regretta that sealed it.
    pub version: String,
    /// Digest of the fixed trials that every worker ran on joining.
    pub numerics: String,
    /// What was recorded: "checkpoints", "steps" or "summary".
    pub detail: String,
    /// The family of verdicts.
    pub family: Family,
    /// Its claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claims: Option<Claims>,
    /// The families that the study had before it was changed, oldest first: what they planned stays
    /// theirs, and what was planned later is exploratory on the replicates that there were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier_families: Vec<EarlierFamily>,
    /// All other files of the dataset.
    pub files: Vec<FileEntry>,
    /// The cells, ascending.
    pub cells: Vec<CellEntry>,
}

/// A file and what proves it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Path within the dataset's folder.
    pub name: String,
    /// Length.
    pub bytes: u64,
    /// BLAKE3 of the bytes, as `b3sum` prints it.
    pub blake3: String,
}

/// Why a folder has no usable manifest.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is none.
    #[error("{} holds no dataset: it has no {NAME}", folder.display())]
    Absent {
        /// The folder.
        folder: PathBuf,
    },
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Written by a later version.
    #[error(
        "{} has schema {found}, and this version of regretta reads schemas up to {SCHEMA}: \
         use version {version} or later, which wrote it",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: u32,
        /// The version of regretta that wrote it.
        version: String,
    },
    /// Not a manifest.
    #[error("{} is not a manifest: {source}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// Names a file outside its folder.
    #[error("{} names the file {name:?}, which is not within its folder", path.display())]
    Outside {
        /// The manifest.
        path: PathBuf,
        /// The name.
        name: String,
    },
}

/// What every version's manifest has.
#[derive(Deserialize)]
struct Header {
    schema: u32,
    #[serde(default)]
    version: String,
}

impl Manifest {
    /// Reads the manifest of a dataset's folder.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(NAME);
        let text = std::fs::read(&path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => Error::Absent { folder: folder.to_owned() },
            _ => Error::Unreadable { path: path.clone(), source },
        })?;
        Self::parse(&text, path)
    }

    /// From the bytes of a manifest; errors call it by its path.
    pub fn parse(text: &[u8], path: PathBuf) -> Result<Self, Error> {
        let invalid = |source| Error::Invalid { path: path.clone(), source };
        let header: Header = serde_json::from_slice(text).map_err(invalid)?;
        if header.schema > SCHEMA {
            let Header { schema: found, version } = header;
            return Err(Error::Newer { path, found, version });
        }
        let manifest: Self = serde_json::from_slice(text).map_err(invalid)?;
        let outside = |file: &&FileEntry| {
            let mut parts = Path::new(&file.name).components();
            !parts.all(|part| matches!(part, std::path::Component::Normal(_)))
        };
        if let Some(file) = manifest.files.iter().find(outside) {
            return Err(Error::Outside { path, name: file.name.clone() });
        }
        Ok(manifest)
    }

    /// The family, as one that another takes the place of.
    pub fn replaced(&self) -> EarlierFamily {
        let cells = self.cells.iter().filter(|cell| cell.replicates > 0);
        EarlierFamily {
            family: self.family,
            claims: self.claims.clone(),
            replicates: cells.map(|cell| (cell.cell.clone(), cell.replicates)).collect(),
        }
    }

    /// The file's text.
    ///
    /// # Panics
    /// Never: a manifest has text keys and finite numbers.
    pub fn text(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        text.expect("a manifest has text keys and finite numbers") + "\n"
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn manifest() -> Manifest {
        Manifest {
            schema: SCHEMA,
            digest: "00".into(),
            trials: 2,
            records: 4,
            failures: 1,
            study: "0123456789ab".into(),
            study_digest: "0123456789ab".into(),
            name: "mine".into(),
            seed: u64::MAX,
            version: "0.1.0".into(),
            numerics: "ff".into(),
            detail: "steps".into(),
            family: Family {
                rows: 3,
                alpha: 0.05,
                evidence: 60.0,
                n_opt: 2000.0,
                digest: Default::default(),
            },
            claims: None,
            earlier_families: vec![],
            files: vec![FileEntry { name: "records/a".into(), bytes: 3, blake3: "aa".into() }],
            cells: vec![],
        }
    }

    fn written(text: &str) -> Result<Manifest, Error> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(NAME), text).unwrap();
        Manifest::read(folder.path())
    }

    #[test]
    fn a_manifest_survives_its_text() {
        assert_eq!(written(&manifest().text()).unwrap(), manifest());
    }

    #[test]
    fn a_newer_schema_is_refused_with_advice() {
        let text = r#"{ "schema": 2, "version": "7.1.0", "surprise": [] }"#;
        let error = written(text).unwrap_err();
        assert!(matches!(&error, Error::Newer { found: 2, .. }));
        assert!(error.to_string().contains("use version 7.1.0 or later"), "{error}");
    }

    #[test]
    fn what_is_no_manifest_is_refused() {
        assert!(matches!(written("{").unwrap_err(), Error::Invalid { .. }));
        assert!(matches!(written(r#"{ "schema": 1 }"#).unwrap_err(), Error::Invalid { .. }));
        let empty = tempfile::tempdir().unwrap();
        assert!(matches!(Manifest::read(empty.path()).unwrap_err(), Error::Absent { .. }));
        for name in ["/etc/passwd", "../secret", "records/../../x"] {
            let mut manifest = manifest();
            manifest.files[0].name = name.into();
            assert!(matches!(written(&manifest.text()).unwrap_err(), Error::Outside { .. }));
        }
    }
}
