//! `regretta table`: one table of verdicts, in the shape that a paper needs.

use analysis::Analysis;
use analysis::pass::Extent;
use analysis::report::{Show, Wanted, shape, shape_of};
use analysis::tables::{Format, render};

use super::analyze::refused;
use crate::exit::BadInput;
use crate::place::{Place, Reading, Source};

/// One table of verdicts, in any shape and format
///
/// Rows and columns are axes of verdicts.json: claim, constants, at, among, design, method, acquisition,
/// policy_constants, N, delta, t, and every swept key. A folder has to be analysed before; the verdicts of a dataset
/// in an object store are made on the way.
///
/// Examples:
///   regretta table results/lemma1 --claim lemma1.mean --rows N --cols t --where delta=0.1 --where constants=printed
///   regretta table results/theorem2 --claim theorem2.ucb --rows N,delta --cols t --show tightness --format tex
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// The claims: an id, or a pattern such as "theorem2.*"
    #[arg(long, value_name = "ID")]
    claim: String,
    /// Axes of the rows
    #[arg(long, value_delimiter = ',', value_name = "AXES", required = true)]
    rows: Vec<String>,
    /// The axis of the columns
    #[arg(long, value_name = "AXIS")]
    cols: String,
    /// Only verdicts with this value, as in delta=0.1; may be given several times
    #[arg(long = "where", value_name = "AXIS=VALUE")]
    conditions: Vec<String>,
    /// What the cells show: coverage, violations, verdict, required, exact, tightness, bound, shrink, random, worst-case,
    /// log-e-refute or log-e-confirm
    #[arg(long, value_name = "WHAT", default_value = "coverage")]
    show: Show,
    /// text, csv, md, tex or html
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
    /// The caption
    #[arg(long, value_name = "TEXT")]
    caption: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let conditions = arguments.conditions.iter().map(|text| {
        let parts = text.split_once('=').filter(|(axis, _)| !axis.is_empty());
        let parts = parts.map(|(axis, value)| (axis.trim().to_owned(), value.trim().to_owned()));
        parts.ok_or_else(|| BadInput(format!("--where {text}: write AXIS=VALUE, as in delta=0.1")))
    });
    let wanted = Wanted {
        claim: arguments.claim.clone(),
        rows: arguments.rows.clone(),
        columns: arguments.cols.clone(),
        conditions: conditions.collect::<Result<_, _>>()?,
        show: arguments.show,
    };
    let dir = arguments.source.folder(Reading::Missing, true)?;
    let table = match &arguments.source.dir {
        Place::Folder(_) => shape(&dir, &wanted),
        Place::Store(_) => {
            let analysis = Analysis::of(&dir, &[], Extent::Verdicts).map_err(refused)?;
            shape_of(&analysis.dataset.manifest, &analysis.verdicts, &wanted)
        }
    };
    let mut table = table.map_err(|error| BadInput(error.to_string()))?;
    if let Some(caption) = &arguments.caption {
        table.caption.clone_from(caption);
    }
    super::print(&render(&table, arguments.format))
}
