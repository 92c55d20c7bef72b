//! The service that workers call.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use proto::convert::{self, Finish, Handed, Heartbeat, Part, Registered, Registration};
use proto::limits::{MAX_BATCH_BYTES, MAX_LEASES, MAX_MESSAGE_BYTES};
use proto::v1;
use proto::v1::workers_server::Workers;
use study::tally::Tally;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use super::call::{Call, LeaseAnswer, RecordStream};
use super::engine::NOT_HELD;
use super::fetch::Downloads;
use super::inflow::Claimed;
use super::leases::Leases;
use super::metrics::Metrics;
use crate::core::{LeaseEpoch, WorkerId};
use crate::store::Store;

/// Replies to what came on a stream that may wait for its worker; beyond that the stream is not read on.
const REPLIES_AHEAD: usize = 64;

/// Replies about shards that may wait for their worker: what becomes of every lease that it may hold.
const ENDS_AHEAD: usize = 2 * MAX_LEASES;

/// How soon a worker asks again where work may appear at any moment, and where there is none.
const SOON: Duration = Duration::from_millis(20);
const LATER: Duration = Duration::from_millis(250);

type Outgoing<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[derive(Clone)]
pub(super) struct WorkerService {
    pub(super) calls: mpsc::Sender<Call>,
    pub(super) leases: Leases,
    pub(super) store: Arc<Store>,
    pub(super) downloads: Downloads,
    pub(super) metrics: Arc<Metrics>,
    pub(super) numerics: Arc<str>,
    pub(super) version: Arc<str>,
    pub(super) heartbeat: Duration,
    pub(super) lease: Duration,
}

/// Puts a call to the engine and waits for its answer.
pub(super) async fn ask<T>(
    calls: &mpsc::Sender<Call>,
    call: impl FnOnce(oneshot::Sender<T>) -> Call,
) -> Result<T, Status> {
    let (reply, answer) = oneshot::channel();
    let stopping = || Status::unavailable("the coordinator is shutting down");
    calls.send(call(reply)).await.map_err(|_| stopping())?;
    answer.await.map_err(|_| stopping())
}

fn unknown() -> Status {
    Status::not_found("this worker is not registered; it has to register again")
}

impl WorkerService {
    /// Only the same program may join: its numbers must be those of every other worker.
    fn same_program(&self, registration: &Registration) -> Result<(), Status> {
        if *registration.version != *self.version {
            return Err(Status::failed_precondition(format!(
                "the worker is regretta {}, and the coordinator {}: use the same version",
                registration.version, self.version
            )));
        }
        if *registration.numerics != *self.numerics {
            return Err(Status::failed_precondition(format!(
                "the worker computes other numbers: its numerics digest is {}, and the coordinator's {}; \
                 run `regretta doctor` on both machines and use the same binary",
                registration.numerics, self.numerics
            )));
        }
        Ok(())
    }

    /// Only who takes part gets studies and their files.
    async fn known(&self, worker: u64) -> Result<(), Status> {
        let worker = WorkerId(worker);
        let known = ask(&self.calls, |reply| Call::Knows { worker, reply }).await?;
        if known { Ok(()) } else { Err(unknown()) }
    }

    async fn definition(&self, study: study::StudyId) -> Result<v1::StudyDefinition, Status> {
        let definition = ask(&self.calls, |reply| Call::Definition { study, reply }).await?;
        definition.ok_or_else(|| Status::failed_precondition(format!("there is no study {study}")))
    }
}

#[tonic::async_trait]
impl Workers for WorkerService {
    async fn register(
        &self,
        request: Request<v1::RegisterRequest>,
    ) -> Result<Response<v1::RegisterReply>, Status> {
        let registration = Registration::try_from(request.into_inner())?;
        self.same_program(&registration)?;
        let Registration { name, slots, previous, .. } = registration;
        let previous = previous.map(WorkerId);
        let call = |reply| Call::Register { name, slots, previous, reply };
        let worker = ask(&self.calls, call).await?;
        let registered = Registered {
            worker_id: worker.0,
            heartbeat: self.heartbeat,
            lease: self.lease,
            max_message_bytes: MAX_MESSAGE_BYTES,
            max_batch_bytes: MAX_BATCH_BYTES,
        };
        Ok(Response::new(registered.into()))
    }

    async fn lease(
        &self,
        request: Request<v1::LeaseRequest>,
    ) -> Result<Response<v1::LeaseReply>, Status> {
        let request = convert::Request::try_from(request.into_inner())?;
        let worker = WorkerId(request.worker_id);
        let call = |reply| Call::Lease { worker, wanted: request.wanted, reply };
        let LeaseAnswer::Granted { grants, idle } = ask(&self.calls, call).await? else {
            return Err(unknown());
        };
        let wait = match (grants.is_empty(), idle) {
            (false, _) => Duration::ZERO,
            (true, false) => SOON,
            (true, true) => LATER,
        };
        let lease = |(grant, revision): (crate::core::Grant, [u8; 32])| convert::Lease {
            epoch: grant.epoch.0,
            study: grant.study,
            cell: grant.cell,
            replicates: grant.range,
            check: grant.check,
            revision,
        };
        let leases = grants.into_iter().map(lease).collect();
        Ok(Response::new(convert::Leases { leases, wait, draining: false }.into()))
    }

    async fn heartbeat(
        &self,
        request: Request<v1::HeartbeatRequest>,
    ) -> Result<Response<v1::HeartbeatReply>, Status> {
        let heartbeat = Heartbeat::try_from(request.into_inner())?;
        let worker = WorkerId(heartbeat.worker_id);
        let leases = heartbeat.leases.iter().map(|progress| LeaseEpoch(progress.lease)).collect();
        let call = |reply| Call::Heartbeat { worker, leases, reply };
        let revoked = ask(&self.calls, call).await?.ok_or_else(unknown)?;
        let revoked = revoked
            .into_iter()
            .map(|(epoch, reason)| convert::Revocation { lease: epoch.0, reason })
            .collect();
        Ok(Response::new(convert::Beat { revoked, draining: false }.into()))
    }

    async fn fetch_study(
        &self,
        request: Request<v1::FetchStudyRequest>,
    ) -> Result<Response<v1::StudyDefinition>, Status> {
        let query = convert::StudyQuery::try_from(request.into_inner())?;
        self.known(query.worker_id).await?;
        Ok(Response::new(self.definition(query.study).await?))
    }

    type FetchFileStream = Outgoing<v1::FileChunk>;

    async fn fetch_file(
        &self,
        request: Request<v1::FetchFileRequest>,
    ) -> Result<Response<Self::FetchFileStream>, Status> {
        let query = convert::FileQuery::try_from(request.into_inner())?;
        self.known(query.worker_id).await?;
        let turn = self.downloads.turn().await;
        let place = self.store.file_place(query.digest).await;
        let place = place.map_err(|error| Status::failed_precondition(error.to_string()))?;
        Ok(Response::new(Box::pin(super::fetch::file(&place, turn).await?)))
    }

    type StreamStream = Outgoing<v1::RecordReply>;

    async fn stream(
        &self,
        request: Request<Streaming<v1::RecordStream>>,
    ) -> Result<Response<Self::StreamStream>, Status> {
        let (replies, received) = mpsc::channel(REPLIES_AHEAD);
        let (ends, ended) = mpsc::channel(ENDS_AHEAD);
        let reception = Reception { service: self.clone(), replies };
        tokio::spawn(reception.run(request.into_inner(), ends));
        let replies =
            stream::select(ReceiverStream::new(received), ReceiverStream::new(ended).map(Ok));
        Ok(Response::new(Box::pin(replies)))
    }

    async fn drain(
        &self,
        request: Request<v1::DrainRequest>,
    ) -> Result<Response<v1::DrainReply>, Status> {
        let worker = WorkerId(request.into_inner().worker_id);
        // A coordinator that stops has nothing to drain from.
        _ = self.calls.send(Call::Drain { worker }).await;
        Ok(Response::new(v1::DrainReply {}))
    }
}

/// Receives the records of one worker. What has come of a lease is kept with the lease.
struct Reception {
    service: WorkerService,
    replies: mpsc::Sender<Result<v1::RecordReply, Status>>,
}

impl Reception {
    async fn run(
        self,
        mut messages: Streaming<v1::RecordStream>,
        ends: mpsc::Sender<v1::RecordReply>,
    ) {
        if let Err(status) = self.receive(&mut messages, ends).await {
            tracing::debug!(%status, "a record stream ended");
            _ = self.replies.send(Err(status)).await;
        }
    }

    async fn receive(
        &self,
        messages: &mut Streaming<v1::RecordStream>,
        ends: mpsc::Sender<v1::RecordReply>,
    ) -> Result<(), Status> {
        let Some(first) = messages.message().await? else { return Ok(()) };
        let Handed::Open { worker_id } = Handed::try_from(first)? else {
            return Err(Status::invalid_argument("a record stream begins with its worker's id"));
        };
        let (worker, end) = (WorkerId(worker_id), CancellationToken::new());
        let stream = RecordStream { replies: ends, end: end.clone() };
        if !ask(&self.service.calls, |reply| Call::Open { worker, stream, reply }).await? {
            return Err(unknown());
        }
        // Between messages only: what has been taken in is dealt with.
        while let Some(message) = end.run_until_cancelled(messages.message()).await.transpose()? {
            let Some(message) = message else { return Ok(()) };
            match Handed::try_from(message)? {
                Handed::Open { .. } => {
                    return Err(Status::invalid_argument("a record stream is opened once"));
                }
                Handed::Part(part) => self.part(worker, part).await?,
                Handed::Finish(finish) => self.finish(worker, finish).await?,
                Handed::Abandon { lease, reason } => {
                    let epoch = LeaseEpoch(lease);
                    self.call(Call::Abandon { worker, epoch, reason }).await?;
                }
            }
        }
        Err(Status::aborted(
            "this record stream was ended: its worker sent no heartbeat in time, opened another stream or registered anew",
        ))
    }

    async fn call(&self, call: Call) -> Result<(), Status> {
        let stopping = |_| Status::unavailable("the coordinator is shutting down");
        self.service.calls.send(call).await.map_err(stopping)
    }

    async fn part(&self, worker: WorkerId, part: Part) -> Result<(), Status> {
        let (epoch, bytes) = (LeaseEpoch(part.lease), part.batch.len() as u64);
        let Some(lease) = self.service.leases.of(worker, epoch) else {
            return self.too_late(worker, epoch).await;
        };
        let mut inflow = lease.inflow.lock().await;
        let Some(open) = inflow.as_mut() else {
            drop(inflow);
            return self.refuse(worker, epoch, "a part came after the end of its lease").await;
        };
        // Waits while the disk is behind; the worker is then not read from, and waits too.
        if let Err(refused) = open.part(part.sequence, part.batch).await {
            *inflow = None;
            drop(inflow);
            return self.refuse(worker, epoch, &refused.to_string()).await;
        }
        drop(inflow);
        self.service.metrics.bytes.add(bytes);
        self.reply(convert::Reply::Accepted { lease: part.lease, sequence: part.sequence }).await
    }

    async fn finish(&self, worker: WorkerId, finish: Finish) -> Result<(), Status> {
        let epoch = LeaseEpoch(finish.lease);
        let Some(lease) = self.service.leases.of(worker, epoch) else {
            return self.too_late(worker, epoch).await;
        };
        // Said again, it changes nothing: the answer comes when the shard is durable.
        let Some(inflow) = lease.inflow.lock().await.take() else { return Ok(()) };
        let Finish { digest, sent_digest, records, trials, seconds, .. } = finish;
        let checked = Tally::decode(&finish.tally).map_err(|error| error.to_string());
        let checked = checked.and_then(|tally| {
            let claimed = Claimed { digest, sent_digest, records, trials };
            let received = inflow.finish(&claimed, &tally).map_err(|error| error.to_string())?;
            Ok((tally, received))
        });
        match checked {
            Err(reason) => self.refuse(worker, epoch, &reason).await,
            Ok((tally, received)) => {
                let finish =
                    Call::Finish { worker, epoch, digest, tally, trials, seconds, received };
                self.call(finish).await
            }
        }
    }

    /// What came is not what was leased: the lease ends, unless its shard is being written, and the worker hears why.
    async fn refuse(
        &self,
        worker: WorkerId,
        epoch: LeaseEpoch,
        reason: &str,
    ) -> Result<(), Status> {
        tracing::warn!(%worker, lease = %epoch, reason, "records were refused");
        self.reject(epoch, reason).await?;
        self.call(Call::Abandon { worker, epoch, reason: reason.to_owned() }).await
    }

    /// What came is of a lease that has ended, or that another holds.
    async fn too_late(&self, worker: WorkerId, epoch: LeaseEpoch) -> Result<(), Status> {
        tracing::debug!(%worker, lease = %epoch, "records came too late");
        self.reject(epoch, NOT_HELD).await
    }

    async fn reject(&self, epoch: LeaseEpoch, reason: &str) -> Result<(), Status> {
        let reason = convert::reason(reason);
        self.reply(convert::Reply::Rejected { lease: epoch.0, reason }).await
    }

    /// Waits while the worker does not read: then it is not read from either.
    async fn reply(&self, reply: convert::Reply) -> Result<(), Status> {
        let gone = |_| Status::cancelled("the worker is gone");
        self.replies.send(Ok(reply.into())).await.map_err(gone)
    }
}
