//! A study file and the files that it names, from disk.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use coordinator::server::Definition;
use study::file::Study;
pub(crate) use study::folder::read;
use study::plan::{Plan, PlannedPrior};
use study::prior::Files;
use worker::prior::MemoryLimit;
use worker::problem::Problem;

use crate::commands::run;
use crate::exit::BadInput;
use crate::sealing;

/// A study that can be run.
pub(crate) struct Loaded {
    pub(crate) definition: Definition,
    pub(crate) files: Files,
    pub(crate) plan: Plan,
}

/// Reads and checks a study file; paths in it are relative to its folder.
pub(crate) fn load(path: &Path) -> anyhow::Result<Loaded> {
    let refused =
        |error| BadInput(format!("cannot read the study file {}: {error}", path.display()));
    let text = String::from_utf8(read(path).map_err(refused)?)
        .map_err(|_| refused(io::Error::other("not UTF-8 text")))?;
    let file_name = path.display().to_string();
    let study = Study::parse(&file_name, &text).map_err(|error| BadInput(error.to_string()))?;
    let base = path.parent().unwrap_or(Path::new("."));
    let mut contents = Vec::new();
    for name in study.paths() {
        let place = base.join(&name);
        let bytes = read(&place).map_err(|error| {
            BadInput(format!(
                "cannot read {}, which {file_name} names: {error}; paths are relative to the study file",
                place.display()
            ))
        })?;
        contents.push((name, converted(&place, bytes)?));
    }
    let mut files = Files::default();
    for (name, bytes) in &contents {
        let inserted = files.insert(name, bytes.clone());
        inserted.map_err(|error| BadInput(error.to_string()))?;
    }
    for notice in files.notices() {
        eprintln!("regretta: {notice}");
    }
    let plan = Plan::new(study, &files).map_err(|error| BadInput(error.to_string()))?;
    let loaded =
        Loaded { definition: Definition { file_name, text, files: contents }, files, plan };
    check_own_claims(&loaded)?;
    Ok(loaded)
}

/// The bytes of a file, or of its matrix in NPY where it is Parquet: workers read no Parquet. The
/// content's digest is that of the matrix then.
fn converted(place: &Path, bytes: Vec<u8>) -> anyhow::Result<Vec<u8>> {
    if !bytes.starts_with(b"PAR1") {
        return Ok(bytes);
    }
    let matrix =
        analysis::matrix::read(place, bytes).map_err(|error| BadInput(error.to_string()))?;
    Ok(study::prior::to_npy(matrix.rows, matrix.columns, &matrix.values))
}

/// What could not be evaluated in the end is refused before anything runs.
fn check_own_claims(loaded: &Loaded) -> anyhow::Result<()> {
    let plan = &loaded.plan;
    let swept: Vec<_> = plan.priors.iter().flat_map(sealing::swept).collect();
    let types =
        analysis::schema::types(swept.iter()).map_err(|error| BadInput(error.to_string()))?;
    let refused = |error: analysis::own::Error| BadInput(error.to_string());
    analysis::own::check(&plan.study, &types).map_err(refused)?;
    let checked = analysis::own::check_budgets(plan, &types, None).map_err(refused)?;
    if checked.is_none() {
        // A budget that depends on more than the grid.
        let priors = run::priors(loaded)?;
        analysis::own::check_budgets(plan, &types, Some(&priors)).map_err(refused)?;
    }
    Ok(())
}

impl Loaded {
    /// Where the results go: `--out`, or `results/NAME`.
    pub(crate) fn out(&self, out: Option<&Path>) -> PathBuf {
        out.map_or_else(|| Path::new("results").join(&self.plan.study.name), Path::to_path_buf)
    }

    /// Builds a prior of the plan, and refuses what cannot be built.
    pub(crate) fn prior(&self, prior: &PlannedPrior) -> anyhow::Result<Problem> {
        let built = Problem::build(&prior.spec, &self.files, memory_limit()?);
        built.map_err(|error| BadInput(format!("{}: {error}", self.definition.file_name)).into())
    }
}

/// Half of the memory of the machine, or of the container where that has less, for a prior and the trials on it.
pub(crate) fn memory_limit() -> anyhow::Result<MemoryLimit> {
    let text = std::fs::read_to_string("/proc/meminfo").context("cannot read the memory's size")?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kibibytes = total.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse().ok());
    let machine = kibibytes.unwrap_or(4_u64 << 20) * 1024;
    let container = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok())
        .min();
    let bytes = container.map_or(machine, |limit| machine.min(limit)) / 2;
    Ok(MemoryLimit { bytes, state_per_point: 8 * 24 })
}
