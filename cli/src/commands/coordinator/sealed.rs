//! Sealed datasets: one folder per study, named NAME-ID, and the same in the object store if there is one.
//!
//! What is in the store counts: a folder is a cache of it then, and `.version` in it says of what. A
//! coordinator that takes over, with a folder of its own that has nothing, finds all there.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use analysis::seal::{Lock, Staging};
use analysis::{Manifest, PriorSummary};
use anyhow::{Context, bail};
use coordinator::server::{Datasets, Definition, Handle, Results, SubmitError};
use coordinator::store::dataset::{self, Entry, Stored};
use coordinator::store::{Bucket, RecordsAt};
use proto::convert::study_id;
use proto::v1::StudyState;
use study::StudyId;
use study::folder::{MANIFEST, STUDY};
use study::plan::Plan;
use worker::problem::Problem;

use crate::load::memory_limit;
use crate::sealing::Lost;
use crate::{disk, place, sealing};

/// How long a study that could not be sealed waits for the next attempt.
const RETRY: Duration = Duration::from_secs(30);

/// Which version of what is in the store a folder has.
const VERSION: &str = ".version";

/// The datasets of a coordinator.
pub(super) struct Sealed {
    studies: PathBuf,
    store: Option<Bucket>,
    /// A folder is written to by one at a time.
    locks: Mutex<HashMap<StudyId, Arc<tokio::sync::Mutex<()>>>>,
}

impl Datasets for Sealed {
    fn folder(&self, study: StudyId) -> Option<PathBuf> {
        let end = format!("-{study}");
        let mut folders = std::fs::read_dir(&self.studies).ok()?.filter_map(Result::ok);
        let folder = folders.find(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.ends_with(&end) && !name.starts_with('.')
        })?;
        Some(folder.path()).filter(|folder| folder.join("manifest.json").exists())
    }

    fn bring<'a>(
        &'a self,
        study: StudyId,
        name: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> {
        Box::pin(async move {
            let Some(place) = self.place(study, name) else { return Ok(()) };
            let lock = self.lock(study);
            let _held = lock.lock().await;
            let brought = async {
                let stored = dataset::look(&place).await?;
                let stored = stored.with_context(|| format!("{place} holds no dataset"))?;
                fetch(&stored, &self.out(study, name)).await
            };
            brought.await.map_err(|error: anyhow::Error| format!("{error:#}"))
        })
    }

    fn keeps<'a>(
        &'a self,
        plan: &'a Plan,
    ) -> Pin<Box<dyn Future<Output = Result<(), SubmitError>> + Send + 'a>> {
        Box::pin(async move {
            let found = self.sealed_before(plan).await;
            let found = found.map_err(|error| SubmitError::Dataset(format!("{error:#}")))?;
            let Some((manifest, text)) = found else { return Ok(()) };
            Ok(sealing::keeps_all(plan, &manifest, &text)?)
        })
    }

    fn hold(&self, study: StudyId) -> Pin<Box<dyn Future<Output = Box<dyn Send>> + Send + '_>> {
        let lock = self.lock(study);
        Box::pin(async move { Box::new(lock.lock_owned().await) as Box<dyn Send> })
    }

    fn remove(
        &self,
        study: StudyId,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>> {
        Box::pin(async move {
            let removed = async {
                if let Some(store) = &self.store {
                    delete_stored(store, study).await?;
                }
                let studies = self.studies.clone();
                blocking(move || delete_folders(&studies, study)).await
            };
            removed.await.map_err(|error: anyhow::Error| format!("{error:#}"))
        })
    }
}

/// Deletes the folders of a study, whatever its name is; one that is half deleted is not taken for a dataset.
fn delete_folders(studies: &Path, study: StudyId) -> anyhow::Result<()> {
    let end = format!("-{study}");
    for entry in std::fs::read_dir(studies)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.ends_with(&end) {
            continue;
        }
        let hidden = studies.join(format!(".{}", name.trim_start_matches('.')));
        if path != hidden {
            absent(std::fs::remove_dir_all(&hidden))?;
            std::fs::rename(&path, &hidden)?;
        }
        absent(std::fs::remove_dir_all(&hidden))?;
    }
    Ok(())
}

/// Deletes what an object store has of a study.
async fn delete_stored(store: &Bucket, study: StudyId) -> anyhow::Result<()> {
    let end = format!("-{study}");
    for address in dataset::below(store).await? {
        let name = address.rsplit('/').next().unwrap_or_default();
        if name.ends_with(&end) {
            dataset::remove(&store.join(&format!("datasets/{name}"))).await?;
        }
    }
    Ok(())
}

impl Sealed {
    pub(super) fn new(studies: &Path, records: Option<&RecordsAt>) -> Self {
        let store = match records {
            Some(RecordsAt::S3(bucket)) => Some(bucket.clone()),
            Some(RecordsAt::Folder) | None => None,
        };
        Self { studies: studies.to_path_buf(), store, locks: Mutex::default() }
    }

    fn out(&self, study: StudyId, name: &str) -> PathBuf {
        self.studies.join(format!("{name}-{study}"))
    }

    fn place(&self, study: StudyId, name: &str) -> Option<Bucket> {
        Some(self.store.as_ref()?.join(&format!("datasets/{name}-{study}")))
    }

    /// The manifest and the study file of what is sealed of a study.
    async fn sealed_before(&self, plan: &Plan) -> anyhow::Result<Option<(Manifest, String)>> {
        if let Some(place) = self.place(plan.id, &plan.study.name) {
            let Some(stored) = dataset::look(&place).await? else { return Ok(None) };
            let manifest = Manifest::parse(&stored.read(MANIFEST).await?, MANIFEST.into())?;
            let text = String::from_utf8_lossy(&stored.read(STUDY).await?).into_owned();
            return Ok(Some((manifest, text)));
        }
        let Some(folder) = self.folder(plan.id) else { return Ok(None) };
        blocking(move || {
            let manifest = place::manifest(&folder)?;
            Ok(Some((manifest, std::fs::read_to_string(folder.join(STUDY)).unwrap_or_default())))
        })
        .await
    }

    fn lock(&self, study: StudyId) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.locks.lock().expect("nobody panics while holding it");
        Arc::clone(locks.entry(study).or_default())
    }

    async fn seal(&self, handle: &Handle, study: StudyId) -> anyhow::Result<()> {
        let lock = self.lock(study);
        let _held = lock.lock().await;
        // Looked for under the lock: whoever deletes a study with its dataset holds it until both are gone.
        let definition = handle.definition(study).await.context("the study is gone")?;
        let results = sealing::results(handle, study).await?;
        let plan = Arc::clone(&results.plan);
        if definition.plan()?.revision() != plan.revision() {
            bail!("the study has just grown");
        }
        let (out, place) = (self.out(study, &plan.study.name), self.place(study, &plan.study.name));
        let stored = match &place {
            Some(place) => dataset::look(place).await?,
            None => None,
        };
        if let Some(stored) = &stored {
            if let Some(manifest) = whole(stored, &results, &definition.text).await? {
                return sealing::finish(handle, &plan, &manifest).await;
            }
            fetch(stored, &out).await?;
        }
        std::fs::create_dir_all(&out)?;
        // From here on the folder is ahead of the store.
        absent(std::fs::remove_file(out.join(VERSION)))?;
        let text = definition.text.clone();
        let planned = Arc::clone(&plan);
        let priors = blocking(move || priors(definition, &planned)).await?;
        let manifest = sealing::dataset(handle, results, &text, priors, &out).await?;
        if let Some(place) = &place {
            let put = dataset::publish(&out, place, stored.as_ref()).await?;
            std::fs::write(out.join(VERSION), put.index().version())?;
            tracing::info!(%study, %place, version = put.index().version(), "put");
        }
        sealing::finish(handle, &plan, &manifest).await?;
        tracing::info!(%study, digest = manifest.digest, out = %out.display(), "sealed");
        Ok(())
    }
}

/// The manifest of what is in the store, if nothing has to be added to it.
async fn whole(stored: &Stored, results: &Results, text: &str) -> anyhow::Result<Option<Manifest>> {
    let file = stored.index().files().find(|file| file.name == "study.toml");
    if file.is_none_or(|file| file.digest != blake3::hash(text.as_bytes())) {
        return Ok(None);
    }
    let manifest = stored.read("manifest.json").await?;
    let manifest = Manifest::parse(&manifest, "manifest.json".into())?;
    Ok(sealing::is_whole(results, &manifest).then_some(manifest))
}

/// Makes a folder have what is in the store.
async fn fetch(stored: &Stored, out: &Path) -> anyhow::Result<()> {
    let version = stored.index().version();
    if std::fs::read_to_string(out.join(VERSION)).is_ok_and(|held| held == version) {
        return Ok(());
    }
    let folder = out.to_path_buf();
    let staging = blocking(move || Ok(Staging::create(&Lock::take(&folder)?)?)).await?;
    disk::require(out, stored.index().bytes())?;
    let files: Vec<Entry> = stored.index().files().cloned().collect();
    stored.fetch(&files, &staging.path("")).await?;
    absent(std::fs::remove_file(out.join(VERSION)))?;
    blocking(move || Ok(staging.publish()?)).await?;
    Ok(std::fs::write(out.join(VERSION), version)?)
}

/// Does what may take long, such as waiting for a folder's lock, beside the threads that serve others.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(work).await.context("it stopped")?
}

/// What is not there need not be removed.
fn absent(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn priors(definition: Definition, plan: &Plan) -> anyhow::Result<Vec<PriorSummary>> {
    let mut files = study::prior::Files::default();
    for (path, bytes) in definition.files {
        files.insert(&path, bytes)?;
    }
    let mut summaries = Vec::new();
    for (index, planned) in plan.priors.iter().enumerate() {
        let prior = Problem::build(&planned.spec, &files, memory_limit()?)?;
        let cell = plan.cells.iter().find(|cell| cell.prior == index);
        let horizons = cell.map_or(&[][..], |cell| &cell.checkpoints);
        summaries.push(sealing::summary(index, planned, &prior, horizons)?);
    }
    Ok(summaries)
}

/// Seals every study once it is complete.
pub(super) async fn seal_finished(handle: Handle, sealed: Arc<Sealed>) {
    let mut outcomes = handle.outcomes();
    loop {
        outcomes.mark_unchanged();
        for study in handle.list().await {
            let Ok(id) = study_id(&study.study) else { continue };
            if study.state() != StudyState::Sealing {
                continue;
            }
            if let Err(error) = sealed.seal(&handle, id).await {
                tracing::error!(study = %id, "cannot seal: {error:#}");
                // It is sealed once they are there again.
                if let Some(Lost { plan, shards }) = error.downcast_ref()
                    && let Err(error) = handle.recompute(plan, shards.clone()).await
                {
                    tracing::error!(study = %id, %error, "lost records cannot be computed anew");
                }
            }
        }
        // What could not be sealed, for want of disk space for instance, is tried again.
        if let Ok(Err(_)) = tokio::time::timeout(RETRY, outcomes.changed()).await {
            return;
        }
    }
}
