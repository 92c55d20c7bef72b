//! All parts of a study as one result, ready to be sealed.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use bytes::Bytes;
use coordinator::server::{CellResults, Contents, Definition, Results, decode};
use coordinator::stopping::Rule;
use coordinator::store::{Held, Place, ShardRow, StoredShard};
use serde::Serialize;
use study::plan::{Plan, PlannedCell, Replicates};
use study::prior::Files;
use study::tally::Tally;
use study::{Batch, CellId};
use worker::golden;

use super::log::{self, Head, Shard};
use super::{Part, folder};
use crate::exit::BadInput;
use crate::load::Loaded;

/// Parts that were found, and what they hold together.
pub(crate) struct Gathered {
    pub(crate) loaded: Loaded,
    pub(crate) results: Results,
    pub(crate) parts: u32,
    files: Vec<PathBuf>,
}

/// Files kept open.
const OPEN: usize = 64;

/// Reads the parts of some folders, and refuses what is not all of one study.
pub(crate) fn gather(folders: &[PathBuf]) -> anyhow::Result<Gathered> {
    let files = find(folders)?;
    let mut heads: BTreeMap<Part, PathBuf> = BTreeMap::new();
    let mut first: Option<Head> = None;
    let mut shards: Vec<(usize, Shard)> = Vec::new();
    for (at, path) in files.iter().enumerate() {
        let (head, held) = log::read(path)?;
        let part = Part { index: head.part, count: head.of };
        if let Some(other) = heads.insert(part, path.clone()) {
            bail!(BadInput(format!(
                "part {part} is there twice, {} and {}: leave one of them out",
                other.display(),
                path.display()
            )));
        }
        match &first {
            Some(first) => same(first, &head, path, &files[0])?,
            None => first = Some(head),
        }
        shards.extend(held.into_iter().map(|shard| (at, shard)));
    }
    let Some(head) = first else { bail!(BadInput(none(folders))) };
    complete(&heads, head.of)?;
    let loaded = load(&head, folders)?;
    let results = results(&loaded.plan, shards, head.of)?;
    Ok(Gathered { loaded, results, parts: head.of, files })
}

impl Gathered {
    /// Reads the records of shards, batch by batch.
    pub(crate) fn reader(
        &self,
    ) -> impl FnMut(&StoredShard, usize) -> anyhow::Result<Batch> + use<> {
        let files = self.files.clone();
        let mut open: HashMap<u64, File> = HashMap::new();
        move |shard, at| {
            let Held::Live(places) = &shard.held else { bail!("parts are not sealed") };
            let place = *places.get(at).context("a batch has a place")?;
            let path = &files[place.segment as usize];
            if open.len() >= OPEN && !open.contains_key(&place.segment) {
                open.clear();
            }
            let file = match open.entry(place.segment) {
                std::collections::hash_map::Entry::Occupied(held) => held.into_mut(),
                std::collections::hash_map::Entry::Vacant(place) => place.insert(
                    study::folder::open(path)
                        .with_context(|| format!("cannot open {}", path.display()))?,
                ),
            };
            Ok(decode(shard.row.cell, &log::batch(file, path, place)?)?)
        }
    }
}

/// How far the parts of a folder are.
#[derive(Debug, Serialize)]
pub(crate) struct Progress {
    /// Parts with a file.
    pub(crate) begun: usize,
    pub(crate) of: u32,
    /// Trials that are durable.
    pub(crate) trials: u64,
    /// Trials of the study, at most.
    pub(crate) planned: u128,
}

/// Looks at the parts of a folder, which may be growing; `None` where there are none.
pub(crate) fn progress(out: &Path) -> anyhow::Result<Option<Progress>> {
    if !folder(out).is_dir() {
        return Ok(None);
    }
    let folders = [out.to_path_buf()];
    let (mut begun, mut trials, mut last) = (0, 0, None);
    for path in find(&folders)? {
        // One that was just created has nothing yet.
        let Ok((head, shards)) = log::read(&path) else { continue };
        begun += 1;
        trials += shards.iter().map(|shard| shard.about.end - shard.about.start).sum::<u64>();
        last = Some(head);
    }
    let Some(head) = last else { return Ok(None) };
    let planned = load(&head, &folders)?.plan.trials();
    Ok(Some(Progress { begun, of: head.of, trials, planned }))
}

/// Into how many parts a folder has cut a study; refused where it is not this study, as it is now.
pub(crate) fn cut(loaded: &Loaded, out: &Path) -> anyhow::Result<Option<u32>> {
    if !folder(out).is_dir() {
        return Ok(None);
    }
    for path in find(&[out.to_path_buf()])? {
        let Some(head) = log::head(&path)? else { continue };
        if head.text != loaded.definition.text {
            bail!(BadInput(format!(
                "{} was begun with another study file, or another state of it: delete {} to begin anew, or use another \
                 --out folder",
                path.display(),
                folder(out).display()
            )));
        }
        return Ok(Some(head.of));
    }
    Ok(None)
}

/// The parts' files, in the order of their names.
fn find(folders: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for given in folders {
        let inner = folder(given);
        let place = if inner.is_dir() { inner } else { given.clone() };
        let entries = std::fs::read_dir(&place)
            .map_err(|error| BadInput(format!("cannot read {}: {error}", place.display())))?;
        for entry in entries {
            let path = entry.with_context(|| format!("cannot read {}", place.display()))?.path();
            if path.extension().is_some_and(|extension| extension == "part") {
                files.push(path);
            }
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

fn none(folders: &[PathBuf]) -> String {
    let names: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    format!(
        "there is no part in {}; make them with `regretta run STUDY.toml --part I/K --out DIR`",
        names.join(", ")
    )
}

fn same(first: &Head, head: &Head, path: &Path, other: &Path) -> anyhow::Result<()> {
    let expected = Head { part: head.part, file_name: head.file_name.clone(), ..first.clone() };
    if expected == *head {
        return Ok(());
    }
    let what = if expected.of != head.of {
        format!("is cut into {} parts, not {}", head.of, expected.of)
    } else if (&expected.numerics, &expected.version) == (&head.numerics, &head.version) {
        "is of another study, or of another state of it".to_owned()
    } else {
        "was made by another version of regretta".to_owned()
    };
    bail!(BadInput(format!("{} {what} than {}", path.display(), other.display())))
}

/// All parts are there; whether each is whole is seen by its trials.
fn complete(heads: &BTreeMap<Part, PathBuf>, count: u32) -> anyhow::Result<()> {
    let missing = |index: &u32| !heads.contains_key(&Part { index: *index, count });
    let missing: Vec<String> = (1..=count).filter(missing).map(|i| i.to_string()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let shown = missing.iter().take(20).cloned().collect::<Vec<_>>().join(", ");
    let more = if missing.len() > 20 { ", ..." } else { "" };
    bail!(BadInput(format!(
        "{} of {count} parts are missing: {shown}{more}; run them with --part I/{count}, or name their folders, too",
        missing.len()
    )))
}

/// The study as the parts know it.
fn load(head: &Head, folders: &[PathBuf]) -> anyhow::Result<Loaded> {
    if head.numerics != golden::DIGEST {
        bail!(BadInput(format!(
            "the parts were made by version {} of regretta, which computes other numbers; merge with that one",
            head.version
        )));
    }
    let mut contents = Vec::new();
    for (name, digest) in &head.files {
        // Joined to a path below, so that it must not be anything else.
        let hash = blake3::Hash::from_hex(digest);
        let hash = hash.map_err(|_| BadInput(format!("the parts have no digest of {name:?}")))?;
        let digest = hash.to_hex();
        let kept = folders.iter().map(|place| folder(place).join("files").join(digest.as_str()));
        let beside = folders.iter().map(|place| place.join("files").join(digest.as_str()));
        let found = kept.chain(beside).find_map(|path| crate::load::read(&path).ok());
        let whole = found.filter(|bytes| blake3::hash(bytes) == hash);
        let bytes = whole.with_context(|| {
            format!("{name} of the study is not kept beside its parts (files/{digest})")
        })?;
        contents.push((name.clone(), bytes));
    }
    let mut files = Files::default();
    for (name, bytes) in &contents {
        files.insert(name, bytes.clone())?;
    }
    let (file_name, text) = (head.file_name.clone(), head.text.clone());
    let definition = Definition { file_name, text, files: contents };
    let plan = definition.plan().map_err(|error| BadInput(error.to_string()))?;
    Ok(Loaded { definition, files, plan })
}

/// The shards of every cell, up to where it stops.
fn results(plan: &Plan, shards: Vec<(usize, Shard)>, count: u32) -> anyhow::Result<Results> {
    let mut by_cell: BTreeMap<CellId, Vec<StoredShard>> = BTreeMap::new();
    for (file, shard) in shards {
        let cell = CellId(shard.about.cell);
        let planned = plan.cell(cell).context("a part holds a cell that its study has not")?;
        by_cell.entry(cell).or_default().push(stored(plan, planned, file, shard));
    }
    let mut cells = Vec::with_capacity(plan.cells.len());
    for (at, cell) in plan.cells.iter().enumerate() {
        let mut shards = by_cell.remove(&cell.id).unwrap_or_default();
        shards.sort_by_key(|shard| shard.row.range.start);
        let replicates = whole(plan, cell, &shards).map_err(|missing| {
            let part = (1..=count).map(|index| Part { index, count });
            let part = part.into_iter().find(|part| part.replicates(plan, at).contains(&missing));
            let part = part.map_or_else(String::new, |part| format!(" (part {part})"));
            BadInput(format!(
                "replicate {missing} of cell {}, {}, is not there yet{part}: let its part run to the end first",
                cell.id,
                plan.label(cell)
            ))
        })?;
        shards.retain(|shard| shard.row.range.end <= replicates);
        cells.push(CellResults { cell: cell.id, replicates, shards });
    }
    Ok(Results { plan: Arc::new(plan.clone()), earlier: Vec::new(), cells })
}

fn stored(plan: &Plan, cell: &PlannedCell, file: usize, shard: Shard) -> StoredShard {
    let Shard { about, places } = shard;
    let place = |place: Place| Place { segment: file as u64, ..place };
    StoredShard {
        row: ShardRow {
            study: plan.id,
            cell: cell.id,
            range: about.start..about.end,
            checkpoints: Contents::of(plan, cell).digest,
            digest: about.digest,
            tally: Bytes::from(about.tally),
            records: 0,
            worker: String::new(),
            seconds: about.seconds,
        },
        token: 0,
        kept: None,
        held: Held::Live(places.into_iter().map(place).collect()),
    }
}

/// The number of replicates at which a cell ends, or the first that is missing.
fn whole(plan: &Plan, cell: &PlannedCell, shards: &[StoredShard]) -> Result<u64, u64> {
    let (max, batch) = (plan.replicates.max(), plan.replicates.batch_size());
    let mut rule = match plan.replicates {
        Replicates::Batched { .. } => Rule::of(plan, cell),
        Replicates::Fixed(_) => None,
    };
    let mut sum: Option<Tally> = None;
    let mut next = 0;
    for shard in shards {
        let range = &shard.row.range;
        if range.start != next {
            return Err(next);
        }
        next = range.end;
        if let Some(rule) = &mut rule {
            let tally = Tally::decode(&shard.row.tally).map_err(|_| range.start)?;
            match &mut sum {
                Some(sum) => sum.plus(&tally),
                None => sum = Some(tally),
            }
            let ended = next.is_multiple_of(batch) || next == max;
            if ended && sum.as_ref().is_some_and(|sum| rule.batch_ended(sum)) {
                return Ok(next);
            }
        }
    }
    if next == max { Ok(max) } else { Err(next) }
}
