//! What an output folder already holds of a study.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::Context;
use coordinator::server::Contents;
use coordinator::store::{self, StoredShard, StoredStudy};
use serde::Serialize;
use study::family::{self, Claims, EarlierFamily, Preview};
use study::file::Study;
use study::plan::Plan;

use crate::commands::plan::ledger;
use crate::exit::BadInput;
use crate::{place, text};

/// What a run would find.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Existing {
    /// Trials that are kept.
    pub(crate) trials_reused: u64,
    /// Trials whose cells have other checkpoints or verdict rows now, and are computed anew.
    pub(crate) trials_recomputed: u64,
    /// Trials that are left to compute, at most.
    pub(crate) trials_left: u128,
    /// The digest of the sealed dataset.
    pub(crate) sealed: Option<String>,
    /// What the change of the study file does to rows of verdicts that have trials.
    pub(crate) change: Preview,
}

impl fmt::Display for Existing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} trials are there and kept", text::count(self.trials_reused.into()))?;
        if self.trials_recomputed > 0 {
            let again = text::count(self.trials_recomputed.into());
            write!(
                f,
                ", {again} are computed again because their cells have other checkpoints or verdict rows now"
            )?;
        }
        write!(f, ", at most {} are left", text::count(self.trials_left))?;
        warning(&self.change).map_or(Ok(()), |warning| write!(f, "\n{warning}"))
    }
}

/// What cannot be taken back once the study has run as it is now.
pub(crate) fn warning(change: &Preview) -> Option<String> {
    let rows = |count: u64, one: &str, many: &str| {
        format!("{} verdict {}", text::count(count.into()), if count == 1 { one } else { many })
    };
    let late = rows(
        change.exploratory,
        "row is exploratory on the trials that exist",
        "rows are exploratory on the trials that exist",
    );
    let gone = rows(
        change.dropped,
        "row is planned no longer and keeps its share of the level",
        "rows are planned no longer and keep their share of the level",
    );
    let what = match (change.exploratory, change.dropped) {
        (0, 0) => return None,
        (_, 0) => late,
        (0, _) => gone,
        _ => format!("{late}, and {gone}"),
    };
    Some(format!(
        "What is tested has changed since these trials ran: {what}. A run records this for good."
    ))
}

/// The families of claims that the ledger of a folder knows, for trials of this plan that come from elsewhere. Where the
/// ledger has trials of other claims than the plan's, that change is to be recorded first.
pub(crate) fn families(out: &Path, plan: &Plan) -> anyhow::Result<Vec<EarlierFamily>> {
    let Some(peek) = peek(out)? else { return Ok(Vec::new()) };
    let mut families = Vec::new();
    for (stored, shards) in peek {
        same_study(&stored, out, plan)?;
        let last = Study::parse(&stored.file_name, &stored.text);
        let tests = |study: &Study| (Claims::of(study).digest(), study.alpha, study.n_opt);
        let is_same = last.is_ok_and(|last| tests(&last) == tests(&plan.study));
        if !shards.is_empty() && !is_same {
            return Err(BadInput(format!(
                "{0} has trials of `regretta run` for other claims than those of the parts: record the change with \
                 `regretta run STUDY.toml --out {0}`, which may be interrupted at once, or use another --out folder",
                out.display()
            ))
            .into());
        }
        families = family::decode(&stored.earlier)?;
    }
    Ok(families)
}

/// The studies of a ledger, with their shards.
type Stored = Vec<(StoredStudy, Vec<StoredShard>)>;

fn peek(out: &Path) -> anyhow::Result<Option<Stored>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    Ok(runtime.block_on(store::peek(&ledger(out)))?)
}

/// Refuses a ledger of another study.
fn same_study(stored: &StoredStudy, out: &Path, plan: &Plan) -> anyhow::Result<()> {
    if stored.id == plan.id {
        return Ok(());
    }
    let held = Study::parse(&stored.file_name, &stored.text).map(|study| study.name);
    Err(other_study(out, &held.unwrap_or_default(), &stored.id.to_string(), plan))
}

/// A folder is for one study.
pub(crate) fn other_study(out: &Path, name: &str, id: &str, plan: &Plan) -> anyhow::Error {
    let (folder, is, is_id) = (out.display(), &plan.study.name, plan.id);
    let what = format!("{folder} holds study \"{name}\" ({id}), not \"{is}\" ({is_id})");
    BadInput(format!("{what}: use another --out folder")).into()
}

/// Looks into a folder without changing it; refuses one that holds another study.
pub(crate) fn look(out: &Path, plan: &Plan) -> anyhow::Result<Option<Existing>> {
    let Some(peek) = peek(out)? else { return Ok(None) };
    let mut existing = Existing {
        trials_reused: 0,
        trials_recomputed: 0,
        trials_left: plan.trials(),
        sealed: None,
        change: Preview::default(),
    };
    for (stored, shards) in peek {
        same_study(&stored, out, plan)?;
        if let Ok(last) = Study::parse(&stored.file_name, &stored.text) {
            let mut drawn = BTreeMap::<String, u64>::new();
            for shard in &shards {
                let known = drawn.entry(shard.row.cell.to_string()).or_default();
                *known = shard.row.range.end.max(*known);
            }
            existing.change = Preview::of(&last, plan, &drawn);
        }
        for shard in shards {
            let trials = shard.row.range.end - shard.row.range.start;
            match plan.cell(shard.row.cell) {
                Some(cell) if Contents::of(plan, cell).digest == shard.row.checkpoints => {
                    existing.trials_reused += trials;
                }
                _ => existing.trials_recomputed += trials,
            }
        }
    }
    existing.trials_left = existing.trials_left.saturating_sub(existing.trials_reused.into());
    if out.join("manifest.json").exists() {
        existing.sealed = Some(place::manifest(out)?.digest);
    }
    Ok(Some(existing))
}
