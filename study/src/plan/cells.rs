//! The grid as cells. An axis that a method does not use does not multiply its cells.

use std::sync::Arc;

use theory::claims::{Acquisition, Design, Method};
use theory::theorem2;

use super::PlannedCell;
use crate::cell::{Cell, Estimator, Policy, Training};
use crate::file::{Detail, FileError, Study};
use crate::prior::Files;

/// More cells than a plan can have; a grid that has more is a slip.
pub const MOST_CELLS: usize = 1 << 22;

/// Refuses horizons that a domain of so many points cannot serve.
pub(super) fn fits(study: &Study, points: usize) -> Result<(), FileError> {
    let horizon = longest(study);
    if horizon as usize <= points {
        return Ok(());
    }
    Err(study.refuse(
        "grid.T",
        Some(horizon.to_string()),
        format!("is more than the domain's M = {points} points, and none is evaluated twice"),
        format!("use T <= {points}"),
    ))
}

/// Every cell once, ascending by id.
pub(super) fn expand(study: &Study, files: &Files) -> Result<Vec<PlannedCell>, FileError> {
    let policies = policies(study)?;
    let total = policies.len().saturating_mul(study.priors.len());
    if total > MOST_CELLS {
        let most = format!("valid are grids of at most {MOST_CELLS} cells; shorten an axis");
        return Err(study.refuse("grid", None, "has too many cells", most));
    }
    let checkpoints = checkpoints(study);
    let mut cells = Vec::with_capacity(total);
    for (prior, planned) in study.priors.iter().enumerate() {
        let (shape, noise_variance) =
            (planned.spec.shape_digest(files), planned.spec.noise_variance);
        cells.extend(policies.iter().map(|&policy| {
            let cell = Cell { shape, noise_variance, policy };
            PlannedCell { id: cell.id(), cell, prior, checkpoints: Arc::clone(&checkpoints) }
        }));
    }
    // Stable: of priors that are the same by content the first stands.
    cells.sort_by_key(|cell| cell.id);
    cells.dedup_by(|next, kept| next.cell == kept.cell);
    if let Some(pair) = cells.windows(2).find(|pair| pair[0].id == pair[1].id) {
        let reason = format!("has two cells of id {}, a coincidence of one in 2^64", pair[0].id);
        return Err(study.refuse("grid", None, reason, "change any value of either"));
    }
    Ok(cells)
}

fn longest(study: &Study) -> u32 {
    study.grid.t.last().copied().unwrap_or_default()
}

fn checkpoints(study: &Study) -> Arc<[u32]> {
    match study.detail {
        Detail::Checkpoints | Detail::Summary => study.grid.t.as_slice().into(),
        Detail::Steps => (1..=longest(study)).collect(),
    }
}

fn policies(study: &Study) -> Result<Vec<Policy>, FileError> {
    let grid = &study.grid;
    let mut policies: Vec<Policy> = Vec::new();
    for design in &grid.design {
        match design {
            Design::Fixed => policies.extend(fixed(study)?),
            Design::Adaptive => {
                for &method in &grid.method {
                    let each = grid.acquisition.iter().flat_map(|&a| adaptive(study, method, a));
                    let left = MOST_CELLS + 1 - policies.len().min(MOST_CELLS);
                    match method {
                        Method::Random => policies.push(Policy::Random),
                        _ => policies.extend(each.take(left)),
                    }
                }
            }
        }
    }
    policies.iter().try_for_each(|policy| possible(study, policy))?;
    Ok(policies)
}

/// A fixed design watches the estimators, so it needs the method that has them.
fn fixed(study: &Study) -> Result<impl Iterator<Item = Policy>, FileError> {
    if !study.grid.method.contains(&Method::PemBo) {
        return Err(study.refuse(
            "grid.design",
            Some("\"fixed\"".to_owned()),
            "measures the estimators of method \"pem-bo\", which grid.method does not have",
            "add \"pem-bo\" to grid.method or leave \"fixed\" out",
        ));
    }
    Ok(study.grid.n.iter().map(|&n| Policy::Fixed(training(n))))
}

fn adaptive(
    study: &Study,
    method: Method,
    acquisition: Acquisition,
) -> Box<dyn Iterator<Item = Policy> + '_> {
    let (grid, gap) = (&study.grid, study.pi_gap);
    match (method, acquisition) {
        (Method::PemBo, Acquisition::GpUcb) => Box::new(grid.n.iter().flat_map(move |&n| {
            grid.delta.iter().flat_map(move |&delta| {
                let training = training(n);
                let each = grid.policy_constants.iter();
                each.map(move |&constants| Policy::PemUcb { training, delta, constants })
            })
        })),
        (Method::PemBo, Acquisition::Pi) => {
            Box::new(grid.n.iter().map(move |&n| Policy::PemPi { training: training(n), gap }))
        }
        (Method::KnownPrior, Acquisition::GpUcb) => {
            Box::new(grid.delta.iter().map(|&delta| Policy::KnownUcb { delta }))
        }
        (Method::KnownPrior, Acquisition::Pi) => Box::new([Policy::KnownPi { gap }].into_iter()),
        (Method::Random, _) => Box::new([Policy::Random].into_iter()),
    }
}

fn training(n: u64) -> Training {
    Training { n, estimator: Estimator::Wishart }
}

/// Refuses an N that is too small for the longest horizon. Constants exist at every t where they exist
/// at the last.
fn possible(study: &Study, policy: &Policy) -> Result<(), FileError> {
    let Some(Training { n, .. }) = policy.training() else {
        return Ok(());
    };
    let horizon = longest(study);
    let refuse = |reason: String, least: u64| {
        let valid = format!("use N >= {least} or a shorter T");
        Err(study.refuse("grid.N", Some(n.to_string()), reason, valid))
    };
    let least = u64::from(horizon) + 2;
    if n < least {
        return refuse(format!("is too small for T = {horizon}"), least);
    }
    if let Policy::PemUcb { delta, constants, .. } = *policy
        && theorem2::zeta(n, horizon, delta, constants.form()).is_none()
    {
        let reason = format!(
            "is too small for GP-UCB at T = {horizon} and delta = {delta}, where its weight zeta_t \
             does not exist"
        );
        return refuse(reason, theorem2::least_n(horizon, delta));
    }
    Ok(())
}
