//! Choosing what a worker gets.
//!
//! Studies take turns. Within a study, checks come first (a wrong worker should be found early), then
//! the least advanced cell. Only when no study has needed work is there work ahead of a stop, and
//! only when there is none of that either are stragglers copied.

use std::ops::Range;
use std::time::Duration;

use study::StudyId;

use super::lease::{Lease, Stage};
use super::{Command, Core, Grant, LeaseEpoch, WorkerId};

/// A shard that was chosen.
enum Choice {
    Check { study: StudyId, key: super::checks::Key },
    Fresh { study: StudyId, cell: usize, range: Range<u64> },
    Suspect { study: StudyId, cell: usize, start: u64 },
    Copy { of: LeaseEpoch },
}

impl Core {
    pub(super) fn request(&mut self, worker: WorkerId, wanted: u32) {
        let Some(state) = self.workers.get(worker) else { return };
        // Twice its slots: what it computes, and what it has in stock or was lost on the way.
        let most = (2 * state.slots as usize).saturating_sub(state.leases.len());
        let most = if state.draining { 0 } else { most.min(wanted as usize) };
        let mut granted = 0;
        while granted < most
            && let Some(choice) = self.choose(worker)
        {
            self.grant(worker, choice);
            granted += 1;
        }
        if granted == 0 {
            self.out.push(Command::NothingNow { worker });
        }
    }

    fn choose(&self, worker: WorkerId) -> Option<Choice> {
        let state = self.workers.get(worker)?;
        let suspects = state.suspect.is_none();
        let alone = self.workers.is_alone(&state.name);
        for &(_, id) in &self.turns {
            let study = &self.studies[&id];
            if let Some(key) = study.checks.next(&state.name, alone, suspects) {
                return Some(Choice::Check { study: id, key });
            }
            if let Some((cell, suspect)) = study.needed(suspects) {
                return Some(if suspect {
                    let range = study.cell(cell).suspect().expect("its cell is queued for it");
                    Choice::Suspect { study: id, cell, start: range.start }
                } else {
                    let range = study.cell(cell).fresh().expect("its cell is queued for it");
                    Choice::Fresh { study: id, cell, range: self.sized(id, cell, range) }
                });
            }
        }
        self.choose_ahead().or_else(|| self.choose_straggler(worker, suspects))
    }

    fn choose_ahead(&self) -> Option<Choice> {
        self.turns.iter().find_map(|&(_, id)| {
            let cell = self.studies[&id].lookahead()?;
            let range = self.studies[&id].cell(cell).ahead().expect("its cell is queued for it");
            Some(Choice::Fresh { study: id, cell, range: self.sized(id, cell, range) })
        })
    }

    fn choose_straggler(&self, worker: WorkerId, suspects: bool) -> Option<Choice> {
        let may = |epoch: &LeaseEpoch| {
            let lease = self.leases.get(*epoch).expect("a straggler is leased");
            let shard = &self.studies[&lease.study].cell(lease.cell).leased[&lease.range.start];
            // A range with its last chance is not copied: with ever new copies of a shard that
            // kills, there would always be a lease left to wait for.
            lease.worker != worker
                && (suspects || shard.past.deaths == 0)
                && shard.past.deaths + 1 < self.settings.max_deaths
        };
        self.leases.stragglers(self.now).find(may).map(|of| Choice::Copy { of })
    }

    /// The beginning of `range` that makes a shard of the right size.
    fn sized(&self, study: StudyId, cell: usize, range: Range<u64>) -> Range<u64> {
        let study = &self.studies[&study];
        let cell = study.cell(cell);
        let open = study.open_work().max(range.end - range.start);
        let slots = self.workers.slots();
        let size = cell.sizing.next(cell.records_per_trial, open, slots, &self.settings);
        range.start..range.end.min(range.start.saturating_add(size))
    }

    fn grant(&mut self, worker: WorkerId, choice: Choice) {
        let epoch = self.next_epoch;
        self.next_epoch = LeaseEpoch(epoch.0 + 1);
        let (id, cell, range, check, suspect) = match choice {
            Choice::Check { study, key } => {
                let checks = &mut self.state(study).checks;
                let suspect = checks.is_suspect(key);
                (study, key.0, checks.take(key, epoch).range.clone(), true, suspect)
            }
            Choice::Fresh { study, cell, range } => {
                self.state(study).update(cell, |state| state.take(range.clone(), epoch));
                (study, cell, range, false, false)
            }
            Choice::Suspect { study, cell, start } => {
                self.state(study).update(cell, |state| state.take_suspect(start, epoch));
                let end = self.studies[&study].cell(cell).leased[&start].end;
                (study, cell, start..end, false, true)
            }
            Choice::Copy { of } => {
                let lease = self.leases.get(of).expect("a straggler is leased").clone();
                self.leases.has_copy(of);
                let suspect = self.state(lease.study).update(lease.cell, |state| {
                    let shard = state.shard(lease.range.start);
                    shard.holders.push(epoch);
                    shard.past.deaths > 0
                });
                (lease.study, lease.cell, lease.range, false, suspect)
            }
        };
        let copied = !check && self.studies[&id].cell(cell).leased[&range.start].holders.len() > 1;
        if !copied {
            self.served(id);
        }
        let state = &self.studies[&id].cells()[cell];
        let estimate = state.sizing.seconds(range.end - range.start, &self.settings);
        let patience = Duration::try_from_secs_f64(2.0 * estimate).unwrap_or(Duration::MAX);
        let grant = Grant { epoch, study: id, cell: state.id, range: range.clone(), check };
        let holder = self.workers.get_mut(worker).expect("only a known worker is granted a lease");
        holder.leases.insert(epoch);
        if suspect {
            holder.suspect = Some(epoch);
        }
        let lease = Lease {
            worker,
            name: holder.name.clone(),
            study: id,
            cell,
            range,
            check,
            stage: Stage::Running,
            expires: self.now + self.settings.lease,
            straggles: self.now.saturating_add(patience),
        };
        self.leases.add(epoch, lease, !check && !copied);
        self.out.push(Command::Grant { worker, grant });
    }

    /// A study's turn is over.
    fn served(&mut self, id: StudyId) {
        let turn = self.next_turn;
        self.next_turn += 1;
        let study = self.state(id);
        let before = std::mem::replace(&mut study.turn, turn);
        self.turns.remove(&(before, id));
        self.turns.insert((turn, id));
    }
}
