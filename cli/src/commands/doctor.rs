//! `regretta doctor`: whether this machine is fit to run studies.

use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use worker::{Cpu, golden};

use crate::exit::CheckFailed;
use crate::{disk, text};

/// Check that this machine is fit to run studies
///
/// Runs fixed trials and compares their digest with the one that this version must give: records are the
/// same bits on every machine, or there are none. Looks at CPU, memory, the disk under the output folder and its
/// file system, and ports. Exit code 3 where something makes runs wrong or impossible.
#[derive(Args)]
#[command(after_help = "Examples:
  regretta doctor
  regretta doctor --dir /scratch/results --listen 0.0.0.0:7070
  regretta doctor --json")]
pub(crate) struct Arguments {
    /// The folder that runs will write to
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// An address that a coordinator is to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    version: &'static str,
    instruction_set: &'static str,
    numerics_digest: String,
    expected_digest: &'static str,
    sound: bool,
    checks: Vec<Check>,
}

/// Something that was looked at.
#[derive(Serialize)]
struct Check {
    name: &'static str,
    found: String,
    state: State,
    /// What to do about it.
    advice: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Good,
    Warning,
    Failed,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Good => "ok",
            Self::Warning => "warning",
            Self::Failed => "FAILED",
        })
    }
}

impl Check {
    fn good(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, found: found.into(), state: State::Good, advice: None }
    }

    fn bad(
        name: &'static str,
        state: State,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { name, found: found.into(), state, advice: Some(advice.into()) }
    }
}

/// Free space below which a run would soon stop.
const ROOM: u64 = 1 << 30;

/// Memory below which priors of a few thousand points are refused.
const MEMORY: u64 = 2 << 30;

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let cpu = Cpu::detect();
    let numerics_digest = golden::digest(cpu);
    let sound = numerics_digest == golden::DIGEST;
    let checks = vec![
        numerics(&numerics_digest, sound),
        processor(cpu),
        memory(),
        room(&arguments.dir),
        file_system(&arguments.dir),
        port(arguments.listen),
    ];
    let failed: Vec<&str> = checks
        .iter()
        .filter(|check| check.state == State::Failed)
        .map(|check| check.name)
        .collect();
    let failed = failed.join(", ");
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        instruction_set: cpu.name(),
        numerics_digest,
        expected_digest: golden::DIGEST,
        sound,
        checks,
    };
    if arguments.json {
        super::print_json(&report)?;
    } else {
        super::print(&words(&report))?;
    }
    if failed.is_empty() { Ok(()) } else { Err(CheckFailed(format!("not fit: {failed}")).into()) }
}

fn words(report: &Report) -> String {
    let mut lines = vec![format!("regretta {}", report.version)];
    for Check { name, found, state, advice } in &report.checks {
        lines.push(format!("{state:<8} {name:<12} {found}"));
        lines.extend(advice.iter().map(|advice| format!("{:21} {advice}", "")));
    }
    lines.join("\n")
}

fn numerics(found: &str, sound: bool) -> Check {
    if sound {
        return Check::good("numerics", format!("digest {found}, as it must be"));
    }
    let advice = format!(
        "it must be {}: the records of this machine would not be those of others, and no coordinator will \
         take them; is this an official build for x86-64?",
        golden::DIGEST
    );
    Check::bad("numerics", State::Failed, format!("digest {found}"), advice)
}

fn processor(cpu: Cpu) -> Check {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let found =
        format!("{cores} {}, {} code", if cores == 1 { "core" } else { "cores" }, cpu.name());
    if cpu.name() == Cpu::plain().name() {
        let advice = "no AVX2: trials take about twice as long, with the same results";
        return Check::bad("processor", State::Warning, found, advice);
    }
    Check::good("processor", found)
}

fn memory() -> Check {
    let Ok(limit) = crate::load::memory_limit() else {
        let advice = "priors are not limited; watch the memory of large ones";
        return Check::bad("memory", State::Warning, "unknown", advice);
    };
    let half = text::bytes(limit.bytes as f64);
    let found = format!("{half} for a prior and the trials on it (half of all)");
    if limit.bytes < MEMORY / 2 {
        let advice = "little: large domains will be refused";
        return Check::bad("memory", State::Warning, found, advice);
    }
    Check::good("memory", found)
}

/// The nearest folder that exists.
fn existing(dir: &Path) -> &Path {
    let named = dir.ancestors().filter(|place| !place.as_os_str().is_empty());
    named.into_iter().find(|place| place.exists()).unwrap_or(Path::new("."))
}

fn room(dir: &Path) -> Check {
    match disk::free(existing(dir)) {
        Err(error) => Check::bad("disk", State::Warning, "unknown", format!("{error:#}")),
        Ok(free) => {
            let found = format!("{} free under {}", text::bytes(free as f64), dir.display());
            if free < ROOM {
                let advice = "`regretta plan` says how much a study takes; free some space or use another --out";
                return Check::bad("disk", State::Warning, found, advice);
            }
            Check::good("disk", found)
        }
    }
}

fn file_system(dir: &Path) -> Check {
    match coordinator::store::shared(existing(dir)) {
        None => Check::good("file system", "local"),
        Some(kind) => Check::bad(
            "file system",
            State::Failed,
            format!("{kind} under {}", dir.display()),
            "SQLite cannot rely on its locks, so that no ledger is kept there: use a local folder, \
             `--ledger postgres://...`, or `--part I/K`, which needs no ledger",
        ),
    }
}

fn port(listen: SocketAddr) -> Check {
    match TcpListener::bind(listen) {
        Ok(_) => Check::good("port", format!("{listen} can be listened on")),
        Err(error) => Check::bad(
            "port",
            State::Failed,
            format!("{listen}: {error}"),
            "choose another address with --listen; port 0 takes any",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_and_a_missing_folder_are_seen() {
        let held = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = port(held.local_addr().unwrap());
        assert!(taken.state == State::Failed && taken.advice.unwrap().contains("--listen"));
        assert!(port("127.0.0.1:0".parse().unwrap()).state == State::Good);
        assert_eq!(existing(Path::new("no/such/folder")), Path::new("."));
        assert_eq!(existing(Path::new("/no/such")), Path::new("/"));
        assert!(numerics("0", false).state == State::Failed);
    }
}
