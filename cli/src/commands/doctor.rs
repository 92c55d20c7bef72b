//! `regretta doctor`: whether this machine computes the same bits as every other.

use clap::Args;
use serde::Serialize;
use worker::{Cpu, golden};

use crate::exit::CheckFailed;

/// Check that this machine computes the same bits as every other
///
/// Runs fixed trials and compares their digest with the one this version must give. Exit code 3
/// where they differ.
#[derive(Args)]
#[command(after_help = "Examples:
  regretta doctor
  regretta doctor --json")]
pub(crate) struct Arguments {
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
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let cpu = Cpu::detect();
    let numerics_digest = golden::digest(cpu);
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        instruction_set: cpu.name(),
        sound: numerics_digest == golden::DIGEST,
        numerics_digest,
        expected_digest: golden::DIGEST,
    };
    if arguments.json {
        super::print_json(&report)?;
    } else {
        let Report { version, instruction_set, numerics_digest, .. } = &report;
        super::print(&format!(
            "version          {version}\ninstruction set  {instruction_set}\n\
             numerics digest  {numerics_digest}\nas expected      {}",
            if report.sound { "yes" } else { "no" }
        ))?;
    }
    if report.sound {
        return Ok(());
    }
    let why = format!(
        "the numerics digest of this machine differs from {}: its records would not be those of \
         other machines, and no coordinator will take them",
        golden::DIGEST
    );
    Err(CheckFailed(why).into())
}
