//! Studies of the ledger that cannot be taken up, and the end of studies that nobody wants any more.
//!
//! A study whose row is damaged, that does not plan or whose files are missing is listed as failed, with
//! the reason; the others run. Its data stays until it is deleted, and submitting it again mends it.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use study::StudyId;
use study::file::Study;
use tonic::{Code, Status};

use super::catalog::SubmitError;
use super::engine::Engine;
use super::outcome::Outcome;
use crate::core::Event;
use crate::store::{self, DamagedShard, Recovered, StoredStudy};

/// A study that could not be taken up.
pub(super) struct Failed {
    pub(super) name: String,
    /// As the ledger has it, unless its row is damaged.
    pub(super) stored: Option<StoredStudy>,
}

/// Why a study is not cancelled or deleted.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    /// There is none.
    #[error("there is no study {0}")]
    Unknown(StudyId),
    /// It runs.
    #[error("study {0} is running: cancel it first (regretta study cancel {0})")]
    Running(StudyId),
    /// It was never taken up.
    #[error("study {0} failed and does not run: submit it again, or delete it")]
    Failed(StudyId),
    /// Somebody deletes it already.
    #[error("study {0} is being deleted")]
    Deleting(StudyId),
}

impl From<Refused> for Status {
    fn from(refused: Refused) -> Self {
        let code = match refused {
            Refused::Unknown(_) => Code::NotFound,
            Refused::Running(_) | Refused::Failed(_) | Refused::Deleting(_) => {
                Code::FailedPrecondition
            }
        };
        Self::new(code, refused.to_string())
    }
}

impl Engine {
    /// Takes up what the store holds. A study that cannot be is a failed one; an error is the store's.
    pub(super) async fn take_up(
        &mut self,
        recovered: &Recovered,
        budget: u64,
    ) -> Result<(), store::Error> {
        for damaged in &recovered.damaged_studies {
            let failed = Failed { name: damaged.file_name.clone(), stored: None };
            self.fail(damaged.id, failed, damaged.reason.clone());
        }
        for stored in &recovered.studies {
            // A definition that makes the planner panic must not keep the others from running.
            let restored = AssertUnwindSafe(self.restore(stored.clone(), budget));
            let restored = restored.catch_unwind().await;
            let reason = match restored {
                Ok(Ok(())) => continue,
                Ok(Err(SubmitError::Store(error))) if !self.is_of_study(&error) => {
                    return Err(error);
                }
                Ok(Err(error)) => format!("it cannot be taken up again: {error}"),
                Err(_) => "it cannot be taken up again: planning it panicked".to_owned(),
            };
            let failed = Failed { name: name(stored), stored: Some(stored.clone()) };
            self.fail(stored.id, failed, reason);
        }
        self.note_damaged(&recovered.damaged);
        Ok(())
    }

    /// Whether an error of the store is about one study, and not about all of them.
    fn is_of_study(&self, error: &store::Error) -> bool {
        match error {
            store::Error::File { .. }
            | store::Error::Corrupt { .. }
            | store::Error::CorruptDatabase { .. } => true,
            // A file that cannot be read; an object store that does not answer has none.
            store::Error::Io { .. } | store::Error::Permission { .. } => !self.store.is_remote(),
            _ => false,
        }
    }

    fn fail(&mut self, study: StudyId, failed: Failed, reason: String) {
        tracing::error!(%study, name = failed.name, reason, "a study failed");
        self.announce(study, Outcome::Failed(reason));
        self.failed.insert(study, failed);
    }

    /// Studies that could not be taken up, and why.
    pub(super) fn failures(&self) -> Vec<(StudyId, String)> {
        let why = |study| self.outcome(study).map_or_else(String::new, |why| why.to_string());
        self.failed.keys().map(|&study| (study, why(study))).collect()
    }

    /// Notes shards that did not survive.
    pub(super) fn note_damaged(&mut self, shards: &[DamagedShard]) {
        for DamagedShard { study, cell, range, reason } in shards {
            self.remark(*study, format!(
                "shard of cell {cell}, replicates {} to {}, was lost and is computed anew: {reason}",
                range.start, range.end
            ));
        }
    }

    /// Notes something that people should see where they see how far a study is.
    pub(super) fn remark(&mut self, study: StudyId, note: String) {
        self.notes.entry(study).or_default().push(note);
    }

    /// Cancels a study.
    pub(super) fn cancel_known(&mut self, study: StudyId) -> Result<(), Refused> {
        if self.failed.contains_key(&study) {
            return Err(Refused::Failed(study));
        }
        if self.cancel(study) { Ok(()) } else { Err(Refused::Unknown(study)) }
    }

    /// Lets a study that does not run be deleted. The store does that beside the engine, which others
    /// are waiting for.
    pub(super) fn begin_delete(&mut self, study: StudyId) -> Result<(), Refused> {
        self.name(study).ok_or(Refused::Unknown(study))?;
        if self.is_running(study) {
            return Err(Refused::Running(study));
        }
        if self.deleting.insert(study) { Ok(()) } else { Err(Refused::Deleting(study)) }
    }

    /// Forgets a study, unless it could not be deleted.
    pub(super) fn end_delete(&mut self, study: StudyId, done: bool) {
        self.deleting.remove(&study);
        if done {
            self.tell(Event::Forget { study });
            self.studies.remove(&study);
            self.failed.remove(&study);
            self.notes.remove(&study);
            self.withdraw(study);
        }
    }

    /// What people call a study.
    pub(super) fn name(&self, study: StudyId) -> Option<String> {
        let known = self.studies.get(&study).map(|entry| entry.plan.study.name.clone());
        known.or_else(|| self.failed.get(&study).map(|failed| failed.name.clone()))
    }
}

/// The name of a study that may not plan.
fn name(stored: &StoredStudy) -> String {
    Study::parse(&stored.file_name, &stored.text)
        .map_or_else(|_| stored.file_name.clone(), |study| study.name)
}
