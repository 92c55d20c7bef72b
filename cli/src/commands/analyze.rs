//! `regretta analyze`: verdicts, rates, tables, figures and the report of a dataset.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use analysis::pass::Extent;
use analysis::report::Report;
use analysis::seal::recover_locked;
use analysis::tables::{Table, terminal};
use analysis::{Analysis, Error};
use theory::Delta;

use super::expect::{Expectation, check};
use crate::exit::{BadInput, CheckFailed};
use crate::place::{Place, Reading, Source, folder, lay_out, manifest};

/// Analyse a dataset: verdicts on every claim, rates, tables, figures, report
///
/// Reads DIR as `regretta run` left it, and writes verdicts.json, tables/, figures/, report.html and
/// recheck.py beside the records. The same dataset gives the same files, byte for byte.
///
/// A dataset in an object store (AWS_ENDPOINT_URL, AWS_ALLOW_HTTP, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
/// AWS_REGION say where and as whom) is downloaded once, every file compared with its digest, and laid out in
/// --out, where the analysis is written.
///
/// Examples:
///   regretta analyze results/quickstart
///   regretta analyze results/quickstart --delta 0.01,0.2
///   regretta analyze results/quickstart --only verdicts
///   regretta analyze results/quickstart --worst 20 --claim theorem2.ucb
///   regretta analyze results/quickstart --expect refuted:lemma1.mean --expect confirmed:theorem2.ucb
///   regretta analyze s3://bucket/prefix/datasets/quickstart-59ea4ef4d6bd --out results/quickstart
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// Where the analysis is written, beside the dataset's files [default: DIR, or results/NAME of what is in a store]
    #[arg(long, value_name = "DIR", value_parser = folder)]
    out: Option<PathBuf>,
    /// Further levels to evaluate claims at, where the policy does not depend on delta; exploratory
    #[arg(long, value_delimiter = ',', value_name = "LEVELS")]
    delta: Vec<f64>,
    /// List the trials with the least slack (or the first violations) of --claim, with their addresses
    #[arg(long, value_name = "COUNT", requires = "claim")]
    worst: Option<usize>,
    /// The claim for --worst
    #[arg(long, value_name = "ID", requires = "worst")]
    claim: Option<String>,
    /// Exit with 4 unless it holds: no-refuted, refuted:CLAIM or confirmed:CLAIM, a form after @ (lemma1.mean@corrected)
    #[arg(long, value_name = "WHAT")]
    expect: Vec<Expectation>,
    /// Print the verdicts as JSON, as in verdicts.json
    #[arg(long)]
    json: bool,
    /// Only write files
    #[arg(long, short)]
    quiet: bool,
    /// Write verdicts.json alone, in less time: no rates, tables, figures and report, no digests of record files
    #[arg(long, value_name = "WHAT")]
    only: Option<Only>,
}

/// What an analysis can be limited to.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Only {
    Verdicts,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let deltas = arguments.delta.iter().map(|&level| {
        Delta::new(level).map_err(|error| BadInput(format!("--delta {level}: {error}")))
    });
    let deltas = deltas.collect::<Result<Vec<Delta>, _>>()?;
    // The worst trials are looked up by themselves.
    let is_short = arguments.only.is_some() || arguments.worst.is_some();
    let extent = if is_short { Extent::Verdicts } else { Extent::All };
    let dataset = arguments.source.folder(Reading::Missing, arguments.quiet)?;
    let out = if arguments.worst.is_some() {
        dataset
    } else {
        let out = out(arguments, dataset)?;
        // It is going to write here, so that it may finish what another writer left.
        recover_locked(&out).map_err(|error| BadInput(error.to_string()))?;
        out
    };
    let analysis = Analysis::of(&out, &deltas, extent).map_err(refused)?;
    if let (Some(count), Some(claim)) = (arguments.worst, &arguments.claim) {
        return worst(&analysis, claim, count, arguments.json);
    }
    if let Some(line) = analysis.unanswered(&deltas) {
        eprintln!(
            "regretta: cells of GP-UCB need trials of their own at a new delta; add it to the study and run it again:\n[grid]\n{line}"
        );
    }
    let report = Report::new(&analysis);
    report.write().map_err(refused)?;
    if arguments.json {
        super::print_json(&analysis.verdicts)?;
    } else if !arguments.quiet {
        show(&analysis, &report, &out)?;
    }
    check(&analysis, &arguments.expect)
}

/// The folder with the dataset in which the analysis is written.
fn out(arguments: &Arguments, dataset: PathBuf) -> anyhow::Result<PathBuf> {
    let out = match (&arguments.out, &arguments.source.dir) {
        (Some(out), _) => out.clone(),
        (None, Place::Folder(_)) => return Ok(dataset),
        (None, Place::Store(_)) => Path::new("results").join(manifest(&dataset)?.name),
    };
    lay_out(&dataset, &out)?;
    Ok(out)
}

/// What can be mended by the user is bad input, what does not hold a failed check.
pub(crate) fn refused(error: Error) -> anyhow::Error {
    if error.is_bug() {
        error.into()
    } else if error.is_mismatch() {
        CheckFailed(error.to_string()).into()
    } else {
        BadInput(error.to_string()).into()
    }
}

/// The three sentences, the table of verdicts, the rates, and where the rest is.
pub(crate) fn show(analysis: &Analysis, report: &Report, dir: &Path) -> anyhow::Result<()> {
    let colours = std::io::stdout().is_terminal();
    let mut text = String::new();
    for sentence in report.lead() {
        text += &fill(&sentence.replace('`', ""));
        text.push('\n');
    }
    if let Some(table) = report.tables().iter().find(|table| table.id == "summary") {
        text.push('\n');
        text += &shown(table, colours);
    }
    // Where no claim can be tested, what the methods found is the result.
    let compared = analysis.verdicts.iter().all(|row| !row.is_tested());
    if let Some(table) = report.tables().iter().find(|table| compared && table.id == "best-values")
    {
        text.push('\n');
        text += &shown(table, colours);
    }
    text += &rates(analysis);
    _ = write!(
        text,
        "\n{} verdicts in {}",
        analysis.verdicts.len(),
        dir.join("verdicts.json").display()
    );
    if analysis.extent == Extent::All {
        _ = write!(text, ", report in {}", dir.join("report.html").display());
    }
    super::print(&text)
}

/// Rates shown; the table has all.
const MOST_RATES: usize = 6;

/// Fitted exponents beside the theory's, a line each.
fn rates(analysis: &Analysis) -> String {
    let identified = analysis.fits.iter().filter(|fit| fit.comparison.is_identified());
    let found = identified.filter_map(|fit| Some((fit, fit.comparison.measured.ok()?)));
    let lines: Vec<String> = found
        .map(|(fit, found)| {
            let t = fit.t.map_or(String::new(), |t| format!(", T = {t}"));
            format!(
                "  {} ({}{t}) falls as ({})^-{:.3}, interval {:.3} to {:.3}; theory {:.3}: {}\n",
                fit.quantity.name(),
                fit.of,
                fit.against.name(),
                found.fit.c,
                found.low,
                found.high,
                fit.comparison.claimed,
                fit.comparison.verdict.name()
            )
        })
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    let more = lines.len().saturating_sub(MOST_RATES);
    let more =
        if more == 0 { String::new() } else { format!("  {more} more in tables/exponents.md\n") };
    let shown: String = lines.into_iter().take(MOST_RATES).collect();
    format!("\nRates, empirical against theoretical:\n{shown}{more}")
}

fn shown(table: &Table, colours: bool) -> String {
    terminal(table, width(), colours)
}

fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.unwrap_or(110)
}

/// Lines of at most a terminal's width.
fn fill(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width() {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

fn worst(analysis: &Analysis, claim: &str, count: usize, json: bool) -> anyhow::Result<()> {
    let trials = analysis.worst(claim, count).map_err(refused)?;
    if json {
        return super::print_json(&trials);
    }
    if trials.is_empty() {
        return super::print(&format!("no trial violates {claim}"));
    }
    let mut table =
        crate::table::Table::new(&["address", "t", "delta", "constants", "used", "violated"]);
    for trial in &trials {
        table.row(vec![
            trial.address.clone(),
            trial.t.to_string(),
            trial.delta.to_string(),
            trial.constants.clone().unwrap_or_default(),
            trial.used.map_or(String::new(), |used| format!("{used:.4}")),
            if trial.violated { "yes".into() } else { "no".into() },
        ]);
    }
    super::print(&format!("{table}\n`regretta replay STUDY.toml ADDRESS` computes a trial again"))
}
