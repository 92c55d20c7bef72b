//! Command-line arguments.

use clap::{CommandFactory, Parser, Subcommand};

use crate::commands::{
    analyze, bench, cert, claims, completions, coordinator, doctor, init, merge, plan, replay, run,
    slurm, study, table, theory, verify, worker,
};
use crate::logging;

/// Puts regret bounds to the test.
///
/// Runs studies of the bounds of "Regret bounds for meta Bayesian optimization with an unknown Gaussian
/// process prior" (NeurIPS 2018), on one machine or many: the same records, bit for bit, every time.
#[derive(Parser)]
#[command(
    name = "regretta",
    version,
    after_help = "Examples:
  regretta run studies/quickstart.toml      a study, its verdicts and its report
  regretta theory --n 500 --t 20 --delta 0.1
  regretta init mine.toml                   a study of your own to begin with
  regretta run --help"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// How log lines on stderr look; what is logged is chosen with RUST_LOG
    #[arg(long, global = true, value_enum, default_value_t = logging::Format::Text)]
    log: logging::Format,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Arguments),
    Plan(plan::Arguments),
    Merge(merge::Arguments),
    Analyze(analyze::Arguments),
    Table(table::Arguments),
    Replay(replay::Arguments),
    Verify(verify::Arguments),
    Theory(theory::Arguments),
    Claims(claims::Arguments),
    Bench(bench::Arguments),
    Doctor(doctor::Arguments),
    Coordinator(coordinator::Arguments),
    Worker(worker::Arguments),
    Study(study::Arguments),
    Slurm(slurm::Arguments),
    Cert(cert::Arguments),
    Init(init::Arguments),
    Completions(completions::Completions),
    Man(completions::Man),
}

/// Parses the arguments and runs the command; clap itself exits with 2 on arguments it cannot take.
pub(crate) fn dispatch() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    logging::start(arguments.log);
    match arguments.command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Merge(arguments) => merge::run(&arguments),
        Command::Analyze(arguments) => analyze::run(&arguments),
        Command::Table(arguments) => table::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::Theory(arguments) => theory::run(&arguments),
        Command::Claims(arguments) => claims::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Coordinator(arguments) => coordinator::run(&arguments),
        Command::Worker(arguments) => worker::run(&arguments),
        Command::Study(arguments) => study::run(&arguments),
        Command::Slurm(arguments) => slurm::run(&arguments),
        Command::Cert(arguments) => cert::run(&arguments),
        Command::Init(arguments) => init::run(&arguments),
        Command::Completions(arguments) => {
            completions::completions(&arguments, Arguments::command())
        }
        Command::Man(arguments) => completions::man(&arguments, Arguments::command()),
    }
}
