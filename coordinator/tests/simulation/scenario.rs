//! What a seed stands for: studies and what happens to them, workers, and how much goes wrong.

use std::collections::BTreeSet;

use coordinator::core::Settings;
use coordinator::stopping::{RowRule, Rule};
use study::plan::Replicates;
use study::{CellId, StudyId};

use crate::rng::Rng;

pub(crate) const BUDGETS: [f64; 2] = [0.25, 0.0];
const EVIDENCE: f64 = 12.0;

/// Simulated milliseconds.
pub(crate) type Millis = u64;

#[derive(Clone)]
pub(crate) struct CellPlan {
    pub(crate) id: CellId,
    pub(crate) replicates: Replicates,
    /// Stands for the checkpoints: other ones give other records.
    pub(crate) version: u8,
    /// Time of a trial.
    pub(crate) cost: Millis,
    /// Percent of trials that violate the first row.
    pub(crate) violations: u64,
}

impl CellPlan {
    pub(crate) fn rule(&self) -> Option<Rule> {
        let rows = BUDGETS.map(|budget| RowRule { budget });
        matches!(self.replicates, Replicates::Batched { .. })
            .then(|| Rule::new(&rows, 0.05, 50.0, EVIDENCE))
    }
}

/// What an operator does to a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Submit,
    Cancel,
    Grow,
}

pub(crate) struct StudyPlan {
    pub(crate) id: StudyId,
    /// Before and after growing.
    pub(crate) versions: [Vec<CellPlan>; 2],
    pub(crate) operations: Vec<(Millis, Operation)>,
}

pub(crate) struct WorkerPlan {
    pub(crate) slots: u32,
    /// Percent of the plain time that a trial takes.
    pub(crate) slowness: u64,
    /// Whether its digests are wrong now and then.
    pub(crate) lies: bool,
    /// Whether it names leases of others, sends everything twice, and takes back what it has finished.
    pub(crate) hostile: bool,
}

/// How much goes wrong until `end`; chances in percent.
#[derive(Default)]
pub(crate) struct Faults {
    pub(crate) end: Millis,
    pub(crate) loss: u64,
    pub(crate) duplicate: u64,
    pub(crate) late: u64,
    pub(crate) failed_commit: u64,
    pub(crate) slow_commit: u64,
    /// Crashes of the coordinator between two commands, per thousand commands.
    pub(crate) torn_commands: u64,
    /// Times of other faults.
    pub(crate) worker_crashes: Vec<Millis>,
    pub(crate) stalls: Vec<Millis>,
    /// Connections that break.
    pub(crate) breaks: Vec<Millis>,
    pub(crate) drains: Vec<Millis>,
    pub(crate) coordinator_crashes: Vec<Millis>,
    pub(crate) clock_jumps: Vec<Millis>,
}

pub(crate) struct Scenario {
    pub(crate) seed: u64,
    /// With a bug: who reconnects or gives a lease back makes the server forget it, whatever the core says, and the store
    /// takes any batches for those of a shard.
    pub(crate) planted: bool,
    /// Batches and commits that may wait for the disk.
    pub(crate) room: usize,
    pub(crate) settings: Settings,
    pub(crate) studies: Vec<StudyPlan>,
    pub(crate) workers: Vec<WorkerPlan>,
    pub(crate) faults: Faults,
    /// Trials that kill the process that runs them.
    pub(crate) killers: BTreeSet<(StudyId, CellId, u64)>,
}

impl Scenario {
    /// The same studies as they were in the end, one honest worker, and nothing that goes wrong.
    pub(crate) fn undisturbed(&self, grown: impl Fn(StudyId) -> bool) -> Self {
        let studies = self.studies.iter().map(|study| {
            let operation = if grown(study.id) { Operation::Grow } else { Operation::Submit };
            let versions = study.versions.clone();
            StudyPlan { id: study.id, versions, operations: vec![(0, operation)] }
        });
        Self {
            seed: self.seed,
            planted: false,
            room: self.room,
            settings: Settings { check_fraction: 0.0, ..self.settings.clone() },
            studies: studies.collect(),
            workers: vec![WorkerPlan { slots: 1, slowness: 100, lies: false, hostile: false }],
            faults: Faults::default(),
            killers: BTreeSet::new(),
        }
    }

    /// When it must be over: what all trials cost one slot, several times, and some minutes for
    /// leases to expire in.
    pub(crate) fn deadline(&self) -> Millis {
        let cells = self.studies.iter().flat_map(|study| study.versions.iter().flatten());
        let cost: u64 = cells.map(|cell| cell.cost * cell.replicates.max()).sum();
        self.faults.end + 4 * cost + 600_000
    }

    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let checks = rng.pick(&[0.0, 0.0, 0.05, 0.3, 1.0]);
        let settings = Settings {
            check_fraction: checks,
            max_shard_records: rng.pick(&[4, 16, 64, 1 << 17]),
            ..Settings::default()
        };
        let count = rng.pick(&[1, 1, 2, 3]);
        let studies: Vec<StudyPlan> = (0..count).map(|index| study(index, &mut rng)).collect();
        let liars = rng.chance(15);
        let hostile = rng.chance(30);
        let workers = (0..rng.within(1, 4)).map(|index| WorkerPlan {
            slots: rng.within(1, 3) as u32,
            slowness: if index == 0 { 100 } else { rng.pick(&[100, 150, 2000]) },
            lies: liars && rng.chance(50),
            hostile: hostile && index > 0,
        });
        let workers = workers.collect();
        let mut killers = BTreeSet::new();
        if rng.chance(20) {
            let study = &studies[rng.within(0, studies.len() as u64 - 1) as usize];
            let cell = &study.versions[0][0];
            killers.insert((study.id, cell.id, rng.within(0, cell.replicates.max() - 1)));
        }
        let (faults, room) = (faults(&mut rng), rng.pick(&[2, 5, 1000]));
        Self { seed, planted: false, room, settings, studies, workers, faults, killers }
    }
}

fn study(index: u8, rng: &mut Rng) -> StudyPlan {
    let cells: Vec<CellPlan> = (0..rng.within(1, 3)).map(|cell| self::cell(cell, rng)).collect();
    let mut grown = cells.clone();
    for plan in &mut grown {
        plan.replicates = match plan.replicates {
            Replicates::Fixed(count) => Replicates::Fixed(count + rng.pick(&[0, 5, 40])),
            Replicates::Batched { batch, max } => {
                Replicates::Batched { batch, max: max + rng.pick(&[0, 3, 40]) }
            }
        };
        plan.version += u8::from(rng.chance(20));
    }
    grown.push(cell(7, rng));
    let mut at = rng.within(0, 5_000);
    let mut operations = vec![(at, Operation::Submit)];
    let more: &[Operation] = match rng.within(0, 9) {
        0 | 1 => &[Operation::Grow],
        2 => &[Operation::Cancel],
        3 => &[Operation::Cancel, Operation::Submit],
        4 => &[Operation::Cancel, Operation::Grow],
        _ => &[],
    };
    for &operation in more {
        at += rng.within(100, 25_000);
        operations.push((at, operation));
    }
    StudyPlan { id: StudyId([index + 1; 32]), versions: [cells, grown], operations }
}

fn cell(index: u64, rng: &mut Rng) -> CellPlan {
    let batch = rng.within(6, 30);
    let batched = Replicates::Batched { batch, max: batch * rng.within(1, 4) + rng.within(0, 9) };
    let replicates = if rng.chance(60) { batched } else { Replicates::Fixed(rng.within(1, 90)) };
    CellPlan {
        id: CellId(index * 11 + rng.within(0, 10)),
        replicates,
        version: 0,
        cost: rng.pick(&[5, 20, 100, 300]),
        violations: rng.pick(&[0, 2, 25, 70]),
    }
}

fn faults(rng: &mut Rng) -> Faults {
    let end = rng.within(20_000, 90_000);
    let mut times = |most: u64| -> Vec<Millis> {
        (0..rng.within(0, most)).map(|_| rng.within(0, end)).collect()
    };
    Faults {
        end,
        worker_crashes: times(5),
        stalls: times(3),
        breaks: times(12),
        drains: times(1),
        coordinator_crashes: times(3),
        clock_jumps: times(2),
        loss: rng.pick(&[0, 0, 5, 25]),
        duplicate: rng.pick(&[0, 0, 5, 25]),
        late: rng.pick(&[0, 0, 5, 25]),
        failed_commit: rng.pick(&[0, 0, 5, 25]),
        slow_commit: rng.pick(&[0, 0, 5, 25]),
        torn_commands: rng.pick(&[0, 0, 2, 10]),
    }
}
