//! `manifest.json`: what a dataset is, and the digests that prove it.
//!
//! Its line `checksum` is BLAKE3 of the file without this line, so that no bit of it changes unnoticed:
//! `grep -v '^  "checksum"' manifest.json | b3sum` gives the same.

mod cell;

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use study::file::is_name;
use study::folder::is_listed;

use study::family::{Claims, EarlierFamily};

pub use cell::CellEntry;
pub use study::family::Family;

/// The schema of datasets that this version writes.
pub const SCHEMA: u32 = 2;

/// The schema before, which is read as well: its manifests have no checksum.
const UNCHECKED: u32 = 1;

/// The manifest's name in a dataset's folder.
pub const NAME: &str = study::folder::MANIFEST;

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
    /// Not the bytes that were sealed.
    #[error("{} was changed since it was sealed: {reason}", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Lists a file that no dataset has.
    #[error("{} lists {name:?}, which is not the name of a file of a dataset", path.display())]
    Foreign {
        /// The manifest.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// Names a study as no study can be named.
    #[error("{} is of a study {name:?}, which is not the name of a study", path.display())]
    Name {
        /// The manifest.
        path: PathBuf,
        /// The name.
        name: String,
    },
}

impl Error {
    /// Whether the manifest was read and found to be another than was sealed.
    pub fn is_mismatch(&self) -> bool {
        matches!(self, Self::Changed { .. })
    }
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
        let header = serde_json::from_slice::<Header>(text).map_err(invalid);
        if let Ok(Header { schema: found, version }) = &header
            && *found > SCHEMA
        {
            return Err(Error::Newer { path, found: *found, version: version.clone() });
        }
        let is_old = header.as_ref().is_ok_and(|header| header.schema == UNCHECKED);
        match check(text) {
            Ok(is_checked) if is_checked || is_old => {}
            Ok(_) => {
                header?;
                return Err(Error::Changed { path, reason: "it has no checksum".into() });
            }
            Err(reason) => return Err(Error::Changed { path, reason }),
        }
        let manifest: Self = serde_json::from_slice(text).map_err(invalid)?;
        if let Some(file) = manifest.files.iter().find(|file| !is_listed(&file.name)) {
            return Err(Error::Foreign { path, name: file.name.clone() });
        }
        if !is_name(&manifest.name) {
            return Err(Error::Name { path, name: manifest.name });
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

    /// Whether a checksum proves the manifest; those of older versions have none.
    pub fn is_checked(&self) -> bool {
        self.schema != UNCHECKED
    }

    /// The file's text.
    ///
    /// # Panics
    /// Never: a manifest has text keys and finite numbers.
    pub fn text(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        let text = text.expect("a manifest has text keys and finite numbers") + "\n";
        if !self.is_checked() {
            return text;
        }
        // After the schema, which is the first line within the braces.
        let at = text.match_indices('\n').nth(1).map_or(0, |(at, _)| at + 1);
        let (head, rest) = text.split_at(at);
        format!("{head}{}{rest}", line(&blake3::hash(text.as_bytes())))
    }
}

/// How the line of the checksum begins.
const KEY: &[u8] = b"  \"checksum\"";

fn line(checksum: &blake3::Hash) -> String {
    format!("  \"checksum\": \"{checksum}\",\n")
}

/// Whether a text has a checksum; the error is that it is another's.
fn check(text: &[u8]) -> Result<bool, String> {
    let mut hasher = blake3::Hasher::new();
    let mut found = None;
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        if found.is_none() && line.starts_with(KEY) {
            found = Some(line);
        } else {
            hasher.update(line);
        }
    }
    let Some(found) = found else { return Ok(false) };
    let expected = line(&hasher.finalize());
    if found == expected.as_bytes() {
        return Ok(true);
    }
    let (found, expected) = (String::from_utf8_lossy(found), expected.trim());
    Err(format!("its content gives {expected} and it says {}", found.trim()))
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
            files: vec![FileEntry {
                name: "records/part-00000.parquet".into(),
                bytes: 3,
                blake3: "aa".into(),
            }],
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
        let text = r#"{ "schema": 3, "version": "7.1.0", "surprise": [] }"#;
        let error = written(text).unwrap_err();
        assert!(matches!(&error, Error::Newer { found: 3, .. }));
        assert!(error.to_string().contains("use version 7.1.0 or later"), "{error}");
    }

    #[test]
    fn what_is_no_manifest_is_refused() {
        assert!(matches!(written("{").unwrap_err(), Error::Invalid { .. }));
        assert!(matches!(written(r#"{ "schema": 1 }"#).unwrap_err(), Error::Invalid { .. }));
        let empty = tempfile::tempdir().unwrap();
        assert!(matches!(Manifest::read(empty.path()).unwrap_err(), Error::Absent { .. }));
        for name in ["/etc/passwd", "../secret", "records/../../x", ".profile", "manifest.json"] {
            let mut manifest = manifest();
            manifest.files[0].name = name.into();
            assert!(matches!(written(&manifest.text()).unwrap_err(), Error::Foreign { .. }));
        }
        for name in ["", "..", "../mine", "/tmp/mine", ".ssh", "a/b", "a\\b", "a\0b"] {
            let manifest = Manifest { name: name.into(), ..manifest() };
            assert!(matches!(written(&manifest.text()).unwrap_err(), Error::Name { .. }), "{name}");
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let good = manifest().text().into_bytes();
        let mut named = 0;
        for bit in 0..8 * good.len() {
            let mut text = good.clone();
            text[bit / 8] ^= 1 << (bit % 8);
            let error = Manifest::parse(&text, NAME.into()).unwrap_err();
            named += usize::from(error.is_mismatch());
        }
        // The rest has neither a checksum nor JSON any more, or is of a later schema.
        assert!(8 * good.len() - named < 200, "{named} of {}", 8 * good.len());
    }

    #[test]
    fn a_manifest_without_its_checksum_is_refused_unless_it_is_old() {
        let whole = manifest().text();
        let (first, rest) = whole.split_at(whole.find("  \"checksum").unwrap());
        let rest = &rest[rest.find('\n').unwrap() + 1..];
        let removed = format!("{first}{rest}");
        assert!(matches!(written(&removed).unwrap_err(), Error::Changed { .. }));
        let twice = whole.replacen("  \"checksum", "  \"checksum\": \"\",\n  \"checksum", 1);
        assert!(matches!(written(&twice).unwrap_err(), Error::Changed { .. }));
        assert!(matches!(written(&whole.replace("  ", "   ")), Err(Error::Changed { .. })));
        let old = Manifest { schema: 1, ..manifest() };
        assert!(!old.text().contains("checksum"));
        assert_eq!(written(&old.text()).unwrap(), old);
    }
}
