//! The core, step by step.

use std::time::{Duration, Instant};

use ::study::plan::Replicates;
use ::study::tally::{RowCounts, Tally};
use ::study::{CellId, StudyId};

use super::*;
use crate::stopping::{RowRule, Rule};

const STUDY: StudyId = StudyId([1; 32]);

/// A core whose invariants are verified after every event.
struct Checked {
    core: Core,
    now: Duration,
}

impl Checked {
    fn new(settings: Settings) -> Self {
        Self { core: Core::new(settings, LeaseEpoch(100)), now: Duration::ZERO }
    }

    fn feed(&mut self, event: Event) -> Vec<Command> {
        let commands = self.core.handle(self.now, event);
        self.core.sanity_check();
        commands
    }

    /// Lets time pass, with a tick every second, so that it does not look like a jump.
    fn wait(&mut self, seconds: u64) -> Vec<Command> {
        let tick = |this: &mut Self| {
            this.now += Duration::from_secs(1);
            this.feed(Event::Tick)
        };
        (0..seconds).flat_map(|_| tick(self)).collect()
    }

    fn join(&mut self, id: u64, name: &str) {
        let (worker, name) = (WorkerId(id), name.to_owned());
        self.feed(Event::Register { worker, name, slots: 4 });
    }

    fn ask(&mut self, id: u64, wanted: u32) -> Vec<Grant> {
        let commands = self.feed(Event::Request { worker: WorkerId(id), wanted });
        let grant = |command| match command {
            Command::Grant { grant, .. } => Some(grant),
            _ => None,
        };
        commands.into_iter().filter_map(grant).collect()
    }

    fn finish(&mut self, id: u64, grant: &Grant, digest: u8) -> Vec<Command> {
        let trials = grant.range.end - grant.range.start;
        self.feed(Event::Finished {
            worker: WorkerId(id),
            epoch: grant.epoch,
            digest: [digest; 32],
            tally: clean(trials),
            trials,
            seconds: trials as f64 * 0.1,
        })
    }

    fn commit(&mut self, grant: &Grant) -> Vec<Command> {
        self.feed(Event::Committed { epoch: grant.epoch })
    }

    fn cell(&self, index: usize) -> CellView {
        self.core.study(STUDY).unwrap().cells[index].clone()
    }
}

fn clean(trials: u64) -> Tally {
    Tally(vec![RowCounts { trials, ..RowCounts::default() }])
}

fn cell(id: u64, replicates: Replicates, rule: Option<Rule>) -> CellWork {
    CellWork {
        cell: CellId(id),
        replicates,
        checkpoints: [0; 32],
        records_per_trial: 1,
        rows: 1,
        rule,
        done: Vec::new(),
        deaths: Vec::new(),
    }
}

fn submit(cells: Vec<CellWork>) -> Event {
    Event::Submit(StudyWork { study: STUDY, seed_for_checks: 0, cells })
}

fn no_checks() -> Settings {
    Settings { check_fraction: 0.0, ..Settings::default() }
}

fn with_one_cell(settings: Settings, replicates: u64) -> Checked {
    let mut core = Checked::new(settings);
    core.feed(submit(vec![cell(1, Replicates::Fixed(replicates), None)]));
    core.join(1, "a");
    core.join(2, "b");
    core
}

#[test]
fn a_shard_is_granted_written_acknowledged_and_the_study_done() {
    let mut core = with_one_cell(no_checks(), 10);
    let first = core.ask(1, 1).remove(0);
    assert_eq!((first.epoch, first.range.clone(), first.check), (LeaseEpoch(100), 0..8, false));
    assert_eq!(first.epoch.to_string(), "e100");
    let second = core.ask(2, 5);
    assert_eq!(second.len(), 1, "there are two trials left");
    assert_eq!(second[0].range, 8..10);
    assert!(matches!(core.finish(1, &first, 7)[..], [Command::Commit { .. }]));
    assert!(core.finish(1, &first, 7).is_empty(), "sent twice, written once");
    let worker = WorkerId(1);
    assert_eq!(core.commit(&first), [Command::Acknowledge { worker, epoch: first.epoch }]);
    core.finish(2, &second[0], 7);
    let last = core.commit(&second[0]);
    assert!(matches!(
        last[..],
        [
            Command::Acknowledge { .. },
            Command::CellClosed { replicates: 10, .. },
            Command::StudyDone { .. }
        ]
    ));
    assert_eq!(core.cell(0).tally, clean(10));
    assert_eq!(core.core.studies().collect::<Vec<_>>(), [(STUDY, StudyPhase::Done)]);
}

#[test]
fn only_the_holder_can_finish_and_only_while_it_holds() {
    let mut core = with_one_cell(no_checks(), 8);
    let grant = core.ask(1, 1).remove(0);
    let refused = |commands: Vec<Command>| matches!(commands[..], [Command::NotHeld { .. }]);
    assert!(refused(core.finish(2, &grant, 7)), "another worker's lease");
    core.wait(31);
    let again = core.ask(2, 1);
    assert!(again.is_empty(), "silent workers are forgotten: {again:?}");
    core.join(3, "c");
    let again = core.ask(3, 1).remove(0);
    assert_eq!(again.range, grant.range, "a range that died keeps its bounds");
    assert!(refused(core.finish(1, &grant, 7)), "a lease that expired");
    assert!(matches!(core.finish(3, &again, 7)[..], [Command::Commit { .. }]));
}

#[test]
fn heartbeats_keep_a_lease_and_name_what_is_not_held() {
    let mut core = with_one_cell(no_checks(), 8);
    let grant = core.ask(1, 1).remove(0);
    let worker = WorkerId(1);
    for _ in 0..20 {
        core.wait(5);
        assert!(core.feed(Event::Heartbeat { worker, leases: vec![grant.epoch] }).is_empty());
    }
    let unknown = core.feed(Event::Heartbeat { worker, leases: vec![LeaseEpoch(7)] });
    assert!(matches!(unknown[..], [Command::NotHeld { epoch: LeaseEpoch(7), .. }]));
    let unknown = core.feed(Event::Heartbeat { worker: WorkerId(9), leases: vec![] });
    assert_eq!(unknown, [Command::UnknownWorker { worker: WorkerId(9) }]);
}

#[test]
fn a_lost_grant_is_not_a_death_and_neither_is_a_jumping_clock() {
    let mut core = with_one_cell(no_checks(), 8);
    core.ask(1, 1);
    let mut commands = Vec::new();
    for _ in 0..7 {
        commands.extend(core.wait(5));
        commands.extend(core.feed(Event::Heartbeat { worker: WorkerId(1), leases: vec![] }));
    }
    let died = |commands: &[Command]| {
        commands.iter().any(|command| matches!(command, Command::RecordDeath { .. }))
    };
    assert!(matches!(commands[..], [Command::Revoke { reason: Refusal::Expired, .. }]));
    let grant = core.ask(1, 1).remove(0);
    core.now += Duration::from_secs(3600);
    assert!(core.feed(Event::Tick).is_empty(), "an hour's sleep expires nothing");
    core.wait(5);
    core.feed(Event::Heartbeat { worker: WorkerId(1), leases: vec![grant.epoch] });
    assert!(!died(&core.wait(26)));
    assert!(died(&core.wait(6)));
}

#[test]
fn a_shard_that_kills_is_quarantined_and_the_rest_goes_on() {
    let mut core = with_one_cell(no_checks(), 16);
    let mut last = Vec::new();
    for life in 10..15 {
        core.join(life, "victim");
        let grants = core.ask(life, 1);
        assert_eq!(grants[0].range, 0..8, "the same range again");
        last = core.feed(Event::Disconnected { worker: WorkerId(life) });
    }
    assert!(matches!(
        last[..],
        [
            Command::Revoke { .. },
            Command::RecordDeath { deaths: 5, .. },
            Command::Quarantined { deaths: 5, .. }
        ]
    ));
    let rest = core.ask(1, 4);
    assert_eq!((rest.len(), rest[0].range.clone()), (1, 8..16));
    core.finish(1, &rest[0], 7);
    assert!(core.commit(&rest[0]).contains(&Command::StudyDone { study: STUDY }));
    let view = core.core.study(STUDY).unwrap();
    assert_eq!(view.quarantined[0].range, 0..8);
    assert_eq!(view.cells[0].done, 8);
}

#[test]
fn a_worker_holds_one_suspect_range_at_most() {
    let mut core = with_one_cell(no_checks(), 64);
    core.ask(1, 4);
    core.feed(Event::Disconnected { worker: WorkerId(1) });
    let grants = core.ask(2, 4);
    let ranges: Vec<_> = grants.iter().map(|grant| grant.range.clone()).collect();
    assert_eq!(ranges, [0..8, 32..40, 40..48, 48..56]);
}

#[test]
fn cells_advance_together_and_studies_take_turns() {
    let mut core = Checked::new(no_checks());
    let fixed = |id| cell(id, Replicates::Fixed(1_000), None);
    core.feed(submit(vec![fixed(1), fixed(2), fixed(3)]));
    let other = StudyId([2; 32]);
    let work = StudyWork { study: other, seed_for_checks: 0, cells: vec![fixed(9)] };
    core.feed(Event::Submit(work));
    core.join(1, "a");
    core.join(2, "b");
    let mut cells: Vec<u64> = core.ask(1, 8).iter().map(|grant| grant.cell.0).collect();
    cells.extend(core.ask(2, 4).iter().map(|grant| grant.cell.0));
    assert_eq!(cells, [1, 9, 2, 9, 3, 9, 1, 9, 2, 9, 3, 9]);
}

#[test]
fn an_idle_worker_copies_a_straggler_and_the_first_wins() {
    let mut core = with_one_cell(no_checks(), 8);
    let slow = core.ask(1, 1).remove(0);
    assert!(core.ask(2, 1).is_empty(), "too early");
    core.wait(5);
    assert!(core.ask(1, 1).is_empty(), "nobody copies itself");
    let copy = core.ask(2, 1).remove(0);
    assert_eq!((copy.range.clone(), copy.check), (slow.range.clone(), false));
    let commands = core.finish(2, &copy, 7);
    assert!(matches!(
        commands[..],
        [Command::Commit { .. }, Command::Revoke { reason: Refusal::Superseded, .. }]
    ));
    let late = core.finish(1, &slow, 7);
    assert!(matches!(late[..], [Command::Reject { reason: Refusal::Superseded, .. }]));
    assert!(core.commit(&copy).contains(&Command::StudyDone { study: STUDY }));
}

#[test]
fn a_loser_with_another_digest_raises_the_alarm() {
    let mut core = with_one_cell(no_checks(), 16);
    let slow = core.ask(1, 1).remove(0);
    let other = core.ask(2, 1).remove(0);
    core.wait(5);
    let copy = core.ask(2, 1).remove(0);
    core.finish(2, &copy, 7);
    let late = core.finish(1, &slow, 8);
    let [Command::Reject { .. }, Command::Alarm(alarm), Command::Revoke { epoch, reason, .. }] =
        &late[..]
    else {
        panic!("{late:?}");
    };
    assert_eq!((&*alarm.first.0, &*alarm.second.0), ("b", "a"));
    assert_eq!((*epoch, reason), (other.epoch, &Refusal::Alarm));
    assert!(core.ask(2, 1).is_empty(), "the study is stopped");
}

#[test]
fn a_shard_is_checked_by_another_worker() {
    let mut core = with_one_cell(Settings { check_fraction: 1.0, ..Settings::default() }, 8);
    let grant = core.ask(1, 1).remove(0);
    core.finish(1, &grant, 7);
    core.commit(&grant);
    assert!(core.ask(1, 1).is_empty(), "not by itself while there is another");
    let check = core.ask(2, 1).remove(0);
    assert!(check.check && check.range == grant.range);
    let agreed = core.finish(2, &check, 7);
    assert!(matches!(
        agreed[..],
        [
            Command::RecordCheck { agreed: true, .. },
            Command::Acknowledge { .. },
            Command::StudyDone { .. }
        ]
    ));
}

#[test]
fn a_cell_stops_at_a_batch_end_and_what_lies_beyond_is_dropped() {
    let rule = Rule::new(&[RowRule { budget: 0.25 }], 0.05, 50.0, 12.0);
    let batched = Replicates::Batched { batch: 24, max: 1_000 };
    let mut core = Checked::new(no_checks());
    core.feed(submit(vec![cell(1, batched, Some(rule))]));
    core.join(1, "a");
    let grants = core.ask(1, 8);
    assert_eq!(grants.len(), 6, "a batch and one of lookahead, in eights");
    for grant in &grants[..2] {
        core.finish(1, grant, 7);
        core.commit(grant);
    }
    core.finish(1, &grants[3], 7);
    core.finish(1, &grants[2], 7);
    let closed = core.commit(&grants[2]);
    assert!(closed.contains(&Command::CellClosed {
        study: STUDY,
        cell: CellId(1),
        replicates: 24
    }));
    let revoked = closed.iter().filter(|command| matches!(command, Command::Revoke { .. })).count();
    assert_eq!(revoked, 2, "the fourth is being written");
    assert!(!closed.contains(&Command::StudyDone { study: STUDY }));
    assert!(core.commit(&grants[3]).contains(&Command::StudyDone { study: STUDY }));
    let view = core.cell(0);
    assert_eq!((view.planned, view.done, view.tally, view.stopped), (24, 24, clean(24), true));
}

#[test]
fn what_is_being_written_survives_growing() {
    let mut core = with_one_cell(no_checks(), 16);
    let grants = core.ask(1, 2);
    core.finish(1, &grants[0], 7);
    let commands = core.feed(submit(vec![cell(1, Replicates::Fixed(32), None)]));
    assert!(matches!(commands[..], [Command::Revoke { reason: Refusal::Resubmitted, .. }]));
    assert_eq!(core.cell(0).leased, 8);
    core.commit(&grants[0]);
    assert_eq!((core.cell(0).done, core.cell(0).planned), (8, 32));
}

#[test]
fn malformed_results_are_refused_and_count_as_deaths() {
    let mut core = with_one_cell(no_checks(), 8);
    for deaths in 1..=5 {
        let grant = core.ask(1, 1).remove(0);
        let commands = core.feed(Event::Finished {
            worker: WorkerId(1),
            epoch: grant.epoch,
            digest: [7; 32],
            tally: clean(9),
            trials: 8,
            seconds: 1.0,
        });
        assert!(matches!(commands[0], Command::Reject { reason: Refusal::Malformed(_), .. }));
        assert!(
            matches!(commands[1], Command::RecordDeath { deaths: counted, .. } if counted == deaths)
        );
    }
    assert_eq!(core.core.study(STUDY).unwrap().phase, StudyPhase::Done);
}

#[test]
fn cancelling_revokes_and_submitting_takes_it_up_again() {
    let mut core = with_one_cell(no_checks(), 8);
    core.ask(1, 1);
    let commands = core.feed(Event::Cancel { study: STUDY });
    assert!(matches!(commands[..], [Command::Revoke { reason: Refusal::Cancelled, .. }]));
    assert!(core.ask(1, 1).is_empty());
    core.feed(submit(vec![cell(1, Replicates::Fixed(8), None)]));
    assert_eq!(core.ask(1, 1).len(), 1);
}

/// Not a benchmark: a scan over cells, shards or trials would take minutes here.
#[test]
fn a_study_is_forgotten_once_its_last_shard_is_written() {
    let mut core = with_one_cell(no_checks(), 16);
    let (one, two) = (core.ask(1, 1).remove(0), core.ask(2, 1).remove(0));
    core.finish(1, &one, 7);
    core.finish(2, &two, 7);
    core.feed(Event::Cancel { study: STUDY });
    assert!(core.feed(Event::Forget { study: STUDY }).is_empty());
    core.commit(&one);
    assert_eq!(core.core.studies().count(), 1, "a shard of it is being written");
    let reason = "disk full".to_owned();
    core.feed(Event::CommitFailed { epoch: two.epoch, reason });
    assert_eq!(core.core.studies().count(), 0);
}

#[test]
fn a_study_is_forgotten_while_a_slower_copy_is_out() {
    let mut core = with_one_cell(no_checks(), 8);
    let grant = core.ask(1, 1).remove(0);
    let mut copy = Vec::new();
    while copy.is_empty() {
        core.wait(5);
        core.feed(Event::Heartbeat { worker: WorkerId(1), leases: vec![grant.epoch] });
        copy = core.ask(2, 1);
    }
    core.finish(1, &grant, 7);
    core.commit(&grant);
    core.feed(Event::Forget { study: STUDY });
    assert_eq!(core.core.studies().count(), 0);
    let late = core.finish(2, &copy[0], 8);
    assert!(matches!(late[..], [Command::NotHeld { .. }]), "{late:?}");
}

#[test]
fn many_cells_workers_and_trials() {
    let start = Instant::now();
    let mut core = Core::new(no_checks(), LeaseEpoch(0));
    let cells = (0..10_000).map(|id| cell(id, Replicates::Fixed(100_000_000_000), None)).collect();
    core.handle(Duration::ZERO, submit(cells));
    for id in 0..10_000 {
        let (worker, name) = (WorkerId(id), format!("w{id}"));
        core.handle(Duration::ZERO, Event::Register { worker, name, slots: 1 });
    }
    let mut now = Duration::ZERO;
    for round in 0..10 {
        for id in 0..10_000 {
            now += Duration::from_micros(100);
            let worker = WorkerId(id);
            let commands = core.handle(now, Event::Request { worker, wanted: 1 });
            let [Command::Grant { grant, .. }] = &commands[..] else { panic!("{commands:?}") };
            let trials = grant.range.end - grant.range.start;
            let (epoch, tally) = (grant.epoch, clean(trials));
            let report =
                Event::Finished { worker, epoch, digest: [0; 32], tally, trials, seconds: 0.1 };
            core.handle(now, report);
            core.handle(now, Event::Committed { epoch });
        }
        assert!(start.elapsed() < Duration::from_secs(60), "round {round}");
    }
    core.sanity_check();
    let view = core.study(STUDY).unwrap();
    assert!(view.cells.iter().all(|cell| cell.done > 100 && cell.leased == 0));
}
