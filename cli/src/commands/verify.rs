//! `regretta verify`: whether a dataset is what was sealed, and whether its trials give the same again.

mod difference;
mod recompute;
mod sample;
mod source;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use analysis::Manifest;
use analysis::dataset::{self, Dataset};
use clap::Args;
use serde::Serialize;
use worker::golden;

use crate::exit::{BadInput, CheckFailed};
use crate::place::{Reading, Source};
use crate::table::Table;
use crate::text;
use difference::Difference;
use recompute::recompute;
use sample::{Sample, Share};

/// Check that a dataset is what was sealed, and compute a sample of its trials again
///
/// Compares every file with its digest in the manifest, and the digest and the numbers of the records with
/// what the Parquet files hold. With --recompute, a sample of trials is computed again from the study file
/// and every value compared, bit for bit: a share of all trials or so many of them, from every cell in
/// proportion and at least one. The sample follows from the dataset's digest and is always the same.
///
/// Of a dataset in an object store every file is downloaded again, whatever the cache has.
///
/// Exit code 0 where all holds, 3 where something does not, 2 where it cannot be checked.
///
/// Examples:
///   regretta verify results/quickstart
///   regretta verify results/quickstart --recompute 1%
///   regretta verify results/quickstart --recompute 200 --json
///   regretta verify fetched --recompute 1% --study studies/lemma1.toml
///   regretta verify s3://bucket/prefix/datasets/quickstart-59ea4ef4d6bd
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// Compute so many trials again: a percentage such as 1%, or a number such as 200
    #[arg(long, value_name = "SHARE")]
    recompute: Option<Share>,
    /// The study file that was run [default: study.toml in DIR]
    #[arg(long, value_name = "PATH", requires = "recompute")]
    study: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    digest: String,
    /// Whether the manifest has a checksum; those of older versions have none.
    checksum: bool,
    /// Files that have the bytes that were sealed.
    files: usize,
    records: u64,
    /// Trials that were computed again.
    recomputed: u64,
    /// Their cells.
    cells: usize,
    differences: Vec<Difference>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let dir = arguments.source.folder(Reading::All, arguments.json)?;
    let manifest = dataset::verify(&dir).map_err(|error| refused(&error))?;
    let mut report = Report {
        digest: manifest.digest.clone(),
        checksum: manifest.is_checked(),
        files: manifest.files.len(),
        records: manifest.records,
        recomputed: 0,
        cells: 0,
        differences: vec![],
    };
    if let Some(share) = arguments.recompute {
        check_again(arguments, &manifest, &dir, share, &mut report)?;
    }
    if arguments.json {
        super::print_json(&report)?;
    } else {
        super::print(&words(&report, arguments.recompute.is_some()))?;
    }
    verdict(&report)
}

/// Computes a sample again and notes what differs.
fn check_again(
    arguments: &Arguments,
    verified: &Manifest,
    dir: &Path,
    share: Share,
    report: &mut Report,
) -> anyhow::Result<()> {
    let dataset = Dataset::open(dir).map_err(|error| refused(&error))?;
    let manifest = &dataset.manifest;
    if manifest != verified {
        return Err(BadInput(format!(
            "the dataset in {} was replaced while it was verified: run the command again",
            arguments.source.dir
        ))
        .into());
    }
    if manifest.numerics != golden::DIGEST {
        return Err(BadInput(format!(
            "{} was computed by regretta {}, whose trials have other bits (numerics {}) than those of \
             this version ({}): recompute it with that version",
            arguments.source.dir,
            manifest.version,
            manifest.numerics,
            golden::DIGEST
        ))
        .into());
    }
    let loaded = source::load(&dataset, arguments.study.as_deref())?;
    let sample = Sample::draw(&dataset, share)?;
    report.recomputed = sample.trials();
    report.cells = sample.cells.len();
    report.differences = recompute(&dataset, &loaded, &sample)?;
    Ok(())
}

/// What was read and is another than sealed is a failed check; what cannot be read is bad input.
fn refused(error: &dataset::Error) -> anyhow::Error {
    if error.is_mismatch() {
        CheckFailed(error.to_string()).into()
    } else {
        BadInput(error.to_string()).into()
    }
}

/// Differences that are listed before the rest is counted.
const LISTED: usize = 40;

fn words(report: &Report, recomputed: bool) -> String {
    let mut words = format!(
        "{} files, {} records: as sealed",
        text::count(report.files as u128),
        text::count(report.records.into())
    );
    if !report.checksum {
        words += "; the manifest, of an older version, has no checksum";
    }
    if recomputed {
        _ = write!(
            words,
            "; {} trials of {} cells recomputed: {}",
            text::count(report.recomputed.into()),
            text::count(report.cells as u128),
            if report.differences.is_empty() { "identical" } else { "different" }
        );
    }
    if report.differences.is_empty() {
        return words;
    }
    let mut table = Table::new(&["address", "t", "column", "stored", "recomputed"]);
    for found in report.differences.iter().take(LISTED) {
        table.row(vec![
            found.address.clone(),
            found.t.to_string(),
            found.column.to_owned(),
            found.stored.to_string(),
            found.recomputed.to_string(),
        ]);
    }
    _ = write!(words, "\n\n{table}");
    if report.differences.len() > LISTED {
        _ = write!(
            words,
            "... and {} more (all of them with --json)",
            report.differences.len() - LISTED
        );
    }
    words
}

fn verdict(report: &Report) -> anyhow::Result<()> {
    let Some(Difference { address, t, column, stored, recomputed }) = report.differences.first()
    else {
        return Ok(());
    };
    let mut trials: Vec<&str> = report.differences.iter().map(|d| d.address.as_str()).collect();
    trials.dedup();
    Err(CheckFailed(format!(
        "{} values of {} trials are not what the study gives; the first: {column} of {address} at t = {t} \
         is {stored}, and recomputed {recomputed}",
        report.differences.len(),
        trials.len()
    ))
    .into())
}
