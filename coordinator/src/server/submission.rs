//! Studies: taking them in, growing, cancelling and handing out what they became.

use std::sync::Arc;

use proto::v1;
use study::StudyId;
use study::family::{self, EarlierFamily};
use study::plan::Plan;

use super::call::Call;
use super::catalog::{Definition, Entry, Past, PlanError, SubmitError};
use super::engine::Engine;
use super::outcome::Outcome;
use super::results::{CellResults, Results};
use crate::core::Event;
use crate::store::{self, State, StoredStudy};

impl Engine {
    pub(super) async fn studies(&mut self, call: Call) {
        match call {
            Call::Definition { study, reply } => _ = reply.send(self.definition(study)),
            Call::Submit { definition, reply } => _ = reply.send(self.submit(definition).await),
            Call::Cancel { study, reply } => _ = reply.send(self.cancel(study)),
            Call::List { reply } => _ = reply.send(self.summaries()),
            Call::Status { study, reply } => _ = reply.send(self.status(study)),
            Call::Results { study, reply } => _ = reply.send(self.results(study).await),
            Call::Sealed { study, revision, digest, reply } => {
                _ = reply.send(self.sealed(study, revision, digest).await);
            }
            _ => unreachable!("calls of workers are answered by the engine itself"),
        }
    }

    fn definition(&self, study: StudyId) -> Option<v1::StudyDefinition> {
        let entry = self.studies.get(&study)?;
        let file = |(path, digest, size): &(String, [u8; 32], u64)| v1::FileRef {
            path: path.clone(),
            digest: digest.to_vec().into(),
            size: *size,
        };
        Some(v1::StudyDefinition {
            file_name: entry.file_name.clone(),
            text: entry.text.clone(),
            revision: entry.revision.to_vec().into(),
            files: entry.files.iter().map(file).collect(),
        })
    }

    async fn submit(&mut self, definition: Definition) -> Result<StudyId, SubmitError> {
        if self.is_draining() {
            return Err(SubmitError::Stopped);
        }
        let (definition, plan) = plan(definition).await?;
        let study = plan.id;
        self.admit(&plan)?;
        let mut files = Vec::new();
        for (path, bytes) in &definition.files {
            let digest = *blake3::hash(bytes).as_bytes();
            self.store.put_file(digest, bytes.clone().into()).await?;
            files.push((path.clone(), digest, bytes.len() as u64));
        }
        let names: Vec<(String, [u8; 32])> =
            files.iter().map(|(path, digest, _)| (path.clone(), *digest)).collect();
        let earlier = self.earlier(&plan).await?;
        let Definition { file_name, text, .. } = definition;
        let before = family::encode(&earlier);
        self.store.put_study_after(study, &file_name, &text, &names, before).await?;
        let entry = Entry::new(plan, file_name, text, files).after(earlier);
        // Whoever submits a study again gives its quarantined trials another chance.
        self.activate(entry, Quarantine::Lifted).await?;
        Ok(study)
    }

    /// Refuses what is not the study that is there, grown.
    fn admit(&self, plan: &Plan) -> Result<(), SubmitError> {
        if let Some(entry) = self.studies.get(&plan.id) {
            return Ok(plan.grows_from(&entry.plan)?);
        }
        match self.studies.iter().next() {
            Some((&held_id, entry)) if self.single => Err(SubmitError::OtherStudy {
                held: entry.plan.study.name.clone(),
                held_id,
                name: plan.study.name.clone(),
                id: plan.id,
            }),
            _ => Ok(()),
        }
    }

    /// The families of claims before those of a plan. From here on its claims are planned, and where
    /// they differ from those that the study had, whatever is durable by now was drawn before them.
    async fn earlier(&mut self, plan: &Plan) -> Result<Vec<EarlierFamily>, store::Error> {
        if !self.studies.contains_key(&plan.id) {
            return Ok(Vec::new());
        }
        self.settle().await;
        let shards = self.store.shards(plan.id).await?;
        Ok(self.studies[&plan.id].replaced_by(plan, &shards))
    }

    /// Takes a study of the ledger up again; one that was stopped is only known.
    pub(super) async fn restore(&mut self, stored: StoredStudy) -> Result<(), SubmitError> {
        let mut files = Vec::new();
        for (path, digest) in &stored.files {
            files.push((path.clone(), self.store.file(*digest).await?.to_vec()));
        }
        let definition = Definition { file_name: stored.file_name, text: stored.text, files };
        let (definition, plan) = plan(definition).await?;
        let sizes = definition.files.iter().zip(&stored.files);
        let files = sizes
            .map(|((path, bytes), (_, digest))| (path.clone(), *digest, bytes.len() as u64))
            .collect();
        let earlier = family::decode(&stored.earlier).map_err(PlanError::from)?;
        let entry = Entry::new(plan, definition.file_name, definition.text, files).after(earlier);
        // One that was done goes through the core again, and is sealed where it had not come to that.
        let goes_on = matches!(stored.state, State::Active | State::Done);
        if self.single || !goes_on {
            let outcome = match stored.state {
                State::Active => Outcome::Running,
                State::Done => Outcome::Complete,
                State::Cancelled => Outcome::Cancelled,
                State::Alarmed => Outcome::Alarmed(stored.reason),
            };
            self.announce(stored.id, outcome);
            if !self.single {
                self.remember(&entry).await?;
            }
            self.studies.insert(stored.id, entry);
            return Ok(());
        }
        self.activate(entry, Quarantine::Kept).await
    }

    /// Lets the core know of a study that was stopped, so that its progress can be shown.
    async fn remember(&mut self, entry: &Entry) -> Result<(), SubmitError> {
        let study = entry.plan.id;
        let mut past = self.past(study).await?;
        let stale = past.stale(entry);
        past.shards.retain(|shard| !stale.contains(&shard.row.cell));
        self.tell_silently(Event::Submit(past.work(entry)));
        self.tell_silently(Event::Cancel { study });
        Ok(())
    }

    /// Gives the core what is left to do.
    async fn activate(&mut self, entry: Entry, quarantine: Quarantine) -> Result<(), SubmitError> {
        let study = entry.plan.id;
        // What is being written was counted by the rows of the plan before.
        self.settle().await;
        let mut past = self.past(study).await?;
        if quarantine == Quarantine::Lifted {
            past.deaths.clear();
        }
        for cell in past.stale(&entry) {
            self.store.forget_cell(study, cell).await?;
            past.shards.retain(|shard| shard.row.cell != cell);
        }
        let work = past.work(&entry);
        self.studies.insert(study, entry);
        self.announce(study, Outcome::Running);
        self.tell(Event::Submit(work));
        Ok(())
    }

    async fn past(&mut self, study: StudyId) -> Result<Past, store::Error> {
        Ok(Past {
            shards: self.store.shards(study).await?,
            deaths: self.store.deaths(study).await?,
            checks: self.store.checks(study).await?,
        })
    }

    fn cancel(&mut self, study: StudyId) -> bool {
        if !self.studies.contains_key(&study) {
            return false;
        }
        self.tell(Event::Cancel { study });
        let store = Arc::clone(&self.store);
        self.note(async move { store.set_state(study, State::Cancelled, "").await });
        self.announce(study, Outcome::Cancelled);
        true
    }

    /// Whether the dataset of a study, as it is now, is in place.
    pub(super) fn is_sealed(&self, study: StudyId) -> bool {
        self.studies.get(&study).is_some_and(|entry| entry.sealed)
    }

    /// The shards of a study that is complete, cell by cell.
    async fn results(&mut self, study: StudyId) -> Result<Option<Results>, store::Error> {
        let Some(entry) = self.studies.get(&study) else { return Ok(None) };
        if !entry.is_closed() {
            return Ok(None);
        }
        let mut shards = self.store.shards(study).await?;
        shards.sort_by_key(|shard| (shard.row.cell, shard.row.range.start));
        let mut shards = shards.into_iter().peekable();
        let mut cells = Vec::with_capacity(entry.closed.len());
        for (&cell, &replicates) in &entry.closed {
            let mut kept = Vec::new();
            while let Some(shard) = shards.next_if(|shard| shard.row.cell <= cell) {
                if shard.row.cell == cell && shard.row.range.end <= replicates {
                    kept.push(shard);
                }
            }
            cells.push(CellResults { cell, replicates, shards: kept });
        }
        let (plan, earlier) = (Arc::clone(&entry.plan), entry.earlier.clone());
        Ok(Some(Results { plan, earlier, cells }))
    }

    async fn sealed(
        &mut self,
        study: StudyId,
        revision: [u8; 32],
        digest: [u8; 32],
    ) -> Result<(), store::Error> {
        // What a plan that has grown since holds is not in the dataset.
        let sealed = |entry: &&Entry| entry.revision == revision && entry.is_closed();
        let Some(entry) = self.studies.get(&study).filter(sealed) else { return Ok(()) };
        let cells: Vec<store::SealedCell> = entry
            .closed
            .iter()
            .map(|(&cell, &replicates)| store::SealedCell { cell, replicates })
            .collect();
        self.store.mark_sealed(study, digest, &cells).await?;
        if let Some(entry) = self.studies.get_mut(&study) {
            entry.sealed = true;
        }
        Ok(())
    }
}

/// What becomes of trials that killed their workers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quarantine {
    Kept,
    Lifted,
}

/// Plans off the runtime's threads: a large grid takes a while.
async fn plan(definition: Definition) -> Result<(Definition, Plan), PlanError> {
    let planned = tokio::task::spawn_blocking(move || {
        let plan = definition.plan()?;
        Ok((definition, plan))
    });
    match planned.await {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}
