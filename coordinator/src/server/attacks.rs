//! Workers that are cut off, repeat themselves, or do what no worker would, on a disk that stands still when it is told
//! to. Whatever they do, a shard that is durable has its records, each once.

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use proto::v1::record_stream::Message;
use proto::v1::workers_client::WorkersClient;
use proto::v1::{self, record_reply};
use study::record::Failure;
use study::tally::Tally;
use study::{Batch, CellId, Digest, Record, StudyId};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};

use super::takeover::{config, definition};
use super::{Coordinator, Handle};
use crate::core::Settings;
use crate::store::tests::disk::Faulty;
use crate::store::{Medium, Storage};

type Stream = mpsc::Sender<v1::RecordStream>;
type Replies = Streaming<v1::RecordReply>;

/// Long enough for any machine; a test that hangs should end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Checkpoints of the study's cells, and its trials in a shard.
const CHECKPOINTS: [u32; 2] = [2, 12];
const TRIALS: u64 = 8;

/// A coordinator with the study of the takeover.
struct Site {
    dir: TempDir,
    disk: Faulty,
    coordinator: Coordinator,
    handle: Handle,
    study: StudyId,
    url: String,
}

impl Site {
    /// With room for so many bytes that wait for the disk.
    async fn new(room: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let ledger = dir.path().join("ledger");
        let disk = Faulty::new(&ledger);
        let medium = Medium { disk: Box::new(disk.clone()), segment: 1 << 10, room };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut config = config(&ledger, Storage::default(), address);
        config.settings = Settings {
            max_shard_records: TRIALS * CHECKPOINTS.len() as u64,
            check_fraction: 0.0,
            ..config.settings
        };
        let incoming = TcpListenerStream::new(listener);
        let coordinator = Coordinator::serve(config, Some(medium), incoming).await.unwrap();
        let handle = coordinator.handle();
        let study = handle.submit(definition()).await.unwrap();
        Self { dir, disk, coordinator, handle, study, url: format!("http://{address}") }
    }

    /// The disk does not return until the sender is dropped.
    fn freeze(&self) -> Sender<()> {
        let (thaw, frozen) = channel::<()>();
        self.disk.fail(move |_| frozen.recv().err().and(None));
        thaw
    }

    async fn join(&self, previous: Option<u64>) -> Rogue {
        let endpoint = Endpoint::from_shared(self.url.clone()).unwrap();
        let mut client = WorkersClient::new(endpoint.connect().await.unwrap());
        let registration = v1::RegisterRequest {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            numerics_digest: worker::golden::DIGEST.to_owned(),
            name: "rogue".to_owned(),
            slots: 4,
            previous_worker_id: previous,
        };
        let id = client.register(registration).await.unwrap().into_inner().worker_id;
        Rogue { client, id }
    }

    fn segments(&self) -> usize {
        std::fs::read_dir(self.dir.path().join("ledger/segments")).unwrap().count()
    }

    /// The shards that are durable, by first replicate. Each has its records.
    async fn durable(&self) -> Vec<(CellId, u64)> {
        let shards = self.handle.store.shards(self.study).await.unwrap();
        let mut reader = self.handle.store.reader();
        for shard in &shards {
            let (mut records, mut digest) = (0, Digest::new());
            for payload in reader.read(shard).unwrap() {
                let batch = Batch::decode(&payload.unwrap()).unwrap();
                records += batch.len() as u64;
                batch.feed(&mut digest);
            }
            assert_eq!(records, shard.row.records, "{shard:?}");
            assert_eq!(digest.finish(), shard.row.digest, "{shard:?}");
        }
        shards.into_iter().map(|shard| (shard.row.cell, shard.row.range.start)).collect()
    }

    async fn until_durable(&self, lease: &v1::Lease) {
        let durable = async {
            while !self.durable().await.contains(&(CellId(lease.cell), lease.first)) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, durable).await.expect("it becomes durable");
    }

    async fn stop(self) {
        drop(self.handle);
        self.coordinator.stop(Duration::ZERO).await;
    }
}

struct Rogue {
    client: WorkersClient<Channel>,
    id: u64,
}

impl Rogue {
    async fn lease(&mut self, wanted: u32) -> Vec<v1::Lease> {
        let asked = async {
            let mut leases = Vec::new();
            while leases.len() < wanted as usize {
                let wanted = wanted - leases.len() as u32;
                let request = v1::LeaseRequest { worker_id: self.id, wanted };
                leases.extend(self.client.lease(request).await.unwrap().into_inner().leases);
            }
            leases
        };
        tokio::time::timeout(PATIENCE, asked).await.expect("there is work")
    }

    async fn open(&mut self) -> (Stream, Replies) {
        let (out, stream) = mpsc::channel(8);
        send(&out, Message::Open(v1::Open { worker_id: self.id })).await;
        let replies = self.client.stream(ReceiverStream::new(stream)).await.unwrap().into_inner();
        (out, replies)
    }

    async fn beat(&mut self, leases: &[u64]) -> Result<Vec<u64>, Status> {
        let progress = |&lease: &u64| v1::LeaseProgress { lease, done_trials: 0 };
        let leases = leases.iter().map(progress).collect();
        let request = v1::HeartbeatRequest { worker_id: self.id, leases };
        let reply = self.client.heartbeat(request).await?.into_inner();
        Ok(reply.revoked.into_iter().map(|revoked| revoked.lease).collect())
    }
}

async fn send(out: &Stream, message: Message) {
    // The other side may have ended the stream.
    let _ = out.send(v1::RecordStream { message: Some(message) }).await;
}

/// Trials that all failed: the server cannot tell, and nothing need be computed.
fn batch(lease: &v1::Lease) -> Batch {
    let mut batch = Batch::new(CellId(lease.cell));
    for replicate in lease.first..lease.end {
        for t in CHECKPOINTS {
            let cell = CellId(lease.cell);
            batch.push(&Record { cell, replicate, t, outcome: Err(Failure::Panicked) });
        }
    }
    batch
}

fn part(lease: &v1::Lease) -> Message {
    let batch = batch(lease).encode().into();
    Message::Part(v1::Part { lease: lease.epoch, sequence: 0, batch })
}

fn finish(lease: &v1::Lease) -> Message {
    let plan = definition().plan().unwrap();
    let cell = plan.cell(CellId(lease.cell)).unwrap();
    let (batch, mut digest) = (batch(lease), Digest::new());
    batch.feed(&mut digest);
    let trials = lease.end - lease.first;
    let mut tally = Tally::zero(study::rows::rows(&plan.study, &cell.cell).len());
    tally.0.iter_mut().for_each(|row| row.failures = trials);
    Message::Finish(v1::Finish {
        lease: lease.epoch,
        digest: digest.finish().to_vec().into(),
        tally: tally.encode().into(),
        records: batch.len() as u64,
        trials,
        seconds: 0.01,
        ..v1::Finish::default()
    })
}

fn abandon(lease: &v1::Lease) -> Message {
    Message::Abandon(v1::Abandon { lease: lease.epoch, reason: "for no reason".to_owned() })
}

/// What becomes of a lease: nothing where it was committed.
async fn verdict(replies: &mut Replies, epoch: u64) -> Result<Option<String>, Status> {
    let answered = async {
        while let Some(reply) = replies.message().await? {
            match reply.message.unwrap() {
                record_reply::Message::Committed(end) if end.lease == epoch => return Ok(None),
                record_reply::Message::Rejected(end) if end.lease == epoch => {
                    return Ok(Some(end.reason));
                }
                _ => {}
            }
        }
        Err(Status::cancelled("the stream ended"))
    };
    tokio::time::timeout(PATIENCE, answered).await.expect("an answer comes")
}

/// The time in which a message that was sent has surely come.
async fn arrived() {
    tokio::time::sleep(Duration::from_millis(300)).await;
}

/// A shard waits for room behind another's batch; then its worker does something.
async fn committing(act: impl AsyncFnOnce(&Site, &mut Rogue, &Stream, &v1::Lease)) {
    // Room for a batch, but not for two.
    let site = Site::new(2000).await;
    let mut worker = site.join(None).await;
    let leases = worker.lease(2).await;
    let (out, _replies) = worker.open().await;
    send(&out, part(&leases[0])).await;
    arrived().await;
    let thaw = site.freeze();
    let mut other = site.join(None).await;
    let blocking = other.lease(1).await.remove(0);
    let (filler, _unread) = other.open().await;
    send(&filler, part(&blocking)).await;
    arrived().await;
    send(&out, finish(&leases[0])).await;
    arrived().await;
    act(&site, &mut worker, &out, &leases[0]).await;
    arrived().await;
    drop(thaw);
    site.until_durable(&leases[0]).await;
    assert_eq!(site.durable().await.len(), 1);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_that_waits_for_the_disk_outlasts_the_connection_of_its_worker() {
    committing(async |site, worker, _, _| {
        let again = site.join(Some(worker.id)).await;
        assert_ne!(again.id, worker.id);
        assert_eq!(worker.beat(&[]).await.unwrap_err().code(), Code::NotFound);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_that_waits_for_the_disk_cannot_be_taken_back() {
    committing(async |_, _, out, lease| {
        send(out, abandon(lease)).await;
        send(out, part(lease)).await;
        send(out, finish(lease)).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_has_one_stream_and_a_part_counts_once() {
    let site = Site::new(1 << 20).await;
    let mut worker = site.join(None).await;
    let leases = worker.lease(2).await;
    let (first, mut replies) = worker.open().await;
    send(&first, part(&leases[0])).await;
    arrived().await;
    let (second, mut answers) = worker.open().await;
    // The same part again, whose turn is over.
    send(&second, part(&leases[0])).await;
    let refused = verdict(&mut answers, leases[0].epoch).await.unwrap().expect("a refusal");
    assert!(refused.contains("part 0 came where part 1 was due"), "{refused}");
    // On the first nothing is read any more.
    send(&first, part(&leases[1])).await;
    let ended = verdict(&mut replies, leases[1].epoch).await.unwrap_err();
    assert_eq!(ended.code(), Code::Aborted, "{ended}");
    send(&second, part(&leases[1])).await;
    send(&second, finish(&leases[1])).await;
    assert_eq!(verdict(&mut answers, leases[1].epoch).await.unwrap(), None);
    assert_eq!(site.durable().await, [(CellId(leases[1].cell), leases[1].first)]);
    site.stop().await;
}

/// They would be stored one by one, as many as a worker likes.
#[tokio::test(flavor = "multi_thread")]
async fn a_part_without_records_ends_its_lease() {
    let site = Site::new(1 << 20).await;
    let mut worker = site.join(None).await;
    let lease = worker.lease(1).await.remove(0);
    let (out, mut replies) = worker.open().await;
    let batch = Batch::new(CellId(lease.cell)).encode().into();
    send(&out, Message::Part(v1::Part { lease: lease.epoch, sequence: 0, batch })).await;
    let refused = verdict(&mut replies, lease.epoch).await.unwrap();
    assert_eq!(refused.as_deref(), Some("a part without records came"));
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_waited_for_room_leaves_nothing_behind() {
    let site = Site::new(2000).await;
    let mut worker = site.join(None).await;
    let leases = worker.lease(3).await;
    let (out, _replies) = worker.open().await;
    let thaw = site.freeze();
    for lease in &leases {
        send(&out, part(lease)).await;
    }
    arrived().await;
    // All of its leases are over while one of their batches is in the queue and another waits for it.
    let mut again = site.join(Some(worker.id)).await;
    drop(thaw);
    let lease = again.lease(1).await.remove(0);
    let (out, mut replies) = again.open().await;
    send(&out, part(&lease)).await;
    send(&out, finish(&lease)).await;
    assert_eq!(verdict(&mut replies, lease.epoch).await.unwrap(), None);
    // What nothing needs is deleted when a cell is forgotten.
    site.handle.store.forget_cell(site.study, CellId(lease.cell)).await.unwrap();
    assert!(site.segments() <= 2, "{} segments", site.segments());
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_names_leases_of_others_ends_none() {
    let site = Site::new(1 << 20).await;
    let (mut honest, mut rogue) = (site.join(None).await, site.join(None).await);
    let leases = honest.lease(2).await;
    let own = rogue.lease(1).await.remove(0).epoch;
    let named: Vec<u64> = leases.iter().map(|lease| lease.epoch).chain([own]).collect();
    let ended = rogue.beat(&named).await.unwrap();
    assert_eq!(ended, [leases[0].epoch, leases[1].epoch], "it hears that it does not hold them");
    let (out, mut refusals) = rogue.open().await;
    for message in [part(&leases[0]), finish(&leases[0]), abandon(&leases[0])] {
        send(&out, message).await;
    }
    let refused = verdict(&mut refusals, leases[0].epoch).await.unwrap();
    assert_eq!(refused.as_deref(), Some("this worker does not hold this lease"));
    assert_eq!(honest.beat(&named[..2]).await.unwrap(), [] as [u64; 0]);
    let (out, mut replies) = honest.open().await;
    for lease in &leases {
        send(&out, part(lease)).await;
        send(&out, finish(lease)).await;
        assert_eq!(verdict(&mut replies, lease.epoch).await.unwrap(), None);
    }
    assert_eq!(site.durable().await.len(), 2);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_registered_gets_no_study_and_no_file() {
    let site = Site::new(1 << 20).await;
    let mut worker = site.join(None).await;
    let study = worker.lease(1).await.remove(0).study;
    let (stranger, digest) = (worker.id ^ 1, vec![7; 32]);
    let ask = |worker_id| v1::FetchStudyRequest { worker_id, study: study.clone() };
    assert!(worker.client.fetch_study(ask(worker.id)).await.is_ok());
    let refused = worker.client.fetch_study(ask(stranger)).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound, "{refused}");
    let file = v1::FetchFileRequest { worker_id: stranger, digest: digest.into() };
    let refused = worker.client.fetch_file(file).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound, "{refused}");
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_read_replies_is_not_read_from() {
    let site = Site::new(1 << 20).await;
    let mut rogue = site.join(None).await;
    let (out, _unread) = rogue.open().await;
    let mut sent = 0_u64;
    // A second without room for another part is a stall.
    while sent < 1_000_000 {
        let batch = vec![0; 100].into();
        let part = Message::Part(v1::Part { lease: sent, sequence: 0, batch });
        let going = tokio::time::timeout(Duration::from_secs(1), send(&out, part)).await;
        if going.is_err() {
            break;
        }
        sent += 1;
    }
    assert!(sent < 1_000_000, "replies to {sent} parts are kept for a worker that reads none");
    // Others are served meanwhile.
    assert_eq!(site.join(None).await.lease(1).await.len(), 1);
    site.stop().await;
}
