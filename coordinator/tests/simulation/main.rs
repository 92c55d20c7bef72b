//! The scheduling core in a hostile world: messages are lost, late, duplicated and reordered, connections break,
//! workers crash, stall, lie, speak of others' leases and die of a trial, the coordinator crashes (between two commands,
//! too), its clock jumps, the disk is slow, freezes and fails while batches and commits wait for room, and studies grow
//! and are cancelled meanwhile. Once faults stop, every study must finish, with exactly the trials of an undisturbed
//! run, every shard with exactly its batches.
//!
//! `SIM_SEED=N cargo test --release -p coordinator --test simulation` replays one seed,
//! `SIM_SEEDS=N` runs so many.

mod ledger;
mod rng;
mod scenario;
mod seen;
mod store;
mod truth;
mod worker;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use ledger::Status;
use scenario::Scenario;
use seen::Seen;
use world::World;

const SEEDS: u64 = 10_000;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("a seed is a number"))
}

/// Runs a seed, and compares what it left behind with an undisturbed run.
fn run(seed: u64) -> Seen {
    check(&Scenario::new(seed))
}

fn check(scenario: &Scenario) -> Seen {
    let mut world = World::new(scenario);
    world.run();
    let calm = scenario.undisturbed(|study| world.ledger.plans[&study] == 1);
    let mut undisturbed = World::new(&calm);
    undisturbed.run();
    assert_eq!(undisturbed.seen.deaths, 0, "nobody dies undisturbed");
    let done = |world: &World, study| world.ledger.status[&study] == Status::Done;
    for study in &scenario.studies {
        assert!(done(&undisturbed, study.id), "an undisturbed study is done");
        // Where a range was given up, the stop was checked with what is left.
        if done(&world, study.id) && world.seen.quarantined == 0 {
            for cell in &study.versions[world.ledger.plans[&study.id]] {
                let stop = |world: &World| world.ledger.stops[&(study.id, cell.id)];
                assert_eq!(stop(&world), stop(&undisturbed), "the trials of cell {}", cell.id);
            }
        }
    }
    world.seen
}

#[test]
fn nothing_is_lost_nothing_comes_twice_and_it_finishes() {
    let replayed = number("SIM_SEED");
    let seeds = replayed.map_or(0..number("SIM_SEEDS").unwrap_or(SEEDS), |seed| seed..seed + 1);
    let count = seeds.end - seeds.start;
    let mut total = Seen::default();
    for seed in seeds {
        match catch_unwind(AssertUnwindSafe(|| run(seed))) {
            Ok(seen) => total.add(&seen),
            Err(panic) => {
                eprintln!("seed {seed} (replay with SIM_SEED={seed})");
                resume_unwind(panic);
            }
        }
    }
    println!("{count} seeds: {total:?}");
    if count >= 1_000 {
        total.check_coverage();
    }
}

/// A lease that is being committed once could be forgotten by a reconnect or by giving it back, and its batches before
/// its commit, which waited for room.
#[test]
fn a_shard_without_its_batches_is_noticed() {
    let found = (0..100).find_map(|seed| {
        let scenario = Scenario { planted: true, ..Scenario::new(seed) };
        let panic = catch_unwind(AssertUnwindSafe(|| check(&scenario))).err()?;
        Some((seed, panic.downcast_ref::<String>().cloned().unwrap_or_default()))
    });
    let (seed, message) = found.expect("the planted bug is found");
    println!("seed {seed}: {message}");
    assert!(message.contains("has batches"), "{message}");
}
