//! Whether a dataset is what its manifest says.

use std::path::Path;

use study::folder::is_records;

use super::{Error, Reader, check, counts, steadily};
use crate::census::Census;
use crate::manifest::Manifest;

/// Checks every file's bytes, then recomputes the digest and the numbers of the records from the
/// Parquet files.
pub fn verify(dir: &Path) -> Result<Manifest, Error> {
    steadily(dir, || verify_once(dir))
}

fn verify_once(dir: &Path) -> Result<Manifest, Error> {
    let mut reader = Reader::open(dir)?;
    let manifest = reader.manifest().clone();
    let mut others = manifest.files.iter().filter(|file| !is_records(&file.name));
    others.try_for_each(|file| check(dir, file).map(drop))?;
    let mut census = Census::default();
    reader.try_for_each(|batch| census.add(&batch?).map_err(Error::from))?;
    if let Some(counts) = counts(dir)? {
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
