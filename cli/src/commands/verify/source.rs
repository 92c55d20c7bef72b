//! The study that made a dataset, with the files that it names.

use std::collections::BTreeMap;
use std::path::Path;

use analysis::dataset::Dataset;
use anyhow::Context;
use coordinator::server::Definition;
use coordinator::store;
use study::plan::Plan;
use study::prior::Files;

use crate::commands::plan::ledger;
use crate::exit::{BadInput, CheckFailed};
use crate::load::{self, Loaded};

/// Loads the study named with `--study`, or `study.toml` of the dataset, whose files the run's own ledger
/// keeps; refuses one that does not make the dataset's cells.
pub(super) fn load(dataset: &Dataset, named: Option<&Path>) -> anyhow::Result<Loaded> {
    let loaded = match named {
        Some(path) => load::load(path)?,
        None => kept(dataset)?,
    };
    let Some(problem) = mismatch(dataset, &loaded.plan) else { return Ok(loaded) };
    let problem = format!("{} {problem}", loaded.definition.file_name);
    if named.is_some() {
        return Err(BadInput(format!("{problem}; name the study file that was run")).into());
    }
    let problem = format!("{problem}; name the study file that was run with --study PATH");
    Err(CheckFailed(problem).into())
}

/// Why a plan is not that of the dataset.
fn mismatch(dataset: &Dataset, plan: &Plan) -> Option<String> {
    let manifest = &dataset.manifest;
    if plan.id.hex() != manifest.study_digest {
        return Some(format!(
            "makes study \"{}\", seed {} ({}), and the dataset is of \"{}\", seed {} ({})",
            plan.study.name, plan.study.seed, plan.id, manifest.name, manifest.seed, manifest.study
        ));
    }
    let lacking = dataset.cells.iter().filter(|cell| plan.cell(cell.id).is_none());
    let (first, more) = (lacking.clone().next()?, lacking.count() - 1);
    let policy = &first.cell.policy;
    Some(format!(
        "does not make cell {} ({} {}) of the dataset{}: its prior, N, delta or another parameter was changed",
        first.id,
        policy.design(),
        policy.method(),
        if more > 0 {
            format!(", nor {more} more of its {}", dataset.cells.len())
        } else {
            String::new()
        },
    ))
}

/// `study.toml` in the dataset's folder, with files from the ledger beside it, or else from the folder.
fn kept(dataset: &Dataset) -> anyhow::Result<Loaded> {
    let path = dataset.dir.join("study.toml");
    let file_name = path.display().to_string();
    let text = load::read(&path).with_context(|| format!("cannot read {file_name}"))?;
    let text = String::from_utf8(text).with_context(|| format!("cannot read {file_name}"))?;
    let names = dataset.study.paths();
    let digests = if names.is_empty() { BTreeMap::new() } else { digests(&dataset.dir)? };
    let mut files = Files::default();
    let mut contents = Vec::new();
    for name in names {
        let bytes = content(&dataset.dir, &name, digests.get(&name));
        let Some(bytes) = bytes else {
            return Err(BadInput(format!(
                "{file_name} names {name}, which is neither in {} nor kept by the run in {}; name the \
                 original study file, beside which it is, with --study PATH",
                dataset.dir.display(),
                ledger(&dataset.dir).display()
            ))
            .into());
        };
        files.insert(&name, bytes.clone()).map_err(|error| BadInput(error.to_string()))?;
        contents.push((name, bytes));
    }
    let plan = Plan::new(dataset.study.clone(), &files);
    let plan = plan.map_err(|error| BadInput(error.to_string()))?;
    Ok(Loaded { definition: Definition { file_name, text, files: contents }, files, plan })
}

/// A file as the run kept it, or as it lies in the dataset's folder.
fn content(dir: &Path, name: &str, digest: Option<&[u8; 32]>) -> Option<Vec<u8>> {
    let kept = digest.and_then(|&digest| {
        let hash = blake3::Hash::from_bytes(digest);
        let bytes = std::fs::read(ledger(dir).join("files").join(hash.to_hex().as_str())).ok()?;
        (blake3::hash(&bytes) == hash).then_some(bytes)
    });
    kept.or_else(|| load::read(&dir.join(name)).ok())
}

/// The digests of the files that the run's study names; none where the folder has no ledger.
fn digests(dir: &Path) -> anyhow::Result<BTreeMap<String, [u8; 32]>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let studies = runtime.block_on(store::peek(&ledger(dir)))?.unwrap_or_default();
    Ok(studies.into_iter().flat_map(|(study, _)| study.files).collect())
}
