//! `regretta slurm`: a study as jobs of a Slurm cluster.

mod jobs;
mod limit;
mod script;
mod site;
mod status;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};

use crate::calibration::calibrate;
use crate::commands::ledger;
use crate::exit::BadInput;
use crate::load::{Loaded, load};
use crate::place::folder;
use crate::{outcome, part};

use jobs::Jobs;
use limit::Limit;
use script::{Cluster, Script, Settings};

/// Run a study on a Slurm cluster
///
/// Writes job scripts to OUT/slurm and submits them. A job that is preempted or runs into its time limit keeps
/// what it computed, is queued again and goes on there.
#[derive(Args)]
#[command(after_help = "Examples:
  regretta slurm submit study.toml --time 02:00:00 --cpus 4
  regretta slurm submit study.toml --parts 200 --dry-run
  regretta slurm status results/lemma1")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Submit(Submit),
    Status(Status),
}

/// Write job scripts for a study, and submit them
///
/// Mode `parts`: an array in which every job computes a part by itself, then a job that merges them. Nothing but a
/// shared folder is needed. Mode `coordinator`: a job that runs a coordinator, and an array of workers for it, which
/// may come and go; for studies that stop early, and where jobs are often preempted.
#[derive(Args)]
#[command(after_help = "Examples:
  regretta slurm submit study.toml --time 02:00:00 --cpus 4
  regretta slurm submit study.toml --parts 200 --at-once 50 --partition short --account physics
  regretta slurm submit study.toml --mode coordinator --workers 20 --ledger postgres://db.example.org/regretta
  regretta slurm submit study.toml --dry-run")]
struct Submit {
    /// The study file
    study: PathBuf,
    /// The output folder, which all nodes see [default: results/NAME]
    #[arg(long, value_name = "DIR", value_parser = folder)]
    out: Option<PathBuf>,
    /// How the study is spread
    #[arg(long, value_enum, default_value_t = Mode::Parts)]
    mode: Mode,
    /// Parts [default: as many as OUT has, or as let each take half of --time]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    parts: Option<u32>,
    /// Worker jobs of mode `coordinator`
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    workers: u32,
    /// Cores of a job
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    cpus: u32,
    /// Time limit of a job: HH:MM:SS, D-HH:MM:SS or minutes
    #[arg(long, default_value = "01:00:00")]
    time: Limit,
    /// Jobs of an array that run at once, at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    at_once: Option<u32>,
    /// Seconds before the limit at which a job stops by itself
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(10..=3600))]
    grace: u32,
    /// A Slurm partition
    #[arg(long)]
    partition: Option<String>,
    /// The account that is charged
    #[arg(long)]
    account: Option<String>,
    /// Memory of a job, as Slurm writes it, such as 4G
    #[arg(long)]
    mem: Option<String>,
    /// Any other option of sbatch, such as --sbatch=--qos=low; may be repeated
    #[arg(long = "sbatch", value_name = "OPTION", allow_hyphen_values = true)]
    more: Vec<String>,
    /// The ledger of mode `coordinator`, where OUT is on a network file system; without its password, which belongs
    /// in ~/.pgpass
    #[arg(long, value_name = "URL")]
    ledger: Option<String>,
    /// Print the scripts, and submit nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the jobs as JSON
    #[arg(long)]
    json: bool,
}

/// Show where the jobs of a study stand
#[derive(Args)]
#[command(after_help = "Examples:
  regretta slurm status results/lemma1
  regretta slurm status results/lemma1 --json")]
pub(crate) struct Status {
    /// The output folder
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Seconds between two looks of Slurm at its jobs' limits.
const LOOK: u64 = 30;

/// How a study is spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Every job computes a part by itself
    Parts,
    /// Workers ask a coordinator
    Coordinator,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.action {
        Action::Submit(submit) => submit.run(),
        Action::Status(status) => status::show(&status.out, status.json),
    }
}

impl Submit {
    fn run(&self) -> anyhow::Result<()> {
        let loaded = load(&self.study)?;
        let out = std::path::absolute(loaded.out(self.out.as_deref()))?;
        self.refuse(&out)?;
        let cluster = self.cluster(&loaded, &out)?;
        let largest =
            if self.dry_run { site::largest_array().ok() } else { Some(site::largest_array()?) };
        let largest = largest.unwrap_or(site::DEFAULT_LARGEST);
        let scripts = match self.mode {
            Mode::Parts => cluster.parts(self.number_of_parts(&loaded, &out)?, largest),
            Mode::Coordinator => cluster.coordinator(self.workers, largest, self.ledger.as_deref()),
        };
        if self.dry_run {
            return show(&scripts, self.json);
        }
        Jobs::refuse_running(&out)?;
        let folder = out.join("slurm");
        std::fs::create_dir_all(&folder)
            .map_err(|error| BadInput(format!("cannot create {}: {error}", folder.display())))?;
        outcome::keep_study_file(&loaded, &folder)?;
        if self.mode == Mode::Coordinator {
            script::certificates(&cluster.service())?;
        }
        let jobs = Jobs::submit(&scripts, &out)?;
        jobs.print(self.json)
    }

    /// Refuses what could not work on any node.
    fn refuse(&self, out: &Path) -> anyhow::Result<()> {
        if self.time.seconds() < u64::from(self.grace) + LOOK {
            let (grace, time) = (self.grace, self.time.text());
            bail!(BadInput(format!(
                "--grace {grace} leaves no time to compute in --time {time}; Slurm looks at limits every {LOOK} s"
            )));
        }
        if let Some(url) = &self.ledger {
            ledger::from_argument(url)?;
        }
        if self.more.iter().any(|option| ledger::is_in(option)) {
            bail!(BadInput(format!(
                "--sbatch has the address of a ledger with its password, and everyone on this machine can read command \
                 lines: set {} in the environment that you submit from, which jobs get, or keep the password in \
                 ~/.pgpass; change the password if others use this machine",
                ledger::VARIABLE
            )));
        }
        // Jobs have the environment of whoever submits them.
        let given = self.ledger.is_some() || std::env::var_os(ledger::VARIABLE).is_some();
        let shared = coordinator::store::shared(out);
        if let (Mode::Coordinator, false, Some(kind)) = (self.mode, given, shared) {
            bail!(BadInput(format!(
                "{} is on {kind}, which other machines share, and a SQLite ledger is not safe there: give --ledger \
                 postgres://USER@HOST/DATABASE, or use --mode parts",
                out.display()
            )));
        }
        Ok(())
    }

    /// As given, as in a folder that has parts already, or as many as fit.
    fn number_of_parts(&self, loaded: &Loaded, out: &Path) -> anyhow::Result<u32> {
        match (self.parts, part::cut(loaded, out)?) {
            (Some(given), Some(held)) if given != held => bail!(BadInput(format!(
                "{} has the study in {held} parts: leave --parts {given} out, or use another --out folder",
                out.display()
            ))),
            (Some(parts), _) | (None, Some(parts)) => Ok(parts),
            (None, None) => self.fitting(loaded),
        }
    }

    fn cluster(&self, loaded: &Loaded, out: &Path) -> anyhow::Result<Cluster> {
        let program = std::env::current_exe().context("cannot tell where this program is")?;
        Ok(Cluster {
            name: loaded.plan.study.name.clone(),
            id: loaded.plan.id.to_string(),
            program,
            study: std::path::absolute(&self.study)?,
            out: out.to_path_buf(),
            settings: Settings {
                cpus: self.cpus,
                time: self.time.clone(),
                at_once: self.at_once,
                grace: self.grace,
                partition: self.partition.clone(),
                account: self.account.clone(),
                mem: self.mem.clone(),
                more: self.more.clone(),
            },
        })
    }

    /// As many parts as let each take half of the time limit, from a few trials on this machine.
    fn fitting(&self, loaded: &Loaded) -> anyhow::Result<u32> {
        let seconds = calibrate(loaded)?.total(&loaded.plan);
        let each = f64::from(self.cpus) * self.time.seconds() as f64 / 2.0;
        Ok((seconds / each).ceil().clamp(1.0, 1000.0) as u32)
    }
}

fn show(scripts: &[Script], json: bool) -> anyhow::Result<()> {
    if json {
        return super::print_json(&scripts);
    }
    for Script { name, text, .. } in scripts {
        super::print(&format!("# ---- {name}.sh\n{text}\n"))?;
    }
    Ok(())
}
