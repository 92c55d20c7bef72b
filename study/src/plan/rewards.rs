//! What a study on real data takes from its files: how many rows train, and how many there are to optimise.

use crate::file::{FileError, Study};
use crate::prior::{Files, KernelSpec, Protocol, Setting};

/// The rows of each file of rewards, where functions are rows.
fn rows(study: &Study, files: &Files) -> Option<(usize, Protocol)> {
    study.priors.iter().find_map(|planned| {
        let spec = &planned.spec;
        match (&spec.kernel, spec.setting) {
            (KernelSpec::Data { path }, Setting::Data) => {
                let size = files.size("prior.rewards", path).ok()?;
                Some((size.rows, spec.data.unwrap_or_default().protocol))
            }
            _ => None,
        }
    })
}

/// Puts in the N that the protocol or the portions stand for, and refuses more trials than rows.
pub(super) fn resolve(study: &mut Study, files: &Files) -> Result<(), FileError> {
    let Some((rows, protocol)) = rows(study, files) else { return Ok(()) };
    let most = study.replicates.max();
    if most > rows as u64 {
        return Err(study.refuse(
            "study.replicates",
            Some(most.to_string()),
            format!("is more than the {rows} rows of the data, each of which is one function"),
            format!("use at most {rows}"),
        ));
    }
    let others = rows as u64 - 1;
    let all = protocol == Protocol::LeaveOneOut;
    let key = if study.grid.portion.is_empty() { "grid.N" } else { "grid.portion" };
    if !study.grid.portion.is_empty() {
        let shares = study.grid.portion.iter();
        study.grid.n = shares.map(|share| libm::round(share * others as f64) as u64).collect();
        study.grid.n.dedup();
    }
    if study.grid.n.is_empty() {
        study.grid.n = vec![others];
    }
    let refused = study.grid.n.iter().find(|&&n| n > others || n < 2 || (all && n != others));
    match refused {
        None => Ok(()),
        Some(n) if all => Err(study.refuse(
            key,
            Some(n.to_string()),
            format!("is not all of the {others} other rows, which leave-one-out trains on"),
            "leave it out, or use protocol = \"first\" or \"random\"",
        )),
        Some(n) => Err(study.refuse(
            key,
            Some(n.to_string()),
            format!("training rows cannot be had from {rows} rows, one of which is optimised"),
            format!("valid are 2 to {others} rows"),
        )),
    }
}
