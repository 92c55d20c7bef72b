//! The index of a dataset: digest, size and name of every file, one a line.

use std::fmt::Write;

use study::folder::is_file;

/// Digits of a version.
const DIGITS: usize = 16;

/// A file of a dataset and what proves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// BLAKE3 of its bytes.
    pub digest: blake3::Hash,
    /// Its length.
    pub bytes: u64,
    /// Its path within the dataset.
    pub name: String,
}

/// All files of a dataset. Its version is its own digest, so that another dataset has another version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index(pub Vec<Entry>);

impl Index {
    /// The version: 16 hexadecimal digits.
    pub fn version(&self) -> String {
        blake3::hash(self.lines("").as_bytes()).to_hex()[..DIGITS].to_owned()
    }

    /// The files of the dataset itself.
    pub fn files(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter().filter(|entry| is_file(&entry.name))
    }

    /// Bytes of these.
    pub fn bytes(&self) -> u64 {
        self.files().map(|entry| entry.bytes).sum()
    }

    /// What is kept: names are below the version.
    pub(super) fn text(&self) -> String {
        self.lines(&format!("{}/", self.version()))
    }

    fn lines(&self, folder: &str) -> String {
        let mut lines = String::new();
        for Entry { digest, bytes, name } in &self.0 {
            writeln!(lines, "{digest} {bytes} {folder}{name}").expect("a string takes text");
        }
        lines
    }

    /// From what is kept; `None` where it is empty, cut off or altered, or names what no dataset has.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let files: Option<Vec<Entry>> = text.lines().map(entry).collect();
        let index = Self(files?);
        (!text.is_empty() && index.text() == text).then_some(index)
    }
}

fn entry(line: &str) -> Option<Entry> {
    let (digest, rest) = line.split_once(' ')?;
    let (bytes, path) = rest.split_once(' ')?;
    let (_, name) = path.split_once('/')?;
    let (digest, bytes) = (digest.parse().ok()?, bytes.parse().ok()?);
    let is_known = is_file(name) || is_analysis(name);
    is_known.then(|| Entry { digest, bytes, name: name.to_owned() })
}

/// Whether this is a file of an analysis. Versions before schema 2 put those, too, where a folder had them; they
/// count for the index's version and are never read.
fn is_analysis(name: &str) -> bool {
    let inner = name.strip_prefix("tables/").or_else(|| name.strip_prefix("figures/"));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    inner.is_some_and(|name| !name.is_empty() && name.bytes().all(plain))
        || ["verdicts.json", "report.html", "recheck.py"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(names: &[&str]) -> Index {
        let entry = |name: &&str| Entry {
            digest: blake3::hash(name.as_bytes()),
            bytes: 7,
            name: (*name).to_owned(),
        };
        Index(names.iter().map(entry).collect())
    }

    #[test]
    fn an_index_survives_its_text_and_no_change_of_it() {
        let index = index(&["records/part-1.parquet", "manifest.json"]);
        let text = index.text();
        assert_eq!(Index::parse(&text), Some(index));
        for end in 0..text.len() {
            assert_eq!(Index::parse(&text[..end]), None, "{end}");
        }
        assert_eq!(Index::parse(&text.replace(" 7 ", " 8 ")), None);
    }

    #[test]
    fn files_of_an_analysis_are_known_and_not_read() {
        let old = index(&["verdicts.json", "tables/a.csv", "study.toml", "manifest.json"]);
        assert_eq!(Index::parse(&old.text()), Some(old.clone()));
        let read: Vec<&str> = old.files().map(|entry| entry.name.as_str()).collect();
        assert_eq!(read, ["study.toml", "manifest.json"]);
        assert_eq!(old.bytes(), 14);
        assert_eq!(Index::parse(&index(&["tables/../x"]).text()), None);
    }

    #[test]
    fn only_files_of_a_dataset_are_named() {
        for name in ["../x", "/etc/passwd", "records/../../x", "", ".profile", "records/x", "x"] {
            assert_eq!(Index::parse(&index(&[name]).text()), None, "{name}");
        }
    }
}
