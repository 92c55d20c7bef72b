//! `regretta merge`: the parts of a study as one dataset.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;

use crate::exit::BadInput;
use crate::outcome::{self, Output};
use crate::part::gather;
use crate::place::folder;
use crate::{existing, sealing};

/// Put the parts of a study together
///
/// Reads the files that `regretta run STUDY.toml --part I/K` wrote, checks that all trials of the study are
/// there, seals them and analyses them: the same dataset, with the same digest, as that of one whole run.
#[derive(Args)]
#[command(after_help = "Examples:
  regretta merge results/lemma1 --out results/lemma1
  regretta merge node1/lemma1 node2/lemma1 --out results/lemma1 --json")]
pub(crate) struct Arguments {
    /// Folders with parts: the --out of the runs
    #[arg(required = true, value_name = "DIR", value_parser = folder)]
    parts: Vec<PathBuf>,
    /// The folder of the dataset
    #[arg(long, value_name = "DIR", value_parser = folder)]
    out: PathBuf,
    /// No progress on stderr
    #[arg(long, short)]
    quiet: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let began = Instant::now();
    let mut gathered = gather(&arguments.parts)?;
    let out = &arguments.out;
    std::fs::create_dir_all(out)
        .map_err(|error| BadInput(format!("cannot create {}: {error}", out.display())))?;
    sealing::keeps(&gathered.loaded.plan, out)?;
    gathered.results.earlier = existing::families(out, &gathered.loaded.plan)?;
    if !arguments.quiet {
        eprintln!("sealing {} parts ...", gathered.parts);
    }
    let priors = super::run::priors(&gathered.loaded)?;
    analysis::seal::recover(out)?;
    let text = &gathered.loaded.definition.text;
    let manifest = sealing::write(&gathered.results, gathered.reader(), text, &priors, out)?;
    let output = Output { quiet: arguments.quiet, json: arguments.json };
    outcome::show(&manifest, out, began.elapsed(), output, &mut |_| {})
}
