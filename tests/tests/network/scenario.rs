//! What a seed stands for: a fleet, a network, and what happens to them.

use std::time::Duration;

use coordinator::core::Settings;
use rand::RngExt;
use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

/// Something that lasts for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    /// Messages between a worker and the coordinator wait.
    Hold { worker: usize },
    /// They are lost, those on their way too. A connection that lost one hangs: TCP's retransmission is
    /// not simulated.
    Partition { worker: usize },
    /// Only those to the coordinator, or only those from it.
    OneWay { worker: usize, to_coordinator: bool },
    /// Every message takes long.
    Slow { worker: usize },
    /// A worker is gone, and comes back as a new process.
    Crash { worker: usize },
    /// The coordinator is gone, and opens its folder again.
    CrashCoordinator,
    /// Its disk does not return from anything.
    FreezeDisk,
    /// Every operation of its disk takes so many milliseconds of real time, each of which is some of simulated time.
    SlowDisk { each: u64 },
    /// Its disk fails once in so many operations.
    BreakDisk { one_in: u32 },
}

/// A fault and when it begins and ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incident {
    pub(crate) fault: Fault,
    pub(crate) begin: Duration,
    pub(crate) end: Duration,
}

/// A run.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) workers: usize,
    pub(crate) slots: u32,
    /// Whether the folder is of one study, which is then submitted anew after a restart.
    pub(crate) single: bool,
    pub(crate) latency: (Duration, Duration),
    /// The probability with which a message breaks its link, and a later one mends it.
    pub(crate) fail_rate: f64,
    pub(crate) settings: Settings,
    /// Bytes that may wait for the disk.
    pub(crate) room: usize,
    /// Whether a worker is hostile.
    pub(crate) rogue: bool,
    /// Whether only counts and some of the records are kept.
    pub(crate) summary: bool,
    /// By begin.
    pub(crate) incidents: Vec<Incident>,
}

impl Scenario {
    /// One worker and no faults.
    pub(crate) fn calm(summary: bool) -> Self {
        Self {
            seed: 0,
            workers: 1,
            slots: 2,
            single: true,
            latency: (Duration::from_millis(1), Duration::from_millis(2)),
            fail_rate: 0.0,
            settings: settings(1 << 17, 0.0),
            room: 64 << 20,
            rogue: false,
            summary,
            incidents: vec![],
        }
    }

    pub(crate) fn of_seed(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let milliseconds = Duration::from_millis;
        let workers = rng.random_range(2..=3);
        let longest = *[10, 60, 250].choose(&mut rng).expect("not empty");
        // A trial or eight in a shard; near the end the coordinator cuts smaller ones anyway.
        let records = *[2, 4, 16].choose(&mut rng).expect("not empty");
        let window = rng.random_range(500..=200 * longest.min(60));
        let mut incidents: Vec<Incident> = (0..rng.random_range(2..=10))
            .map(|_| {
                let begin = milliseconds(rng.random_range(0..window));
                let lasts = milliseconds(*[20, 300, 2000, 8000].choose(&mut rng).expect("some"));
                Incident { fault: fault(&mut rng, workers), begin, end: begin + lasts }
            })
            .collect();
        incidents.sort_by_key(|incident| incident.begin);
        Self {
            seed,
            workers,
            slots: rng.random_range(1..=2),
            single: rng.random(),
            latency: (milliseconds(1), milliseconds(longest)),
            fail_rate: *[0.0, 0.0, 0.002].choose(&mut rng).expect("not empty"),
            settings: settings(records, *[0.0, 0.2].choose(&mut rng).expect("not empty")),
            room: *[2 << 10, 6 << 10, 64 << 20].choose(&mut rng).expect("not empty"),
            rogue: rng.random_bool(0.3),
            summary: rng.random_bool(0.3),
            incidents,
        }
    }
}

/// Leases are short, so that what expires does so soon. That trials are given up after some deaths is
/// for the simulation of the scheduling core to test: here all of them have to come.
fn settings(max_shard_records: u64, check_fraction: f64) -> Settings {
    let lease = Duration::from_secs(4);
    Settings { lease, max_shard_records, check_fraction, max_deaths: 1000, ..Settings::default() }
}

fn fault(rng: &mut ChaCha8Rng, workers: usize) -> Fault {
    let worker = rng.random_range(0..workers);
    match rng.random_range(0..12) {
        0 => Fault::Hold { worker },
        1 => Fault::Partition { worker },
        2 => Fault::OneWay { worker, to_coordinator: rng.random() },
        3 => Fault::Slow { worker },
        4 | 5 => Fault::Crash { worker },
        6 | 7 => Fault::FreezeDisk,
        8 => Fault::SlowDisk { each: rng.random_range(1..=8) },
        9 => Fault::BreakDisk { one_in: rng.random_range(2..=9) },
        _ => Fault::CrashCoordinator,
    }
}
