//! What a study came to, once its dataset is sealed: the analysis, and what is printed of it.

use std::path::Path;
use std::time::Duration;

use analysis::pass::Extent;
use analysis::{Analysis, Manifest};
use anyhow::Context;
use serde::Serialize;

use crate::commands::{analyze, print, print_json};
use crate::load::Loaded;
use crate::text;

/// How much is said, and how.
#[derive(Clone, Copy)]
pub(crate) struct Output {
    pub(crate) quiet: bool,
    pub(crate) json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    out: &'a Path,
    digest: &'a str,
    study: &'a str,
    name: &'a str,
    trials: u64,
    records: u64,
    failures: u64,
    seconds: f64,
    #[serde(flatten)]
    counts: Counts,
}

/// Tested rows by their verdict.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct Counts {
    pub(crate) refuted: usize,
    pub(crate) confirmed: usize,
    pub(crate) undecided: usize,
}

/// Analyses a dataset that has just been sealed, tells what was found, and prints it.
pub(crate) fn show(
    manifest: &Manifest,
    out: &Path,
    took: Duration,
    output: Output,
    found: &mut dyn FnMut(Counts),
) -> anyhow::Result<()> {
    if !output.quiet {
        eprintln!("analysing ...");
    }
    let analysed = Analysis::of(out, &[], Extent::All).map_err(analyze::refused)?;
    let written = analysis::report::Report::new(&analysed);
    written.write().map_err(analyze::refused)?;
    let count = |verdict: &str| {
        analysed.verdicts.iter().filter(|row| row.is_tested() && row.verdict == verdict).count()
    };
    let counts = Counts {
        refuted: count("refuted"),
        confirmed: count("confirmed"),
        undecided: count("undecided"),
    };
    let report = Report {
        out,
        digest: &manifest.digest,
        study: &manifest.study,
        name: &manifest.name,
        trials: manifest.trials,
        records: manifest.records,
        failures: manifest.failures,
        seconds: took.as_secs_f64(),
        counts,
    };
    found(counts);
    if output.json {
        return print_json(&report);
    }
    print(&words(&report))?;
    print("")?;
    analyze::show(&analysed, &written, out)
}

fn words(report: &Report<'_>) -> String {
    format!(
        "{} trials ({} failed), {} records in {}\ndigest {}\nresults in {}",
        text::count(report.trials.into()),
        text::count(report.failures.into()),
        text::count(report.records.into()),
        text::duration(report.seconds),
        report.digest,
        report.out.display()
    )
}

/// Keeps the study file with its results.
pub(crate) fn keep_study_file(loaded: &Loaded, out: &Path) -> anyhow::Result<()> {
    let path = out.join("study.toml");
    std::fs::write(&path, &loaded.definition.text)
        .with_context(|| format!("cannot write {}", path.display()))
}
