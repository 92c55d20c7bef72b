//! The files that a prior names, by content.

use super::{Invalid, Table, TableError};
use std::collections::BTreeMap;

/// A numeric file: its bytes, their BLAKE3 digest, and the numbers in them.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    bytes: Vec<u8>,
    digest: [u8; 32],
    table: Table,
}

/// Files by the path that the study file gives them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Files {
    by_path: BTreeMap<String, File>,
    /// What is wrong with files that have missing entries, where these are not expected.
    gaps: BTreeMap<String, Option<TableError>>,
}

impl File {
    /// The content.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
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
        let table = Table::parse_incomplete(path, &bytes)?;
        if table.values().iter().any(|value| value.is_nan()) {
            self.gaps.insert(path.to_owned(), Table::parse(path, &bytes).err());
        }
        let digest = blake3::hash(&bytes).into();
        self.by_path.insert(path.to_owned(), File { bytes, digest, table });
        Ok(())
    }

    /// Every file with its path, in order of path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &File)> {
        self.by_path.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// What whoever gave the files should know of how they were read.
    pub fn notices(&self) -> impl Iterator<Item = &str> {
        self.by_path.values().filter_map(|file| file.table.notice())
    }

    /// The numbers in the file that `key` of the study names, all of which are there.
    pub fn table(&self, key: &str, path: &str) -> Result<&Table, Invalid> {
        match self.gaps.get(path) {
            Some(Some(error)) => {
                Err(Invalid::Gaps { key: key.to_owned(), error: error.to_string() })
            }
            _ => self.incomplete(key, path),
        }
    }

    /// The same, with NaN for entries that are missing.
    pub fn incomplete(&self, key: &str, path: &str) -> Result<&Table, Invalid> {
        let file = self.by_path.get(path);
        let missing = || Invalid::NotLoaded { key: key.to_owned(), path: path.to_owned() };
        file.map(|file| &file.table).ok_or_else(missing)
    }

    /// Checks that a file is there and of the `needed` shape.
    pub(super) fn shaped(
        &self,
        key: &str,
        path: &str,
        needed: String,
        fits: impl Fn(&Table) -> bool,
    ) -> Result<(), Invalid> {
        let table = self.incomplete(key, path)?;
        if fits(table) {
            return Ok(());
        }
        Err(Invalid::Shape {
            key: key.to_owned(),
            path: path.to_owned(),
            rows: table.rows(),
            columns: table.columns(),
            needed,
        })
    }

    /// # Panics
    /// Where the file has not been loaded.
    pub(super) fn digest(&self, path: &str) -> &[u8; 32] {
        self.by_path.get(path).expect("the files of a prior are loaded before it is fed").digest()
    }
}
