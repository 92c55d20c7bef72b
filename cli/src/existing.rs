//! What an output folder already holds of a study.

use std::fmt;
use std::path::Path;

use anyhow::Context;
use coordinator::server::Contents;
use coordinator::store;
use serde::Serialize;
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
        write!(f, ", at most {} are left", text::count(self.trials_left))
    }
}

/// Looks into a folder without changing it; refuses one that holds another study.
pub(crate) fn look(out: &Path, plan: &Plan) -> anyhow::Result<Option<Existing>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let Some(peek) = runtime.block_on(store::peek(&ledger(out)))? else { return Ok(None) };
    let mut existing = Existing {
        trials_reused: 0,
        trials_recomputed: 0,
        trials_left: plan.trials(),
        sealed: None,
    };
    for (stored, shards) in peek {
        if stored.id != plan.id {
            let held = Study::parse(&stored.file_name, &stored.text).map(|study| study.name);
            return Err(BadInput(format!(
                "{} holds study \"{}\" ({}), not \"{}\" ({}): use another --out folder",
                out.display(),
                held.unwrap_or_default(),
                stored.id,
                plan.study.name,
                plan.id
            ))
            .into());
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
