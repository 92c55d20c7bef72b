//! Studies: taking them in, growing, cancelling and handing out what they became.

use std::sync::Arc;
use std::time::Instant;

use proto::v1;
use study::StudyId;
use study::family;

use super::call::Call;
use super::catalog::{Entry, Past, PlanError, SubmitError};
use super::engine::Engine;
use super::intake::{self, Holds, Known};
use super::outcome::Outcome;
use super::results::{CellResults, Results, Unsound};
use crate::core::Event;
use crate::store::{self, DamagedShard, State, StoredStudy};

impl Engine {
    pub(super) async fn studies(&mut self, call: Call) {
        match call {
            Call::Definition { study, reply } => _ = reply.send(self.definition(study)),
            Call::Holds { study, reply } => _ = reply.send(self.holds(study)),
            Call::Activate { entry, damaged, reply } => {
                _ = reply.send(self.run_study(*entry, &damaged).await);
            }
            Call::Cancel { study, reply } => _ = reply.send(self.cancel_known(study)),
            Call::Delete { study, reply } => _ = reply.send(self.begin_delete(study)),
            Call::Deleted { study, done, reply } => {
                self.end_delete(study, done);
                _ = reply.send(());
            }
            Call::List { reply } => {
                let began = Instant::now();
                let summaries = self.summaries();
                _ = reply.send((summaries, began.elapsed()));
            }
            Call::Look { study, reply } => {
                let began = Instant::now();
                let look = self.look(study);
                _ = reply.send((look, began.elapsed()));
            }
            Call::Results { study, reply } => _ = reply.send(self.results(study).await),
            Call::Recompute { study, revision, lost, reply } => {
                _ = reply.send(self.recompute(study, revision, &lost).await);
            }
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

    /// What a study has to fit to.
    fn holds(&self, study: StudyId) -> Result<Holds, SubmitError> {
        if self.is_draining() {
            return Err(SubmitError::Stopped);
        }
        if self.deleting.contains(&study) {
            return Err(SubmitError::Deleting);
        }
        let known = match (self.studies.get(&study), self.failed.get(&study)) {
            (Some(entry), _) => Known::Planned(Arc::clone(&entry.plan), entry.earlier.clone()),
            (None, Some(failed)) => Known::Failed(failed.stored.clone().map(Box::new)),
            (None, None) => Known::Not,
        };
        let others = || self.studies.values().filter(|entry| entry.plan.id != study);
        let named = others().map(|entry| (entry.plan.study.name.clone(), entry.plan.id));
        let failed = self.failed.iter().map(|(&id, failed)| (failed.name.clone(), id));
        let mut other = named.chain(failed.filter(|(_, id)| *id != study));
        Ok(Holds {
            known,
            other: other.next().filter(|_| self.single),
            memory: others().map(|entry| entry.memory).sum(),
        })
    }

    /// Runs a study that is durable.
    async fn run_study(
        &mut self,
        entry: Entry,
        damaged: &[DamagedShard],
    ) -> Result<(), SubmitError> {
        if self.is_draining() {
            return Err(SubmitError::Stopped);
        }
        let study = entry.plan.id;
        if self.studies.contains_key(&study) {
            // What is being written was counted by the rows of the plan before, or says that it has ended.
            self.settle().await;
            if self.outcome(study) != Some(Outcome::Running) {
                self.store.set_state(study, State::Active, "").await?;
            }
        }
        self.note_damaged(damaged);
        // Whoever submits a study again gives its quarantined trials another chance.
        self.activate(entry, Quarantine::Lifted).await
    }

    /// Takes a study of the ledger up again; one that was stopped is only known.
    pub(super) async fn restore(
        &mut self,
        stored: StoredStudy,
        budget: u64,
    ) -> Result<(), SubmitError> {
        let source = intake::source(&self.store, &stored).await?;
        let held = self.studies.values().map(|entry| entry.memory).sum();
        let earlier = family::decode(&stored.earlier).map_err(PlanError::from)?;
        let entry = intake::replan(source, held, budget).await?.after(earlier);
        if entry.plan.id != stored.id {
            return Err(SubmitError::OtherDefinition { id: entry.plan.id });
        }
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
        let mut past = self.past(study).await?;
        if quarantine == Quarantine::Lifted {
            past.deaths.clear();
        }
        for cell in past.stale(&entry) {
            self.store.forget_cell(study, cell).await?;
            past.shards.retain(|shard| shard.row.cell != cell);
        }
        let work = past.work(&entry);
        self.failed.remove(&study);
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

    pub(super) fn cancel(&mut self, study: StudyId) -> bool {
        if !self.studies.contains_key(&study) {
            return false;
        }
        self.tell(Event::Cancel { study });
        let store = Arc::clone(&self.store);
        self.note(async move { store.set_state(study, State::Cancelled, "").await });
        self.announce(study, Outcome::Cancelled);
        true
    }

    /// Drops and notes what is lost, and has it computed anew.
    async fn recompute(
        &mut self,
        study: StudyId,
        revision: [u8; 32],
        lost: &[Unsound],
    ) -> Result<(), SubmitError> {
        // That the study was complete is being written down.
        self.settle().await;
        // It may have grown, been sealed or cancelled since it was read, or somebody is deleting it.
        let waits =
            self.outcome(study) == Some(Outcome::Complete) && !self.deleting.contains(&study);
        let unsealed =
            |entry: &&Entry| entry.revision == revision && entry.is_closed() && !entry.sealed;
        let Some(entry) = self.studies.get(&study).filter(unsealed).filter(|_| waits) else {
            return Ok(());
        };
        let entry = entry.opened_again();
        let ranges: Vec<_> = lost.iter().map(|shard| (shard.cell, shard.range.clone())).collect();
        self.store.give_up(study, &ranges).await?;
        for shard in lost {
            tracing::error!(%study, %shard, "records are lost, and computed anew");
            self.remark(study, format!("computed anew: {shard}"));
        }
        self.activate(entry, Quarantine::Kept).await
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
