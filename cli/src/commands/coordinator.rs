//! `regretta coordinator`: studies of many users, workers on many machines.

mod sealed;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use coordinator::server::{Config, Coordinator, DEFAULT_STUDY_MEMORY, StartError, Tls};
use coordinator::store::{RecordsAt, Storage};
use rustix::process::{Resource, getrlimit, setrlimit};
use worker::{Cpu, golden};

use super::connection::{read_secret, read_token};
use super::ledger::ledger;
use super::run::{Tuning, not_started, report_found};
use crate::exit::BadInput;
use crate::live::{self, End, Live};
use crate::signals;
use sealed::{Sealed, seal_finished};

/// Serve studies to workers on other machines
///
/// Takes studies (`regretta study submit`), leases their trials to workers (`regretta worker`), keeps every
/// record durable, and seals finished studies under DIR/studies, and in the object store if there is one. Stop it
/// at any time: started again on the same folder it goes on.
#[derive(Args)]
#[command(after_help = "Examples:
  regretta coordinator --dir service --token-file token
  regretta coordinator --dir service --listen 0.0.0.0:7070 --tls-cert certs/server.pem \\
      --tls-key certs/server.key --tls-ca certs/ca.pem --metrics 127.0.0.1:9090
  regretta coordinator --dir service --token-file token --live 127.0.0.1:8080
  regretta coordinator --dir service --ledger postgres://regretta@db/regretta --store s3://bucket/prefix \\
      --token-file token")]
pub(crate) struct Arguments {
    /// Where ledger, segments and results are kept; not on a network file system
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Where workers and clients connect
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7070")]
    listen: SocketAddr,
    /// Serve Prometheus metrics at http://ADDRESS/metrics
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Serve a live view for browsers at ADDRESS, and print a link that opens it once. It is not encrypted:
    /// beyond loopback it needs --insecure, and a token or --tls-ca
    #[arg(long, value_name = "ADDRESS")]
    live: Option<SocketAddr>,
    /// A file with the token that callers have to show (or in REGRETTA_TOKEN)
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The server's certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Accept clients whose certificates this authority signed, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_ca: Option<PathBuf>,
    /// Listen beyond this machine without TLS or without authentication
    #[arg(long)]
    insecure: bool,
    /// Keep the ledger in PostgreSQL, postgres://USER@HOST/DATABASE (or in REGRETTA_LEDGER, where it may have a
    /// password), so that other coordinators can take over [default: SQLite in DIR]
    #[arg(long, value_name = "URL")]
    ledger: Option<String>,
    /// Keep records and sealed datasets in an object store, s3://BUCKET/PREFIX; DIR is a cache then [default: in DIR]
    #[arg(long, value_name = "URL")]
    store: Option<RecordsAt>,
    /// Write the address to a file, for workers that start later (their --coordinator-file)
    #[arg(long, value_name = "FILE")]
    publish: Option<PathBuf>,
    #[command(flatten)]
    tuning: Tuning,
}

/// How long shards that are under way may take after SIGTERM.
const GRACE: Duration = Duration::from_secs(10);

/// How often a coordinator that has led looks whether its database is back.
const LOOK: Duration = Duration::from_secs(1);

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let studies = arguments.dir.join("studies");
    let sealed = Arc::new(Sealed::new(&studies, arguments.store.as_ref()));
    let config = config(arguments, &sealed)?;
    let guarded =
        config.token.is_some() || config.tls.as_ref().is_some_and(|tls| tls.clients.is_some());
    if let Some(address) = arguments.live {
        admit_live(address, guarded, arguments.insecure)?;
    }
    std::fs::create_dir_all(&studies)
        .map_err(|error| BadInput(format!("cannot create {}: {error}", studies.display())))?;
    allow_open_files();
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = threads.context("cannot start the runtime")?;
    runtime.block_on(async {
        let shown = Shown { live: arguments.live, guarded, publish: arguments.publish.as_deref() };
        let interrupted = signals::interrupted()?;
        tokio::pin!(interrupted);
        let (mut next, mut led) = (config, false);
        loop {
            match serve(next, &sealed, &shown, interrupted.as_mut()).await {
                Ok(Ended::Stopped) => return Ok(()),
                Ok(Ended::Deposed) => {
                    eprintln!("regretta: another coordinator may lead; standing by");
                    led = true;
                }
                // It was deposed because the database was lost, which comes back.
                Err(error) if led && lacks_ledger(&error) => {
                    tracing::warn!("{error:#}");
                    tokio::select! {
                        biased;
                        () = interrupted.as_mut() => return Ok(()),
                        () = tokio::time::sleep(LOOK) => {}
                    }
                }
                Err(error) => return Err(error),
            }
            next = self::config(arguments, &sealed)?;
        }
    })
}

/// Every connection is an open file. Many systems start programs with room for 1,024 and let them have more:
/// takes all that is allowed, so that a thousand workers are not too many.
fn allow_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the number of open files stays limited; raise it with `ulimit -n`");
    }
}

/// Whether a coordinator cannot start for want of its database.
fn lacks_ledger(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref(),
        Some(StartError::Store(coordinator::store::Error::Ledger { .. }))
    )
}

/// Why a coordinator serves no more.
#[derive(PartialEq, Eq)]
enum Ended {
    /// It was told to stop.
    Stopped,
    /// Another one leads, or may.
    Deposed,
}

/// How others find the coordinator, and see what it does.
struct Shown<'a> {
    live: Option<SocketAddr>,
    guarded: bool,
    publish: Option<&'a Path>,
}

/// Refuses to show studies beyond loopback to everyone, or over a network that is not trusted.
fn admit_live(address: SocketAddr, guarded: bool, insecure: bool) -> anyhow::Result<()> {
    if address.ip().is_loopback() || (guarded && insecure) {
        return Ok(());
    }
    Err(BadInput(format!(
        "--live {address} can be reached from other machines, and the page is not encrypted: bind it to 127.0.0.1 and come \
         in by `ssh -L {0}:127.0.0.1:{0} HOST`, or, if the network is trusted, give --insecure and a token",
        address.port()
    ))
    .into())
}

fn config(arguments: &Arguments, sealed: &Arc<Sealed>) -> anyhow::Result<Config> {
    let token = read_token(arguments.token_file.as_deref())?;
    let tls = match (&arguments.tls_cert, &arguments.tls_key) {
        (Some(certificate), Some(key)) => Some(Tls {
            certificate: read_secret(certificate)?.into_bytes(),
            key: read_secret(key)?.into_bytes(),
            clients: arguments
                .tls_ca
                .as_deref()
                .map(read_secret)
                .transpose()?
                .map(String::into_bytes),
        }),
        _ => None,
    };
    Ok(Config {
        dir: arguments.dir.join("ledger"),
        storage: Storage {
            ledger: ledger(arguments.ledger.as_deref())?,
            records: arguments.store.clone().unwrap_or_default(),
        },
        listen: arguments.listen,
        metrics: arguments.metrics,
        token,
        tls,
        insecure: arguments.insecure,
        single: false,
        study_memory: arguments.tuning.study_memory(DEFAULT_STUDY_MEMORY),
        settings: arguments.tuning.settings()?,
        heartbeat: arguments.tuning.heartbeat(),
        numerics: golden::digest(Cpu::detect()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        datasets: Arc::<Sealed>::clone(sealed),
    })
}

/// Serves, once this coordinator leads, until it is told to stop or another one may lead.
async fn serve(
    config: Config,
    sealed: &Arc<Sealed>,
    shown: &Shown<'_>,
    mut interrupted: Pin<&mut (impl Future<Output = ()> + Send)>,
) -> anyhow::Result<Ended> {
    let &Shown { live, guarded, publish } = shown;
    std::fs::create_dir_all(&config.dir)
        .map_err(|error| BadInput(format!("cannot create {}: {error}", config.dir.display())))?;
    let (tls, token) = (config.tls.is_some(), config.token.clone());
    // A standby may wait for long, and has to go when it is told to.
    let coordinator = tokio::select! {
        biased;
        () = &mut interrupted => return Ok(Ended::Stopped),
        started = Coordinator::start(config) => started.map_err(not_started)?,
    };
    report_found(&coordinator.found);
    let scheme = if tls { "https" } else { "http" };
    eprintln!("regretta: coordinator at {scheme}://{}", coordinator.address);
    if let Some(address) = coordinator.metrics_address {
        eprintln!("regretta: metrics at http://{address}/metrics");
    }
    if let Some(file) = publish {
        published(file, scheme, coordinator.address)?;
    }
    let live = match live {
        Some(address) => {
            let token = token.as_ref();
            let config = live::Config { address, guarded, token, one_study: false };
            let live = Live::start(config, coordinator.handle()).await?;
            let once = if guarded { " (the link works once)" } else { "" };
            eprintln!("regretta: live view at {}{once}", live.link()?);
            Some(live)
        }
        None => None,
    };
    let sealing = tokio::spawn(seal_finished(coordinator.handle(), Arc::clone(sealed)));
    let ended = tokio::select! {
        biased;
        () = &mut interrupted => Ended::Stopped,
        () = coordinator.lost() => Ended::Deposed,
    };
    if ended == Ended::Stopped {
        eprintln!("regretta: stopping; start again on the same folder to go on");
    }
    sealing.abort();
    if let Some(file) = publish {
        // Workers that start now should wait for the next coordinator.
        _ = std::fs::remove_file(file);
    }
    if let Some(live) = live {
        let message = "The coordinator was stopped; started again on the same folder it goes on.";
        live.finish(End { state: "stopped", message: message.to_owned() }).await;
    }
    coordinator.stop(if ended == Ended::Stopped { GRACE } else { Duration::ZERO }).await;
    Ok(ended)
}

/// Writes the address as others reach it: by this machine's name where the coordinator listens on all of its
/// addresses. The file appears whole or not at all.
fn published(file: &Path, scheme: &str, address: SocketAddr) -> anyhow::Result<()> {
    let host = if address.ip().is_unspecified() {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        name.trim().to_owned()
    } else if address.is_ipv6() {
        format!("[{}]", address.ip())
    } else {
        address.ip().to_string()
    };
    let staged = file.with_extension("new");
    let write = || {
        std::fs::write(&staged, format!("{scheme}://{host}:{}\n", address.port()))?;
        std::fs::rename(&staged, file)
    };
    write().map_err(|error| {
        BadInput(format!("cannot write the address to {}: {error}", file.display())).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_open_files_that_are_allowed_are_taken() {
        let allowed = getrlimit(Resource::Nofile).maximum;
        let mut fewer = getrlimit(Resource::Nofile);
        fewer.current = allowed.map(|most| most - 1);
        setrlimit(Resource::Nofile, fewer).unwrap();
        allow_open_files();
        assert_eq!(getrlimit(Resource::Nofile).current, allowed);
    }
}
