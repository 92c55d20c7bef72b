//! A worker that computes nothing: what it has leased it hands in after as long as it would have taken.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use proto::convert::{
    Finish, Handed, Heartbeat, Lease, Leases, Progress, Registered, Reply, Request,
};
use proto::v1;
use proto::v1::workers_client::WorkersClient;
use study::Digest;
use study::tally::Tally;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::Streaming;
use tonic::transport::{Channel, Endpoint};

use crate::fleet::{Rows, Seen};
use crate::{NUMERICS, VERSION};

const SLOTS: usize = 2;

/// Shards that are handed in and not durable, at most.
const UNACKNOWLEDGED: usize = 4 * SLOTS + 16;

/// What the coordinator tells workers to wait where there is no work at all.
const NOTHING_LEFT: Duration = Duration::from_millis(250);

/// How long a worker takes.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    /// What it says.
    pub(crate) seconds_per_trial: f64,
    /// Whether it waits so long; otherwise shards are handed in at once.
    pub(crate) waits: bool,
}

/// A call that was answered, and when it was made.
enum Answer {
    Leases(Instant, Leases),
    Beat(Instant),
}

pub(crate) struct Worker {
    client: WorkersClient<Channel>,
    id: u64,
    heartbeat: Duration,
    rows: Arc<Rows>,
    pace: Pace,
    out: mpsc::Sender<v1::RecordStream>,
    replies: Streaming<v1::RecordReply>,
    calls: JoinSet<Answer>,
    asking: bool,
    ask_at: Instant,
    /// Since when it has asked in vain although there was work.
    hungry: Option<Instant>,
    /// When each slot has nothing to do.
    free: [Instant; SLOTS],
    /// Leases that are being computed, by when they are done.
    running: BTreeMap<(Instant, u64), Finish>,
    /// All that it holds, those included that are handed in and not acknowledged.
    held: BTreeSet<u64>,
    checks: BTreeSet<u64>,
    seen: Seen,
}

impl Worker {
    pub(crate) async fn join(address: &str, number: u64, rows: Arc<Rows>, pace: Pace) -> Self {
        let endpoint = Endpoint::from_shared(address.to_owned()).unwrap();
        let mut client = WorkersClient::new(endpoint.connect().await.unwrap());
        let request = v1::RegisterRequest {
            version: VERSION.to_owned(),
            numerics_digest: NUMERICS.to_owned(),
            name: format!("worker-{number}"),
            slots: SLOTS as u32,
            previous_worker_id: None,
        };
        let reply = client.register(request).await.unwrap().into_inner();
        let Registered { worker_id: id, heartbeat, .. } = reply.try_into().unwrap();
        let (out, outgoing) = mpsc::channel(16);
        out.send(Handed::Open { worker_id: id }.into()).await.unwrap();
        let replies = client.stream(ReceiverStream::new(outgoing)).await.unwrap().into_inner();
        let now = Instant::now();
        Self {
            client,
            id,
            heartbeat,
            rows,
            pace,
            out,
            replies,
            calls: JoinSet::new(),
            asking: false,
            ask_at: now,
            hungry: None,
            free: [now; SLOTS],
            running: BTreeMap::new(),
            held: BTreeSet::new(),
            checks: BTreeSet::new(),
            seen: Seen::default(),
        }
    }

    /// Takes leases and hands them in until it is told to stop and has heard of all of them.
    pub(crate) async fn work(mut self, stop: CancellationToken) -> Seen {
        // The first one when it would be due, so that each worker has a time of its own.
        let mut beats = interval_at(Instant::now() + self.heartbeat, self.heartbeat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut leaves = false;
        while !leaves || !self.held.is_empty() {
            let waits = !leaves && self.ask();
            let due = self.running.first_key_value().map(|(&(due, _), _)| due);
            tokio::select! {
                biased;
                () = stop.cancelled(), if !leaves => leaves = true,
                _ = beats.tick() => self.beat(),
                Some(answer) = self.calls.join_next() => self.answered(answer.unwrap()),
                reply = self.replies.message() => {
                    let reply = reply.unwrap().expect("the coordinator stays");
                    self.reply(&reply.try_into().unwrap());
                }
                () = sleep_until(due.unwrap_or(self.ask_at)), if due.is_some() => {
                    let (_, finish) = self.running.pop_first().expect("one is due");
                    self.out.send(Handed::Finish(finish).into()).await.unwrap();
                }
                () = sleep_until(self.ask_at), if waits => {}
            }
        }
        self.seen
    }

    /// Asks for leases where some are wanted; whether that has to wait.
    fn ask(&mut self) -> bool {
        // As a real one: for each slot one that runs and one that waits, and not too many that were
        // handed in and are not durable.
        let finished = self.held.len() - self.running.len();
        let ahead = (2 * SLOTS).saturating_sub(self.running.len());
        let wanted = ahead.min(UNACKNOWLEDGED.saturating_sub(finished));
        if self.asking || wanted == 0 {
            return false;
        }
        let now = Instant::now();
        if now < self.ask_at {
            return true;
        }
        self.asking = true;
        let request = Request { worker_id: self.id, wanted: wanted as u32 };
        let mut client = self.client.clone();
        self.calls.spawn(async move {
            let reply = client.lease(v1::LeaseRequest::from(request)).await.unwrap();
            Answer::Leases(now, reply.into_inner().try_into().unwrap())
        });
        false
    }

    fn beat(&mut self) {
        let progress = |&lease| Progress { lease, done_trials: 0 };
        let beat =
            Heartbeat { worker_id: self.id, leases: self.held.iter().map(progress).collect() };
        let (mut client, now) = (self.client.clone(), Instant::now());
        self.calls.spawn(async move {
            client.heartbeat(v1::HeartbeatRequest::from(beat)).await.unwrap();
            Answer::Beat(now)
        });
    }

    fn answered(&mut self, answer: Answer) {
        match answer {
            Answer::Beat(sent) => self.seen.beats.add(sent.elapsed()),
            Answer::Leases(sent, Leases { leases, wait, .. }) => {
                self.asking = false;
                self.seen.requests.add(sent.elapsed());
                self.ask_at = Instant::now() + wait;
                // A coordinator that has nothing for anybody says so by a longer wait.
                let nothing_left = leases.is_empty() && wait >= NOTHING_LEFT;
                let since = *self.hungry.get_or_insert(sent);
                if nothing_left {
                    self.hungry = None;
                } else if !leases.is_empty() {
                    self.seen.longest_wait = self.seen.longest_wait.max(since.elapsed());
                    self.hungry = None;
                }
                leases.iter().for_each(|lease| self.take(lease));
            }
        }
    }

    /// Puts a lease on the slot that is free first.
    fn take(&mut self, lease: &Lease) {
        let trials = lease.replicates.end - lease.replicates.start;
        let mut tally = Tally::zero(self.rows[&lease.cell]);
        tally.0.iter_mut().for_each(|row| row.trials = trials);
        let name = format!("{} {:?}", lease.cell, lease.replicates);
        let seconds = trials as f64 * self.pace.seconds_per_trial;
        let finish = Finish {
            lease: lease.epoch,
            digest: *blake3::hash(name.as_bytes()).as_bytes(),
            // It sends none.
            sent_digest: Some(Digest::new().finish()),
            tally: tally.encode().into(),
            records: 0,
            trials,
            seconds,
        };
        let time = if self.pace.waits { Duration::from_secs_f64(seconds) } else { Duration::ZERO };
        let slot = self.free.iter_mut().min().expect("there are slots");
        *slot = (*slot).max(Instant::now()) + time;
        self.running.insert((*slot, lease.epoch), finish);
        self.held.insert(lease.epoch);
        if lease.check {
            self.seen.checks += 1;
            self.checks.insert(lease.epoch);
        } else {
            self.seen.leases += 1;
        }
    }

    fn reply(&mut self, reply: &Reply) {
        match *reply {
            Reply::Accepted { .. } => {}
            Reply::Committed { lease } => {
                self.held.remove(&lease);
                self.seen.durable += u64::from(!self.checks.remove(&lease));
            }
            Reply::Rejected { lease, .. } => {
                self.seen.rejected += u64::from(self.held.remove(&lease));
                self.running.retain(|&(_, running), _| running != lease);
            }
        }
    }
}
