//! When a study in a folder may go on as another plan.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use super::{Detail, Plan, PlannedCell, Replicates};
use crate::cell::CellId;
use crate::family::EarlierFamily;
use crate::file::Study;

/// Why a plan is not an older one grown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotGrown {
    /// The first key that differs.
    pub key: String,
    /// Its value in the older plan.
    pub old: String,
    /// Its value in the newer one.
    pub new: String,
    /// Why that is another study.
    pub reason: Cow<'static, str>,
}

impl std::error::Error for NotGrown {}

impl fmt::Display for NotGrown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, old, new, reason } = self;
        write!(
            f,
            "this is not the study of the folder grown: {key} was {old} and is {new}, but {reason}; \
             restore it, or use another --out folder"
        )
    }
}

const KEPT: &str = "what has run must stay in the plan";

/// A cell of a sealed dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatasetCell {
    /// The cell.
    pub id: CellId,
    /// How many of its trials are there.
    pub replicates: u64,
    /// Where each was recorded.
    pub checkpoints: Vec<u32>,
}

pub(super) fn check(old: &Plan, new: &Plan) -> Result<(), NotGrown> {
    check_study(&old.study, &new.study)?;
    let missing = old.cells.iter().find(|cell| !is_kept(cell.id, &cell.checkpoints, new));
    missing.map_or(Ok(()), |cell| Err(explain(old, cell, new)))
}

pub(super) fn check_sealed(
    was: Option<&Study>,
    cells: &[DatasetCell],
    new: &Plan,
) -> Result<(), NotGrown> {
    was.map_or(Ok(()), |was| check_study(was, &new.study))?;
    for DatasetCell { id, replicates, checkpoints } in cells {
        let Some(cell) = new.cell(*id) else {
            let axis = was.and_then(|was| lost_axis(was, &new.study));
            let cell = format!("cell {id} of the sealed dataset");
            return Err(axis.unwrap_or_else(|| kept(&cell, "in the plan", "not")));
        };
        if !is_kept(*id, checkpoints, new) {
            return Err(kept("grid.T", list(checkpoints), list(&cell.checkpoints)));
        }
        let most = new.replicates.max();
        if *replicates > most {
            return Err(kept("study.replicates", replicates.to_string(), most.to_string()));
        }
    }
    Ok(())
}

fn check_study(was: &Study, is: &Study) -> Result<(), NotGrown> {
    let differ = |key: &str, was: String, is: String, reason: &'static str| {
        if was == is {
            return Ok(());
        }
        Err(NotGrown { key: key.to_owned(), old: was, new: is, reason: reason.into() })
    };
    let text = |text: &str| format!("\"{text}\"");
    differ("study.name", text(&was.name), text(&is.name), "a study keeps its name")?;
    let seed = "every trial depends on the seed";
    differ("study.seed", was.seed.to_string(), is.seed.to_string(), seed)?;
    if (was.detail == Detail::Summary) != (is.detail == Detail::Summary) {
        let kept = "summaries and full records cannot be mixed";
        differ("study.detail", text(was.detail.name()), text(is.detail.name()), kept)?;
    }
    replicates(was.replicates, is.replicates)
}

/// A claim of an earlier family is evaluated on the column of a swept key: it has to stay.
pub(super) fn check_columns(
    old: &Plan,
    new: &Plan,
    earlier: &[EarlierFamily],
) -> Result<(), NotGrown> {
    let swept = |plan: &Plan| -> BTreeSet<String> {
        plan.priors.iter().flat_map(|prior| &prior.swept).map(|(key, _)| key.clone()).collect()
    };
    let now = swept(new);
    for key in swept(old).difference(&now) {
        let mut claims = earlier.iter().flat_map(EarlierFamily::own);
        let Some(claim) = claims.find(|claim| claim.holds.contains(key.as_str())) else {
            continue;
        };
        let values = old.priors.iter().flat_map(|prior| &prior.swept);
        let values = values.filter(|(swept, _)| swept == key).map(|(_, value)| value.to_string());
        let mut values: Vec<String> = values.collect();
        values.dedup();
        return Err(NotGrown {
            key: format!("grid.\"{key}\""),
            old: list(&values),
            new: "not swept".to_owned(),
            reason: format!(
                "claim {}, which was tested on the trials that exist, names its column and keeps its verdicts",
                claim.id
            )
            .into(),
        });
    }
    Ok(())
}

fn replicates(old: Replicates, new: Replicates) -> Result<(), NotGrown> {
    let reason = match (old, new) {
        (Replicates::Fixed(_), Replicates::Batched { .. })
        | (Replicates::Batched { .. }, Replicates::Fixed(_)) => {
            "a fixed number of trials and early stopping are judged differently"
        }
        (Replicates::Batched { batch: was, .. }, Replicates::Batched { batch: is, .. })
            if was != is =>
        {
            "evidence is weighed after every batch, so its size is kept"
        }
        _ if new.max() < old.max() => "replicates can be added, not taken away",
        _ => return Ok(()),
    };
    let text = |replicates| match replicates {
        Replicates::Fixed(all) => all.to_string(),
        Replicates::Batched { batch, max } => format!("{{ batch = {batch}, max = {max} }}"),
    };
    let (key, reason) = ("study.replicates".to_owned(), reason.into());
    Err(NotGrown { key, old: text(old), new: text(new), reason })
}

/// Whether the newer plan has the cell, with all of its checkpoints.
fn is_kept(cell: CellId, checkpoints: &[u32], new: &Plan) -> bool {
    new.cell(cell)
        .is_some_and(|grown| checkpoints.iter().all(|t| grown.checkpoints.binary_search(t).is_ok()))
}

/// Which key a cell was lost by.
fn explain(old: &Plan, cell: &PlannedCell, new: &Plan) -> NotGrown {
    if let Some(grown) = new.cell(cell.id) {
        return kept("grid.T", list(&cell.checkpoints), list(&grown.checkpoints));
    }
    if let Some(axis) = lost_axis(&old.study, &new.study) {
        return axis;
    }
    if old.study.pi_gap != new.study.pi_gap && cell.cell.policy.gap().is_some() {
        let (was, is) = (old.study.pi_gap, new.study.pi_gap);
        return kept("policy.pi_gap", format!("{was:?}"), format!("{is:?}"));
    }
    prior(old, cell, new)
}

/// The first axis that lost a value.
fn lost_axis(was: &Study, is: &Study) -> Option<NotGrown> {
    let (was, is) = (axes(was), axes(is));
    let mut pairs = was.iter().zip(&is);
    let lost = pairs.find(|((_, was), (_, is))| !was.iter().all(|value| is.contains(value)));
    lost.map(|((key, was), (_, is))| kept(key, list(was), list(is)))
}

fn kept(key: &str, old: impl Into<String>, new: impl Into<String>) -> NotGrown {
    NotGrown { key: key.to_owned(), old: old.into(), new: new.into(), reason: KEPT.into() }
}

/// The cell's prior is what differs: the first key in which no prior of the newer plan agrees.
fn prior(old: &Plan, cell: &PlannedCell, new: &Plan) -> NotGrown {
    let lost = &old.priors[cell.prior].spec;
    let missing = NotGrown {
        key: "prior".to_owned(),
        old: "a prior of the grid".to_owned(),
        new: "none of them".to_owned(),
        reason: KEPT.into(),
    };
    if new.priors.iter().any(|prior| prior.spec == *lost) {
        let (old, new) = ("of other content".to_owned(), "as it is now".to_owned());
        return NotGrown { key: "a file that [prior] names".to_owned(), old, new, ..missing };
    }
    let lost = serde_json::to_value(lost).unwrap_or_default();
    let fields = lost.as_object().into_iter().flatten();
    let now: Vec<serde_json::Value> =
        new.priors.iter().filter_map(|prior| serde_json::to_value(&prior.spec).ok()).collect();
    for (key, value) in fields {
        let Some(other) = now.iter().map(|prior| &prior[key]).next() else {
            break;
        };
        if now.iter().all(|prior| prior[key] != *value) {
            let key = format!("prior.{key}");
            return NotGrown { key, old: value.to_string(), new: other.to_string(), ..missing };
        }
    }
    missing
}

/// The axes on which a cell can stand, as texts.
fn axes(study: &Study) -> Vec<(&'static str, Vec<String>)> {
    let grid = &study.grid;
    let names = |key: &'static str, values: Vec<String>| (key, values);
    vec![
        names("grid.N", grid.n.iter().map(u64::to_string).collect()),
        names("grid.delta", grid.delta.iter().map(ToString::to_string).collect()),
        names("grid.design", grid.design.iter().map(|value| format!("{value:?}")).collect()),
        names("grid.method", grid.method.iter().map(|value| format!("{value:?}")).collect()),
        names("grid.acquisition", grid.acquisition.iter().map(|v| format!("{v:?}")).collect()),
        names(
            "grid.policy_constants",
            grid.policy_constants.iter().map(|value| value.form().to_string()).collect(),
        ),
    ]
}

fn list<T: fmt::Display>(values: &[T]) -> String {
    match values {
        [first, .., last] if values.len() > 20 => format!("[{first}, .., {last}]"),
        _ => format!("[{}]", values.iter().map(T::to_string).collect::<Vec<_>>().join(", ")),
    }
}
