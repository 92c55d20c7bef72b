//! A worker that computes rightly and does everything else wrong: it hands its shards in twice and on two streams, takes
//! them back, speaks of others' leases, and starts over between its last word and the answer.

use std::time::Duration;

use proto::v1::workers_client::WorkersClient;
use proto::v1::{self, record_stream::Message};
use rand::RngExt;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use study::prior::Files;
use study::tally::Counter;
use study::{Batch, CellId, Digest, Plan, rows};
use theory::information::bracket;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use tonic::transport::Channel;
use worker::Cpu;
use worker::prior::{MemoryLimit, Prior};
use worker::trial::Trials;

use crate::wire;

type Client = WorkersClient<Channel>;

/// Never ends: whatever goes wrong, it begins anew.
pub(crate) async fn harass(seed: u64, plan: Plan, numerics: &str) -> turmoil::Result {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x726f_6775_65);
    let mut previous = None;
    loop {
        let life = live(&mut rng, &plan, numerics, &mut previous);
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
            hand_in(rng, &streams, computed(plan, lease)).await;
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

/// What is handed in is whole; the rest is as bad as it gets.
async fn hand_in(
    rng: &mut ChaCha8Rng,
    streams: &[mpsc::Sender<v1::RecordStream>],
    (part, finish): (Option<v1::Part>, v1::Finish),
) {
    let lease = finish.lease;
    let abandon =
        |lease| Message::Abandon(v1::Abandon { lease, reason: "for no reason".to_owned() });
    for other in [lease + 1, lease.saturating_sub(1)] {
        send(&streams[1], abandon(other)).await;
        send(&streams[1], Message::Finish(v1::Finish { lease: other, ..finish.clone() })).await;
    }
    let on = |rng: &mut ChaCha8Rng| &streams[rng.random_range(0..streams.len())];
    if let Some(part) = part {
        send(on(rng), Message::Part(part.clone())).await;
        if rng.random_bool(0.3) {
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

/// What an honest worker would hand in.
fn computed(plan: &Plan, lease: &v1::Lease) -> (Option<v1::Part>, v1::Finish) {
    let cell = plan.cell(CellId(lease.cell)).unwrap();
    let limit = MemoryLimit { bytes: 1 << 30, state_per_point: 192 };
    let prior = Prior::build(&plan.priors[cell.prior].spec, &Files::default(), limit).unwrap();
    let trials =
        Trials::new(&prior, cell.cell, plan.study.seed, &cell.checkpoints, Cpu::detect()).unwrap();
    let horizon = *cell.checkpoints.last().unwrap() as usize;
    let bracket = bracket(&prior.factor, prior.white, prior.noise_variance, horizon);
    let rho = |t: u32| bracket.as_ref()?.at(t as usize).map(|bounds| (bounds.lo, bounds.hi));
    let counter = Counter::new(&rows::rows(&plan.study, &cell.cell), &cell.cell, prior.c, rho);
    let (mut batch, mut digest) = (Batch::new(cell.id), Digest::new());
    let mut tally = counter.start();
    trials.run(lease.first..lease.end, &mut |record| {
        record.feed(&mut digest);
        counter.observe(&record, &mut tally);
        batch.push(&record);
    });
    let records = if lease.check { 0 } else { batch.len() as u64 };
    let part = v1::Part { lease: lease.epoch, sequence: 0, batch: batch.encode().into() };
    let finish = v1::Finish {
        lease: lease.epoch,
        digest: digest.finish().to_vec().into(),
        tally: tally.encode().into(),
        records,
        trials: lease.end - lease.first,
        seconds: 0.01,
        ..v1::Finish::default()
    };
    ((!lease.check).then_some(part), finish)
}
