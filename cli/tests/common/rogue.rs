//! A worker that does what a real one never would.

#![allow(dead_code, reason = "every test file uses a part of it")]

use std::collections::BTreeMap;
use std::time::Duration;

use proto::v1::workers_client::WorkersClient;
use proto::v1::{self, record_reply, record_stream};
use study::file::Study;
use study::prior::Files;
use study::tally::Counter;
use study::{Batch, CellId, Digest, Plan, Record, rows};
use theory::information::bracket;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};
use worker::prior::{MemoryLimit, Prior};
use worker::trial::Trials;
use worker::{Cpu, golden};

/// What became of a lease.
#[derive(Debug)]
pub(crate) enum Verdict {
    Committed,
    Rejected(String),
}

/// A registered worker.
pub(crate) struct Rogue {
    pub(crate) client: WorkersClient<Channel>,
    pub(crate) id: u64,
    plans: BTreeMap<Vec<u8>, Plan>,
}

/// A registration that a coordinator accepts.
pub(crate) fn registration(name: &str, slots: u32) -> v1::RegisterRequest {
    v1::RegisterRequest {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        numerics_digest: golden::DIGEST.to_owned(),
        name: name.to_owned(),
        slots,
        previous_worker_id: None,
    }
}

pub(crate) async fn client(url: &str) -> WorkersClient<Channel> {
    let endpoint = Endpoint::from_shared(url.to_owned()).unwrap();
    WorkersClient::new(endpoint.connect().await.unwrap())
}

impl Rogue {
    pub(crate) async fn join(url: &str, name: &str, slots: u32) -> Self {
        let mut client = client(url).await;
        let reply = client.register(registration(name, slots)).await.unwrap().into_inner();
        Self { client, id: reply.worker_id, plans: BTreeMap::new() }
    }

    /// At least one lease.
    pub(crate) async fn lease(&mut self, wanted: u32) -> Vec<v1::Lease> {
        let asked = async {
            loop {
                let leases = self.try_lease(wanted).await;
                if !leases.is_empty() {
                    return leases;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), asked).await.expect("there is work")
    }

    pub(crate) async fn try_lease(&mut self, wanted: u32) -> Vec<v1::Lease> {
        let request = v1::LeaseRequest { worker_id: self.id, wanted };
        self.client.lease(request).await.unwrap().into_inner().leases
    }

    pub(crate) async fn heartbeat(&mut self, leases: &[u64]) {
        let progress = |&lease: &u64| v1::LeaseProgress { lease, done_trials: 0 };
        let leases = leases.iter().map(progress).collect();
        let request = v1::HeartbeatRequest { worker_id: self.id, leases };
        self.client.heartbeat(request).await.unwrap();
    }

    pub(crate) async fn drain(&mut self) {
        self.client.drain(v1::DrainRequest { worker_id: self.id }).await.unwrap();
    }

    /// The records that an honest worker would hand in, as messages, after `change`.
    pub(crate) async fn computed(
        &mut self,
        lease: &v1::Lease,
        change: impl Fn(&mut Record),
    ) -> (v1::Part, v1::Finish) {
        let plan = self.plan(lease).await;
        let cell = plan.cell(CellId(lease.cell)).unwrap();
        let limit = MemoryLimit { bytes: 1 << 30, state_per_point: 192 };
        let prior = Prior::build(&plan.priors[cell.prior].spec, &Files::default(), limit).unwrap();
        let seed = plan.study.seed;
        let trials =
            Trials::new(&prior, cell.cell, seed, &cell.checkpoints, Cpu::detect()).unwrap();
        let horizon = *cell.checkpoints.last().unwrap() as usize;
        let bracket = bracket(&prior.factor, prior.white, prior.noise_variance, horizon);
        let rho = |t: u32| bracket.as_ref()?.at(t as usize).map(|bounds| (bounds.lo, bounds.hi));
        let counter = Counter::new(&rows::rows(&plan.study, &cell.cell), &cell.cell, prior.c, rho);
        let (mut batch, mut digest) = (Batch::new(cell.id), Digest::new());
        let mut tally = counter.start();
        trials.run(lease.first..lease.end, &mut |mut record| {
            change(&mut record);
            record.feed(&mut digest);
            counter.observe(&record, &mut tally);
            batch.push(&record);
        });
        let part = v1::Part { lease: lease.epoch, sequence: 0, batch: batch.encode().into() };
        let finish = v1::Finish {
            lease: lease.epoch,
            digest: digest.finish().to_vec().into(),
            tally: tally.encode().into(),
            records: batch.len() as u64,
            trials: lease.end - lease.first,
            seconds: 0.01,
            ..v1::Finish::default()
        };
        (part, finish)
    }

    async fn plan(&mut self, lease: &v1::Lease) -> &Plan {
        let key = lease.revision.to_vec();
        if !self.plans.contains_key(&key) {
            let request = v1::FetchStudyRequest { worker_id: self.id, study: lease.study.clone() };
            let found = self.client.fetch_study(request).await.unwrap().into_inner();
            let study = Study::parse(&found.file_name, &found.text).unwrap();
            self.plans.insert(key.clone(), Plan::new(study, &Files::default()).unwrap());
        }
        &self.plans[&key]
    }

    /// Hands messages in on a stream of their own, and waits for what becomes of the lease.
    pub(crate) async fn hand_in(
        &mut self,
        lease: u64,
        messages: Vec<record_stream::Message>,
    ) -> Result<Verdict, Status> {
        let (out, stream) = mpsc::channel(messages.len() + 1);
        let open = record_stream::Message::Open(v1::Open { worker_id: self.id });
        for message in [open].into_iter().chain(messages) {
            out.send(v1::RecordStream { message: Some(message) }).await.unwrap();
        }
        let mut replies = self.client.stream(ReceiverStream::new(stream)).await?.into_inner();
        let answered = async {
            while let Some(reply) = replies.message().await? {
                match reply.message.unwrap() {
                    record_reply::Message::Accepted(_) => {}
                    record_reply::Message::Committed(end) if end.lease == lease => {
                        return Ok(Verdict::Committed);
                    }
                    record_reply::Message::Rejected(end) if end.lease == lease => {
                        return Ok(Verdict::Rejected(end.reason));
                    }
                    other => panic!("{other:?} is about another lease than {lease}"),
                }
            }
            Err(Status::cancelled("the stream ended without an answer"))
        };
        tokio::time::timeout(Duration::from_secs(30), answered).await.expect("an answer comes")
    }

    /// Computes a lease as an honest worker does.
    pub(crate) async fn work(&mut self, lease: &v1::Lease) {
        let (part, finish) = self.computed(lease, |_| ()).await;
        let mut messages = Vec::new();
        if !lease.check {
            messages.push(record_stream::Message::Part(part));
        }
        let records = if lease.check { 0 } else { finish.records };
        messages.push(record_stream::Message::Finish(v1::Finish { records, ..finish }));
        let verdict = self.hand_in(lease.epoch, messages).await.unwrap();
        assert!(matches!(verdict, Verdict::Committed), "{verdict:?}");
    }
}
