//! Command-line arguments.

use clap::{Parser, Subcommand};

use crate::commands::{bench, claims, doctor, theory};

/// Puts regret bounds to the test.
///
/// The constants, exact laws and claims of "Regret bounds for meta Bayesian optimization with an unknown
/// Gaussian process prior" (NeurIPS 2018), and the speed of the trials that will test them.
#[derive(Parser)]
#[command(name = "regretta", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Theory(theory::Arguments),
    Claims(claims::Arguments),
    Bench(bench::Arguments),
    Doctor(doctor::Arguments),
}

/// Parses the arguments and runs the command; clap itself exits with 2 on arguments it cannot take.
pub(crate) fn run() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Theory(arguments) => theory::run(&arguments),
        Command::Claims(arguments) => claims::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
    }
}
