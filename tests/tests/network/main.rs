//! The real client and the real server over a simulated network: whatever happens to links, hosts and the
//! coordinator's disk, and whatever a rogue worker says, the study ends with every trial in the ledger once, and with the bits of an undisturbed run.
//!
//! `TURMOIL_SEEDS=300` runs so many seeds, `TURMOIL_SEED=17` replays one.
//!
//! A seed fixes the study's cut into shards, the fleet, the latencies and which faults happen when, all
//! in simulated time. It does not fix everything: the store writes from a thread of its own and really
//! syncs, so that a commit takes some simulated time that differs from run to run (see
//! [`world::World::step`]), workers' ids are drawn by the system, and hash maps are iterated in random
//! order. A seed that fails may therefore have to be replayed a few times.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod disk;
mod outcome;
mod rogue;
mod scenario;
mod wire;
mod world;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use outcome::Trials;
use scenario::Scenario;
use world::World;

/// Panics anywhere in the process: tasks and threads keep theirs to themselves.
static PANICS: AtomicUsize = AtomicUsize::new(0);

fn count_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        before(panic);
    }));
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

/// What every run has to come to, with all records or with a summary.
fn undisturbed(summary: bool) -> &'static Trials {
    static TRIALS: [OnceLock<Trials>; 2] = [OnceLock::new(), OnceLock::new()];
    TRIALS[usize::from(summary)].get_or_init(|| {
        let mut world = World::new(Scenario::calm(summary));
        world.run().expect("without faults nothing fails");
        world.trials().expect("without faults nothing is lost")
    })
}

/// Runs a seed; what went wrong, if something did.
fn run(seed: u64) -> Result<world::Seen, String> {
    let panics = PANICS.load(Ordering::Relaxed);
    let scenario = Scenario::of_seed(seed);
    let expected = undisturbed(scenario.summary);
    let mut world = World::new(scenario);
    world.run()?;
    let seen = world.seen;
    if world.trials()? != *expected {
        return Err("the records are not those of an undisturbed run".to_owned());
    }
    match PANICS.load(Ordering::Relaxed) - panics {
        0 => Ok(seen),
        panics => Err(format!("{panics} panics")),
    }
}

#[test]
fn nothing_is_lost_and_nothing_differs() {
    count_panics();
    let seeds = match number("TURMOIL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TURMOIL_SEEDS").unwrap_or(20),
    };
    let count = seeds.end - seeds.start;
    let mut seen = world::Seen::default();
    for seed in seeds {
        match run(seed) {
            Ok(more) => seen += more,
            Err(why) => panic!("seed {seed}: {why}\nreplay it with TURMOIL_SEED={seed}"),
        }
    }
    println!("{count} seeds: {seen:?}");
    assert!(count < 20 || seen.is_everything(), "faults came too late: {seen:?}");
}
