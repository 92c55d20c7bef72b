//! The client against a coordinator of a few lines, over TCP.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;

use proto::convert::{
    Definition, FileQuery, FileRef, Finish, Handed, Heartbeat, Lease, Leases, Registered, Reply,
    Request as Wanted, Revocation, StudyQuery, leased_batch,
};
use proto::v1;
use proto::v1::workers_server::{Workers, WorkersServer};
use study::prior::Files;
use study::{Batch, Digest};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming};

use super::fixture::{STUDY, known, lease};
use super::library::Known;
use super::*;

const POINTS: &[u8] = b"0\n0.1\n0.2\n0.35\n0.5\n0.6\n0.75\n0.8\n0.9\n1\n";

/// A study whose points come from a file.
fn text() -> String {
    let grid = "domain = { kind = \"grid\", points = 12, dimension = 1 }";
    assert!(STUDY.contains(grid));
    STUDY.replace(grid, "domain = { kind = \"points\", path = \"points.csv\" }")
}

/// What the test's coordinator knows.
struct State {
    token: Option<&'static str>,
    text: String,
    known: Arc<Known>,
    pending: VecDeque<Lease>,
    leased: BTreeMap<u64, Lease>,
    parts: BTreeMap<u64, Vec<Batch>>,
    /// By first replicate.
    committed: BTreeMap<u64, (Finish, Vec<Batch>)>,
    next_epoch: u64,
    registrations: u64,
    files_sent: u64,
    /// So many answers to FetchStudy are of another plan.
    stale: u64,
    /// The stream breaks instead of committing so many times.
    breaks: u64,
    /// Leases to take back at the next heartbeat that names them.
    revoke: Vec<u64>,
    abandoned: Vec<u64>,
    drained: bool,
    leave_when_done: bool,
    /// So many registrations succeed; then another coordinator leads.
    leads_for: u64,
}

impl State {
    /// So many replicates in ranges of a length.
    fn new(replicates: u64, length: u64) -> Self {
        let mut state = Self::of(&text());
        let ranges = (0..replicates).step_by(length as usize);
        let lease = |first| lease(&state.known, 0, first..replicates.min(first + length));
        state.pending = ranges.map(lease).collect();
        state
    }

    /// A study without leases.
    fn of(text: &str) -> Self {
        let mut files = Files::default();
        files.insert("points.csv", POINTS.to_vec()).unwrap();
        let known = known(text, files);
        Self {
            token: None,
            text: text.to_owned(),
            pending: VecDeque::new(),
            known,
            leased: BTreeMap::new(),
            parts: BTreeMap::new(),
            committed: BTreeMap::new(),
            next_epoch: 1,
            registrations: 0,
            files_sent: 0,
            stale: 0,
            breaks: 0,
            revoke: vec![],
            abandoned: vec![],
            drained: false,
            leave_when_done: true,
            leads_for: u64::MAX,
        }
    }

    fn definition(&self) -> Definition {
        let digest = *blake3::hash(POINTS).as_bytes();
        let file = FileRef { path: "points.csv".into(), digest, size: POINTS.len() as u64 };
        let (text, revision) = (self.text.clone(), self.known.revision);
        Definition { file_name: "small.toml".into(), text, revision, files: vec![file] }
    }

    /// Leases of a connection that is gone are free again.
    fn forget(&mut self) {
        let leases = std::mem::take(&mut self.leased);
        self.pending.extend(leases.into_values());
        self.parts.clear();
    }

    fn take(&mut self, handed: Handed) -> Result<Option<Reply>, Status> {
        match handed {
            Handed::Open { .. } => Ok(None),
            Handed::Part(part) => {
                let lease = &self.leased[&part.lease];
                let batch = leased_batch(&part.batch, lease.cell, &lease.replicates)?;
                let parts = self.parts.entry(part.lease).or_default();
                assert_eq!(part.sequence, parts.len() as u64);
                parts.push(batch);
                Ok(Some(Reply::Accepted { lease: part.lease, sequence: part.sequence }))
            }
            Handed::Finish(_) if self.breaks > 0 => {
                self.breaks -= 1;
                self.forget();
                Err(Status::unavailable("the test breaks the stream"))
            }
            Handed::Finish(finish) => {
                let Some(lease) = self.leased.remove(&finish.lease) else {
                    let (lease, reason) = (finish.lease, "expired".to_owned());
                    return Ok(Some(Reply::Rejected { lease, reason }));
                };
                let parts = self.parts.remove(&finish.lease).unwrap_or_default();
                let reply = Reply::Committed { lease: finish.lease };
                let twice = self.committed.insert(lease.replicates.start, (finish, parts));
                assert!(twice.is_none());
                Ok(Some(reply))
            }
            Handed::Abandon { lease, .. } => {
                self.abandoned.push(lease);
                self.pending.extend(self.leased.remove(&lease));
                Ok(None)
            }
        }
    }
}

#[derive(Clone)]
struct Fake(Arc<Mutex<State>>);

type Replies<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Workers for Fake {
    type FetchFileStream = Replies<v1::FileChunk>;
    type StreamStream = Replies<v1::RecordReply>;

    async fn register(
        &self,
        request: Request<v1::RegisterRequest>,
    ) -> Result<Response<v1::RegisterReply>, Status> {
        let mut state = self.0.lock().unwrap();
        state.registrations += 1;
        // Leases that an earlier connection was given too late to hear of them.
        state.forget();
        if state.registrations > state.leads_for {
            return Err(Status::unavailable("standby"));
        }
        let given = request.metadata().get("authorization").map(|v| v.to_str().unwrap().to_owned());
        if given.as_deref() != state.token {
            return Err(Status::unauthenticated("wrong token"));
        }
        let registration = Registration::try_from(request.into_inner())?;
        if registration.numerics != golden::DIGEST {
            return Err(Status::failed_precondition("other numerics"));
        }
        let registered = Registered {
            worker_id: state.registrations,
            heartbeat: Duration::from_secs(1),
            lease: Duration::from_secs(5),
            max_message_bytes: 1 << 22,
            max_batch_bytes: 1 << 14,
        };
        Ok(Response::new(registered.into()))
    }

    async fn lease(
        &self,
        request: Request<v1::LeaseRequest>,
    ) -> Result<Response<v1::LeaseReply>, Status> {
        let wanted = Wanted::try_from(request.into_inner())?.wanted as usize;
        let mut state = self.0.lock().unwrap();
        let count = wanted.min(state.pending.len());
        let mut leases = Vec::new();
        for lease in state.pending.drain(..count).collect::<Vec<_>>() {
            let lease = Lease { epoch: state.next_epoch, ..lease };
            state.next_epoch += 1;
            state.leased.insert(lease.epoch, lease.clone());
            leases.push(lease);
        }
        let done = state.leased.is_empty() && leases.is_empty();
        let draining = done && state.leave_when_done;
        Ok(Response::new(Leases { leases, wait: Duration::from_millis(5), draining }.into()))
    }

    async fn heartbeat(
        &self,
        request: Request<v1::HeartbeatRequest>,
    ) -> Result<Response<v1::HeartbeatReply>, Status> {
        let beat = Heartbeat::try_from(request.into_inner())?;
        let mut state = self.0.lock().unwrap();
        let named = |lease: &u64| beat.leases.iter().any(|progress| progress.lease == *lease);
        let (revoked, kept) = state.revoke.drain(..).partition(named);
        state.revoke = kept;
        for lease in &revoked {
            state.leased.remove(lease);
        }
        let revocation = |lease| Revocation { lease, reason: "the test wants it back".into() };
        let revoked = Vec::<u64>::into_iter(revoked).map(revocation).collect();
        Ok(Response::new(proto::convert::Beat { revoked, draining: false }.into()))
    }

    async fn fetch_study(
        &self,
        request: Request<v1::FetchStudyRequest>,
    ) -> Result<Response<v1::StudyDefinition>, Status> {
        let query = StudyQuery::try_from(request.into_inner())?;
        let mut state = self.0.lock().unwrap();
        assert_eq!(query.study, state.known.plan.id);
        let mut definition = state.definition();
        if state.stale > 0 {
            state.stale -= 1;
            definition.revision = [0; 32];
        }
        Ok(Response::new(definition.into()))
    }

    async fn fetch_file(
        &self,
        request: Request<v1::FetchFileRequest>,
    ) -> Result<Response<Self::FetchFileStream>, Status> {
        let query = FileQuery::try_from(request.into_inner())?;
        assert_eq!(query.digest, *blake3::hash(POINTS).as_bytes());
        self.0.lock().unwrap().files_sent += 1;
        let chunk = |data: &'static [u8]| Ok(v1::FileChunk { data: data.into() });
        let (head, tail) = POINTS.split_at(7);
        Ok(Response::new(Box::pin(tokio_stream::iter([chunk(head), chunk(tail)]))))
    }

    async fn stream(
        &self,
        request: Request<Streaming<v1::RecordStream>>,
    ) -> Result<Response<Self::StreamStream>, Status> {
        let (fake, mut incoming) = (self.clone(), request.into_inner());
        let (replies, outgoing) = mpsc::channel(4);
        tokio::spawn(async move {
            while let Ok(Some(message)) = incoming.message().await {
                let handed = Handed::try_from(message).unwrap();
                let reply = fake.0.lock().unwrap().take(handed);
                let broken = reply.is_err();
                let Some(reply) = reply.transpose() else { continue };
                if replies.send(reply.map(Into::into)).await.is_err() || broken {
                    return;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(outgoing))))
    }

    async fn drain(
        &self,
        _: Request<v1::DrainRequest>,
    ) -> Result<Response<v1::DrainReply>, Status> {
        let mut state = self.0.lock().unwrap();
        state.drained = true;
        state.forget();
        Ok(Response::new(v1::DrainReply {}))
    }
}

/// Serves a state on a port of its own.
async fn serve(state: State) -> (Fake, Config, tempfile::TempDir) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let fake = Fake(Arc::new(Mutex::new(state)));
    let server = tonic::transport::Server::builder()
        .add_service(WorkersServer::new(fake.clone()))
        .serve_with_incoming(TcpListenerStream::new(listener));
    tokio::spawn(server);
    let cache = tempfile::tempdir().unwrap();
    let config = Config {
        coordinator: format!("http://{address}"),
        slots: 2,
        cache: Some(cache.path().to_owned()),
        ..Config::default()
    };
    (fake, config, cache)
}

/// All records in order, as one digest.
fn digest(state: &State, replicates: Range<u64>) -> [u8; 32] {
    let (mut digest, mut next) = (Digest::new(), replicates.start);
    for (&first, (finish, parts)) in &state.committed {
        assert_eq!(first, next, "no trial is missing");
        next += finish.trials;
        parts.iter().for_each(|batch| batch.feed(&mut digest));
    }
    assert_eq!(next, replicates.end);
    digest.finish()
}

#[tokio::test]
async fn everything_leased_is_handed_in() {
    let (fake, config, _cache) = serve(State::new(400, 23)).await;
    let summary = run(config.clone(), CancellationToken::new()).await.unwrap();
    let expected = Summary { shards: 18, trials: 400, records: 800, ..Summary::default() };
    assert_eq!(summary, expected);
    let whole = {
        let state = fake.0.lock().unwrap();
        assert!(state.drained && state.registrations == 1 && state.files_sent == 1);
        digest(&state, 0..400)
    };
    // Another number of slots, other shards, on the runtime's own thread, the file from the cache.
    let (other, place, _) = serve(State::new(400, 57)).await;
    let config =
        Config { slots: 1, compute: Compute::Inline, coordinator: place.coordinator, ..config };
    run(config, CancellationToken::new()).await.unwrap();
    let state = other.0.lock().unwrap();
    assert_eq!((digest(&state, 0..400), state.files_sent), (whole, 0));
}

#[tokio::test]
async fn a_lost_connection_loses_nothing() {
    let (fake, config, _cache) = serve(State { breaks: 3, ..State::new(200, 20) }).await;
    let summary = run(config, CancellationToken::new()).await.unwrap();
    assert_eq!((summary.trials, summary.reconnects), (200, 3));
    let state = fake.0.lock().unwrap();
    assert_eq!(state.registrations, 4);
    digest(&state, 0..200);
}

#[tokio::test]
async fn a_worker_goes_on_to_the_coordinator_that_leads() {
    // The first leads until its stream breaks, the second never, the third takes over.
    let (first, one, _cache) =
        serve(State { breaks: 1, leads_for: 1, ..State::new(200, 20) }).await;
    let (second, two, _) = serve(State { leads_for: 0, ..State::new(200, 20) }).await;
    let (third, three, _) = serve(State::new(200, 20)).await;
    let coordinator = [&one, &two, &three].map(|config| config.coordinator.as_str()).join(", ");
    let summary = run(Config { coordinator, ..one }, CancellationToken::new()).await.unwrap();
    assert_eq!(summary.reconnects, 1);
    digest(&third.0.lock().unwrap(), 0..200);
    assert_eq!(first.0.lock().unwrap().registrations, 1);
    let second = second.0.lock().unwrap();
    assert!(second.registrations == 1 && second.committed.is_empty());
}

#[tokio::test]
async fn a_lease_that_cannot_be_computed_is_given_back() {
    let (fake, config, _cache) = serve(State { stale: 3, ..State::new(100, 20) }).await;
    let summary = run(config, CancellationToken::new()).await.unwrap();
    assert_eq!((summary.trials, summary.failed, summary.reconnects), (100, 3, 0));
    let state = fake.0.lock().unwrap();
    assert_eq!(state.abandoned.len(), 3);
    digest(&state, 0..100);
}

#[tokio::test]
async fn a_coordinator_that_comes_late_is_waited_for_and_one_that_never_comes_is_not() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let coordinator = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let patience = Some(Duration::from_millis(250));
    let config = Config { coordinator: coordinator.clone(), patience, ..Config::default() };
    let error = run(config, CancellationToken::new()).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    let shutdown = CancellationToken::new();
    let waiting = tokio::spawn(run(Config { coordinator, ..Config::default() }, shutdown.clone()));
    sleep(Duration::from_millis(250)).await;
    assert!(!waiting.is_finished());
    shutdown.cancel();
    assert_eq!(waiting.await.unwrap().unwrap(), Summary::default());
}

#[tokio::test]
async fn a_wrong_token_is_an_error_at_once() {
    let right = State { token: Some("Bearer right"), ..State::new(20, 20) };
    let (fake, config, _cache) = serve(right).await;
    let wrong = Config { token: Some(Secret::new("wrong")), ..config.clone() };
    let error = run(wrong, CancellationToken::new()).await.unwrap_err().to_string();
    assert!(error.contains("wrong token") && error.contains("give it the token"), "{error}");
    assert_eq!(fake.0.lock().unwrap().registrations, 1);
    let right = Config { token: Some(Secret::new("right")), ..config };
    assert_eq!(run(right, CancellationToken::new()).await.unwrap().trials, 20);
}

#[tokio::test]
async fn a_panic_in_the_proof_is_said_to_be_one() {
    for compute in [Compute::Inline, Compute::Threads] {
        let error = proof(compute, || panic!("no such lane")).await.unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains("panicked: no such lane") && matches!(error, Error::Proof(_)),
            "{said}"
        );
        assert_eq!(proof(compute, || "digest".to_owned()).await.unwrap(), "digest");
    }
}

/// Leases that take far longer than a test, and send nothing before they are done.
fn long(count: u64) -> State {
    let mut state = State::of(&text().replace("replicates = 400", "replicates = 1000000000000"));
    let length = 100_000_000_000;
    let lease = |i| lease(&state.known, 0, i * length..(i + 1) * length);
    state.pending = (0..count).map(|i| Lease { check: true, ..lease(i) }).collect();
    state
}

#[tokio::test]
async fn a_shutdown_gives_back_what_waits_and_says_farewell() {
    let (fake, config, _cache) = serve(long(10)).await;
    let shutdown = CancellationToken::new();
    let config = Config { grace: Duration::from_millis(300), ..config };
    let worker = tokio::spawn(run(config, shutdown.clone()));
    while fake.0.lock().unwrap().leased.len() < 4 {
        sleep(Duration::from_millis(5)).await;
    }
    // Time for two of them to begin.
    sleep(Duration::from_millis(500)).await;
    shutdown.cancel();
    let begin = Instant::now();
    assert_eq!(worker.await.unwrap().unwrap(), Summary::default());
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
    let state = fake.0.lock().unwrap();
    assert!(state.drained);
    assert_eq!(state.abandoned.len(), 2, "two ran and two waited");
}

#[tokio::test]
async fn a_lease_that_is_taken_back_is_dropped() {
    let mut state = long(2);
    let small = (0..3).map(|i| lease(&state.known, 0, 500 + 10 * i..510 + 10 * i));
    state.pending.extend(small.collect::<Vec<_>>());
    state.revoke = vec![1, 2];
    let (fake, config, _cache) = serve(state).await;
    let summary = run(config, CancellationToken::new()).await.unwrap();
    assert_eq!((summary.shards, summary.trials, summary.rejected), (3, 30, 0));
    digest(&fake.0.lock().unwrap(), 500..530);
}
