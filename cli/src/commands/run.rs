//! `regretta run`: a whole study on this machine, with one command.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use analysis::{Manifest, PriorSummary};
use anyhow::Context;
use clap::Args;
use coordinator::core::Settings;
use coordinator::server::{
    Config, Coordinator, Datasets, Found, Handle, Outcome, StartError, SubmitError, Token,
};
use coordinator::store;
use proto::v1::StudyStatus;
use rand::TryRng;
use rand::rngs::SysRng;
use study::StudyId;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use worker::client::{self, Secret};
use worker::{Cpu, golden};

use super::plan::ledger;
use crate::existing;
use crate::exit::{BadInput, CheckFailed, Interrupted};
use crate::live::{self, End, Live};
use crate::load::{Loaded, load, memory_limit};
use crate::outcome::{self, Counts, Output};
use crate::part::{self, Part};
use crate::place::folder;
use crate::progress::Progress;
use crate::sealing::Lost;
use crate::{disk, sealing, signals};

/// Run a study on this machine
///
/// Plans the study, computes its trials with local workers, seals the records and analyses them:
/// verdicts, tables, figures and report are in the output folder. Interrupt it at any
/// time: the same command resumes. A study that has grown (more replicates, cells or horizons) keeps
/// what was computed.
#[derive(Args)]
#[command(after_help = "Examples:
  regretta run study.toml
  regretta run study.toml --out results/lemma1 --workers 8
  regretta run study.toml --open                    with a page to watch it on
  regretta run study.toml --part 3/200              one job of an array; then regretta merge
  regretta run study.toml --json 2>/dev/null | jq .digest")]
pub(crate) struct Arguments {
    /// The study file
    study: PathBuf,
    /// The output folder [default: results/NAME]
    #[arg(long, value_name = "DIR", value_parser = folder)]
    out: Option<PathBuf>,
    /// Trials computed at once [default: the cores of this machine]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Compute part I of K only, without a coordinator; `regretta merge` puts the parts together
    #[arg(long, value_name = "I/K")]
    part: Option<Part>,
    /// Serve Prometheus metrics at http://ADDRESS/metrics
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Serve a live view for browsers on this machine, and print a link that opens it once
    #[arg(long)]
    open: bool,
    /// Serve the live view at this address of loopback, as in 127.0.0.1:8080
    #[arg(long, value_name = "ADDRESS")]
    live: Option<SocketAddr>,
    #[command(flatten)]
    tuning: Tuning,
    /// No progress on stderr
    #[arg(long, short)]
    quiet: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// How work is cut and checked; none of it changes a result.
#[derive(Args, Clone, Debug)]
pub(crate) struct Tuning {
    /// Fraction of shards that is recomputed and compared
    #[arg(long, value_name = "FRACTION", default_value_t = 0.01)]
    check: f64,
    /// Seconds of work in a shard
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    shard_seconds: f64,
    /// Records in a shard at most
    #[arg(long, value_name = "N", default_value_t = 1 << 17, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    shard_records: u64,
    /// Seconds without a heartbeat after which a lease is given to another worker
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    lease_seconds: f64,
    /// MiB of memory that studies may take here; `regretta plan` says what a study needs [default: 256 of a coordinator,
    /// half of this machine's for a run]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    study_memory: Option<u64>,
}

impl Tuning {
    /// The settings of the scheduling core.
    pub(crate) fn settings(&self) -> anyhow::Result<Settings> {
        if !(0.0..=1.0).contains(&self.check) {
            return Err(
                BadInput(format!("--check {} is no fraction; use 0 to 1", self.check)).into()
            );
        }
        let seconds = |name: &str, value: f64, least: f64| {
            let valid = (least..=86_400.0).contains(&value);
            let refused =
                || BadInput(format!("{name} {value} is out of range; use {least} to 86400"));
            valid.then(|| Duration::from_secs_f64(value)).ok_or_else(refused)
        };
        Ok(Settings {
            lease: seconds("--lease-seconds", self.lease_seconds, 0.5)?,
            shard_target: seconds("--shard-seconds", self.shard_seconds, 0.001)?,
            max_shard_records: self.shard_records,
            check_fraction: self.check,
            ..Settings::default()
        })
    }

    /// Bytes of memory that studies may take.
    pub(crate) fn study_memory(&self, default: u64) -> u64 {
        self.study_memory.map_or(default, |mebibytes| mebibytes << 20)
    }

    /// Six heartbeats fit into a lease, as 5 s into 30 s.
    pub(crate) fn heartbeat(&self) -> Duration {
        Duration::from_secs_f64(self.lease_seconds / 6.0)
    }
}

/// How long trials that run may go on after an interruption.
const GRACE: Duration = Duration::from_secs(5);

/// How often lost records are computed anew before the disk is blamed.
const RECOMPUTED: u32 = 3;

/// How often progress is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let live_at = live_address(arguments)?;
    let loaded = load(&arguments.study)?;
    let workers = super::workers(arguments.workers)?;
    let priors = priors(&loaded)?;
    if let Some(part) = arguments.part {
        let out = loaded.out(arguments.out.as_deref());
        sealing::keeps(&loaded.plan, &out)?;
        let output = Output { quiet: arguments.quiet, json: arguments.json };
        return part::run(&loaded, part, &out, workers, &arguments.tuning.settings()?, output);
    }
    let out = loaded.out(arguments.out.as_deref());
    std::fs::create_dir_all(&out)
        .map_err(|error| BadInput(format!("cannot create {}: {error}", out.display())))?;
    sealing::keeps(&loaded.plan, &out)?;
    // A folder that cannot be looked into is refused below, with its reason.
    let existing = existing::look(&out, &loaded.plan).ok().flatten();
    if let Some(warning) = existing.and_then(|existing| existing::warning(&existing.change)) {
        eprintln!("regretta: {warning}");
    }
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = threads.context("cannot start the runtime")?;
    let began = Instant::now();
    let run = Run { arguments, loaded: &loaded, out: &out, workers, live_at };
    let mut live = None;
    let computed = runtime.block_on(run.run(priors, &mut live));
    if let (Ok(_), Some(live)) = (&computed, &live) {
        live.analysing();
    }
    let mut tell = |end: End| {
        if let Some(live) = live.take() {
            runtime.block_on(live.finish(end));
        }
    };
    let output = Output { quiet: arguments.quiet, json: arguments.json };
    let ended = computed.and_then(|manifest| {
        let mut found = |counts: Counts| tell(finished(counts, &out));
        outcome::show(&manifest, &out, began.elapsed(), output, &mut found)
    });
    if let Err(error) = &ended {
        let state = if error.is::<Interrupted>() { "interrupted" } else { "failed" };
        tell(End { state, message: format!("{error:#}") });
    }
    runtime.shutdown_timeout(Duration::from_secs(1));
    ended
}

/// Where the live view is served, if it is.
fn live_address(arguments: &Arguments) -> anyhow::Result<Option<SocketAddr>> {
    match arguments.live {
        Some(address) if !address.ip().is_loopback() => Err(BadInput(format!(
            "--live {address} can be reached from other machines, and the page is not encrypted: use 127.0.0.1 here, \
             and `ssh -L {0}:127.0.0.1:{0} HOST` there",
            address.port()
        ))
        .into()),
        None if arguments.open => Ok(Some((Ipv4Addr::LOCALHOST, 0).into())),
        address => Ok(address),
    }
}

/// What the pages hear last.
fn finished(counts: Counts, out: &Path) -> End {
    let page = out.join("report.html");
    let page = std::path::absolute(&page).unwrap_or(page);
    let message = format!(
        "The report decides: {} rows refuted, {} confirmed, {} undecided. It is at {}",
        counts.refuted,
        counts.confirmed,
        counts.undecided,
        page.display()
    );
    End { state: "done", message }
}

/// Builds every prior once, so that what cannot be built is refused before anything runs.
pub(crate) fn priors(loaded: &Loaded) -> anyhow::Result<Vec<PriorSummary>> {
    let plan = &loaded.plan;
    let mut summaries = Vec::with_capacity(plan.priors.len());
    for (index, planned) in plan.priors.iter().enumerate() {
        let prior = loaded.prior(planned)?;
        let horizons = plan.cells.iter().find(|cell| cell.prior == index);
        let horizons = horizons.map_or(&[][..], |cell| &cell.checkpoints);
        for cell in plan.cells.iter().filter(|cell| cell.prior == index) {
            let seed = plan.study.seed;
            prior
                .trials(cell.cell, seed, &cell.checkpoints, Cpu::detect())
                .map_err(|error| BadInput(format!("{}: {error}", plan.study.file)))?;
        }
        summaries.push(sealing::summary(index, planned, &prior, horizons)?);
    }
    Ok(summaries)
}

/// The one dataset of the folder.
struct Folder(PathBuf);

impl Datasets for Folder {
    fn folder(&self, _: StudyId) -> Option<PathBuf> {
        self.0.join("manifest.json").exists().then(|| self.0.clone())
    }
}

struct Run<'a> {
    arguments: &'a Arguments,
    loaded: &'a Loaded,
    out: &'a Path,
    workers: usize,
    live_at: Option<SocketAddr>,
}

impl Run<'_> {
    async fn run(
        &self,
        priors: Vec<PriorSummary>,
        live: &mut Option<Live>,
    ) -> anyhow::Result<Manifest> {
        let interrupted = signals::interrupted()?;
        // Loopback is shared by all users of a login node, so that even a local run has a token.
        let token = random_token()?;
        let coordinator = self.start(&token).await?;
        report_found(&coordinator.found);
        let handle = coordinator.handle();
        let submitted = handle.submit(self.loaded.definition.clone()).await;
        let study = match submitted {
            Ok(study) => study,
            Err(error) => {
                drop(handle);
                coordinator.stop(Duration::ZERO).await;
                return Err(refused(error));
            }
        };
        *live = match self.serve_live(&handle).await {
            Ok(live) => live,
            Err(error) => {
                coordinator.stop(Duration::ZERO).await;
                return Err(error);
            }
        };
        tokio::pin!(interrupted);
        let mut again = 0;
        let sealed = loop {
            let stop = CancellationToken::new();
            let mut workers = self.start_workers(coordinator.address, &token, &stop)?;
            let outcome = self.watch(&handle, study, &mut workers, interrupted.as_mut()).await;
            stop.cancel();
            while workers.join_next().await.is_some() {}
            let sealed = match outcome {
                Ok(Outcome::Complete) => {
                    self.say("sealing ...");
                    let text = &self.loaded.definition.text;
                    sealing::seal(&handle, study, text, priors.clone(), self.out).await
                }
                Ok(outcome) => Err(CheckFailed(outcome.to_string()).into()),
                Err(error) => Err(error),
            };
            let lost = sealed.as_ref().err().and_then(|error| error.downcast_ref::<Lost>());
            let Some(lost) = lost.filter(|_| again < RECOMPUTED) else { break sealed };
            again += 1;
            eprintln!("regretta: {lost} and are computed anew");
            if let Err(error) = handle.recompute(&lost.plan, lost.shards.clone()).await {
                break Err(error.into());
            }
        };
        drop(handle);
        if let Some(live) = live {
            live.let_go(study).await;
        }
        coordinator.stop(Duration::from_millis(100)).await;
        sealed
    }

    async fn start(&self, token: &Token) -> anyhow::Result<Coordinator> {
        let config = Config {
            dir: ledger(self.out),
            storage: store::Storage::default(),
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            metrics: self.arguments.metrics,
            token: Some(token.clone()),
            tls: None,
            insecure: false,
            single: true,
            study_memory: self.arguments.tuning.study_memory(memory_limit()?.bytes),
            settings: self.arguments.tuning.settings()?,
            heartbeat: self.arguments.tuning.heartbeat(),
            numerics: golden::digest(Cpu::detect()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            datasets: Arc::new(Folder(self.out.to_path_buf())),
        };
        std::fs::create_dir_all(&config.dir).map_err(|error| {
            BadInput(format!("cannot write to {}: {error}", self.out.display()))
        })?;
        disk::require(self.out, 64 << 20)?;
        Coordinator::start(config).await.map_err(not_started)
    }

    async fn serve_live(&self, handle: &Handle) -> anyhow::Result<Option<Live>> {
        let Some(address) = self.live_at else { return Ok(None) };
        let config = live::Config { address, guarded: true, token: None, one_study: true };
        let live = Live::start(config, handle.clone()).await?;
        eprintln!("regretta: live view at {} (the link works once)", live.link()?);
        Ok(Some(live))
    }

    fn start_workers(
        &self,
        address: SocketAddr,
        token: &Token,
        stop: &CancellationToken,
    ) -> anyhow::Result<JoinSet<Result<client::Summary, client::Error>>> {
        let mut workers = JoinSet::new();
        for number in 1..=self.workers {
            let config = client::Config {
                coordinator: format!("http://{address}"),
                token: Some(Secret::new(token.reveal())),
                name: format!("local-{number}"),
                cache: Some(ledger(self.out).join("cache")),
                memory: memory_limit()?,
                grace: GRACE,
                ..client::Config::default()
            };
            workers.spawn(client::run(config, stop.clone()));
        }
        Ok(workers)
    }

    /// Shows progress until the study ends, a worker fails for good, or the user interrupts.
    async fn watch(
        &self,
        handle: &Handle,
        study: StudyId,
        workers: &mut JoinSet<Result<client::Summary, client::Error>>,
        mut interrupted: Pin<&mut impl Future<Output = ()>>,
    ) -> anyhow::Result<Outcome> {
        let mut progress = Progress::new(self.arguments.quiet);
        let mut looks = tokio::time::interval(LOOK);
        let mut last: Option<Arc<StudyStatus>> = None;
        let outcome = handle.outcome(study);
        tokio::pin!(outcome);
        let ended = loop {
            tokio::select! {
                biased;
                () = &mut interrupted => break Err(Interrupted(self.resume()).into()),
                outcome = &mut outcome => break Ok(outcome),
                Some(ended) = workers.join_next() => match ended {
                    Ok(Ok(_)) => {}
                    Ok(Err(error)) => break Err(error.into()),
                    Err(panic) => break Err(anyhow::anyhow!("a worker stopped: {panic}")),
                },
                _ = looks.tick() => {
                    last = handle.status(study).await;
                    if let Some(status) = &last {
                        progress.show(status);
                    }
                }
            }
        };
        let last = handle.status(study).await.or(last);
        progress.finish(last.as_deref());
        ended
    }

    fn resume(&self) -> String {
        format!(
            "interrupted; all finished shards are kept: run the same command again to resume (regretta run {} --out {})",
            self.arguments.study.display(),
            self.out.display()
        )
    }

    fn say(&self, words: &str) {
        if !self.arguments.quiet {
            eprintln!("{words}");
        }
    }
}

/// Tells the user what had to be mended.
pub(crate) fn report_found(found: &Found) {
    if found.rebuilt {
        eprintln!("regretta: the ledger was missing and has been rebuilt from the segments");
    }
    if !found.damaged.is_empty() {
        let reason = &found.damaged[0].reason;
        eprintln!(
            "regretta: {} shards were damaged and are computed anew (the first: {reason})",
            found.damaged.len()
        );
    }
    for (study, reason) in &found.failed {
        eprintln!("regretta: study {study} failed: {reason}");
    }
}

/// What a user can mend is bad input, the rest an internal error.
pub(crate) fn not_started(error: StartError) -> anyhow::Error {
    match error {
        StartError::Store(store::Error::Ledger { .. }) => error.into(),
        StartError::Store(_)
        | StartError::Spool { .. }
        | StartError::Exposed(_)
        | StartError::Listen { .. }
        | StartError::Tls(_) => BadInput(error.to_string()).into(),
    }
}

fn refused(error: SubmitError) -> anyhow::Error {
    match error {
        SubmitError::Plan(_)
        | SubmitError::NotGrown(_)
        | SubmitError::OtherDefinition { .. }
        | SubmitError::OtherStudy { .. }
        | SubmitError::TooLarge { .. }
        | SubmitError::LargeFile { .. } => BadInput(error.to_string()).into(),
        SubmitError::Store(_)
        | SubmitError::Spool(_)
        | SubmitError::Dataset(_)
        | SubmitError::Deleting
        | SubmitError::Stopped => error.into(),
    }
}

/// 256 random bits.
pub(crate) fn random_token() -> anyhow::Result<Token> {
    let mut bytes = [0; 32];
    SysRng.try_fill_bytes(&mut bytes).context("the system has no random numbers")?;
    Ok(Token::new(&blake3::Hash::from_bytes(bytes).to_hex())?)
}
