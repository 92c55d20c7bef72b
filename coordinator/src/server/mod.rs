//! The coordinator as a process part: scheduling core and store behind gRPC.

#[cfg(test)]
mod attacks;
mod auth;
mod call;
mod catalog;
mod connections;
mod engine;
mod failed;
#[cfg(test)]
mod failing;
mod fetch;
#[cfg(test)]
mod growing;
mod inflow;
mod intake;
mod leases;
mod listen;
mod memory;
mod metrics;
mod outcome;
mod results;
mod spool;
mod standby;
mod status;
mod statuses;
mod studies;
mod submission;
#[cfg(test)]
mod takeover;
mod workers;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use proto::limits::MAX_MESSAGE_BYTES;
use proto::v1;
use proto::v1::studies_server::StudiesServer;
use proto::v1::workers_server::WorkersServer;
use study::StudyId;
use study::plan::Plan;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::server::{Connected, Router};
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};
use tonic_health::pb::health_server::{Health, HealthServer};

pub use auth::{Exposed, Token, TokenError};
pub use catalog::{Contents, Definition, PlanError, SubmitError, cell_work};
pub use fetch::Datasets;
pub use memory::{DEFAULT_STUDY_MEMORY, study_memory};
pub use metrics::Metrics;
pub use outcome::Outcome;
pub use results::{CellResults, ReadError, Records, Results, Unsound, decode};

use auth::Guard;
use call::Call;
use connections::Connections;
use engine::Engine;
use fetch::Downloads;
use intake::Intake;
use leases::Leases;
use listen::Listener;
use spool::Spool;
use standby::Standby;
use statuses::Statuses;
use studies::StudyService;
use workers::{WorkerService, ask};

use crate::core::{Core, LeaseEpoch, Settings};
use crate::store::{self, DamagedShard, Medium, Options, Recovered, Storage, Store};

/// Calls that may wait for the engine; beyond that callers wait.
const CALLS: usize = 1024;

/// HTTP/2 streams that one connection may have open.
const STREAMS: u32 = 256;

/// A health check names a service, and nothing else.
const MAX_HEALTH_BYTES: usize = 1024;

/// A connection that does not answer for this long is closed.
const KEEPALIVE: Duration = Duration::from_secs(20);

/// How long a coordinator that stops waits for what it has aborted.
const LETTING_GO: Duration = Duration::from_secs(5);

/// How a coordinator is run.
pub struct Config {
    /// Where the ledger and the segments are.
    pub dir: PathBuf,
    /// What of them is elsewhere.
    pub storage: Storage,
    /// Where workers and clients connect.
    pub listen: SocketAddr,
    /// Where Prometheus reads.
    pub metrics: Option<SocketAddr>,
    /// What callers have to show.
    pub token: Option<Token>,
    /// How connections are encrypted.
    pub tls: Option<Tls>,
    /// Whether to listen beyond loopback without protection.
    pub insecure: bool,
    /// Whether the folder is of one study.
    pub single: bool,
    /// Bytes of memory that all studies may take.
    pub study_memory: u64,
    /// Settings of the scheduling core.
    pub settings: Settings,
    /// How often workers report.
    pub heartbeat: Duration,
    /// The digest that proves this program's arithmetic.
    pub numerics: String,
    /// The program's version.
    pub version: String,
    /// Where sealed datasets are.
    pub datasets: Arc<dyn Datasets>,
}

/// Certificates in PEM.
#[derive(Clone)]
pub struct Tls {
    /// The server's certificate.
    pub certificate: Vec<u8>,
    /// Its key.
    pub key: Vec<u8>,
    /// The authority whose client certificates are accepted.
    pub clients: Option<Vec<u8>>,
}

/// A coordinator that cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The folder.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Its folder for what comes in.
    #[error("cannot write to {}: {source}", dir.display())]
    Spool {
        /// The coordinator's folder.
        dir: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The address.
    #[error(transparent)]
    Exposed(#[from] Exposed),
    /// The port.
    #[error("cannot listen on {address}: {source}; choose another port, or 0 for any")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The certificates.
    #[error("the certificates cannot be used: {0}; make new ones with `regretta cert`")]
    Tls(#[source] tonic::transport::Error),
}

/// What was found at the start that a user should know of.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Bytes of unacknowledged records that a crash had torn.
    pub torn_bytes: u64,
    /// Shards that did not survive, and are computed anew.
    pub damaged: Vec<DamagedShard>,
    /// Studies that could not be taken up, and why.
    pub failed: Vec<(StudyId, String)>,
    /// Whether the ledger was rebuilt from the segments.
    pub rebuilt: bool,
}

/// A running coordinator.
pub struct Coordinator {
    /// Where it listens.
    pub address: SocketAddr,
    /// Where its metrics are.
    pub metrics_address: Option<SocketAddr>,
    /// What was found at the start.
    pub found: Found,
    handle: Handle,
    lost: CancellationToken,
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
    engine: JoinHandle<()>,
}

/// The way to a running coordinator from within its process.
#[derive(Clone)]
pub struct Handle {
    calls: mpsc::Sender<Call>,
    intake: Arc<Intake>,
    statuses: Statuses,
    outcomes: watch::Receiver<BTreeMap<StudyId, Outcome>>,
    metrics: Arc<Metrics>,
    store: Arc<Store>,
}

impl Coordinator {
    /// Listens, opens the folder and takes its studies up again. Until the store is open, callers are
    /// told that this coordinator stands by; with a PostgreSQL ledger that lasts until it leads.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let authenticated =
            config.token.is_some() || config.tls.as_ref().is_some_and(|tls| tls.clients.is_some());
        let address = config.listen;
        auth::admit_address(address.ip(), config.tls.is_some(), authenticated, config.insecure)?;
        let refused = |source| StartError::Listen { address, source };
        let listener = Arc::new(listen::bind(address).map_err(refused)?);
        let address = listener.local_addr().map_err(refused)?;
        let connections = Connections::of_calls();
        let listener = || Listener::new(Arc::clone(&listener), connections.clone());
        let standby = Standby::serve(&config, listener()).await?;
        tracing::info!(%address, "listening");
        let opened = open(&config, None).await;
        standby.end().await;
        let incoming = listener().incoming();
        let mut running = Self::lead(config, opened?, incoming).await?;
        running.address = address;
        Ok(running)
    }

    /// The same on another disk and over connections from anywhere, for tests in a simulated world.
    pub async fn serve<IO>(
        config: Config,
        medium: Option<Medium>,
        incoming: impl Stream<Item = io::Result<IO>> + Send + 'static,
    ) -> Result<Self, StartError>
    where
        IO: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
    {
        let opened = open(&config, medium).await?;
        Self::lead(config, opened, incoming).await
    }

    async fn lead<IO>(
        config: Config,
        (store, recovered): (Store, Recovered),
        incoming: impl Stream<Item = io::Result<IO>> + Send + 'static,
    ) -> Result<Self, StartError>
    where
        IO: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
    {
        let lost = store.lost();
        let (store, metrics) = (Arc::new(store), Arc::new(Metrics::default()));
        let (calls, requests) = mpsc::channel(CALLS);
        let (outcomes, watched) = watch::channel(BTreeMap::new());
        let leases = Leases::default();
        let core = Core::new(config.settings.clone(), LeaseEpoch(recovered.first_epoch));
        let mut engine = Engine::new(
            core,
            Arc::clone(&store),
            config.single,
            leases.clone(),
            outcomes,
            Arc::clone(&metrics),
        );
        engine.take_up(&recovered, config.study_memory).await?;
        let failed = engine.failures();
        let statuses = Statuses::new(calls.clone());
        let dir = config.dir.clone();
        let spool =
            Spool::open(&dir).map_err(|source| StartError::Spool { dir: dir.clone(), source })?;
        let intake = Arc::new(Intake {
            calls: calls.clone(),
            store: Arc::clone(&store),
            spool,
            datasets: Arc::clone(&config.datasets),
            memory: config.study_memory,
            turn: Mutex::new(()),
        });
        let handle = Handle {
            calls: calls.clone(),
            intake: Arc::clone(&intake),
            statuses: statuses.clone(),
            outcomes: watched,
            metrics: Arc::clone(&metrics),
            store: Arc::clone(&store),
        };
        let stop = CancellationToken::new();
        let services = StudyService {
            calls: calls.clone(),
            intake,
            statuses,
            store: Arc::clone(&store),
            datasets: Arc::clone(&config.datasets),
            downloads: Downloads::default(),
        };
        let router = router(&config, calls, services, leases, store, Arc::clone(&metrics)).await?;
        let mut tasks = Vec::new();
        let mut metrics_address = None;
        if let Some(address) = config.metrics {
            let refused = |source| StartError::Listen { address, source };
            let listener = listen::bind(address).map_err(refused)?;
            metrics_address = Some(listener.local_addr().map_err(refused)?);
            let listener = Listener::new(Arc::new(listener), Connections::of_metrics());
            let served = metrics::serve(metrics, listener, stop.clone());
            tasks.push(tokio::spawn(async { log_failure("metrics", served.await) }));
        }
        let served = router.serve_with_incoming_shutdown(incoming, stop.clone().cancelled_owned());
        tasks.push(tokio::spawn(async { log_failure("the server", served.await) }));
        let engine = tokio::spawn(engine.run(requests));
        let ends: Vec<_> = tasks.iter().chain([&engine]).map(JoinHandle::abort_handle).collect();
        let (deposed, stopped) = (lost.clone(), stop.clone());
        tasks.push(tokio::spawn(async move {
            tokio::select! {
                biased;
                () = stopped.cancelled() => {}
                () = deposed.cancelled() => {
                    // Workers have to hear that they should go elsewhere.
                    tracing::error!("this coordinator does not lead any more, and stops serving");
                    ends.iter().for_each(tokio::task::AbortHandle::abort);
                }
            }
        }));
        let found = Found {
            torn_bytes: recovered.torn_bytes,
            damaged: recovered.damaged,
            failed,
            rebuilt: recovered.rebuilt,
        };
        let address = config.listen;
        Ok(Self { address, metrics_address, found, handle, lost, stop, tasks, engine })
    }

    /// The way in from this process.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Waits until another coordinator leads, or may. This one serves nobody then: stop it, and start
    /// again to stand by. Without a shared ledger that never happens.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// Grants nothing more, waits up to `grace` for what is held, then closes.
    pub async fn stop(self, grace: Duration) {
        let Self { handle, stop, tasks, engine, .. } = self;
        // Beyond the grace what is held is recomputed by whoever comes next.
        _ = tokio::time::timeout(grace, handle.quiesce()).await;
        stop.cancel();
        let store = Arc::clone(&handle.store);
        drop(handle);
        for task in tasks {
            let abort = task.abort_handle();
            if tokio::time::timeout(Duration::from_secs(2), task).await.is_err() {
                abort.abort();
            }
        }
        engine.abort();
        _ = engine.await;
        if let Err(error) = store.resign().await {
            tracing::warn!(%error, "the lead was not given up; it expires by itself");
        }
        // What was aborted lets go of the store when the runtime comes to it, and the last commit ends by itself.
        if tokio::time::timeout(LETTING_GO, store.let_go()).await.is_err() {
            tracing::warn!(
                "something still uses the store; its folder is free when the process ends"
            );
        }
    }
}

async fn open(config: &Config, medium: Option<Medium>) -> Result<(Store, Recovered), store::Error> {
    let options = Options { numerics: &config.numerics, version: &config.version };
    Store::open_on(&config.dir, &config.storage, options, medium).await
}

fn log_failure<E: std::fmt::Display>(what: &str, result: Result<(), E>) {
    if let Err(error) = result {
        tracing::error!(%error, "{what} stopped");
    }
}

/// All services behind one port.
async fn router(
    config: &Config,
    calls: mpsc::Sender<Call>,
    studies: StudyService,
    leases: Leases,
    store: Arc<Store>,
    metrics: Arc<Metrics>,
) -> Result<Router, StartError> {
    let certificates = config.tls.as_ref().is_some_and(|tls| tls.clients.is_some());
    let guard = Guard { token: config.token.clone(), certificates };
    let workers = WorkersServer::new(WorkerService {
        calls: calls.clone(),
        leases,
        store: Arc::clone(&store),
        downloads: studies.downloads.clone(),
        metrics,
        numerics: config.numerics.as_str().into(),
        version: config.version.as_str().into(),
        heartbeat: config.heartbeat,
        lease: config.settings.lease,
    })
    .max_decoding_message_size(MAX_MESSAGE_BYTES)
    .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let studies = StudiesServer::new(studies)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(4 * MAX_MESSAGE_BYTES);
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_serving::<WorkersServer<WorkerService>>().await;
    reporter.set_serving::<StudiesServer<StudyService>>().await;
    let descriptors = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(proto::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let compiled = "the descriptors were made by the compiler";
    let reflection = descriptors().build_v1().expect(compiled);
    // grpcio-reflection asks for nothing newer.
    let reflection_alpha = descriptors().build_v1alpha().expect(compiled);
    Ok(builder(config)?
        .add_service(unauthenticated(health))
        .add_service(InterceptedService::new(reflection, guard.clone()))
        .add_service(InterceptedService::new(reflection_alpha, guard.clone()))
        .add_service(InterceptedService::new(workers, guard.clone()))
        .add_service(InterceptedService::new(studies, guard)))
}

/// Health checks need no credentials, so that their requests are kept short.
fn unauthenticated<T: Health>(health: HealthServer<T>) -> HealthServer<T> {
    health.max_decoding_message_size(MAX_HEALTH_BYTES)
}

/// A server with its limits and its certificates.
fn builder(config: &Config) -> Result<Server, StartError> {
    let server = Server::builder()
        .max_concurrent_streams(STREAMS)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE));
    match &config.tls {
        Some(tls) => server.tls_config(tls_config(tls)).map_err(StartError::Tls),
        None => Ok(server),
    }
}

fn tls_config(tls: &Tls) -> ServerTlsConfig {
    let identity = Identity::from_pem(&tls.certificate, &tls.key);
    let config = ServerTlsConfig::new().identity(identity);
    match &tls.clients {
        // A token is as good, so that a certificate may be missing; a wrong one is refused.
        Some(authority) => {
            config.client_ca_root(Certificate::from_pem(authority)).client_auth_optional(true)
        }
        None => config,
    }
}

impl Handle {
    /// Takes in a study, or what it has grown to.
    pub async fn submit(&self, definition: Definition) -> Result<StudyId, SubmitError> {
        let upload = self.intake.spool.put(definition).await?;
        self.intake.submit(upload).await
    }

    /// A study as it was submitted.
    pub async fn definition(&self, study: StudyId) -> Option<Definition> {
        let found = ask(&self.calls, |reply| Call::Definition { study, reply }).await.ok()??;
        let mut files = Vec::new();
        for file in found.files {
            let digest = file.digest.as_ref().try_into().ok()?;
            files.push((file.path, self.store.file(digest).await.ok()?.to_vec()));
        }
        Some(Definition { file_name: found.file_name, text: found.text, files })
    }

    /// All studies, each in one line.
    pub async fn list(&self) -> Vec<v1::StudySummary> {
        self.statuses.list().await.map_or_else(|_| Vec::new(), |list| list.to_vec())
    }

    /// A study's progress.
    pub async fn status(&self, study: StudyId) -> Option<Arc<v1::StudyStatus>> {
        self.statuses.now(study).await.ok()
    }

    /// A study's progress half a second ago or later: what others have just looked at will do.
    pub async fn recent_status(&self, study: StudyId) -> Option<Arc<v1::StudyStatus>> {
        self.statuses.lately(study).await.ok()
    }

    /// Waits until nothing more happens to a study by itself.
    pub async fn outcome(&self, study: StudyId) -> Outcome {
        let mut outcomes = self.outcomes.clone();
        let ended =
            |all: &BTreeMap<StudyId, Outcome>| all.get(&study).is_some_and(Outcome::is_final);
        match outcomes.wait_for(ended).await {
            Ok(all) => all.get(&study).cloned().unwrap_or(Outcome::Running),
            Err(_) => Outcome::Failed("the coordinator stopped".to_owned()),
        }
    }

    /// All studies and what has become of them, now and at every change.
    pub fn outcomes(&self) -> watch::Receiver<BTreeMap<StudyId, Outcome>> {
        self.outcomes.clone()
    }

    /// The shards of a complete study; `None` where cells are still open.
    pub async fn results(&self, study: StudyId) -> Result<Option<Results>, store::Error> {
        let answer = ask(&self.calls, |reply| Call::Results { study, reply }).await;
        answer.unwrap_or(Err(store::Error::Closed))
    }

    /// Notes that the dataset of a plan is in place; its segments are deleted. Of a study that has grown
    /// since, nothing is noted: it is sealed again once it is complete.
    pub async fn sealed(&self, plan: &Plan, digest: [u8; 32]) -> Result<(), store::Error> {
        let (study, revision) = (plan.id, plan.revision());
        let call = |reply| Call::Sealed { study, revision, digest, reply };
        let answer = ask(&self.calls, call).await;
        answer.unwrap_or(Err(store::Error::Closed))
    }

    /// Has shards of a plan computed anew of which records are lost. The study is not complete until they are
    /// there. Nothing is done where it has grown, been sealed, cancelled or deleted meanwhile.
    pub async fn recompute(&self, plan: &Plan, lost: Vec<Unsound>) -> Result<(), SubmitError> {
        let (study, revision) = (plan.id, plan.revision());
        let answer =
            ask(&self.calls, |reply| Call::Recompute { study, revision, lost, reply }).await;
        answer.unwrap_or(Err(SubmitError::Stopped))
    }

    /// Reads the records of live shards.
    pub fn records(&self, results: &Results) -> Records {
        Records::new(self.store.reader(), results.plan.study.detail)
    }

    /// Counters and gauges.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    async fn quiesce(&self) {
        // A coordinator that has stopped is quiet.
        _ = ask(&self.calls, |reply| Call::Quiesce { reply }).await;
    }
}
