//! Studies that the coordinator knows: their definitions, plans, and what the core is to do for them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use study::family::{self, Changes, EarlierFamily};
use study::file::{FileError, Study};
use study::plan::{NotGrown, Plan, PlannedCell, Size};
use study::prior::{Files, TableError};
use study::rows;
use study::{CellId, Digest, StudyId};

use super::memory::mebibytes;
use super::spool::SpoolError;
use crate::core::{CellWork, Deaths, DoneShard, StudyWork};
use crate::stopping::Rule;
use crate::store::{self, Check, Death, StoredShard};

/// A study as it was submitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// The study file's name.
    pub file_name: String,
    /// The study file.
    pub text: String,
    /// The files that it names, with their content.
    pub files: Vec<(String, Vec<u8>)>,
}

/// A definition that is not a study.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The study file is wrong.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file that it names is not a table of numbers.
    #[error(transparent)]
    Table(#[from] TableError),
    /// What it tested before cannot be read.
    #[error(transparent)]
    Earlier(#[from] family::Unreadable),
}

impl Definition {
    /// The plan that every holder of the same definition arrives at.
    pub fn plan(&self) -> Result<Plan, PlanError> {
        let mut files = Files::default();
        for (path, bytes) in &self.files {
            files.insert(path, bytes.clone())?;
        }
        Ok(Plan::new(Study::parse(&self.file_name, &self.text)?, &files)?)
    }
}

/// A study as it was submitted, with its files on this machine's disk.
pub(super) struct Source {
    pub(super) file_name: String,
    pub(super) text: String,
    pub(super) files: Vec<NamedFile>,
}

/// A file that a study names.
pub(super) struct NamedFile {
    pub(super) path: String,
    pub(super) digest: [u8; 32],
    pub(super) size: u64,
    pub(super) place: PathBuf,
}

impl Source {
    /// How large the plan will be. Parses the study file and nothing else.
    pub(super) fn size(&self) -> Result<Size, PlanError> {
        Ok(Size::read(&self.file_name, &self.text)?)
    }

    /// Plans the study, reading one file at a time, of which none may take more than `limit`; `memory` is what was
    /// found to be enough for the plan. Blocks.
    pub(super) fn plan(&self, memory: u64, limit: u64) -> Result<Entry, SubmitError> {
        let mut files = Files::default();
        for file in &self.files {
            let damaged = |problem| store::Error::File { path: file.place.clone(), problem };
            let refused =
                |needed| SubmitError::LargeFile { path: file.path.clone(), needed, limit };
            if file.size > limit {
                return Err(refused(file.size));
            }
            let bytes = std::fs::read(&file.place).map_err(|_| damaged("cannot be read"))?;
            let needed = bytes.len() as u64 + numbers(&bytes) * size_of::<f64>() as u64;
            if needed > limit {
                return Err(refused(needed));
            }
            let digest = files.survey(&file.path, &bytes).map_err(PlanError::from)?;
            if digest != file.digest {
                return Err(damaged("is damaged").into());
            }
        }
        let study = Study::parse(&self.file_name, &self.text).map_err(PlanError::from)?;
        let plan = Plan::new(study, &files).map_err(PlanError::from)?;
        Ok(Entry::new(plan, self, memory))
    }
}

/// About how many numbers a file has, told without reading them.
fn numbers(bytes: &[u8]) -> u64 {
    if bytes.starts_with(b"\x93NUMPY") {
        // The header gives a number's width behind its kind: '<f8'.
        let head = &bytes[..bytes.len().min(256)];
        let descr = head.windows(5).position(|word| word == b"descr").unwrap_or_default();
        let width = head[descr..].iter().find(|byte| byte.is_ascii_digit());
        let width = width.map_or(1, |digit| u64::from(digit - b'0').max(1));
        return bytes.len() as u64 / width;
    }
    let is_delimiter = |byte: u8| matches!(byte, b',' | b';' | b'\t');
    let (mut numbers, mut before) = (0, b' ');
    for &byte in bytes {
        let is_gap = |byte: u8| is_delimiter(byte) || byte.is_ascii_whitespace();
        let begins = !is_gap(byte) && is_gap(before);
        let missing = is_delimiter(byte) && is_delimiter(before);
        numbers += u64::from(begins || missing);
        before = byte;
    }
    numbers
}

/// The places of rows in their cells that are exploratory on all trials.
pub(super) type Exploratory = BTreeMap<CellId, BTreeSet<usize>>;

/// A study that is known, and what its leases need.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) plan: Arc<Plan>,
    pub(super) revision: [u8; 32],
    pub(super) file_name: String,
    pub(super) text: String,
    /// The families of claims that it had before, oldest first.
    pub(super) earlier: Vec<EarlierFamily>,
    pub(super) exploratory: Arc<Exploratory>,
    /// Path, digest and size.
    pub(super) files: Vec<(String, [u8; 32], u64)>,
    /// Bytes that it may take in memory.
    pub(super) memory: u64,
    /// What shards of every cell hold, in the plan's order.
    contents: Vec<Contents>,
    /// When each cell may stop, in the same order.
    rules: Vec<Option<Rule>>,
    /// Cells that have all they need, and how many replicates that is.
    pub(super) closed: BTreeMap<CellId, u64>,
    /// The dataset of this plan is in place.
    pub(super) sealed: bool,
}

impl Entry {
    fn new(plan: Plan, source: &Source, memory: u64) -> Self {
        let mut contents = Vec::with_capacity(plan.cells.len());
        let mut rules = Vec::with_capacity(plan.cells.len());
        let mut known: HashMap<[u8; 32], Option<Rule>> = HashMap::new();
        for cell in &plan.cells {
            let rows = rows::rows(&plan.study, &cell.cell);
            let of_cell = Contents::of_rows(cell, &rows);
            let rule = known.entry(of_cell.digest).or_insert_with(|| Rule::of_rows(&plan, &rows));
            rules.push(rule.clone());
            contents.push(of_cell);
        }
        let files = source.files.iter().map(|file| (file.path.clone(), file.digest, file.size));
        Self {
            revision: plan.revision(),
            plan: Arc::new(plan),
            file_name: source.file_name.clone(),
            text: source.text.clone(),
            earlier: Vec::new(),
            exploratory: Arc::default(),
            files: files.collect(),
            memory,
            contents,
            rules,
            closed: BTreeMap::new(),
            sealed: false,
        }
    }

    /// The same study after these families of claims.
    pub(super) fn after(self, earlier: Vec<EarlierFamily>) -> Self {
        let changes = Changes::of(&earlier, &self.plan);
        let exploratory = Arc::new(family::exploratory(&changes));
        let rules = self.plan.cells.iter().zip(self.rules);
        let rules =
            rules.map(|(cell, rule)| Some(rule?.after(&self.plan, cell.id, &changes))).collect();
        Self { earlier, exploratory, rules, ..self }
    }

    /// The same study, with its cells open.
    pub(super) fn opened_again(&self) -> Self {
        Self { closed: BTreeMap::new(), sealed: false, ..self.clone() }
    }

    /// Whether all cells have all they need.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.len() == self.plan.cells.len()
    }

    /// A cell and what its shards hold.
    pub(super) fn cell(&self, id: CellId) -> Option<(&PlannedCell, Contents)> {
        let at = self.plan.cells.binary_search_by_key(&id, |cell| cell.id).ok()?;
        Some((self.plan.cells.get(at)?, *self.contents.get(at)?))
    }
}

/// What a shard of a cell holds beside its trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Verdict rows in its tally.
    pub rows: usize,
    /// The digest of checkpoints and verdict rows. A shard with another one is of no use to the
    /// plan: it lacks records, or counts other things.
    pub digest: [u8; 32],
}

impl Contents {
    /// What the plan asks of a cell's shards.
    pub fn of(plan: &Plan, cell: &PlannedCell) -> Self {
        Self::of_rows(cell, &rows::rows(&plan.study, &cell.cell))
    }

    fn of_rows(cell: &PlannedCell, rows: &[rows::Row]) -> Self {
        let mut digest = Digest::new();
        digest.tag("checkpoints");
        cell.checkpoints.iter().for_each(|&t| _ = digest.u64(t.into()));
        digest.tag("rows").bytes(&rows::digest(rows));
        Self { rows: rows.len(), digest: digest.finish() }
    }
}

/// What the ledger holds of a study.
#[derive(Default)]
pub(super) struct Past {
    pub(super) shards: Vec<StoredShard>,
    pub(super) deaths: Vec<Death>,
    pub(super) checks: Vec<Check>,
}

impl Past {
    /// Cells whose shards hold something else than the plan asks for, or that it does not have.
    pub(super) fn stale(&self, entry: &Entry) -> Vec<CellId> {
        let stale = |shard: &&StoredShard| {
            let cell = entry.cell(shard.row.cell);
            cell.is_none_or(|(_, contents)| contents.digest != shard.row.checkpoints)
        };
        let mut cells: Vec<CellId> = self.shards.iter().filter(stale).map(|s| s.row.cell).collect();
        cells.sort_unstable();
        cells.dedup();
        cells
    }

    /// The work that is left, with what is done.
    pub(super) fn work(self, entry: &Entry) -> StudyWork {
        let plan = &entry.plan;
        let mut done: BTreeMap<CellId, Vec<DoneShard>> = BTreeMap::new();
        let mut deaths: BTreeMap<CellId, Vec<Deaths>> = BTreeMap::new();
        let range = |range: &Range<u64>| (range.start, range.end);
        let agreed = self.checks.iter().filter(|check| check.agreed);
        let agreed: HashSet<_> = agreed.map(|check| (check.cell, range(&check.range))).collect();
        for StoredShard { row, .. } in self.shards {
            done.entry(row.cell).or_default().push(DoneShard {
                checked: agreed.contains(&(row.cell, range(&row.range))),
                range: row.range,
                digest: row.digest,
                tally: row.tally,
                worker: row.worker,
            });
        }
        for death in self.deaths {
            deaths.entry(death.cell).or_default().push(Deaths {
                range: death.range,
                count: death.deaths,
                reason: death.reason,
            });
        }
        let each = plan.cells.iter().zip(&entry.contents).zip(&entry.rules);
        let cells = each.map(|((cell, contents), rule)| CellWork {
            deaths: deaths.remove(&cell.id).unwrap_or_default(),
            rule: rule.clone(),
            ..work(plan, cell, *contents, done.remove(&cell.id).unwrap_or_default())
        });
        StudyWork { study: plan.id, seed_for_checks: plan.study.seed, cells: cells.collect() }
    }
}

/// What the core is to do for a cell of which some shards are there.
pub fn cell_work(plan: &Plan, cell: &PlannedCell, done: Vec<DoneShard>) -> CellWork {
    let contents = Contents::of(plan, cell);
    CellWork { rule: Rule::of(plan, cell), ..work(plan, cell, contents, done) }
}

fn work(plan: &Plan, cell: &PlannedCell, contents: Contents, done: Vec<DoneShard>) -> CellWork {
    CellWork {
        cell: cell.id,
        replicates: plan.replicates,
        checkpoints: contents.digest,
        records_per_trial: cell.checkpoints.len() as u32,
        rows: contents.rows,
        rule: None,
        done,
        deaths: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use study::prior::to_npy;

    use super::*;

    #[test]
    fn numbers_are_counted_before_they_are_read() {
        for (text, count) in
            [("1,2\n3,4\n", 4), ("1, 2; 3\n", 3), ("1,,3\n", 3), (" 1  2\n\n", 2), ("", 0)]
        {
            assert_eq!(numbers(text.as_bytes()), count, "{text:?}");
        }
        let npy = to_npy(200, 3, &[0.5; 600]);
        assert!((600..640).contains(&numbers(&npy)), "{}", numbers(&npy));
    }

    #[test]
    fn a_file_that_would_take_too_much_memory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("0");
        let content = "0,".repeat(50_000) + "0\n";
        std::fs::write(&place, &content).unwrap();
        let size = content.len() as u64;
        let digest = *blake3::hash(content.as_bytes()).as_bytes();
        let file = NamedFile { path: "k.csv".to_owned(), digest, size, place };
        let (file_name, text) = ("s.toml".to_owned(), String::new());
        let source = Source { file_name, text, files: vec![file] };
        let refused = source.plan(0, 400_000).err().unwrap();
        let SubmitError::LargeFile { needed, .. } = refused else { panic!("{refused}") };
        assert_eq!(needed, size + 8 * 50_001);
        assert!(refused.to_string().contains("--study-memory 1"), "{refused}");
        // With enough of it the study file is looked at.
        let refused = source.plan(0, needed).err().unwrap();
        assert!(matches!(refused, SubmitError::Plan(_)), "{refused}");
    }
}

impl From<SpoolError> for SubmitError {
    fn from(error: SpoolError) -> Self {
        Self::Spool(error.to_string())
    }
}

/// Why a submission is refused.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// Not a study.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Not what was there before, grown.
    #[error(transparent)]
    NotGrown(#[from] NotGrown),
    /// More than the coordinator's memory is meant for.
    #[error(
        "this study needs about {} MiB of the coordinator's memory ({cells} cells, {rows} verdict rows), and {} MiB \
         are left of the {} MiB for studies: shorten an axis, test fewer claims, or start the coordinator with \
         --study-memory {}",
        mebibytes(*needed), budget.saturating_sub(*held) >> 20, budget >> 20, mebibytes(needed.saturating_add(*held))
    )]
    TooLarge {
        /// Its cells.
        cells: u64,
        /// Its verdict rows, over all cells.
        rows: u64,
        /// Bytes that it needs.
        needed: u64,
        /// Bytes that other studies have.
        held: u64,
        /// Bytes for all studies.
        budget: u64,
    },
    /// A file that is too large to be read for planning.
    #[error(
        "{path} needs about {} MiB of the coordinator's memory to be read, and {} MiB are allowed for a file: write it \
         with fewer rows or columns, or start the coordinator with --study-memory {}",
        mebibytes(*needed), limit >> 20, mebibytes(*needed)
    )]
    LargeFile {
        /// As the study names it.
        path: String,
        /// Bytes that it needs.
        needed: u64,
        /// Bytes that one file may take.
        limit: u64,
    },
    /// It could not be stored.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Its files could not be taken in.
    #[error("{0}")]
    Spool(String),
    /// The ledger holds it under another id.
    #[error("its definition is that of study {id}")]
    OtherDefinition {
        /// The id that it should have.
        id: StudyId,
    },
    /// A folder of one study holds another.
    #[error(
        "this folder holds study \"{held}\" ({held_id}), not \"{name}\" ({id}): use another --out folder"
    )]
    OtherStudy {
        /// The name of the one that is there.
        held: String,
        /// Its id.
        held_id: StudyId,
        /// The name of the one that was submitted.
        name: String,
        /// Its id.
        id: StudyId,
    },
    /// What is sealed of it cannot be looked at.
    #[error("the dataset that is sealed of this study cannot be read: {0}")]
    Dataset(String),
    /// It is being deleted.
    #[error("the study is being deleted; submit it again in a moment")]
    Deleting,
    /// The coordinator is shutting down.
    #[error("the coordinator is shutting down; submit again once it is back")]
    Stopped,
}
