//! The process of the workers: all of them on one runtime, each with a connection of its own.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use study::{CellId, rows};
use tests::spread::Spread;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::Load;
use crate::worker::{Pace, Worker};

/// Before the number of shards that became durable.
pub(crate) const DURABLE: &str = "durable: ";

/// Verdict rows of every cell.
pub(crate) type Rows = BTreeMap<CellId, usize>;

/// What a worker has seen.
#[derive(Default)]
pub(crate) struct Seen {
    /// Round trips of heartbeats.
    pub(crate) beats: Spread,
    /// Round trips of requests for leases.
    pub(crate) requests: Spread,
    /// From asking for work until there was some, where there was any to be had.
    pub(crate) longest_wait: Duration,
    /// Leases on shards that are to be stored, and those that are only compared.
    pub(crate) leases: u64,
    pub(crate) checks: u64,
    /// Shards that became durable, checks not among them.
    pub(crate) durable: u64,
    /// Leases that it was told to drop.
    pub(crate) rejected: u64,
}

/// Works until whoever started this process closes its input.
pub(crate) async fn work(load: &Load, address: &str) {
    let plan = load.definition().plan().unwrap();
    assert_eq!(plan.trials(), u128::from(1000 * load.replicates));
    let rows = plan.cells.iter().map(|cell| (cell.id, rows::rows(&plan.study, &cell.cell).len()));
    let rows: Arc<Rows> = Arc::new(rows.collect());
    let stop = CancellationToken::new();
    let closed = stop.clone();
    std::thread::spawn(move || {
        // Nothing is ever written to it; an error is an end as well.
        _ = std::io::stdin().read(&mut [0]);
        closed.cancel();
    });
    let mut workers = JoinSet::new();
    for number in 0..load.workers {
        let (address, rows, stop) = (address.to_owned(), Arc::clone(&rows), stop.clone());
        let pace = Pace { seconds_per_trial: load.seconds_per_trial, waits: load.paced };
        workers.spawn(
            async move { Worker::join(&address, number, rows, pace).await.work(stop).await },
        );
    }
    judge(load, workers.join_all().await);
}

fn judge(load: &Load, mut all: Vec<Seen>) {
    let (mut beats, mut requests) = (Spread::default(), Spread::default());
    for seen in &mut all {
        beats.append(&mut seen.beats);
        requests.append(&mut seen.requests);
    }
    let sum = |of: fn(&Seen) -> u64| all.iter().map(of).sum::<u64>();
    let longest_wait = all.iter().map(|seen| seen.longest_wait).max().unwrap_or_default();
    let fewest = all.iter().map(|seen| seen.leases + seen.checks).min().unwrap_or_default();
    println!("heartbeats: {beats}");
    println!("requests for leases: {requests}");
    println!("longest wait for work while there was some: {longest_wait:.1?}");
    println!("{} leases and {} checks, {fewest} at least", sum(|s| s.leases), sum(|s| s.checks));
    println!("{} leases taken back or refused", sum(|s| s.rejected));
    println!("{DURABLE}{}", sum(|s| s.durable));
    assert_eq!(all.len() as u64, load.workers);
    assert!(fewest > 0, "a worker got nothing");
    assert!(beats.max() < load.beat_limit, "a heartbeat took {:?}", beats.max());
    assert!(longest_wait < load.wait_limit, "a worker asked in vain for {longest_wait:?}");
}
