//! Whether a dataset is what its manifest says.

use std::path::Path;

use study::folder::is_records;

use super::steady::{Patience, within};
use super::{Error, Reader, check, counts_within};
use crate::census::Census;
use crate::manifest::Manifest;

/// Checks every file's bytes, then recomputes the digest and the numbers of the records from the
/// Parquet files.
pub fn verify(dir: &Path) -> Result<Manifest, Error> {
    verify_within(Patience::default(), dir)
}

/// The same with other patience.
pub(crate) fn verify_within(patience: Patience, dir: &Path) -> Result<Manifest, Error> {
    within(patience, dir, || verify_once(patience, dir))
}

fn verify_once(patience: Patience, dir: &Path) -> Result<Manifest, Error> {
    let mut reader = Reader::open_within(patience, dir)?;
    let manifest = reader.manifest().clone();
    let mut others = manifest.files.iter().filter(|file| !is_records(&file.name));
    others.try_for_each(|file| check(dir, file).map(drop))?;
    let mut census = Census::default();
    reader.try_for_each(|batch| census.add(&batch?).map_err(Error::from))?;
    if let Some(counts) = counts_within(patience, dir)? {
        for count in counts {
            census.add_count(&count?);
        }
    }
    if census.digest() != manifest.digest {
        return Err(Error::Digest { expected: manifest.digest, found: census.digest() });
    }
    let mut totals = vec![("records", manifest.records, census.records())];
    // A summary has records of some trials only; its numbers stand on its counts.
    if manifest.detail != "summary" {
        totals.push(("trials", manifest.trials, census.trials()));
        totals.push(("failed trials", manifest.failures, census.failures()));
    }
    match totals.into_iter().find(|(_, expected, found)| expected != found) {
        Some((what, expected, found)) => Err(Error::Total { what, expected, found }),
        None => Ok(manifest),
    }
}
