//! A dataset with all that its analysis needs beside the records: study, cells, priors.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use study::family::{Claims, EarlierFamily, FamilyDigest, Membership};
use study::file::{FileError as StudyError, Study};
use study::folder::{self, Moment, STUDY, is_records};
use study::rows::{self, Row};
use study::tally::{Contexts, contexts};
use study::{Cell, CellId, StudyId};
use theory::Delta;

use super::steady::{Patience, within};
use super::{Error, check};
use crate::description::{PriorSummary, Scalar};
use crate::manifest::{CellEntry, Family, FileEntry, Manifest};
use crate::parquet::FileError;
use crate::schema::{self, Type};

/// A dataset that is ready to be analysed.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// Its folder.
    pub dir: PathBuf,
    /// What it holds.
    pub manifest: Manifest,
    /// The study that made it.
    pub study: Study,
    /// The priors.
    pub priors: Vec<PriorSummary>,
    /// The cells, ascending.
    pub cells: Vec<DataCell>,
    /// The families that the study had before, oldest first.
    pub earlier: Vec<Earlier>,
    pub(crate) opened: Moment,
}

/// A family that the study had before it was changed.
#[derive(Clone, Debug)]
pub struct Earlier {
    /// The family.
    pub family: Family,
    /// The study with its claims.
    pub study: Study,
}

/// A cell of a dataset.
#[derive(Clone, Debug)]
pub struct DataCell {
    /// Its address.
    pub id: CellId,
    /// What it is.
    pub cell: Cell,
    /// Its prior, as an index into [`Dataset::priors`].
    pub prior: usize,
    /// Trials.
    pub replicates: u64,
    /// Where each was recorded.
    pub checkpoints: Vec<u32>,
    /// Swept keys and their values.
    pub swept: Vec<(String, Scalar)>,
    /// By earlier family: the replicates that existed when another took its place.
    pub replaced_at: Vec<u64>,
}

/// Why a dataset cannot be analysed although its manifest can be read.
#[derive(Debug, thiserror::Error)]
pub enum Mismatch {
    /// The study file is not valid.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// The study file is another study's.
    #[error(
        "{} is not the study that made the dataset: it is \"{found}\", the manifest says \"{expected}\"; \
         put the study file that was run back in its place",
        path.display()
    )]
    OtherStudy {
        /// The study file.
        path: PathBuf,
        /// Name and seed in it.
        found: String,
        /// Name and seed in the manifest.
        expected: String,
    },
    /// The study file was changed since the dataset was sealed.
    #[error(
        "{} was changed since the dataset was sealed: it makes a family of {found} verdict rows at alpha = \
         {alpha}, the manifest says {expected} at {expected_alpha}; run the study again, or put back the \
         file that was run",
        path.display()
    )]
    OtherFamily {
        /// The study file.
        path: PathBuf,
        /// Rows by the file.
        found: u64,
        /// Level in the file.
        alpha: f64,
        /// Rows in the manifest.
        expected: u64,
        /// Level in the manifest.
        expected_alpha: f64,
    },
    /// The study file tests something else than the one that was run.
    #[error(
        "{} was changed since the dataset was sealed: its claims have the digest {found:.12}, those that were \
         sealed {expected:.12}; run the study again, which records the change and keeps all trials, or put \
         back the file that was run",
        path.display()
    )]
    OtherClaims {
        /// The study file.
        path: PathBuf,
        /// By the file.
        found: FamilyDigest,
        /// In the manifest.
        expected: FamilyDigest,
    },
    /// `priors.json` is not what it should be.
    #[error("{} does not describe the priors: {reason}", path.display())]
    Priors {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A cell of the manifest has other parameters than its name says.
    #[error("the manifest's entry of cell {cell} does not describe that cell")]
    Cell {
        /// The cell.
        cell: String,
    },
}

impl Dataset {
    /// Opens the dataset of a folder.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        Self::open_within(Patience::default(), dir)
    }

    /// The same with other patience.
    pub(crate) fn open_within(patience: Patience, dir: &Path) -> Result<Self, Error> {
        within(patience, dir, || Self::open_once(dir))
    }

    fn open_once(dir: &Path) -> Result<Self, Error> {
        let opened = Moment::of(dir);
        let manifest = Manifest::read(dir)?;
        let study = read_study(dir, &manifest)?;
        let priors = read_priors(dir, &manifest)?;
        let before = &manifest.earlier_families;
        let cells = manifest.cells.iter().map(|entry| data_cell(entry, priors.len(), before));
        let cells = cells.collect::<Result<Vec<_>, _>>()?;
        let earlier =
            before.iter().map(|one| Earlier { family: one.family, study: one.study(&study) });
        let earlier = earlier.collect();
        let dataset = Self { dir: dir.to_owned(), manifest, study, priors, cells, earlier, opened };
        dataset.check_family()?;
        Ok(dataset)
    }

    /// That no other dataset has taken its place: that all that was read of the folder up to now is of this one.
    pub fn confirm(&self) -> Result<(), Error> {
        if self.opened.lasts(&self.dir) { Ok(()) } else { Err(Error::replaced(&self.dir)) }
    }

    /// The prior of a cell.
    pub fn prior(&self, cell: &DataCell) -> &PriorSummary {
        &self.priors[cell.prior]
    }

    /// The swept keys and the types of their columns.
    pub fn swept_types(&self) -> Vec<(String, Type)> {
        schema::types(self.cells.iter().flat_map(|cell| &cell.swept)).unwrap_or_default()
    }

    /// The files of the records, in order.
    pub fn record_files(&self) -> Vec<&FileEntry> {
        let records = |file: &&FileEntry| is_records(&file.name);
        let mut files: Vec<&FileEntry> = self.manifest.files.iter().filter(records).collect();
        files.sort_by(|a, b| a.name.cmp(&b.name));
        files
    }

    /// The contexts in which rows of a cell are evaluated.
    pub fn contexts(&self, cell: &DataCell, rows: &[Row]) -> Vec<Contexts> {
        let prior = self.prior(cell);
        contexts(rows, &cell.cell, prior.c, |t| prior.rho_at(t))
    }

    /// Any delta of the study, for what depends on none.
    pub fn some_delta(&self, cell: &DataCell) -> Delta {
        cell.cell.policy.delta().unwrap_or(self.study.grid.delta[0])
    }

    /// Whether the study ever tested something else in its cells than now.
    pub fn is_changed(&self) -> bool {
        let now = &self.manifest.family;
        self.earlier.iter().any(|earlier| !earlier.family.tests_as(now))
    }

    /// The rows of a cell by family: the earlier ones, and the present one last.
    pub fn membership(&self, cell: &DataCell) -> Membership {
        let earlier = self.earlier.iter().map(|earlier| (earlier.family, &earlier.study));
        let now = (self.manifest.family, &self.study);
        Membership::new(earlier.chain([now]), &cell.cell)
    }

    /// Whether records are of all trials, so that more than the sealed counts can be computed.
    pub fn has_all_records(&self) -> bool {
        self.manifest.detail != "summary"
    }

    /// Whether the data decided how many trials there are.
    pub fn is_stopped(&self) -> bool {
        matches!(self.study.replicates, study::plan::Replicates::Batched { .. })
    }

    /// The address of a trial.
    pub fn address(&self, cell: CellId, replicate: u64) -> String {
        format!("{}/{cell}/{replicate}", self.manifest.study)
    }

    /// The family that the study file makes has to be the one that was fixed before the trials.
    fn check_family(&self) -> Result<(), Error> {
        let study = &self.study;
        let count = |cell: &DataCell| {
            let means =
                if self.is_stopped() { 0 } else { rows::mean_rows(study, &cell.cell).len() };
            let own = rows::own_rows(study, &cell.cell).len();
            (rows::rows(study, &cell.cell).len() + means + own) as u64
        };
        let family = self.manifest.family;
        let path = self.dir.join(STUDY);
        let found = self.cells.iter().map(count).sum();
        if (found, study.alpha, study.n_opt) == (family.rows, family.alpha, family.n_opt) {
            let (found, expected) = (Claims::of(study).digest(), family.digest);
            if expected.is_known() && found != expected {
                return Err(Mismatch::OtherClaims { path, found, expected }.into());
            }
            return Ok(());
        }
        let (expected, expected_alpha) = (family.rows, family.alpha);
        let alpha = study.alpha;
        Err(Mismatch::OtherFamily { path, found, alpha, expected, expected_alpha }.into())
    }
}

impl DataCell {
    /// How many changes of the study's claims came before a replicate was drawn.
    pub fn period(&self, replicate: u64) -> usize {
        self.replaced_at.partition_point(|&existed| existed <= replicate)
    }

    /// The first replicate that was drawn since a family, counted from 0, is in force.
    pub fn first(&self, family: usize) -> u64 {
        family.checked_sub(1).map_or(0, |before| self.replaced_at[before])
    }
}

impl PriorSummary {
    /// The bracket of rho_t, lower end first; `None` without noise.
    pub fn rho_at(&self, t: u32) -> Option<(f64, f64)> {
        let at = self.rho.binary_search_by_key(&t, |rho| rho.t).ok()?;
        Some((self.rho[at].lo, self.rho[at].hi))
    }
}

fn read_study(dir: &Path, manifest: &Manifest) -> Result<Study, Error> {
    let path = dir.join(STUDY);
    let text = folder::read(&path).and_then(|bytes| {
        String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    });
    let text = text.map_err(FileError::io("read", &path))?;
    let study = Study::parse(&path.display().to_string(), &text).map_err(Mismatch::from)?;
    if StudyId::new(&study.name, study.seed).hex() == manifest.study_digest {
        return Ok(study);
    }
    let found = format!("{}, seed {}", study.name, study.seed);
    let expected = format!("{}, seed {}", manifest.name, manifest.seed);
    Err(Mismatch::OtherStudy { path, found, expected }.into())
}

fn read_priors(dir: &Path, manifest: &Manifest) -> Result<Vec<PriorSummary>, Error> {
    const NAME: &str = "priors.json";
    let path = dir.join(NAME);
    let Some(entry) = manifest.files.iter().find(|file| file.name == NAME) else {
        return Err(Error::Missing { name: NAME.to_owned() });
    };
    let mut text = Vec::new();
    check(dir, entry)?.read_to_end(&mut text).map_err(FileError::io("read", &path))?;
    let wrong = |reason: String| Mismatch::Priors { path: path.clone(), reason };
    Ok(serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?)
}

fn data_cell(
    entry: &CellEntry,
    priors: usize,
    earlier: &[EarlierFamily],
) -> Result<DataCell, Mismatch> {
    let parsed = entry.parse().filter(|_| (entry.prior as usize) < priors);
    let Some((id, cell)) = parsed else {
        return Err(Mismatch::Cell { cell: entry.cell.clone() });
    };
    Ok(DataCell {
        id,
        cell,
        prior: entry.prior as usize,
        replicates: entry.replicates,
        checkpoints: entry.checkpoints.clone(),
        swept: entry.swept.clone(),
        replaced_at: replaced_at(entry, earlier),
    })
}

/// What existed at a change existed at every later one.
fn replaced_at(entry: &CellEntry, earlier: &[EarlierFamily]) -> Vec<u64> {
    let mut most = 0;
    let mut existing = |family: &EarlierFamily| {
        most = family.replicates.get(&entry.cell).copied().unwrap_or(0).max(most);
        most
    };
    earlier.iter().map(&mut existing).collect()
}
