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

use study::family::{Claims, EarlierFamily, Impossible, MOST_FAMILIES};

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
    /// Has a family of verdicts that no study file makes.
    #[error("{} is not the manifest of a dataset: {family}: {source}", path.display())]
    Family {
        /// The manifest.
        path: PathBuf,
        /// Which family.
        family: String,
        /// What is wrong with it.
        source: Impossible,
    },
    /// Has a value that no dataset has.
    #[error("{} is not the manifest of a dataset: {reason}", path.display())]
    Value {
        /// The manifest.
        path: PathBuf,
        /// What is wrong.
        reason: String,
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
        let text = study::folder::read(&path).map_err(|source| match source.kind() {
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
            // Of a schema that nobody here knows, it may be anything.
            let version = version.chars().take(40).flat_map(char::escape_debug).collect();
            return Err(Error::Newer { path, found: *found, version });
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
        manifest.check_values().map_err(|reason| Error::Value { path: path.clone(), reason })?;
        manifest.check_families().map_err(|(family, source)| Error::Family {
            path,
            family,
            source,
        })?;
        Ok(manifest)
    }

    /// Refuses what would be printed or counted as it is.
    fn check_values(&self) -> Result<(), String> {
        let Self { digest, study, study_digest, version, numerics, detail, .. } = self;
        let valid = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
        for (key, text) in [
            ("digest", digest),
            ("study", study),
            ("study_digest", study_digest),
            ("version", version),
            ("numerics", numerics),
            ("detail", detail),
        ] {
            if text.len() > 100 || !text.chars().all(valid) {
                return Err(format!("its {key} is not valid"));
            }
        }
        if self.earlier_families.len() > MOST_FAMILIES {
            let count = self.earlier_families.len();
            return Err(format!(
                "it has {count} earlier families, and {MOST_FAMILIES} are possible"
            ));
        }
        Ok(())
    }

    fn check_families(&self) -> Result<(), (String, Impossible)> {
        let now = self.family.check(self.claims.as_ref());
        now.map_err(|source| ("its family".to_owned(), source))?;
        for (at, earlier) in self.earlier_families.iter().enumerate() {
            earlier.check().map_err(|source| (format!("its earlier family {}", at + 1), source))?;
        }
        Ok(())
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
                digest: study::family::FamilyDigest::default(),
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

    /// A manifest with an earlier family that a study file could make.
    fn changed_once() -> serde_json::Value {
        let mut manifest = serde_json::to_value(manifest()).unwrap();
        let claims = serde_json::json!({
            "test": ["lemma1.*", "mine"],
            "own": [{ "id": "mine", "holds": "y <= 1", "budget": "delta", "quantifier": "each t" }],
            "T": [1, 5],
            "delta": [0.1, 0.2],
        });
        let family = serde_json::json!({
            "rows": 8, "alpha": 0.05, "evidence": 320.0, "n_opt": 2000.0,
            "claims": claims, "replicates": { "0123456789abcdef": 12 },
        });
        manifest["earlier_families"] = serde_json::json!([family]);
        manifest
    }

    /// Reads a manifest after a change of its earlier family, whose digest is that of its claims.
    fn read_after(change: impl Fn(&mut serde_json::Value)) -> Result<Manifest, Error> {
        let mut value = changed_once();
        change(&mut value["earlier_families"][0]);
        let mut manifest: Manifest = serde_json::from_value(value).unwrap();
        for earlier in &mut manifest.earlier_families {
            earlier.family.digest = earlier.claims.as_ref().unwrap().digest();
        }
        Manifest::parse(manifest.text().as_bytes(), NAME.into())
    }

    #[test]
    fn earlier_families_are_such_as_study_files_make() {
        assert_eq!(read_after(|_| ()).unwrap().earlier_families.len(), 1);
        let long = format!("y <= 1{}", " AND y <= 1".repeat(4000));
        let every: Vec<u32> = (1..=60_000).collect();
        let levels: Vec<f64> = (1..100).map(|level| f64::from(level) / 100.0).collect();
        let changes: [(&str, serde_json::Value, &str); 21] = [
            ("/claims/own/0/holds", long.clone().into(), "[[claim]] 1: holds has 20004 words"),
            ("/claims/own/0/budget", long.into(), "[[claim]] 1: budget has 20004 words"),
            ("/claims/own/0/holds", " ".into(), "holds is empty"),
            ("/claims/own/0/id", "my claim\u{1b}[2J".into(), "its id is not a name"),
            ("/claims/T", vec![u32::MAX].into(), "a T is not between 1 and 65536"),
            ("/claims/T", vec![0].into(), "a T is not between"),
            ("/claims/T", vec![5, 1].into(), "T or delta is empty or not ascending"),
            ("/claims/T", Vec::<u32>::new().into(), "T or delta is empty"),
            ("/claims/delta", Vec::<f64>::new().into(), "T or delta is empty"),
            ("/claims/delta", vec![0.0, 0.1].into(), "a delta is not a probability"),
            ("/claims/delta", vec![1.0].into(), "a delta is not a probability"),
            ("/claims/test", vec!["a*"; 2000].into(), "it tests 2000 globs"),
            ("/rows", 1_000_000_000_000_000_u64.into(), "it has 1000000000000000 rows"),
            ("/alpha", 0.5.into(), "alpha = 0.5 is not a level"),
            ("/alpha", 0.into(), "alpha = 0 is not a level"),
            ("/evidence", 0.5.into(), "evidence = 0.5 is not above 1"),
            ("/n_opt", 0.into(), "n_opt = 0 is not a number of trials"),
            ("/n_opt", 1e300.into(), "is not a number of trials"),
            ("/replicates/0123456789abcdef", u64::MAX.into(), "more than 9007199254740992"),
            ("/claims/own", Vec::<()>::new().into(), ""),
            ("/claims/test", Vec::<()>::new().into(), ""),
        ];
        for (place, value, reason) in changes {
            let read = read_after(|family| *family.pointer_mut(place).unwrap() = value.clone());
            match read {
                Ok(_) => assert_eq!(reason, "", "{place}"),
                Err(error @ Error::Family { .. }) => {
                    let error = error.to_string();
                    assert!(error.contains("its earlier family 1: "), "{error}");
                    assert!(!reason.is_empty() && error.contains(reason), "{error}");
                }
                Err(error) => panic!("{place}: {error}"),
            }
        }
        let refused = |change: &dyn Fn(&mut serde_json::Value)| {
            let error = read_after(|family| change(family)).unwrap_err();
            assert!(matches!(error, Error::Family { .. }), "{error}");
            error.to_string()
        };
        let twice = refused(&|family| {
            let claim = family["claims"]["own"][0].clone();
            family["claims"]["own"].as_array_mut().unwrap().push(claim);
        });
        assert!(twice.contains("two [[claim]]s have one id"), "{twice}");
        let many = refused(&|family| {
            family["claims"]["T"] = every.clone().into();
            family["claims"]["delta"] = levels.clone().into();
        });
        assert!(many.contains("more than 1048576 rows in a cell"), "{many}");
        let elsewhere = refused(&|family| family["replicates"]["../../home"] = 1.into());
        assert!(elsewhere.contains("no cell"), "{elsewhere}");
    }

    #[test]
    fn families_have_the_digests_of_their_claims() {
        let mut manifest: Manifest = serde_json::from_value(changed_once()).unwrap();
        let of = |manifest: &Manifest| Manifest::parse(manifest.text().as_bytes(), NAME.into());
        // Versions that knew no digests wrote none.
        assert_eq!(of(&manifest).unwrap(), manifest);
        manifest.earlier_families[0].family.digest.0[7] = 1;
        let error = of(&manifest).unwrap_err().to_string();
        assert!(error.contains("its claims have the digest"), "{error}");
        let earlier = manifest.earlier_families.remove(0);
        (manifest.family, manifest.claims) = (earlier.family, earlier.claims.clone());
        let error = of(&manifest).unwrap_err().to_string();
        assert!(error.contains("its family: its claims have the digest"), "{error}");
        manifest.family.digest = manifest.claims.as_ref().unwrap().digest();
        of(&manifest).unwrap();
        manifest.earlier_families = vec![earlier; MOST_FAMILIES + 1];
        let error = of(&manifest).unwrap_err().to_string();
        assert!(error.contains("4097 earlier families"), "{error}");
    }

    #[test]
    fn what_a_terminal_would_act_on_is_not_printed() {
        let text = r#"{ "schema": 3, "version": "7.1.0\u001b]0;owned\u0007" }"#;
        let error = written(text).unwrap_err().to_string();
        assert!(error.contains("7.1.0") && !error.contains(char::is_control), "{error:?}");
        let manifest = Manifest { numerics: "\u{1b}[2J".into(), ..manifest() };
        let error = written(&manifest.text()).unwrap_err().to_string();
        assert!(error.contains("its numerics is not valid"), "{error:?}");
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
