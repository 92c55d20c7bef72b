//! `regretta slurm status`: jobs, how far the study is, and whether it is sealed.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use analysis::Manifest;
use serde::Serialize;

use super::jobs::{Job, Jobs, Task};
use crate::commands::connection::Connection;
use crate::commands::study::{self, Listed};
use crate::part;
use crate::table::Table;
use crate::text;

#[derive(Serialize)]
struct Report {
    jobs: Vec<Job>,
    /// Jobs of them by state, as Slurm names it, as far as it remembers them.
    states: BTreeMap<String, usize>,
    /// Whether any of them waits or runs.
    queued: bool,
    /// Logs of jobs that ended badly.
    failed: Vec<String>,
    parts: Option<part::Progress>,
    /// What the coordinator has, if one answers.
    studies: Option<Vec<Listed>>,
    /// Of the dataset that these jobs sealed.
    digest: Option<String>,
}

/// Prints where the jobs of a folder stand.
pub(super) fn show(out: &Path, json: bool) -> anyhow::Result<()> {
    let report = report(out)?;
    if json {
        return crate::commands::print_json(&report);
    }
    crate::commands::print(&words(&report, out))
}

fn report(out: &Path) -> anyhow::Result<Report> {
    let jobs = Jobs::read(out)?;
    let tasks = jobs.tasks();
    let mut states = BTreeMap::new();
    for Task { state, reason, .. } in &tasks {
        let state = match (state.as_str(), reason.as_str()) {
            ("PENDING", reason) if reason != "None" => format!("PENDING ({reason})"),
            (state, _) => state.to_owned(),
        };
        *states.entry(state).or_insert(0) += 1;
    }
    let badly = |task: &&Task| {
        !task.is_queued() && !["COMPLETED", "CANCELLED"].contains(&task.state.as_str())
    };
    let log = |task: &Task| out.join("slurm").join(&task.log).display().to_string();
    Ok(Report {
        queued: tasks.iter().any(Task::is_queued),
        failed: tasks.iter().filter(badly).map(log).collect(),
        jobs: jobs.jobs,
        states,
        parts: part::progress(out)?,
        studies: Connection::of_service(&out.join("service")).and_then(|it| study::all(&it).ok()),
        digest: sealed(out),
    })
}

/// The digest of a dataset that is younger than the submission: another may be there of before.
fn sealed(out: &Path) -> Option<String> {
    let written = |name: &str| -> Option<SystemTime> {
        std::fs::metadata(out.join(name)).ok()?.modified().ok()
    };
    let young = written("manifest.json")? >= written("slurm/study.toml")?;
    Manifest::read(out).ok().filter(|_| young).map(|manifest| manifest.digest)
}

fn words(report: &Report, out: &Path) -> String {
    let mut lines = Vec::new();
    if report.states.is_empty() {
        lines.push("Slurm has no job of the study any more".to_owned());
    } else {
        let mut table = Table::new(&["state", "jobs"]);
        for (state, count) in &report.states {
            table.row(vec![state.clone(), count.to_string()]);
        }
        lines.push(table.to_string().trim_end().to_owned());
    }
    lines.extend(report.failed.iter().take(5).map(|log| format!("failed, see {log}")));
    if let Some(parts) = &report.parts {
        lines.push(format!(
            "parts: {} of {} begun, {} trials of at most {}",
            parts.begun,
            parts.of,
            text::count(parts.trials.into()),
            text::count(parts.planned)
        ));
    }
    for study in report.studies.iter().flatten() {
        lines.push(format!(
            "coordinator: {} is {}, {} trials of at most {}",
            study.name,
            study.state,
            text::count(study.trials_done.into()),
            text::count(study.trials_planned.into())
        ));
    }
    lines.push(match &report.digest {
        Some(digest) => format!("sealed, digest {digest}"),
        None if report.queued => "not sealed yet".to_owned(),
        None => format!(
            "not sealed, and no job is left: see {}/slurm/*.log, then submit the study again; what was computed is kept",
            out.display()
        ),
    });
    lines.join("\n")
}
