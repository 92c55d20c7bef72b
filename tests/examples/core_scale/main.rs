//! The scheduling core alone: 10,000 workers, a million shards, a simulated clock.
//!
//! `target/release/examples/core_scale [WORKERS [SHARDS]]` (CONTRIBUTING.md says how it is built) prints what an event costs, how many shards a second that makes, and the memory of it. Workers have one or two
//! slots and speeds of their own, ask, beat and finish as real ones do, and some die and come back. It
//! fails unless every trial becomes durable exactly once and no worker starves.

mod fleet;
mod probe;
mod world;

use std::time::Duration;

use coordinator::core::{Core, Event, LeaseEpoch, Settings, StudyWork};
use coordinator::server::{Definition, cell_work};
use tests::large::thousand_cells;
use tests::process::{cpu_time, memory_now, peak_memory};

use probe::Probe;
use world::World;

const STUDIES: u64 = 2;

/// A worker with room that finds nothing although there is work asks again within 20 ms; a second is
/// fifty times as long.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// The slowest workers take 20 s for a shard and may have another one in stock. Who dies silently with
/// it is noticed after 30 s, and the next one to get it can be as slow, or die.
const OLDEST_SHARD: Duration = Duration::from_secs(300);

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let mut number = |otherwise| arguments.next().map_or(otherwise, |n| n.expect("a number"));
    let (workers, shards) = (number(10_000), number(1_000_000));
    let settings = Settings::default();
    // Trials take a millisecond on average, shards two seconds.
    let trials = shards * settings.shard_target.as_millis() as u64;
    let studies: Vec<StudyWork> = (0..STUDIES).map(|seed| study(seed, trials / STUDIES)).collect();
    let planned: u64 = studies.iter().map(trials_of).sum();
    let rows = studies[0].cells[0].rows;
    println!("{STUDIES} studies, 1000 cells each, {rows} verdict rows a cell, {planned} trials");

    let room = 2 * shards as usize;
    let mut world = World::new(Probe::new(Core::new(settings, LeaseEpoch(0)), room), workers, room);
    let (memory, cpu) = (memory_now(), cpu_time());
    studies.iter().for_each(|study| world.feed(Event::Submit(study.clone())));
    world.run(studies.len());
    let cpu = cpu_time().saturating_sub(cpu).as_secs_f64();
    let grown = peak_memory() - memory;

    let durable = world.verify(&studies);
    let events = world.probe.events();
    let inside = world.probe.total().as_secs_f64();
    let seconds = world.now().as_secs_f64();
    println!("simulated: {seconds:.0} s with {workers} workers; {}", world.seen());
    println!("{durable} shards became durable, every trial once");
    println!("{events} events in {cpu:.1} s of processor time, of which {inside:.1} s in the core");
    println!(
        "the core: {:.0} events/s, {:.0} shards/s",
        events as f64 / inside,
        durable as f64 / inside
    );
    world.probe.print();
    println!("longest wait for work while there was some: {:?}", world.longest_wait());
    println!("longest from a shard's first lease until it was durable: {:?}", world.oldest_shard());
    println!(
        "memory of core and simulation: {} MiB more than before, {} bytes a worker",
        grown >> 10,
        (grown << 10) / workers
    );
    assert!(durable >= shards, "smaller shards than planned");
    assert!(world.longest_wait() <= LONGEST_WAIT);
    assert!(world.oldest_shard() <= OLDEST_SHARD);
}

fn study(seed: u64, trials: u64) -> StudyWork {
    let text = thousand_cells(seed, trials / 1000);
    let plan = Definition { file_name: "large.toml".into(), text, files: vec![] };
    let plan = plan.plan().expect("a valid study");
    let cells = plan.cells.iter().map(|cell| cell_work(&plan, cell, vec![]));
    StudyWork { study: plan.id, seed_for_checks: seed, cells: cells.collect() }
}

fn trials_of(study: &StudyWork) -> u64 {
    study.cells.iter().map(|cell| cell.replicates.max()).sum()
}
