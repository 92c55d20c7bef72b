//! Studies that come, grow and go.

use study::StudyId;

use super::lease::Stage;
use super::study::StudyState;
use super::{Core, LeaseEpoch, Refusal, StudyPhase, StudyWork};

impl Core {
    /// Takes a study up. One that is there already is replaced: what workers have in hand is revoked
    /// (their plan may count other rows), what is being written keeps its place where it has one.
    pub(super) fn submit(&mut self, work: &StudyWork) {
        let id = work.study;
        let mut study = StudyState::new(work, &self.settings, self.now);
        if self.studies.contains_key(&id) {
            self.leave(id, StudyPhase::Cancelled);
            self.revoke_all(id, &Refusal::Resubmitted);
            self.adopt(&mut study);
        }
        study.turn = self.next_turn;
        self.next_turn += 1;
        self.turns.insert((study.turn, id));
        let cells = study.cells().len();
        self.studies.insert(id, study);
        for cell in 0..cells {
            self.settle(id, cell);
        }
        self.finish_if_done(id);
    }

    /// Carries shards that are being written, and measured speeds, over to the new plan.
    fn adopt(&mut self, study: &mut StudyState) {
        let old = &self.studies[&study.id];
        for cell in old.cells() {
            if let Some(index) = study.index_of(cell.id) {
                let (sizing, meter) = (cell.sizing.clone(), cell.meter.clone());
                study.update(index, |new| (new.sizing, new.meter) = (sizing, meter));
            }
        }
        study.committing = old.committing;
        let writing = self.leases.iter().filter(|(_, lease)| lease.study == study.id);
        let writing: Vec<LeaseEpoch> = writing.map(|(epoch, _)| epoch).collect();
        for epoch in writing {
            let adopted = self.place_for(epoch, study);
            self.leases.adopt(epoch, adopted);
        }
    }

    /// Leases its range to a shard that is being written, if the new plan asks for just that range.
    fn place_for(&self, epoch: LeaseEpoch, study: &mut StudyState) -> Option<usize> {
        let lease = self.leases.get(epoch)?;
        if matches!(lease.stage, Stage::Committing { orphaned: true, .. }) {
            return None;
        }
        let old = self.studies[&study.id].cell(lease.cell);
        let index = study.index_of(old.id)?;
        let (new, start) = (study.cell(index), lease.range.start);
        if new.checkpoints != old.checkpoints || new.rows != old.rows {
            return None;
        }
        if new.pending.covers(&lease.range) {
            study.update(index, |cell| cell.take(lease.range.clone(), epoch));
        } else if new.suspects.get(&start).is_some_and(|held| held.end == lease.range.end) {
            study.update(index, |cell| cell.take_suspect(start, epoch));
        } else {
            return None;
        }
        Some(index)
    }

    pub(super) fn cancel(&mut self, id: StudyId) {
        if self.studies.get(&id).is_some_and(|study| study.phase == StudyPhase::Active) {
            self.leave(id, StudyPhase::Cancelled);
            self.revoke_all(id, &Refusal::Cancelled);
        }
    }

    /// Forgets a study that is not active, once nothing of it is being written.
    pub(super) fn forget_study(&mut self, id: StudyId) {
        if let Some(study) = self.studies.get_mut(&id)
            && study.phase != StudyPhase::Active
        {
            study.forgotten = true;
            // Slower copies of what is durable may still be out.
            self.revoke_all(id, &Refusal::Cancelled);
            self.drop_forgotten(id);
        }
    }

    /// Drops a study that is to be forgotten, unless something of it is still being written.
    pub(super) fn drop_forgotten(&mut self, id: StudyId) {
        if self.studies.get(&id).is_some_and(|study| study.forgotten && study.committing == 0) {
            self.studies.remove(&id);
        }
    }
}
