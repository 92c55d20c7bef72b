//! From a finished study's shards to its dataset.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use analysis::dataset::{self, Reader, Selection, Source, merge, select};
use analysis::seal::{Detail as Recorded, Lock};
use analysis::{CellDescription, Count, Manifest, PriorSummary, Rho, Scalar, Sealing, Shape};
use anyhow::{Context, anyhow, bail};
use coordinator::server::{CellResults, Handle, Results, Unsound};
use coordinator::store::{Held, StoredShard};
use study::family::{self, Claims, Family};
use study::file::Study;
use study::folder::{MANIFEST, STUDY};
use study::plan::{DatasetCell, Detail, NotGrown, Plan, PlannedPrior};
use study::rows::rows;
use study::{Batch, CellId, StudyId};
use worker::golden;
use worker::problem::Problem;

use crate::exit::{BadInput, CheckFailed};
use crate::{disk, existing, place};

/// Seals a complete study into `out`, on top of what is sealed there already.
pub(crate) async fn seal(
    handle: &Handle,
    study: StudyId,
    text: &str,
    priors: Vec<PriorSummary>,
    out: &Path,
) -> anyhow::Result<Manifest> {
    let results = results(handle, study).await?;
    let plan = Arc::clone(&results.plan);
    let manifest = dataset(handle, results, text, priors, out).await?;
    finish(handle, &plan, &manifest).await?;
    Ok(manifest)
}

/// What there is to seal of a complete study.
pub(crate) async fn results(handle: &Handle, study: StudyId) -> anyhow::Result<Results> {
    let results = handle.results(study).await?;
    let results =
        results.with_context(|| format!("study {study} has open cells and cannot be sealed"))?;
    match results.gaps() {
        gaps if gaps.is_empty() => Ok(results),
        shards => Err(Lost { plan: results.plan, shards }.into()),
    }
}

/// Writes the dataset of a study, unless it is there already. The coordinator does not know of it yet.
pub(crate) async fn dataset(
    handle: &Handle,
    results: Results,
    text: &str,
    priors: Vec<PriorSummary>,
    out: &Path,
) -> anyhow::Result<Manifest> {
    let (mut records, mut again) = (handle.records(&results), handle.records(&results));
    let (folder, text) = (out.to_path_buf(), text.to_owned());
    // The folder's lock is waited for, too.
    let sealed = tokio::task::spawn_blocking(move || {
        analysis::seal::recover(&folder)?;
        if let Some(manifest) = sealed_already(&results, &text, &folder)? {
            return Ok(manifest);
        }
        let shards = lost_from(&folder, &results)?;
        if !shards.is_empty() {
            return Err(Lost { plan: Arc::clone(&results.plan), shards }.into());
        }
        // A shard that should have records and has no batch at all is never read.
        let empty = |(_, shard): &(_, &StoredShard)| shard.batches() == 0 && shard.row.records > 0;
        let written = if results.live().any(|shard| empty(&shard)) {
            Err(None)
        } else {
            let read = |shard: &StoredShard, at| Ok(records.batch(shard, at)?);
            write(&results, read, &text, &priors, &folder).map_err(Some)
        };
        written.map_err(|error| match again.unsound(&results) {
            Ok(shards) if !shards.is_empty() => {
                Lost { plan: Arc::clone(&results.plan), shards }.into()
            }
            Ok(_) => damaged(&results, &folder).unwrap_or_else(|| {
                error.unwrap_or_else(|| anyhow!("the records have changed meanwhile"))
            }),
            Err(unread) => error.unwrap_or_else(|| unread.into()),
        })
    });
    sealed.await.context("sealing stopped")?
}

/// Sealed shards that a folder's dataset lacks: it was deleted, or replaced by an older copy.
fn lost_from(folder: &Path, results: &Results) -> anyhow::Result<Vec<Unsound>> {
    if results.sealed().next().is_none() {
        return Ok(Vec::new());
    }
    let is_there = folder.join(MANIFEST).exists();
    let cells = if is_there { place::manifest(folder)?.cells } else { Vec::new() };
    let held: HashMap<&str, _> = cells.iter().map(|cell| (cell.cell.as_str(), cell)).collect();
    let is_lost = |cell: CellId, shard: &StoredShard| {
        let Some(held) = held.get(cell.to_string().as_str()) else { return true };
        let planned = results.plan.cell(cell).map(|cell| &*cell.checkpoints);
        held.replicates < shard.row.range.end || planned != Some(&held.checkpoints)
    };
    let lost = results.sealed().filter(|(cell, shard)| is_lost(*cell, shard));
    let reason = "the dataset in which it was sealed does not have it any more";
    let unsound = |(cell, shard): (CellId, &StoredShard)| Unsound {
        cell,
        range: shard.row.range.clone(),
        reason: reason.to_owned(),
    };
    Ok(lost.map(unsound).collect())
}

/// Why the dataset that is to grow cannot be built upon, if it fails verification.
fn damaged(results: &Results, folder: &Path) -> Option<anyhow::Error> {
    results.sealed().next()?;
    let error = dataset::verify(folder).err()?;
    let folder = folder.display();
    Some(
        CheckFailed(format!(
            "the dataset that is to grow is damaged: {error}; put a sound copy of it into {folder}, or remove \
             {folder}/{MANIFEST}, and its trials are computed anew"
        ))
        .into(),
    )
}

/// The dataset of a folder, if it is that of the results, with the text of their study.
fn sealed_already(results: &Results, text: &str, out: &Path) -> anyhow::Result<Option<Manifest>> {
    if results.live().next().is_some() || !out.join(MANIFEST).exists() {
        return Ok(None);
    }
    let manifest = Manifest::read(out)?;
    if !is_whole(results, &manifest) {
        return Ok(None);
    }
    // What is not of the plan, such as a comment, may have changed.
    Lock::take(out)?.put(STUDY, text.as_bytes())?;
    Ok(Some(manifest))
}

/// Refuses a plan that would lose trials of the dataset in a folder, if it has one.
pub(crate) fn keeps(plan: &Plan, out: &Path) -> anyhow::Result<()> {
    if !out.join(MANIFEST).exists() {
        return Ok(());
    }
    let manifest = place::manifest(out)?;
    if manifest.study_digest != plan.id.hex() {
        return Err(existing::other_study(out, &manifest.name, &manifest.study, plan));
    }
    let text = std::fs::read_to_string(out.join(STUDY)).unwrap_or_default();
    keeps_all(plan, &manifest, &text).map_err(|error| BadInput(error.to_string()).into())
}

/// The same for a dataset with this manifest and study file.
pub(crate) fn keeps_all(plan: &Plan, manifest: &Manifest, text: &str) -> Result<(), NotGrown> {
    // A file that cannot be parsed says nothing; the cells are in the manifest.
    let was = Study::parse(STUDY, text).ok();
    let cells = manifest.cells.iter().map(|cell| DatasetCell {
        // An id that is not one is of no plan.
        id: CellId(u64::from_str_radix(&cell.cell, 16).unwrap_or_default()),
        replicates: cell.replicates,
        checkpoints: cell.checkpoints.clone(),
    });
    plan.keeps(was.as_ref(), &cells.collect::<Vec<_>>())
}

/// Shards that are to be computed anew before a study can be sealed.
#[derive(Debug)]
pub(crate) struct Lost {
    pub(crate) plan: Arc<Plan>,
    pub(crate) shards: Vec<Unsound>,
}

impl std::error::Error for Lost {}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} shards have lost records", self.shards.len())?;
        self.shards.first().map_or(Ok(()), |first| write!(f, " (the first: {first})"))
    }
}

/// Tells the coordinator that the dataset is where it stays: its segments are deleted.
pub(crate) async fn finish(
    handle: &Handle,
    plan: &Plan,
    manifest: &Manifest,
) -> anyhow::Result<()> {
    Ok(handle.sealed(plan, digest(manifest)?).await?)
}

/// Whether nothing has to be added to a dataset.
pub(crate) fn is_whole(results: &Results, manifest: &Manifest) -> bool {
    let held = manifest.cells.iter().map(|cell| (cell.cell.clone(), cell.replicates));
    let due = results.cells.iter().map(|cell| (cell.cell.to_string(), cell.replicates));
    let now = Family::of(&results.plan);
    let (sealed, last) = (manifest.earlier_families.clone(), manifest.replaced());
    let is_known =
        family::continued(sealed, last, &results.earlier, &now) == manifest.earlier_families;
    results.live().next().is_none() && held.eq(due) && manifest.family.is_same(&now) && is_known
}

fn digest(manifest: &Manifest) -> anyhow::Result<[u8; 32]> {
    match blake3::Hash::from_hex(&manifest.digest) {
        Ok(hash) => Ok(*hash.as_bytes()),
        Err(error) => bail!("the manifest's digest is none: {error}"),
    }
}

/// Seals results and the text of their study into a folder; `read` gives a batch of a shard by its number.
pub(crate) fn write(
    results: &Results,
    mut read: impl FnMut(&StoredShard, usize) -> anyhow::Result<Batch>,
    text: &str,
    priors: &[PriorSummary],
    out: &Path,
) -> anyhow::Result<Manifest> {
    let plan = &results.plan;
    // Refused before anything ran, too; here nothing may get past it.
    keeps(plan, out)?;
    let batches =
        results.live().flat_map(|(_, shard)| (0..shard.batches()).map(move |at| (shard, at)));
    let live = batches.map(move |(shard, at)| read(shard, at));
    let live = live.map(|batch| batch.map_err(Source::from));
    let cells: Vec<CellDescription> =
        results.cells.iter().filter_map(|cell| describe(plan, cell)).collect();
    let claims = Claims::of(&plan.study);
    let sealing = Sealing {
        study: plan.id.0,
        name: &plan.study.name,
        seed: plan.study.seed,
        version: env!("CARGO_PKG_VERSION"),
        numerics: golden::DIGEST,
        detail: recorded(results),
        family: Family::of(plan),
        claims: Some(&claims),
        earlier: &results.earlier,
        cells: &cells,
        priors,
        file: text,
        out,
        shape: Shape::default(),
    };
    let base_bytes = base_bytes(results, out)?;
    disk::require(out, analysis::seal::needed(base_bytes + live_bytes(results)))?;
    let counts: analysis::seal::Counts<'_> = Box::new(counts(results).map(Ok));
    let selection = selection(results);
    if selection.is_empty() {
        return Ok(analysis::seal(&sealing, live, Some(counts))?);
    }
    let base = select(Reader::open(out)?, selection);
    Ok(analysis::seal(&sealing, merge(base, live), Some(counts))?)
}

fn live_bytes(results: &Results) -> u64 {
    results
        .live()
        .map(|(_, shard)| match &shard.held {
            Held::Live(places) => places.iter().map(|place| u64::from(place.length)).sum(),
            Held::Sealed => 0,
        })
        .sum()
}

fn base_bytes(results: &Results, out: &Path) -> anyhow::Result<u64> {
    if results.sealed().next().is_none() {
        return Ok(0);
    }
    Ok(Manifest::read(out)?.files.iter().map(|file| file.bytes).sum())
}

/// What of the sealed dataset stays.
fn selection(results: &Results) -> Selection {
    let mut selection = Selection::new();
    for (cell, shard) in results.sealed() {
        selection.entry(cell).or_default().push(shard.row.range.clone());
    }
    selection
}

fn recorded(results: &Results) -> Recorded {
    match results.plan.study.detail {
        Detail::Checkpoints => Recorded::Checkpoints,
        Detail::Steps => Recorded::Steps,
        Detail::Summary => {
            let failures = |cell: &CellResults| {
                let mut failures = 0;
                for tally in results.tallies(cell) {
                    failures += tally.0.iter().map(|row| row.failures).max().unwrap_or(0);
                }
                failures
            };
            Recorded::Summary { failures: results.cells.iter().map(failures).sum() }
        }
    }
}

fn describe(plan: &Plan, results: &CellResults) -> Option<CellDescription> {
    let planned = plan.cell(results.cell)?;
    Some(CellDescription {
        id: planned.id,
        cell: planned.cell,
        prior: planned.prior as u32,
        swept: swept(&plan.priors[planned.prior]),
        replicates: results.replicates,
        checkpoints: planned.checkpoints.to_vec(),
    })
}

pub(crate) fn swept(prior: &PlannedPrior) -> Vec<(String, Scalar)> {
    let scalar = |value: &study::plan::Scalar| match value {
        study::plan::Scalar::Integer(value) => Scalar::Integer(*value),
        study::plan::Scalar::Float(value) => Scalar::Float(*value),
        study::plan::Scalar::Text(value) => Scalar::Text(value.clone()),
    };
    prior.swept.iter().map(|(key, value)| (key.clone(), scalar(value))).collect()
}

/// Counts of every verdict row, by cell and batch.
fn counts(results: &Results) -> impl Iterator<Item = Count> {
    results.cells.iter().flat_map(|cell| {
        let Some(planned) = results.plan.cell(cell.cell) else { return Vec::new() };
        let rows = rows(&results.plan.study, &planned.cell);
        let mut counts = Vec::new();
        for (batch, tally) in results.tallies(cell).into_iter().enumerate() {
            for (row, counted) in rows.iter().zip(&tally.0) {
                counts.push(Count {
                    cell: cell.cell,
                    batch: batch as u64,
                    claim: row.claim.id.into(),
                    constants: row.form.map(|form| form.name().into()),
                    at: row.at.map(|at| at.to_string().into()),
                    t: row.t,
                    delta: row.delta.get(),
                    budget: row.budget,
                    trials: counted.trials,
                    refuting: counted.refuting,
                    confirming: counted.confirming,
                    failures: counted.failures,
                });
            }
        }
        counts
    })
}

/// What `priors.json` and `domain.parquet` say of a prior.
pub(crate) fn summary(
    index: usize,
    planned: &PlannedPrior,
    problem: &Problem,
    horizons: &[u32],
) -> anyhow::Result<PriorSummary> {
    let information = problem.information(horizons.last().copied().unwrap_or(0));
    let rho = |&t: &u32| {
        let &(lo, hi) = information.get(t as usize - 1)?;
        Some(Rho { t, lo, hi })
    };
    let points = problem.points();
    let finite = problem.finite();
    Ok(PriorSummary {
        index: index as u32,
        swept: swept(planned),
        spec: serde_json::to_value(&planned.spec)?,
        size: problem.size() as u64,
        d: points.dimension() as u32,
        c: problem.c(),
        rank: problem.rank() as u64,
        residual: finite.map_or(0.0, |prior| prior.residual),
        noise_variance: problem.noise_variance(),
        white: finite.map_or(0.0, |prior| prior.white),
        rho: horizons.iter().filter_map(rho).collect(),
        normality: problem.normality().map(|found| analysis::description::Normality {
            columns: found.columns as u64,
            varying: found.varying as u64,
            rejected: found.rejected as u64,
        }),
        points: (0..problem.size()).flat_map(|at| points.point(at).to_vec()).collect(),
        mean: problem.mean(),
    })
}
