//! A worker that computes rightly and does everything else wrong: it hands its shards in twice and on two streams, takes
//! them back, lies about what it sends, speaks of others' leases, and starts over between its last word and the answer.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use proto::v1::workers_client::WorkersClient;
use proto::v1::{self, record_stream::Message};
use rand::RngExt;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use study::plan::Detail;
use study::prior::Files;
use study::tally::Counter;
use study::{Batch, CellId, Digest, Plan, rows};
use theory::information::bracket;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use tonic::transport::Channel;
use worker::Cpu;
use worker::client::is_sampled;
use worker::prior::{MemoryLimit, Prior};
use worker::trial::Trials;

use crate::wire;

type Client = WorkersClient<Channel>;

/// Never ends: whatever goes wrong, it begins anew.
pub(crate) async fn harass(
    seed: u64,
    plan: Plan,
    numerics: &str,
    lies: Arc<AtomicU32>,
) -> turmoil::Result {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x0072_6f67_7565);
    let mut previous = None;
    loop {
        let life = live(&mut rng, &plan, numerics, &mut previous, &lies);
        // Calls on connections that hang do not return.
        let _ = tokio::time::timeout(Duration::from_secs(10), life).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn live(
    rng: &mut ChaCha8Rng,
    plan: &Plan,
    numerics: &str,
    previous: &mut Option<u64>,
    lies: &AtomicU32,
) -> Result<(), Status> {
    let channel = wire::channel().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let mut client = WorkersClient::new(channel);
    for _ in 0..20 {
        let registration = v1::RegisterRequest {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            numerics_digest: numerics.to_owned(),
            name: "rogue".to_owned(),
            slots: 2,
            previous_worker_id: *previous,
        };
        let worker_id = client.register(registration).await?.into_inner().worker_id;
        *previous = Some(worker_id);
        let request = v1::LeaseRequest { worker_id, wanted: 2 };
        let leases = client.lease(request).await?.into_inner().leases;
        let mut streams = Vec::new();
        for _ in 0..2 {
            streams.push(open(&mut client, worker_id).await?);
        }
        for lease in &leases {
            name_others(&mut client, worker_id, lease.epoch).await?;
            hand_in(rng, &streams, computed(plan, lease), lies).await;
        }
        tokio::time::sleep(Duration::from_millis(rng.random_range(0..200))).await;
    }
    Ok(())
}

/// A stream whose replies are not read.
async fn open(
    client: &mut Client,
    worker_id: u64,
) -> Result<mpsc::Sender<v1::RecordStream>, Status> {
    let (out, stream) = mpsc::channel(64);
    send(&out, Message::Open(v1::Open { worker_id })).await;
    let replies = client.stream(ReceiverStream::new(stream)).await?.into_inner();
    tokio::spawn(async move {
        let _unread = replies;
        tokio::time::sleep(Duration::from_secs(5)).await;
    });
    Ok(out)
}

async fn send(out: &mpsc::Sender<v1::RecordStream>, message: Message) {
    // The coordinator may have ended it.
    let _ = out.send(v1::RecordStream { message: Some(message) }).await;
}

/// Epochs are numbered: those around one's own are others'.
async fn name_others(client: &mut Client, worker_id: u64, own: u64) -> Result<(), Status> {
    let leases = (own.saturating_sub(20)..own + 20)
        .map(|lease| v1::LeaseProgress { lease, done_trials: 0 })
        .collect();
    client.heartbeat(v1::HeartbeatRequest { worker_id, leases }).await.map(drop)
}

/// What is not what it says.
#[derive(Clone, Copy, PartialEq)]
enum Lie {
    /// The digest is of other records.
    Digest,
    /// There are more or fewer records.
    Count(bool),
    /// The part in the middle does not come, and those around it follow each other or do not.
    Missing { renumbered: bool },
    /// A part has no records.
    Empty,
}

/// A lie now and then.
fn lie(rng: &mut ChaCha8Rng) -> Option<Lie> {
    Some(match rng.random_range(0..12) {
        0 => Lie::Digest,
        1 => Lie::Count(rng.random()),
        2 => Lie::Missing { renumbered: rng.random() },
        3 => Lie::Empty,
        _ => return None,
    })
}

/// What is handed in is whole or is refused; the rest is as bad as it gets.
async fn hand_in(
    rng: &mut ChaCha8Rng,
    streams: &[mpsc::Sender<v1::RecordStream>],
    (batch, mut finish): (Option<Batch>, v1::Finish),
    lies: &AtomicU32,
) {
    let lease = finish.lease;
    let abandon =
        |lease| Message::Abandon(v1::Abandon { lease, reason: "for no reason".to_owned() });
    for other in [lease + 1, lease.saturating_sub(1)] {
        send(&streams[1], abandon(other)).await;
        send(&streams[1], Message::Finish(v1::Finish { lease: other, ..finish.clone() })).await;
    }
    // A check sends no records, and what is said of them raises an alarm.
    let lie = if batch.is_some() { lie(rng) } else { None };
    lies.fetch_add(u32::from(lie.is_some()), Ordering::Relaxed);
    match lie {
        Some(Lie::Digest) if finish.sent_digest.is_empty() => finish.digest = wrong(),
        Some(Lie::Digest) => finish.sent_digest = wrong(),
        Some(Lie::Count(more)) => {
            finish.records = if more { finish.records + 1 } else { finish.records.wrapping_sub(1) };
        }
        _ => {}
    }
    let on = |rng: &mut ChaCha8Rng| &streams[rng.random_range(0..streams.len())];
    for part in batch.iter().flat_map(|batch| parts(lease, batch, lie)) {
        send(on(rng), Message::Part(part.clone())).await;
        if rng.random_bool(0.15) {
            send(on(rng), Message::Part(part)).await;
        }
    }
    send(on(rng), Message::Finish(finish.clone())).await;
    if rng.random_bool(0.5) {
        send(on(rng), Message::Finish(finish)).await;
    }
    if rng.random_bool(0.5) {
        send(on(rng), abandon(lease)).await;
    }
}

fn wrong() -> Bytes {
    vec![7; 32].into()
}

/// A batch in parts.
fn parts(lease: u64, batch: &Batch, lie: Option<Lie>) -> Vec<v1::Part> {
    let rows = batch.len();
    let cuts = if rows < 3 { vec![0, rows] } else { vec![0, rows / 3, 2 * rows / 3, rows] };
    let mut batches: Vec<Batch> =
        cuts.windows(2).map(|cut| batch.slice(cut[0]..cut[1])).filter(|b| !b.is_empty()).collect();
    let mut renumbered = true;
    match lie {
        Some(Lie::Missing { renumbered: again }) if batches.len() == 3 => {
            batches.remove(1);
            renumbered = again;
        }
        Some(Lie::Empty) => batches.insert(0, Batch::new(batch.cell())),
        _ => {}
    }
    let part = |(at, batch): (usize, Batch)| {
        let sequence = if renumbered { at } else { 2 * at } as u64;
        v1::Part { lease, sequence, batch: batch.encode().into() }
    };
    batches.into_iter().enumerate().map(part).collect()
}

/// What an honest worker would hand in.
fn computed(plan: &Plan, lease: &v1::Lease) -> (Option<Batch>, v1::Finish) {
    let cell = plan.cell(CellId(lease.cell)).unwrap();
    let limit = MemoryLimit { bytes: 1 << 30, state_per_point: 192 };
    let prior = Prior::build(&plan.priors[cell.prior].spec, &Files::default(), limit).unwrap();
    let trials =
        Trials::new(&prior, cell.cell, plan.study.seed, &cell.checkpoints, Cpu::detect()).unwrap();
    let horizon = *cell.checkpoints.last().unwrap() as usize;
    let bracket = bracket(&prior.factor, prior.white, prior.noise_variance, horizon);
    let rho = |t: u32| bracket.as_ref()?.at(t as usize).map(|bounds| (bounds.lo, bounds.hi));
    let counter = Counter::new(&rows::rows(&plan.study, &cell.cell), &cell.cell, prior.c, rho);
    let is_summary = plan.study.detail == Detail::Summary && !lease.check;
    let (mut batch, mut digest, mut sent) = (Batch::new(cell.id), Digest::new(), Digest::new());
    let (mut tally, mut before) = (counter.start(), 0);
    for replicate in lease.first..lease.end {
        let mut trial = Vec::new();
        trials.run(Range { start: replicate, end: replicate + 1 }, &mut |record| {
            record.feed(&mut digest);
            counter.observe(&record, &mut tally);
            trial.push(record);
        });
        let violations = tally.0.iter().map(|row| row.refuting + row.confirming).sum::<u64>();
        let chosen = violations > before || is_sampled(plan.id, cell.id, replicate);
        before = violations;
        for record in trial.iter().filter(|_| !is_summary || chosen) {
            record.feed(&mut sent);
            batch.push(record);
        }
    }
    let records = if lease.check { 0 } else { batch.len() as u64 };
    let sent_digest = if is_summary { sent.finish().to_vec().into() } else { Bytes::new() };
    let finish = v1::Finish {
        lease: lease.epoch,
        digest: digest.finish().to_vec().into(),
        sent_digest,
        tally: tally.encode().into(),
        records,
        trials: lease.end - lease.first,
        seconds: 0.01,
    };
    ((!lease.check).then_some(batch), finish)
}
