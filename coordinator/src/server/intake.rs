//! The way of a study into the coordinator, outside of the engine up to its last step:
//!
//! ```text
//! files to disk -> size within the budget -> plan -> files kept -> ledger -> engine
//! ```
//!
//! One study at a time goes through all but the first. It is durable before anything of it is active, so that
//! whatever has been acknowledged is there after a crash; one that was not is there in full, and its
//! submission can be repeated, or not at all.

use std::collections::BTreeMap;
use std::sync::Arc;

use study::StudyId;
use study::family::{self, EarlierFamily};
use study::plan::Plan;
use tokio::sync::{Mutex, mpsc};

use super::SubmitError;
use super::call::Call;
use super::catalog::{Entry, Source};
use super::memory;
use super::spool::{Spool, Upload};
use super::workers::ask;
use crate::store::{Store, StoredShard};

/// Takes in studies.
pub(super) struct Intake {
    pub(super) calls: mpsc::Sender<Call>,
    pub(super) store: Arc<Store>,
    pub(super) spool: Spool,
    /// Bytes that all studies may take.
    pub(super) memory: u64,
    /// The one that is planned.
    pub(super) turn: Mutex<()>,
}

/// What the engine has when a study comes in.
pub(super) struct Holds {
    /// The plan of the study and the families of claims before it, where it is known.
    pub(super) known: Option<(Arc<Plan>, Vec<EarlierFamily>)>,
    /// The study that the folder is for, where that is another one: name and id.
    pub(super) other: Option<(String, StudyId)>,
    /// What other studies take.
    pub(super) memory: u64,
}

impl Intake {
    /// Takes in a study, or what it has grown to.
    pub(super) async fn submit(self: &Arc<Self>, upload: Upload) -> Result<StudyId, SubmitError> {
        let intake = Arc::clone(self);
        // Whoever submitted may go away: what is in the ledger becomes active all the same.
        let task = tokio::spawn(async move { intake.take_in(upload).await });
        match task.await.map_err(tokio::task::JoinError::try_into_panic) {
            Ok(result) => result,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            Err(Err(_)) => Err(SubmitError::Stopped),
        }
    }

    async fn take_in(&self, upload: Upload) -> Result<StudyId, SubmitError> {
        let _turn = self.turn.lock().await;
        let (upload, size) = blocking(move || {
            let size = upload.source.size()?;
            Ok((upload, size))
        })
        .await?;
        let Holds { known, other, memory: held } = self.holds(size.study).await?;
        let old = known.as_ref().map(|(plan, _)| Arc::clone(plan));
        let memory = memory::admit(&size, held, self.memory)?;
        let (upload, entry) = blocking(move || {
            let entry = upload.source.plan(memory)?;
            match (old, other) {
                (Some(old), _) => entry.plan.grows_from(&old)?,
                (None, Some((held, held_id))) => {
                    let (name, id) = (entry.plan.study.name.clone(), entry.plan.id);
                    return Err(SubmitError::OtherStudy { held, held_id, name, id });
                }
                (None, None) => {}
            }
            Ok((upload, entry))
        })
        .await?;
        let study = entry.plan.id;
        let earlier = match known {
            Some((plan, earlier)) => self.earlier(earlier, &plan, &entry.plan).await?,
            None => Vec::new(),
        };
        self.keep(study, &upload.source, &earlier).await?;
        let entry = entry.after(earlier);
        ask(&self.calls, |reply| Call::Activate { entry: Box::new(entry), reply })
            .await
            .unwrap_or(Err(SubmitError::Stopped))?;
        Ok(study)
    }

    async fn holds(&self, study: StudyId) -> Result<Holds, SubmitError> {
        let answer = ask(&self.calls, |reply| Call::Holds { study, reply }).await;
        answer.unwrap_or(Err(SubmitError::Stopped))
    }

    /// The families of claims before those of a plan. Where its claims differ from those that the study had, whatever
    /// is durable by now was drawn before them; what comes after was drawn once they were written down.
    async fn earlier(
        &self,
        earlier: Vec<EarlierFamily>,
        old: &Plan,
        new: &Plan,
    ) -> Result<Vec<EarlierFamily>, SubmitError> {
        let mut replicates = BTreeMap::<String, u64>::new();
        for StoredShard { row, .. } in self.store.shards(new.id).await? {
            let known = replicates.entry(row.cell.to_string()).or_default();
            *known = row.range.end.max(*known);
        }
        Ok(family::replaced(earlier, old, new, replicates))
    }

    /// Makes a study durable.
    async fn keep(
        &self,
        study: StudyId,
        source: &Source,
        earlier: &[EarlierFamily],
    ) -> Result<(), SubmitError> {
        for file in &source.files {
            self.store.keep_file(file.digest, &file.place).await?;
        }
        let files: Vec<(String, [u8; 32])> =
            source.files.iter().map(|file| (file.path.clone(), file.digest)).collect();
        let (name, text) = (&source.file_name, &source.text);
        Ok(self.store.put_study_after(study, name, text, &files, family::encode(earlier)).await?)
    }
}

/// Plans a study of the ledger, unless it is larger than the budget allows beside what is there.
pub(super) async fn replan(source: Source, held: u64, budget: u64) -> Result<Entry, SubmitError> {
    blocking(move || {
        let memory = memory::admit(&source.size()?, held, budget)?;
        source.plan(memory)
    })
    .await
}

/// Runs off the runtime's threads: a large file or grid takes a while.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SubmitError> + Send + 'static,
) -> Result<T, SubmitError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(SubmitError::Stopped),
        },
    }
}

#[cfg(test)]
mod tests;
