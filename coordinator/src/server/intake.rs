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
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use study::StudyId;
use study::family::{self, EarlierFamily};
use study::plan::Plan;
use tokio::sync::{Mutex, mpsc};

use super::SubmitError;
use super::call::Call;
use super::catalog::{Entry, NamedFile, Source};
use super::fetch::Datasets;
use super::memory::{self, file_memory};
use super::spool::{Spool, Upload};
use super::workers::ask;
use crate::store::{Store, StoredShard, StoredStudy};

/// Takes in studies.
pub(super) struct Intake {
    pub(super) calls: mpsc::Sender<Call>,
    pub(super) store: Arc<Store>,
    pub(super) spool: Spool,
    pub(super) datasets: Arc<dyn Datasets>,
    /// Bytes that all studies may take.
    pub(super) memory: u64,
    /// The one that is planned.
    pub(super) turn: Mutex<()>,
}

/// What the engine has when a study comes in.
pub(super) struct Holds {
    pub(super) known: Known,
    /// The study that the folder is for, where that is another one: name and id.
    pub(super) other: Option<(String, StudyId)>,
    /// What other studies take.
    pub(super) memory: u64,
}

/// What is known of a study that comes in.
pub(super) enum Known {
    Not,
    /// Its plan, and the families of claims before it.
    Planned(Arc<Plan>, Vec<EarlierFamily>),
    /// It could not be taken up at the start. As the ledger has it, unless its row is damaged.
    Failed(Option<Box<StoredStudy>>),
}

/// What a study was before it is submitted again.
#[derive(Default)]
struct Before {
    /// `None` where it cannot be planned any more.
    plan: Option<Arc<Plan>>,
    /// The families of claims before that.
    earlier: Vec<EarlierFamily>,
}

/// What is tested where nothing is.
const NOTHING: &str = "nothing";

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
        let memory = memory::admit(&size, held, self.memory)?;
        let has_failed = matches!(known, Known::Failed(_));
        let before = match known {
            Known::Not => None,
            Known::Planned(plan, earlier) => Some(Before { plan: Some(plan), earlier }),
            Known::Failed(stored) => Some(self.before(stored, held).await),
        };
        let old = before.as_ref().and_then(|before| before.plan.clone());
        let limit = file_memory(self.memory);
        let (upload, entry) = blocking(move || {
            let entry = upload.source.plan(memory, limit)?;
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
        // Of a study that was deleted, or lost with its ledger, a dataset may have stayed.
        self.datasets.keeps(&entry.plan).await?;
        let study = entry.plan.id;
        let earlier = match before {
            Some(before) => {
                let old = before.plan.clone();
                let earlier = self.earlier(before, &entry.plan).await?;
                old.map_or(Ok(()), |old| entry.plan.keeps_columns(&old, &earlier))?;
                earlier
            }
            None => Vec::new(),
        };
        self.keep(study, &upload.source, &earlier).await?;
        // Where the row was damaged, nobody has looked after the shards yet.
        let damaged = if has_failed { self.store.verify_study(study).await? } else { Vec::new() };
        let entry = Box::new(entry.after(earlier));
        ask(&self.calls, |reply| Call::Activate { entry, damaged, reply })
            .await
            .unwrap_or(Err(SubmitError::Stopped))?;
        Ok(study)
    }

    async fn holds(&self, study: StudyId) -> Result<Holds, SubmitError> {
        let answer = ask(&self.calls, |reply| Call::Holds { study, reply }).await;
        answer.unwrap_or(Err(SubmitError::Stopped))
    }

    /// What a study that failed was, as far as its definition can still be planned.
    async fn before(&self, stored: Option<Box<StoredStudy>>, held: u64) -> Before {
        let Some(stored) = stored else { return Before::default() };
        // Without the families before it, its own plan is not enough to tell which rows are new.
        let Ok(earlier) = family::decode(&stored.earlier) else { return Before::default() };
        let replanned = async {
            let source = source(&self.store, &stored).await?;
            replan(source, held, self.memory).await
        };
        // It may have failed because planning it panics.
        let replanned = AssertUnwindSafe(replanned).catch_unwind().await;
        let plan = replanned.ok().and_then(Result::ok).map(|entry| entry.plan);
        Before { plan: plan.filter(|plan| plan.id == stored.id), earlier }
    }

    /// The families of claims before those of a plan. Where its claims differ from those that the study had, whatever
    /// is durable by now was drawn before them; what comes after was drawn once they were written down.
    async fn earlier(&self, before: Before, new: &Plan) -> Result<Vec<EarlierFamily>, SubmitError> {
        let mut replicates = BTreeMap::<String, u64>::new();
        for StoredShard { row, .. } in self.store.shards(new.id).await? {
            let known = replicates.entry(row.cell.to_string()).or_default();
            *known = row.range.end.max(*known);
        }
        let Before { plan, earlier } = before;
        // Claims that cannot be read any more may have been any: none of the present ones is known to be as old as
        // what is durable.
        let old = plan.unwrap_or_else(|| Arc::new(without_claims(new)));
        Ok(family::replaced(earlier, &old, new, replicates))
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

/// A plan that tests nothing.
fn without_claims(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    plan.study.test = vec![NOTHING.to_owned()];
    plan.study.claims.clear();
    plan.rows = 0;
    plan
}

/// A study of the ledger, with its files on this machine.
pub(super) async fn source(store: &Store, stored: &StoredStudy) -> Result<Source, SubmitError> {
    let mut files = Vec::new();
    for (path, digest) in &stored.files {
        let place = store.file_place(*digest).await?;
        let size = tokio::fs::metadata(&place).await.map_or(0, |file| file.len());
        files.push(NamedFile { path: path.clone(), digest: *digest, size, place });
    }
    let (file_name, text) = (stored.file_name.clone(), stored.text.clone());
    Ok(Source { file_name, text, files })
}

/// Plans a study of the ledger, unless it is larger than the budget allows beside what is there.
pub(super) async fn replan(source: Source, held: u64, budget: u64) -> Result<Entry, SubmitError> {
    blocking(move || {
        let memory = memory::admit(&source.size()?, held, budget)?;
        source.plan(memory, file_memory(budget))
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
