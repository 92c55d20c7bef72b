//! `regretta worker`: computes trials for a coordinator.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use tokio_util::sync::CancellationToken;
use worker::client::{self, Secret};

use super::connection::{Connection, published, warn_of_listeners};
use crate::exit::BadInput;
use crate::load::memory_limit;
use crate::{signals, text};

/// Compute trials for a coordinator
///
/// Proves that this machine computes the same bits, then leases trials until it is stopped. SIGTERM
/// finishes or gives back what is under way. Lost connections are made again.
#[derive(Args)]
#[command(after_help = "Examples:
  regretta worker --coordinator http://127.0.0.1:7070 --token-file token
  regretta worker --coordinator https://host:7070 --tls-ca certs/ca.pem \\
      --tls-cert certs/client.pem --tls-key certs/client.key --slots 16")]
pub(crate) struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// What people call this worker [default: the host's name and the process id]
    #[arg(long)]
    name: Option<String>,
    /// Trials computed at once [default: the cores of this machine]
    #[arg(long, value_name = "N")]
    slots: Option<usize>,
    /// Where files that studies name are kept [default: a private folder in the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Seconds that trials under way may take after SIGTERM
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    grace: u64,
    /// Give up after the coordinator was out of reach for this long [default: never]
    #[arg(long, value_name = "SECONDS")]
    patience: Option<u64>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let slots = super::workers(arguments.slots)?;
    let token = arguments.connection.token()?;
    let config = client::Config {
        coordinator: arguments.connection.coordinator.join(","),
        token: token.map(|token| Secret::new(token.reveal())),
        tls: arguments.connection.tls()?,
        name: arguments.name.clone().unwrap_or_else(default_name),
        slots: slots as u32,
        cache: arguments.cache.clone(),
        memory: memory_limit()?,
        grace: Duration::from_secs(arguments.grace),
        patience: arguments.patience.map(Duration::from_secs),
        ..client::Config::default()
    };
    let threads =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let summary = threads.context("cannot start the runtime")?.block_on(async {
        let stop = CancellationToken::new();
        let interrupted = signals::interrupted()?;
        let asked = stop.clone();
        tokio::spawn(async move {
            interrupted.await;
            asked.cancel();
        });
        match &arguments.connection.coordinator_file {
            None => {
                if config.token.is_some() {
                    warn_of_listeners(&arguments.connection.coordinator);
                }
                client::run(config, stop).await
            }
            Some(file) => follow(file, config, stop).await,
        }
        .map_err(refused)
    })?;
    eprintln!(
        "regretta: {} trials in {} shards, {} connections lost",
        text::count(summary.trials.into()),
        text::count(summary.shards.into()),
        summary.reconnects
    );
    Ok(())
}

/// How long a coordinator may be out of reach before its file is looked at again.
const MOVED: Duration = Duration::from_secs(5);

/// How often a file that is not there is looked for.
const LOOK: Duration = Duration::from_millis(500);

/// Works for the coordinator that a file names, and for the next one where it has moved.
async fn follow(
    file: &Path,
    config: client::Config,
    stop: CancellationToken,
) -> Result<client::Summary, client::Error> {
    let mut reached = Instant::now();
    let mut warned = None;
    loop {
        let patience = config.patience.map(|patience| patience.saturating_sub(reached.elapsed()));
        let Some(coordinator) = published(file) else {
            if patience.is_some_and(|left| left.is_zero()) {
                let (address, seconds) = (file.display().to_string(), reached.elapsed().as_secs());
                let last = "no coordinator has published its address".to_owned();
                return Err(client::Error::Unreachable { address, seconds, last });
            }
            tokio::select! {
                () = stop.cancelled() => return Ok(client::Summary::default()),
                () = tokio::time::sleep(LOOK) => continue,
            }
        };
        let patience = Some(patience.map_or(MOVED, |left| left.min(MOVED)));
        if config.token.is_some() && warned.as_ref() != Some(&coordinator) {
            warn_of_listeners(std::slice::from_ref(&coordinator));
            warned = Some(coordinator.clone());
        }
        let here = client::Config { coordinator, patience, ..config.clone() };
        let began = Instant::now();
        match client::run(here, stop.clone()).await {
            Err(client::Error::Unreachable { seconds, .. })
                if config.patience.is_none_or(|most| reached.elapsed() < most) =>
            {
                // It was reached for a while before it was lost.
                if began.elapsed() > Duration::from_secs(seconds) + MOVED {
                    reached = Instant::now();
                }
            }
            ended => return ended,
        }
    }
}

fn refused(error: client::Error) -> anyhow::Error {
    match error {
        client::Error::Threads(_) | client::Error::Proof(_) => error.into(),
        _ => BadInput(error.to_string()).into(),
    }
}

fn default_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    format!("{}-{}", if host.is_empty() { "worker" } else { host }, std::process::id())
}
