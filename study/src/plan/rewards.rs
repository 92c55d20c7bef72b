//! What a study on real data takes from its files: how many rows train, and how many there are to optimise.

use std::sync::Arc;

use crate::file::{FileError, PlannedPrior, Study, trains};
use crate::prior::{Files, KernelSpec, Protocol, Setting};

/// A file of rewards whose rows are the functions.
struct Rewards<'a> {
    path: &'a str,
    rows: u64,
    protocol: Protocol,
}

impl Rewards<'_> {
    /// The rows that a trial can be trained on.
    fn others(&self) -> u64 {
        self.rows.saturating_sub(1)
    }
}

/// The files of all priors.
fn files<'a>(priors: &'a [PlannedPrior], files: &Files) -> Vec<Rewards<'a>> {
    let of = |planned: &'a PlannedPrior| match (&planned.spec.kernel, planned.spec.setting) {
        (KernelSpec::Data { path }, Setting::Data) => {
            let rows = files.size("prior.rewards", path).ok()?.rows as u64;
            Some(Rewards { path, rows, protocol: planned.spec.data.unwrap_or_default().protocol })
        }
        _ => None,
    };
    priors.iter().filter_map(of).collect()
}

/// Puts in the N that the protocol or the portions stand for, and refuses more trials than rows.
pub(super) fn resolve(study: &mut Study, loaded: &Files) -> Result<(), FileError> {
    let priors = Arc::clone(&study.priors);
    let files = files(&priors, loaded);
    let Some(least) = files.iter().min_by_key(|file| file.rows) else { return Ok(()) };
    let most = study.replicates.max();
    if most > least.rows {
        return Err(study.refuse(
            "study.replicates",
            Some(most.to_string()),
            format!(
                "is more than the {} rows of \"{}\", each of which is one function",
                least.rows, least.path
            ),
            format!("use at most {}", least.rows),
        ));
    }
    if !study.grid.method.iter().any(|&method| trains(method)) {
        return Ok(());
    }
    let key = if study.grid.portion.is_empty() { "grid.N" } else { "grid.portion" };
    if study.grid.n.is_empty() {
        if let Some(other) = files.iter().find(|file| file.rows != least.rows) {
            return Err(study.refuse(
                key,
                None,
                format!(
                    "stands for numbers of training rows that differ: \"{}\" has {} rows, and \"{}\" {}",
                    least.path, least.rows, other.path, other.rows
                ),
                "give N with protocol = \"first\" or \"random\", or each file a study of its own",
            ));
        }
        let shares = study.grid.portion.iter();
        let portions = shares.map(|share| libm::round(share * least.others() as f64) as u64);
        study.grid.n = portions.collect();
        study.grid.n.dedup();
        if study.grid.n.is_empty() {
            study.grid.n = vec![least.others()];
        }
    }
    files.iter().try_for_each(|file| enough(study, key, file))
}

/// Refuses an N that a file does not have.
fn enough(study: &Study, key: &str, file: &Rewards<'_>) -> Result<(), FileError> {
    let (others, all) = (file.others(), file.protocol == Protocol::LeaveOneOut);
    let refused = study.grid.n.iter().find(|&&n| n > others || n < 2 || (all && n != others));
    match refused {
        None => Ok(()),
        Some(n) if all => Err(study.refuse(
            key,
            Some(n.to_string()),
            format!(
                "is not all of the {others} other rows of \"{}\", which leave-one-out trains on",
                file.path
            ),
            "leave it out, or use protocol = \"first\" or \"random\"",
        )),
        Some(n) => Err(study.refuse(
            key,
            Some(n.to_string()),
            format!(
                "training rows cannot be had from the {} rows of \"{}\", one of which is optimised",
                file.rows, file.path
            ),
            format!("valid are 2 to {others} rows"),
        )),
    }
}
