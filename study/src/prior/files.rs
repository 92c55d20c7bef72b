//! The files that a prior names, by content.

use super::{Invalid, Table, TableError};
use std::collections::BTreeMap;

/// A numeric file: its bytes, their BLAKE3 digest, and the numbers in them.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    digest: [u8; 32],
    size: Extent,
    /// Not kept of a file that was only surveyed.
    content: Option<(Vec<u8>, Table)>,
}

/// The size of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

/// Files by the path that the study file gives them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Files {
    by_path: BTreeMap<String, File>,
    /// What is wrong with files that have missing entries, where these are not expected.
    gaps: BTreeMap<String, Option<TableError>>,
}

impl File {
    /// The content; empty where the file was only surveyed.
    pub fn bytes(&self) -> &[u8] {
        self.content.as_ref().map_or(&[], |(bytes, _)| bytes)
    }

    /// BLAKE3 of the content.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }
}

impl Files {
    /// Adds a file whose content is at hand, as a worker gets it from the coordinator. Missing entries
    /// are NaN, and refused by all uses but one: see [`Files::incomplete`].
    pub fn insert(&mut self, path: &str, bytes: Vec<u8>) -> Result<(), TableError> {
        let (digest, table) = self.read(path, &bytes)?;
        let size = Extent { rows: table.rows(), columns: table.columns() };
        let content = Some((bytes, table));
        self.by_path.insert(path.to_owned(), File { digest, size, content });
        Ok(())
    }

    /// Adds what a plan needs of a file: its digest, and the size of its table. Its numbers are checked and
    /// not kept.
    pub fn survey(&mut self, path: &str, bytes: &[u8]) -> Result<[u8; 32], TableError> {
        let (digest, table) = self.read(path, bytes)?;
        let size = Extent { rows: table.rows(), columns: table.columns() };
        self.by_path.insert(path.to_owned(), File { digest, size, content: None });
        Ok(digest)
    }

    fn read(&mut self, path: &str, bytes: &[u8]) -> Result<([u8; 32], Table), TableError> {
        let table = Table::parse_incomplete(path, bytes)?;
        if table.values().iter().any(|value| value.is_nan()) {
            self.gaps.insert(path.to_owned(), Table::parse(path, bytes).err());
        }
        Ok((blake3::hash(bytes).into(), table))
    }

    /// Every file with its path, in order of path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &File)> {
        self.by_path.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// What whoever gave the files should know of how they were read.
    pub fn notices(&self) -> impl Iterator<Item = &str> {
        self.by_path.values().filter_map(|file| file.content.as_ref()?.1.notice())
    }

    /// The numbers in the file that `key` of the study names, all of which are there.
    pub fn table(&self, key: &str, path: &str) -> Result<&Table, Invalid> {
        self.whole(key, path)?;
        self.incomplete(key, path)
    }

    /// The same, with NaN for entries that are missing.
    pub fn incomplete(&self, key: &str, path: &str) -> Result<&Table, Invalid> {
        let content = self.by_path.get(path).and_then(|file| file.content.as_ref());
        content.map(|(_, table)| table).ok_or_else(|| not_loaded(key, path))
    }

    /// The size of the table in a file that may have missing entries.
    pub(crate) fn size(&self, key: &str, path: &str) -> Result<Extent, Invalid> {
        let file = self.by_path.get(path);
        file.map(|file| file.size).ok_or_else(|| not_loaded(key, path))
    }

    /// The same of a file in which nothing may be missing.
    pub(super) fn whole(&self, key: &str, path: &str) -> Result<Extent, Invalid> {
        match self.gaps.get(path) {
            Some(Some(error)) => {
                Err(Invalid::Gaps { key: key.to_owned(), error: error.to_string() })
            }
            _ => self.size(key, path),
        }
    }

    /// Checks that a file is there and of the `needed` shape.
    pub(super) fn shaped(
        &self,
        key: &str,
        path: &str,
        needed: String,
        fits: impl Fn(Extent) -> bool,
    ) -> Result<(), Invalid> {
        let size = self.size(key, path)?;
        if fits(size) {
            return Ok(());
        }
        let Extent { rows, columns } = size;
        Err(Invalid::Shape { key: key.to_owned(), path: path.to_owned(), rows, columns, needed })
    }

    /// # Panics
    /// Where the file has not been loaded.
    pub(super) fn digest(&self, path: &str) -> &[u8; 32] {
        self.by_path.get(path).expect("the files of a prior are loaded before it is fed").digest()
    }
}

fn not_loaded(key: &str, path: &str) -> Invalid {
    Invalid::NotLoaded { key: key.to_owned(), path: path.to_owned() }
}
