//! `regretta slurm status`: jobs, and how far the parts are.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::jobs::{Job, Jobs};
use crate::part;
use crate::table::Table;
use crate::text;

#[derive(Serialize)]
struct Report {
    jobs: Vec<Job>,
    /// Jobs of them by state, as Slurm names it.
    states: BTreeMap<String, usize>,
    parts: Option<part::Progress>,
    digest: Option<String>,
}

/// Prints where the jobs of a folder stand.
pub(super) fn show(out: &Path, json: bool) -> anyhow::Result<()> {
    let jobs = Jobs::read(out)?;
    let queued = jobs.queued();
    let mut states = BTreeMap::new();
    for (_, state, reason) in &queued {
        let state = match (state.as_str(), reason.as_str()) {
            ("PENDING", reason) if reason != "None" => format!("PENDING ({reason})"),
            (state, _) => state.to_owned(),
        };
        *states.entry(state).or_insert(0) += 1;
    }
    let digest = analysis::Manifest::read(out).ok().map(|manifest| manifest.digest);
    let report = Report { jobs: jobs.jobs, states, parts: part::progress(out)?, digest };
    if json {
        return crate::commands::print_json(&report);
    }
    let mut table = Table::new(&["state", "jobs"]);
    for (state, count) in &report.states {
        table.row(vec![state.clone(), count.to_string()]);
    }
    let mut lines = vec![table.to_string().trim_end().to_owned()];
    if report.states.is_empty() {
        lines = vec!["no job of the study is queued or running".to_owned()];
    }
    if let Some(parts) = &report.parts {
        lines.push(format!(
            "parts: {} of {} begun, {} trials of at most {}",
            parts.begun,
            parts.of,
            text::count(parts.trials.into()),
            text::count(parts.planned)
        ));
    }
    lines.push(match &report.digest {
        Some(digest) => format!("sealed, digest {digest}"),
        None => "not sealed yet".to_owned(),
    });
    crate::commands::print(&lines.join("\n"))
}
