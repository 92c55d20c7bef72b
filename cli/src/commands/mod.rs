//! One file per command.

pub(crate) mod analyze;
pub(crate) mod bench;
pub(crate) mod cert;
pub(crate) mod claims;
pub(crate) mod completions;
mod connection;
pub(crate) mod coordinator;
pub(crate) mod doctor;
mod expect;
pub(crate) mod init;
mod ledger;
pub(crate) mod merge;
pub(crate) mod plan;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod slurm;
pub(crate) mod study;
pub(crate) mod table;
pub(crate) mod theory;
pub(crate) mod verify;
pub(crate) mod worker;

use std::io::Write;

use crate::exit::BadInput;

/// Prints a value as indented JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print(&serde_json::to_string_pretty(value)?)
}

/// Prints text to stdout; a closed pipe is an error value, not a panic.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", text.trim_end())?;
    Ok(out.flush()?)
}

/// How many trials are computed at once: as asked, or as many as there are cores.
fn workers(asked: Option<usize>) -> anyhow::Result<usize> {
    let most = proto::limits::MAX_SLOTS as usize;
    match asked {
        Some(count) if (1..=most).contains(&count) => Ok(count),
        Some(count) => {
            Err(BadInput(format!("{count} trials at once cannot be; use 1 to {most}")).into())
        }
        None => Ok(std::thread::available_parallelism().map_or(1, |cores| cores.get().min(most))),
    }
}
