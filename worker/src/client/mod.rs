//! The worker as a client of the coordinator: it proves itself, leases trials, computes them and
//! hands in what they say.
//!
//! A lease ends when the coordinator has said that its records are durable, or when it is lost; lost
//! ones are computed again by whoever leases them next, so that a worker can stop, crash or lose the
//! network at any time. Refusals that would be repeated for ever are errors.

mod alone;
mod backoff;
mod catalogue;
mod connect;
mod files;
#[cfg(test)]
mod fixture;
mod held;
mod library;
mod pack;
mod pool;
mod recent;
mod sample;
mod secret;
mod session;
mod shard;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use proto::convert::Registration;
use proto::limits::MAX_SLOTS;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

pub use alone::{Alone, Computed};
pub use connect::{ClientTls, Connecting, Connector};
pub use pool::Compute;
pub use sample::is_sampled;
pub use secret::Secret;

use crate::golden;
use crate::prior::MemoryLimit;
use crate::simd::Cpu;
use backoff::Backoff;
use catalogue::Catalogue;
use connect::{Coordinator, Failed};
use library::Library;
use pool::{Pool, guarded};
use session::{Around, Ended};

/// A worker's settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// The coordinator's address, such as `https://host:7070`. Several, with commas between them, are of
    /// coordinators that share a ledger: the worker goes on to the next until it finds the one that leads.
    pub coordinator: String,
    /// How connections are made.
    pub connector: Connector,
    /// What the coordinator knows the worker by.
    pub token: Option<Secret>,
    /// For `https`.
    pub tls: Option<ClientTls>,
    /// What people call the worker.
    pub name: String,
    /// Shards that are computed at the same time, from 1 to [`MAX_SLOTS`].
    pub slots: u32,
    /// A folder for the files that studies name; by default a private one of this user.
    pub cache: Option<PathBuf>,
    /// What a prior may take. As much again is kept of priors that were used before.
    pub memory: MemoryLimit,
    /// The instructions that trials use.
    pub cpu: Cpu,
    /// Where trials are computed.
    pub compute: Compute,
    /// How long running leases may take after a shutdown was asked for.
    pub grace: Duration,
    /// How long the coordinator may be out of reach before the worker gives up; for ever if `None`.
    pub patience: Option<Duration>,
}

impl Default for Config {
    /// One slot, for a coordinator on this machine.
    fn default() -> Self {
        Self {
            coordinator: "http://127.0.0.1:7070".into(),
            connector: Connector::tcp(),
            token: None,
            tls: None,
            name: "worker".into(),
            slots: 1,
            cache: None,
            memory: MemoryLimit { bytes: 4 << 30, state_per_point: 0 },
            cpu: Cpu::detect(),
            compute: Compute::Threads,
            grace: Duration::from_secs(10),
            patience: None,
        }
    }
}

/// What a worker did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Shards that became durable.
    pub shards: u64,
    /// Their trials.
    pub trials: u64,
    /// Their records that were sent.
    pub records: u64,
    /// Shards that the coordinator did not want any more.
    pub rejected: u64,
    /// Shards that could not be computed here.
    pub failed: u64,
    /// Times that the connection was lost.
    pub reconnects: u64,
}

/// Why a worker cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting that cannot be.
    #[error("{0}")]
    Config(String),
    /// The token is wrong or missing.
    #[error(
        "the coordinator does not accept this worker: {0}; give it the token that the coordinator \
         was started with"
    )]
    Unauthorized(String),
    /// Another version, other numerics, or a setting that the coordinator does not take.
    #[error(
        "the coordinator refuses this worker: {0}; workers and coordinator must be the same build of \
         regretta and give the same numbers (regretta doctor)"
    )]
    Refused(String),
    /// A certificate that is expired, unknown or for another name.
    #[error(
        "no trust between this worker and {address}: {fault}; use the certificates that regretta cert \
         made for this coordinator, and check both clocks"
    )]
    Certificate {
        /// The coordinator.
        address: String,
        /// What is wrong.
        fault: String,
    },
    /// Something else listens there.
    #[error("{0} is no regretta coordinator, or one of another version; check the address")]
    NoCoordinator(String),
    /// Out of reach for too long.
    #[error(
        "{address} could not be reached for {seconds} s: {last}; check that the coordinator runs there, \
         that the address begins with https:// if it has certificates and http:// if not, and that this \
         worker's are of the same regretta cert and not expired"
    )]
    Unreachable {
        /// The coordinator.
        address: String,
        /// For how long.
        seconds: u64,
        /// The last failure.
        last: String,
    },
    /// The fixed trials panicked: a bug, or a machine that is broken.
    #[error(
        "the fixed trials that prove a worker's numbers cannot be computed here: {0}; if they can on \
         other machines, this one is broken, and if not, please report it"
    )]
    Proof(String),
    /// The system gives no threads.
    #[error("cannot start threads: {0}; use fewer slots")]
    Threads(#[from] std::io::Error),
}

/// Works until `shutdown` is cancelled, the coordinator asks to leave, or it cannot go on.
pub async fn run(config: Config, shutdown: CancellationToken) -> Result<Summary, Error> {
    if !(1..=MAX_SLOTS).contains(&config.slots) {
        let slots = config.slots;
        return Err(Error::Config(format!("slots = {slots} must be from 1 to {MAX_SLOTS}")));
    }
    let coordinators = Coordinator::all(&config)?;
    let mut registration = Registration {
        version: env!("CARGO_PKG_VERSION").into(),
        numerics: proof(config.compute, move || digest(config.cpu)).await?,
        name: config.name.clone(),
        slots: config.slots,
        previous: None,
    };
    let library = Library::new(config.memory, config.cpu);
    let pool = Pool::start(config.slots as usize, library, config.compute)?;
    let catalogue = Catalogue::new(config.cache.as_deref(), config.compute);
    let around =
        Around { config: &config, pool: &pool, catalogue: &catalogue, shutdown: &shutdown };
    let mut summary = Summary::default();
    let mut backoff = Backoff::new(&config.name);
    let mut reached = Instant::now();
    let mut places = coordinators.iter().cycle();
    let mut failures = 0;
    while !shutdown.is_cancelled()
        && let Some(coordinator) = places.next()
    {
        let joined = tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            joined = coordinator.join(&registration) => joined,
        };
        let lost = match joined {
            Ok((client, registered)) => {
                let began = Instant::now();
                registration.previous = Some(registered.worker_id);
                tracing::info!(worker = registered.worker_id, name = config.name, "joined");
                match session::run(&around, client, registered, &mut summary).await {
                    Ended::Left => return Ok(summary),
                    Ended::Lost(why) => {
                        summary.reconnects += 1;
                        // One that is lost at once, again and again, is no success.
                        if began.elapsed() > registered.heartbeat {
                            backoff.reset();
                        }
                        (reached, failures) = (Instant::now(), 0);
                        why
                    }
                }
            }
            Err(Failed::ForGood(error)) => return Err(error),
            Err(Failed::ForNow(why)) => why,
        };
        failures += 1;
        // Another may lead already: the wait is for when all have been asked.
        let wait = if failures % coordinators.len() == 0 { backoff.next() } else { Duration::ZERO };
        let address = coordinator.address.as_str();
        tracing::warn!(address, why = lost, ?wait, "no connection to the coordinator");
        if config.patience.is_some_and(|patience| reached.elapsed() >= patience) {
            let seconds = reached.elapsed().as_secs();
            let address = config.coordinator.clone();
            return Err(Error::Unreachable { address, seconds, last: lost });
        }
        tokio::select! {
            biased;
            () = shutdown.cancelled() => {}
            () = sleep(wait) => {}
        }
    }
    Ok(summary)
}

/// The digest of the fixed trials as this machine computes it, once per process and CPU.
fn digest(cpu: Cpu) -> String {
    static KNOWN: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.entry(format!("{cpu:?}")).or_insert_with(|| golden::digest(cpu)).clone()
}

async fn proof(
    compute: Compute,
    digest: impl FnOnce() -> String + Send + 'static,
) -> Result<String, Error> {
    let prove = || guarded(digest);
    let proven = match compute {
        Compute::Inline => prove(),
        Compute::Threads => {
            let proven = tokio::task::spawn_blocking(prove).await;
            proven.unwrap_or_else(|error| Err(error.to_string()))
        }
    };
    proven.map_err(Error::Proof)
}

#[cfg(test)]
mod tests;
