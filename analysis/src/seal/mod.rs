//! Sealing: records become a dataset, once, in canonical form.
//!
//! Rows are regrouped into row groups of a fixed size, so that the files' bytes do not depend on how
//! the records arrived; memory is that of a row group, whatever the data's size. Everything is
//! written beside the dataset and swapped in at the end: a crash leaves the old or the new one.

mod error;
mod groups;
mod lock;
mod priors;
mod swap;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use study::family::{self, Claims, EarlierFamily};
use study::folder::STUDY;
use study::{Batch, CellId};

use crate::census::Census;
use crate::codebook;
use crate::counts::{self, Count};
use crate::dataset::Source;
use crate::description::{CellDescription, PriorSummary};
use crate::manifest::{self, CellEntry, Family, FileEntry, Manifest};
use crate::parquet::{self, FileError, Shape, Sink};
use crate::schema::{self, Type};

pub use error::Error;
pub use lock::Lock;
pub use swap::{Staging, recover, recover_locked};

use groups::Groups;

/// Counts in the order of (cell, batch, verdict row).
pub type Counts<'a> = Box<dyn Iterator<Item = Result<Count, Source>> + 'a>;

/// What was recorded of each trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// A record at every checkpoint of the study.
    Checkpoints,
    /// A record at every step.
    Steps,
    /// Counts for all trials, records for some.
    Summary {
        /// Trials that failed, of which not all have records.
        failures: u64,
    },
}

impl Detail {
    /// The name in study files and manifests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Checkpoints => "checkpoints",
            Self::Steps => "steps",
            Self::Summary { .. } => "summary",
        }
    }
}

/// What a dataset says beside its records.
#[derive(Clone, Copy, Debug)]
pub struct Sealing<'a> {
    /// The study's digest; its first 6 bytes name it in records.
    pub study: [u8; 32],
    /// The study's name.
    pub name: &'a str,
    /// The study's seed.
    pub seed: u64,
    /// The version that seals.
    pub version: &'a str,
    /// Digest of the fixed trials that every worker ran on joining.
    pub numerics: &'a str,
    /// What was recorded.
    pub detail: Detail,
    /// The family of verdicts.
    pub family: Family,
    /// Its claims.
    pub claims: Option<&'a Claims>,
    /// The families before it that are known, oldest first.
    pub earlier: &'a [EarlierFamily],
    /// Every cell with records, and those that have none.
    pub cells: &'a [CellDescription],
    /// Every prior.
    pub priors: &'a [PriorSummary],
    /// The text of the study file, which is kept beside the records.
    pub file: &'a str,
    /// The folder.
    pub out: &'a Path,
    /// Row groups and files.
    pub shape: Shape,
}

/// Seals records that come in the order of (cell, replicate, t), and counts where the study has them.
pub fn seal<E: Into<Source>>(
    sealing: &Sealing<'_>,
    batches: impl IntoIterator<Item = Result<Batch, E>>,
    counts: Option<Counts<'_>>,
) -> Result<Manifest, Error> {
    let mut batches = batches.into_iter().map(|batch| batch.map_err(Into::into));
    write(sealing, &mut batches, counts)
}

/// The same over any source of batches: one copy of the code, in this crate.
fn write(
    sealing: &Sealing<'_>,
    batches: &mut dyn Iterator<Item = Result<Batch, Source>>,
    counts: Option<Counts<'_>>,
) -> Result<Manifest, Error> {
    let staging = Staging::create(&Lock::take(sealing.out)?)?;
    let manifest = stage(sealing, batches, counts, &staging);
    // Files that cannot be written because another sealed are no defect of the disk.
    let manifest =
        manifest.or_else(|error| staging.check().map_err(Error::from).and(Err(error)))?;
    staging.publish()?;
    Ok(manifest)
}

/// Writes all files of the dataset beside the one that is there.
fn stage(
    sealing: &Sealing<'_>,
    batches: &mut dyn Iterator<Item = Result<Batch, Source>>,
    counts: Option<Counts<'_>>,
    staging: &Staging,
) -> Result<Manifest, Error> {
    let swept = schema::swept(sealing.cells)?;
    let columns = schema::columns(&swept);
    let mut census = Census::default();
    let mut files = Vec::new();
    let groups = Groups::new(sealing, &swept, batches, &mut census);
    let typed: Vec<(String, Type)> =
        columns.iter().map(|column| (column.name.clone(), column.kind)).collect();
    write_records(staging, &typed, sealing.shape, groups, &mut files)?;
    check_complete(sealing, &census)?;
    if let Some(counts) = counts {
        let counts = counted(counts, &mut census);
        files.push(counts::write(&staging.path(counts::NAME), sealing.shape.rows, counts)?);
    }
    files.push(priors::write_domain(staging, sealing.priors, sealing.shape.rows)?);
    files.push(write_text(staging, "priors.json", &priors::text(sealing.priors))?);
    files.push(write_text(staging, "codebook.csv", &codebook::text(&columns))?);
    write_text(staging, STUDY, sealing.file)?;
    let manifest = manifest(sealing, &census, files);
    write_text(staging, manifest::NAME, &manifest.text())?;
    Ok(manifest)
}

/// The disk space that sealing needs beside what exists, for a number of bytes of encoded batches or
/// of sealed files that are read. A little more than they take: Parquet leaves nulls out and
/// compresses, and adds columns that are constant within a cell.
pub fn needed(bytes: u64) -> u64 {
    const FIXED: u64 = 64 << 20;
    bytes.saturating_add(bytes / 8).saturating_add(FIXED)
}

fn write_records(
    staging: &Staging,
    columns: &[(String, Type)],
    shape: Shape,
    groups: impl Iterator<Item = Result<polars::prelude::DataFrame, Error>>,
    files: &mut Vec<FileEntry>,
) -> Result<(), Error> {
    let mut groups = groups.peekable();
    for part in 0_u32.. {
        let name = format!("records/part-{part:05}.parquet");
        let groups_of_file = groups.by_ref().take(shape.groups);
        files.push(parquet::write(&staging.path(&name), &name, columns, groups_of_file)?);
        if groups.peek().is_none() {
            break;
        }
    }
    Ok(())
}

/// Counts as they pass, in order.
fn counted<'a>(
    counts: Counts<'a>,
    census: &'a mut Census,
) -> impl Iterator<Item = Result<Count, Error>> + 'a {
    let mut last: Option<(CellId, u64)> = None;
    counts.map(move |count| {
        let count = count.map_err(Error::Source)?;
        let key = (count.cell, count.batch);
        if last.is_some_and(|last| last > key) {
            return Err(Error::Counts { cell: count.cell, batch: count.batch });
        }
        last = Some(key);
        census.add_count(&count);
        Ok(count)
    })
}

fn write_text(staging: &Staging, name: &str, text: &str) -> Result<FileEntry, FileError> {
    let path = staging.path(name);
    let mut sink = Sink::create(&path)?;
    sink.write_all(text.as_bytes()).map_err(FileError::io("write", &path))?;
    sink.finish(name)
}

/// Every trial of every cell at every checkpoint, unless the study is a summary.
fn check_complete(sealing: &Sealing<'_>, census: &Census) -> Result<(), Error> {
    if matches!(sealing.detail, Detail::Summary { .. }) {
        return Ok(());
    }
    let found: BTreeMap<_, _> = census.cells().iter().map(|found| (found.cell, found)).collect();
    for cell in sealing.cells {
        let (trials, records) =
            found.get(&cell.id).map_or((0, 0), |found| (found.replicates, found.records));
        let expected = cell.replicates * cell.checkpoints.len() as u64;
        if (trials, records) != (cell.replicates, expected) {
            let (cell, planned) = (cell.id, cell.replicates);
            return Err(Error::Incomplete { cell, trials, planned, records, expected });
        }
    }
    Ok(())
}

fn manifest(sealing: &Sealing<'_>, census: &Census, files: Vec<FileEntry>) -> Manifest {
    let mut cells: Vec<&CellDescription> = sealing.cells.iter().collect();
    cells.sort_by_key(|cell| cell.id);
    let failures = match sealing.detail {
        Detail::Summary { failures } => failures,
        Detail::Checkpoints | Detail::Steps => census.failures(),
    };
    Manifest {
        schema: manifest::SCHEMA,
        digest: census.digest(),
        trials: cells.iter().map(|cell| cell.replicates).sum(),
        records: census.records(),
        failures,
        study: hex(sealing.study)[..12].into(),
        study_digest: hex(sealing.study),
        name: sealing.name.into(),
        seed: sealing.seed,
        version: sealing.version.into(),
        numerics: sealing.numerics.into(),
        detail: sealing.detail.name().into(),
        family: sealing.family,
        claims: sealing.claims.cloned(),
        earlier_families: earlier_families(sealing),
        files,
        cells: cells.into_iter().map(CellEntry::new).collect(),
    }
}

/// The families before this one: also those of the dataset that is replaced, if it is the same study's.
fn earlier_families(sealing: &Sealing<'_>) -> Vec<EarlierFamily> {
    match Manifest::read(sealing.out) {
        Ok(old) if old.study_digest == hex(sealing.study) => {
            let last = old.replaced();
            family::continued(old.earlier_families, last, sealing.earlier, &sealing.family)
        }
        _ => sealing.earlier.to_vec(),
    }
}

/// The study's digest in hexadecimal; its first 12 digits name it in records.
fn hex(study: [u8; 32]) -> String {
    blake3::Hash::from_bytes(study).to_hex().to_string()
}

#[cfg(test)]
mod speed;
#[cfg(test)]
mod tests;
