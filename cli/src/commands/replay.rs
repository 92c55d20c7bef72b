//! `regretta replay`: one trial again, from nothing but its address and the study file.

mod address;
mod claims;
mod files;
mod report;

use std::path::PathBuf;

use clap::Args;
use study::Record;
use study::cell::Ground;
use study::plan::PlannedCell;
use worker::Cpu;
use worker::problem::{Problem, Runs};

use crate::exit::{BadInput, CheckFailed};
use crate::load::{Loaded, load};
use address::Address;
use claims::{Result as Judged, Tested};
use report::Report;

/// Compute one trial again, from its address
///
/// A trial is a pure function of the study's seed, its cell and its replicate, so that no dataset is needed.
/// Prints what the trial recorded and what it says of every claim, violations first. --trace writes what is
/// needed to check it by hand: the domain with f, the prior's factor, the estimates and the true posterior at
/// every step, and the steps.
///
/// ADDRESS is STUDY/CELL/REPLICATE: 12 and 16 hexadecimal digits, and a number from 0. `regretta analyze DIR
/// --worst 20 --claim ID` lists addresses, `regretta plan STUDY.toml` the cells.
///
/// Exit code 3 where an invariant of regretta itself is violated, which is a bug of ours.
///
/// Examples:
///   regretta replay study.toml 2015b874b57d/0123456789abcdef/17
///   regretta replay study.toml 2015b874b57d/0123456789abcdef/17 --trace trial-17
///   regretta replay study.toml 2015b874b57d/0123456789abcdef/17 --json | jq '.records[].best_sample_regret'
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// The study file
    study: PathBuf,
    /// The trial: STUDY/CELL/REPLICATE
    address: String,
    /// Write the trial's inner quantities into this new folder
    #[arg(long, value_name = "DIR")]
    trace: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A trial with all that it was computed from.
struct Trial<'a> {
    loaded: &'a Loaded,
    address: Address,
    cell: &'a PlannedCell,
    prior: Problem,
    records: Vec<Record>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let address: Address = arguments.address.parse()?;
    let loaded = load(&arguments.study)?;
    let cell = address.find(&loaded)?;
    if let Some(dir) = &arguments.trace {
        files::refuse_full(dir)?;
        if cell.cell.ground != Ground::Finite {
            let why = "--trace writes the points of a finite domain, and this cell has none; leave it out";
            return Err(BadInput(why.to_owned()).into());
        }
    }
    let prior = loaded.prior(&loaded.plan.priors[cell.prior])?;
    let records = compute(&loaded, cell, &prior, &address)?;
    let trial = Trial { loaded: &loaded, address, cell, prior, records };
    let tested = claims::judge(&trial);
    if let Some(dir) = &arguments.trace {
        files::write(&trial, dir)?;
    }
    let report = Report::new(&trial, &tested)?;
    if arguments.json {
        super::print_json(&report)?;
    } else {
        let trace = arguments.trace.as_deref();
        super::print(&report::words(&trial, &report, &tested, trace))?;
    }
    broken(&tested)
}

fn compute(
    loaded: &Loaded,
    cell: &PlannedCell,
    prior: &Problem,
    address: &Address,
) -> anyhow::Result<Vec<Record>> {
    let trials = trials(loaded, cell, prior, &cell.checkpoints)?;
    let mut records = Vec::new();
    trials.run([address.replicate], &mut |record| records.push(record));
    Ok(records)
}

/// The trials of a cell, recorded at these checkpoints.
fn trials<'a>(
    loaded: &Loaded,
    cell: &PlannedCell,
    prior: &'a Problem,
    checkpoints: &'a [u32],
) -> anyhow::Result<Runs<'a>> {
    let study = &loaded.plan.study;
    let trials = prior.trials(cell.cell, study.seed, checkpoints, Cpu::detect());
    trials.map_err(|error| BadInput(format!("{}: {error}", study.file)).into())
}

/// An invariant that does not hold is a bug, and no result.
fn broken(tested: &[Tested]) -> anyhow::Result<()> {
    let broken = tested.iter().find(|row| row.invariant && row.result == Judged::Violated);
    let Some(row) = broken else { return Ok(()) };
    let why = format!(
        "the invariant {} is violated at t = {}: a bug of regretta, please report it with the study file \
         and the address",
        row.claim, row.t
    );
    Err(CheckFailed(why).into())
}
