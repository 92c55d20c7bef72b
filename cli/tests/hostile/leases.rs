//! Workers with credentials that meddle with leases: their own, those of others, and those that nobody holds.

use std::time::{Duration, Instant};

use proto::v1::record_stream::Message;
use proto::v1::{self, Lease};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use crate::rogue::{Rogue, registration};
use crate::siege::{Attack, Siege};

/// How long an answer is waited for that may never come.
const A_MOMENT: Duration = Duration::from_millis(500);

fn on_stream(message: Message) -> v1::RecordStream {
    v1::RecordStream { message: Some(message) }
}

/// Some leases, or none; a registration that was given up is made anew.
async fn leases(rogue: &mut Rogue, wanted: u32) -> Vec<Lease> {
    let request = v1::LeaseRequest { worker_id: rogue.id, wanted };
    if let Ok(reply) = rogue.client.lease(request).await {
        return reply.into_inner().leases;
    }
    reconnect(rogue).await;
    Vec::new()
}

/// Registers again and names the id that it had.
async fn reconnect(rogue: &mut Rogue) {
    let previous =
        v1::RegisterRequest { previous_worker_id: Some(rogue.id), ..registration("rogue", 2) };
    if let Ok(reply) = rogue.client.register(previous).await {
        rogue.id = reply.into_inner().worker_id;
    }
}

/// Sends messages on a stream of its own, opened by `id`, and leaves it open.
async fn send(rogue: &Rogue, id: u64, messages: Vec<Message>) -> Option<Open> {
    let (out, outgoing) = mpsc::channel(messages.len() + 1);
    for message in [Message::Open(v1::Open { worker_id: id })].into_iter().chain(messages) {
        out.send(on_stream(message)).await.unwrap();
    }
    let replies = rogue.client.clone().stream(ReceiverStream::new(outgoing)).await.ok()?;
    Some(Open { out, replies: replies.into_inner() })
}

/// A stream that is kept open.
struct Open {
    out: mpsc::Sender<v1::RecordStream>,
    replies: Streaming<v1::RecordReply>,
}

impl Open {
    /// Waits for `ends` answers about leases, but not long.
    async fn hear(mut self, ends: usize) {
        let heard = async {
            let mut left = ends;
            while left > 0
                && let Ok(Some(reply)) = self.replies.message().await
            {
                left -= usize::from(!is_accepted(&reply));
            }
        };
        _ = timeout(A_MOMENT, heard).await;
    }
}

fn is_accepted(reply: &v1::RecordReply) -> bool {
    matches!(reply.message, Some(v1::record_reply::Message::Accepted(_)))
}

/// Floods the coordinator with parts of leases that nobody holds, and never reads an answer.
async fn flood(attack: Attack, url: String) {
    let rogue = Rogue::join(&url, "flood", 1).await;
    let open = std::iter::once(on_stream(Message::Open(v1::Open { worker_id: rogue.id })));
    let part = v1::Part { lease: u64::MAX >> 1, sequence: 0, batch: vec![0].into() };
    let counted = attack.clone();
    let parts = std::iter::repeat(on_stream(Message::Part(part)))
        .inspect(move |_| counted.count(1))
        .take_while({
            let attack = attack.clone();
            move |_| attack.goes_on()
        });
    let mut client = rogue.client.clone();
    let unread = client.stream(tokio_stream::iter(open.chain(parts))).await;
    attack.stop.cancelled().await;
    drop(unread);
}

#[test]
fn replies_that_nobody_reads_are_bounded() {
    let siege = Siege::open();
    for _ in 0..8 {
        siege.attackers.spawn(flood(siege.attack.clone(), siege.service.url.clone()));
    }
    // It comes to a halt, or to what would be some 700 MiB of answers.
    siege.wait_for_blows(6_000_000);
    siege.is_withstood(1000);
}

/// Heartbeats that name all leases around the newest, whoever holds them.
async fn name_others(attack: Attack, url: String) {
    let mut rogue = Rogue::join(&url, "rogue", 1).await;
    let mut newest = 1;
    while attack.goes_on() {
        for lease in leases(&mut rogue, 1).await {
            newest = newest.max(lease.epoch);
            if let Some(stream) = send(&rogue, rogue.id, vec![abandon(&lease)]).await {
                stream.hear(1).await;
            }
        }
        let named = newest.saturating_sub(2000)..newest + 2000;
        let named = named.map(|lease| v1::LeaseProgress { lease, done_trials: 0 });
        let request = v1::HeartbeatRequest { worker_id: rogue.id, leases: named.collect() };
        if rogue.client.heartbeat(request).await.is_ok() {
            attack.count(1);
        }
        sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn heartbeats_for_others_end_no_lease() {
    let siege = Siege::open();
    siege.attackers.spawn(name_others(siege.attack.clone(), siege.service.url.clone()));
    siege.is_withstood(20);
}

fn abandon(lease: &Lease) -> Message {
    Message::Abandon(v1::Abandon { lease: lease.epoch, reason: "so be it".to_owned() })
}

/// What a rogue does with a lease and what should be handed in for it.
async fn misuse(rogue: &mut Rogue, other: &Rogue, round: u64, lease: &Lease) {
    let (part, finish) = rogue.computed(lease, |_| ()).await;
    let finish = if lease.check { v1::Finish { records: 0, ..finish } } else { finish };
    let (part, finish) = (Message::Part(part), Message::Finish(finish));
    let begin = if lease.check { Vec::new() } else { vec![part.clone()] };
    let all = |more: &[&Message]| {
        begin.iter().chain(more.iter().copied()).cloned().collect::<Vec<Message>>()
    };
    let id = rogue.id;
    match round % 8 {
        // The same part and the same end on two streams.
        0 => {
            let both = (send(rogue, id, all(&[&finish])), send(rogue, id, all(&[&finish])));
            let (one, two) = tokio::join!(both.0, both.1);
            for stream in [one, two].into_iter().flatten() {
                stream.hear(1).await;
            }
        }
        // A second stream takes over half-way.
        1 => {
            let one = send(rogue, id, all(&[])).await;
            let two = send(rogue, id, all(&[&finish])).await;
            for stream in [one, two].into_iter().flatten() {
                stream.hear(1).await;
            }
        }
        // The end twice.
        2 => hear(send(rogue, id, all(&[&finish, &finish])).await, 2).await,
        // The end first.
        3 => {
            let messages = vec![finish.clone(), part.clone(), finish.clone()];
            hear(send(rogue, id, messages).await, 3).await;
        }
        // Given back after the end.
        4 => hear(send(rogue, id, all(&[&finish, &abandon(lease)])).await, 1).await,
        // The end, and another registration before its answer.
        5 => {
            if let Some(mut stream) = send(rogue, id, begin).await {
                // Once its records are taken, the end is what is left to do.
                _ = timeout(A_MOMENT, stream.replies.message()).await;
                _ = stream.out.send(on_stream(finish)).await;
                wait(Duration::from_micros(100 * (round / 8 % 24))).await;
                reconnect(rogue).await;
            }
        }
        // On streams of another registration, and of none.
        6 => {
            let another = send(rogue, other.id, all(&[&finish])).await;
            hear(another, 1).await;
            hear(send(rogue, id ^ 1, all(&[&finish])).await, 1).await;
            hear(send(rogue, id, all(&[&finish])).await, 1).await;
        }
        // The end and the return on two streams at once.
        _ => {
            let end = send(rogue, id, all(&[&finish]));
            let back = send(rogue, id, vec![abandon(lease)]);
            let (end, back) = tokio::join!(end, back);
            hear(end, 1).await;
            drop(back);
        }
    }
}

/// Waits more exactly than a timer would.
async fn wait(time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        tokio::task::yield_now().await;
    }
}

async fn hear(stream: Option<Open>, ends: usize) {
    if let Some(stream) = stream {
        stream.hear(ends).await;
    }
}

/// Takes leases and misuses them, each in the next way.
async fn rebel(attack: Attack, url: String, first: u64) {
    let other = Rogue::join(&url, "other", 1).await;
    let mut rogue = Rogue::join(&url, "rogue", 2).await;
    let mut round = first;
    while attack.goes_on() {
        for lease in leases(&mut rogue, 2).await {
            misuse(&mut rogue, &other, round, &lease).await;
            attack.count(1);
            round += 1;
        }
        // Whatever is left of them goes to others.
        reconnect(&mut rogue).await;
        sleep(Duration::from_millis(10)).await;
    }
}

#[test]
fn doubled_and_disordered_messages_lose_nothing() {
    let siege = Siege::open();
    for first in [0, 5] {
        siege.attackers.spawn(rebel(siege.attack.clone(), siege.service.url.clone(), first));
    }
    siege.is_withstood(16);
}

/// Hands leases in and registers again before the answer, sooner or later.
async fn reconnect_too_soon(attack: Attack, url: String) {
    let mut rogue = Rogue::join(&url, "rogue", 2).await;
    let other = Rogue::join(&url, "other", 1).await;
    let mut round = 5;
    while attack.goes_on() {
        for lease in leases(&mut rogue, 1).await {
            misuse(&mut rogue, &other, round, &lease).await;
            attack.count(1);
            round += 8;
        }
    }
}

/// Heartbeats that name thousands of leases that never were: what comes meanwhile is handled at one go.
async fn keep_busy(attack: Attack, url: String) {
    let mut rogue = Rogue::join(&url, "busy", 1).await;
    let named =
        (0..4000).map(|lease| v1::LeaseProgress { lease: (1 << 60) + lease, done_trials: 0 });
    let request = v1::HeartbeatRequest { worker_id: rogue.id, leases: named.collect() };
    while attack.goes_on() {
        _ = rogue.client.heartbeat(request.clone()).await;
    }
}

#[test]
fn a_reconnect_between_end_and_answer_loses_nothing() {
    let siege = Siege::open();
    for _ in 0..2 {
        siege.attackers.spawn(reconnect_too_soon(siege.attack.clone(), siege.service.url.clone()));
        siege.attackers.spawn(keep_busy(siege.attack.clone(), siege.service.url.clone()));
    }
    siege.is_withstood(24);
}
