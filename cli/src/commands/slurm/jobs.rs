//! Jobs that were submitted for an output folder.

use std::path::Path;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use super::script::Script;
use super::site::ask;
use crate::exit::BadInput;

/// The jobs of a study, in the order in which they were submitted.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Jobs {
    pub(super) jobs: Vec<Job>,
}

/// A job, or an array of jobs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) id: String,
    pub(super) name: String,
}

impl Jobs {
    /// Submits scripts; the ones that come last wait for all others.
    pub(super) fn submit(scripts: &[Script], out: &Path) -> anyhow::Result<Self> {
        let folder = out.join("slurm");
        let mut jobs = Self { jobs: Vec::new() };
        for Script { name, text, last } in scripts {
            let path = folder.join(format!("{name}.sh"));
            std::fs::write(&path, text)
                .map_err(|error| BadInput(format!("cannot write {}: {error}", path.display())))?;
            let path = path.display().to_string();
            let ids: Vec<&str> = jobs.jobs.iter().map(|job| job.id.as_str()).collect();
            let after = format!("--dependency=afterok:{}", ids.join(":"));
            let mut arguments = vec!["--parsable"];
            if *last && !ids.is_empty() {
                arguments.extend([after.as_str(), "--kill-on-invalid-dep=yes"]);
            }
            arguments.push(&path);
            let said = ask("sbatch", &arguments)?;
            // ID, or ID;CLUSTER.
            let id = said.trim().split(';').next().unwrap_or_default().to_owned();
            jobs.jobs.push(Job { id, name: name.clone() });
            // Written as they are known, so that none is forgotten where a later one is refused.
            jobs.write(out)?;
        }
        Ok(jobs)
    }

    fn write(&self, out: &Path) -> anyhow::Result<()> {
        let path = out.join("slurm/jobs.json");
        std::fs::write(&path, serde_json::to_vec_pretty(self)?)
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// The jobs of a folder.
    pub(super) fn read(out: &Path) -> anyhow::Result<Self> {
        let path = out.join("slurm/jobs.json");
        let text = std::fs::read(&path).map_err(|error| {
            let advice = "submit the study with `regretta slurm submit STUDY.toml --out DIR`";
            BadInput(format!("no jobs were submitted for {} ({error}); {advice}", out.display()))
        })?;
        serde_json::from_slice(&text).with_context(|| format!("cannot read {}", path.display()))
    }

    /// Two sets of jobs for one folder would compute everything twice.
    pub(super) fn refuse_running(out: &Path) -> anyhow::Result<()> {
        let Ok(jobs) = Self::read(out) else { return Ok(()) };
        let queued = jobs.queued();
        if let Some((id, state, _)) = queued.first() {
            bail!(BadInput(format!(
                "job {id} of {} is {state}; wait for it, or end all with: scancel {}",
                out.display(),
                jobs.jobs.iter().map(|job| job.id.as_str()).collect::<Vec<_>>().join(" ")
            )));
        }
        Ok(())
    }

    /// Id, state and reason of what Slurm still has of them.
    pub(super) fn queued(&self) -> Vec<(String, String, String)> {
        let mut queued = Vec::new();
        for job in &self.jobs {
            // Slurm forgets jobs that ended some time ago, and then does not know the id.
            let Ok(said) = ask("squeue", &["-h", "-o", "%i|%T|%r", "-j", &job.id]) else {
                continue;
            };
            for line in said.lines() {
                let mut fields = line.splitn(3, '|').map(str::to_owned);
                if let (Some(id), Some(state)) = (fields.next(), fields.next()) {
                    queued.push((id, state, fields.next().unwrap_or_default()));
                }
            }
        }
        queued
    }

    pub(super) fn print(&self, json: bool) -> anyhow::Result<()> {
        if json {
            return crate::commands::print_json(self);
        }
        let lines: Vec<String> =
            self.jobs.iter().map(|job| format!("job {}: {}", job.id, job.name)).collect();
        crate::commands::print(&lines.join("\n"))
    }
}
