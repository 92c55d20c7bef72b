//! Jobs that were submitted for an output folder.

use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use super::script::{After, Script};
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

/// A job as Slurm sees it, one for each job of an array.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) id: String,
    pub(super) state: String,
    /// Why it waits.
    pub(super) reason: String,
    /// The name of its log, as its script has it.
    pub(super) log: String,
}

impl Task {
    fn parse(name: &str, line: &str) -> Option<Self> {
        let mut fields = line.splitn(3, '|').map(str::to_owned);
        let (id, state) = (fields.next()?, fields.next()?);
        let log = format!("{name}-{}.log", id.replace('_', "-"));
        Some(Self { id, state, reason: fields.next().unwrap_or_default(), log })
    }

    /// Whether it waits, runs, or is on its way out.
    pub(super) fn is_queued(&self) -> bool {
        !ENDED.contains(&self.state.as_str())
    }
}

/// States of jobs that are over.
const ENDED: [&str; 9] = [
    "COMPLETED",
    "FAILED",
    "CANCELLED",
    "TIMEOUT",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "BOOT_FAIL",
    "DEADLINE",
    "PREEMPTED",
];

impl Jobs {
    /// Submits scripts, all or none.
    pub(super) fn submit(scripts: &[Script], out: &Path) -> anyhow::Result<Self> {
        let folder = out.join("slurm");
        forget_ids(&folder)?;
        let mut jobs = Self { jobs: Vec::new() };
        for script in scripts {
            if let Err(error) = jobs.add(script, &folder) {
                let ids = jobs.ids();
                if !ids.is_empty() {
                    _ = ask("scancel", &ids);
                }
                return Err(error);
            }
            // Written as they are known, so that none is forgotten where a later one is not reached.
            jobs.write(out)?;
        }
        Ok(jobs)
    }

    fn add(&mut self, script: &Script, folder: &Path) -> anyhow::Result<()> {
        let Script { name, text, after } = script;
        let written = |path: &Path, text: &str| {
            write_private(path, text)
                .map_err(|error| BadInput(format!("cannot write {}: {error}", path.display())))
        };
        let path = folder.join(format!("{name}.sh"));
        written(&path, text)?;
        let ids = self.ids();
        let depends = match (after, ids.first()) {
            (After::Start, Some(first)) => Some(format!("--dependency=after:{first}")),
            (After::Success, Some(_)) => Some(format!("--dependency=afterok:{}", ids.join(":"))),
            _ => None,
        };
        let mut arguments = vec!["--parsable"];
        if let Some(depends) = &depends {
            arguments.extend([depends.as_str(), "--kill-on-invalid-dep=yes"]);
        }
        let path = path.display().to_string();
        arguments.push(&path);
        let said = ask("sbatch", &arguments)?;
        // ID, or ID;CLUSTER.
        let id = said.trim().split(';').next().unwrap_or_default().to_owned();
        // Jobs find each other by these.
        written(&folder.join(format!("{name}.id")), &format!("{id}\n"))?;
        self.jobs.push(Job { id, name: name.clone() });
        Ok(())
    }

    fn ids(&self) -> Vec<&str> {
        self.jobs.iter().map(|job| job.id.as_str()).collect()
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
        if let Some(Task { id, state, .. }) = jobs.tasks().iter().find(|task| task.is_queued()) {
            bail!(BadInput(format!(
                "job {id} of {} is {state}; wait for it, or end all with: scancel {}",
                out.display(),
                jobs.ids().join(" ")
            )));
        }
        Ok(())
    }

    /// What Slurm knows of the jobs. It forgets those that ended some minutes ago.
    pub(super) fn tasks(&self) -> Vec<Task> {
        let mut tasks = Vec::new();
        for job in &self.jobs {
            // Every job of an array by itself; an id that is forgotten is an error.
            let fields = ["-h", "-r", "-t", "all", "-o", "%i|%T|%r", "-j", &job.id];
            let said = ask("squeue", &fields).unwrap_or_default();
            tasks.extend(said.lines().filter_map(|line| Task::parse(&job.name, line)));
        }
        tasks
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

/// Writes a file that others cannot read: options of sbatch may hold secrets.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // One of an earlier submission keeps its mode when it is opened.
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())
}

/// Removes the ids of an earlier submission, which may have had more jobs.
fn forget_ids(folder: &Path) -> anyhow::Result<()> {
    let words = || format!("cannot read {}", folder.display());
    for entry in std::fs::read_dir(folder).with_context(words)? {
        let path = entry.with_context(words)?.path();
        if path.extension().is_some_and(|extension| extension == "id") {
            std::fs::remove_file(&path)
                .with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_for_their_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("merge.sh");
        std::fs::write(&path, "an earlier and longer one").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        for path in [path, dir.path().join("new.sh")] {
            write_private(&path, "text").unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "text");
        }
    }

    #[test]
    fn lines_of_squeue_are_read() {
        let parse = |line| Task::parse("parts-1", line);
        let task = parse("12_3|PENDING|Dependency").unwrap();
        assert_eq!((task.id.as_str(), task.reason.as_str()), ("12_3", "Dependency"));
        assert_eq!(task.log, "parts-1-12-3.log");
        assert!(task.is_queued());
        assert!(parse("12|COMPLETING|None").unwrap().is_queued());
        assert!(!parse("12|FAILED|NonZeroExitCode").unwrap().is_queued());
        assert_eq!(parse(""), None);
    }
}
