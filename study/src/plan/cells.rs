//! The grid as cells. An axis that a method does not use does not multiply its cells.

use std::sync::Arc;

use theory::claims::{Acquisition, Design, Method};
use theory::theorem2;

use super::PlannedCell;
use crate::cell::{Cell, Estimator, Policy, Rival, RivalRule, Training};
use crate::file::trains;
use crate::file::{Detail, FileError, Grid, Study};
use crate::prior::{DomainSpec, Features, Files, PriorSpec, Setting};

/// More cells than a plan can have; a grid that has more is a slip.
pub const MOST_CELLS: usize = 1 << 22;

/// Refuses horizons that a prior cannot serve.
pub(super) fn fits(study: &Study, spec: &PriorSpec, points: usize) -> Result<(), FileError> {
    let horizon = longest(study);
    if spec.setting == Setting::Compact {
        return below_basis(study, spec, horizon);
    }
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

/// Section 4.2 asks for T < K, the number of basis functions that the estimators have.
fn below_basis(study: &Study, spec: &PriorSpec, horizon: u32) -> Result<(), FileError> {
    let basis = match spec.features {
        Some(Features::Learnt { functions }) => Some(functions),
        _ => spec.ground().basis(),
    };
    match basis {
        Some(basis) if horizon >= basis && study.grid.method.iter().any(|&m| trains(m)) => {
            Err(study.refuse(
                "grid.T",
                Some(horizon.to_string()),
                format!("is not below the number of basis functions, K = {basis}"),
                format!("use T < {basis} or more functions"),
            ))
        }
        _ => Ok(()),
    }
}

/// Every cell once, ascending by id.
pub(super) fn expand(study: &Study, files: &Files) -> Result<Vec<PlannedCell>, FileError> {
    let mut known: Vec<(Kind, Vec<Policy>)> = Vec::new();
    let mut total = 0_usize;
    for planned in study.priors.iter() {
        let kind = kind(&planned.spec);
        if known.iter().all(|known| known.0 != kind) {
            known.push((kind, policies(study, &planned.spec)?));
        }
        let of_kind = known.iter().find(|known| known.0 == kind);
        total = total.saturating_add(of_kind.map_or(0, |known| known.1.len()));
    }
    few_enough(study, total as u64)?;
    let checkpoints = checkpoints(study);
    let mut cells = Vec::with_capacity(total);
    for (prior, planned) in study.priors.iter().enumerate() {
        let spec = &planned.spec;
        let (shape, noise_variance, ground) =
            (spec.shape_digest(files), spec.noise_variance, spec.ground());
        let of_kind = known.iter().find(|known| known.0 == kind(spec));
        cells.extend(of_kind.iter().flat_map(|known| &known.1).map(|&policy| {
            let cell = Cell { shape, noise_variance, ground, policy };
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

/// Refuses a grid that is a slip.
pub(super) fn few_enough(study: &Study, cells: u64) -> Result<(), FileError> {
    if cells <= MOST_CELLS as u64 {
        return Ok(());
    }
    let most = format!("valid are grids of at most {MOST_CELLS} cells; shorten an axis");
    Err(study.refuse("grid", None, "has too many cells", most))
}

fn longest(study: &Study) -> u32 {
    study.grid.t.last().copied().unwrap_or_default()
}

pub(super) fn checkpoints(study: &Study) -> Arc<[u32]> {
    match study.detail {
        Detail::Checkpoints | Detail::Summary => study.grid.t.as_slice().into(),
        Detail::Steps => (1..=longest(study)).collect(),
    }
}

/// What the policies on a prior depend on.
type Kind = (Setting, Option<Features>);

fn kind(spec: &PriorSpec) -> Kind {
    (spec.setting, spec.features)
}

/// How many policies there are on a prior for each N, and how many that have no N.
pub(super) fn policy_counts(grid: &Grid) -> (u64, u64) {
    let (missing, deltas) = (grid.missing.len() as u64, grid.delta.len() as u64);
    let levels = deltas.saturating_mul(grid.policy_constants.len() as u64);
    let (mut trained, mut untrained) = (0_u64, 0_u64);
    for design in &grid.design {
        if *design == Design::Fixed {
            trained = trained.saturating_add(missing);
            continue;
        }
        for &method in &grid.method {
            let routes = if method == Method::Plain { 1 } else { missing };
            let ucb = grid.acquisition.contains(&Acquisition::GpUcb);
            let pi = u64::from(grid.acquisition.contains(&Acquisition::Pi));
            match method {
                Method::Random => untrained += 1,
                Method::KnownPrior => untrained += pi + if ucb { deltas } else { 0 },
                Method::Box => trained = trained.saturating_add(routes),
                _ => {
                    let rules = pi + if ucb { levels } else { 0 };
                    trained = trained.saturating_add(routes.saturating_mul(rules));
                }
            }
        }
    }
    (trained, untrained)
}

pub(super) fn policies(study: &Study, spec: &PriorSpec) -> Result<Vec<Policy>, FileError> {
    let grid = &study.grid;
    possible_setting(study, spec)?;
    let mut policies: Vec<Policy> = Vec::new();
    for design in &grid.design {
        match design {
            Design::Fixed => policies.extend(fixed(study, spec)?),
            Design::Adaptive => {
                for &method in &grid.method {
                    let axis = grid.acquisition.iter();
                    let each = axis.flat_map(|&a| adaptive(study, spec, method, a));
                    let left = MOST_CELLS + 1 - policies.len().min(MOST_CELLS);
                    match method {
                        Method::Random => policies.push(Policy::Random),
                        Method::Box => policies.extend(
                            routes(study, spec, method).map(|training| boxed(study, training)),
                        ),
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
fn fixed<'a>(
    study: &'a Study,
    spec: &'a PriorSpec,
) -> Result<impl Iterator<Item = Policy> + use<'a>, FileError> {
    if !study.grid.method.contains(&Method::PemBo) {
        return Err(study.refuse(
            "grid.design",
            Some("\"fixed\"".to_owned()),
            "measures the estimators of method \"pem-bo\", which grid.method does not have",
            "add \"pem-bo\" to grid.method or leave \"fixed\" out",
        ));
    }
    Ok(routes(study, spec, Method::PemBo).map(Policy::Fixed))
}

fn adaptive<'a>(
    study: &'a Study,
    spec: &'a PriorSpec,
    method: Method,
    acquisition: Acquisition,
) -> Box<dyn Iterator<Item = Policy> + 'a> {
    let (grid, gap) = (&study.grid, study.pi_gap);
    let rival = match method {
        Method::Random => return Box::new([Policy::Random].into_iter()),
        Method::KnownPrior if acquisition == Acquisition::Pi => {
            return Box::new([Policy::KnownPi { gap }].into_iter());
        }
        Method::KnownPrior => {
            return Box::new(grid.delta.iter().map(|&delta| Policy::KnownUcb { delta }));
        }
        Method::PemBo => None,
        Method::Plain => Some(Rival::Plain),
        Method::TlsmBo => Some(Rival::TlsmBo),
        Method::Box => Some(Rival::Box),
        Method::Niw => Some(Rival::Niw),
    };
    let routes = routes(study, spec, method);
    match acquisition {
        Acquisition::GpUcb => Box::new(routes.flat_map(move |training| {
            grid.delta.iter().flat_map(move |&delta| {
                let each = grid.policy_constants.iter();
                each.map(move |&constants| match rival {
                    None => Policy::PemUcb { training, delta, constants },
                    Some(rival) => {
                        let rule = RivalRule::Ucb { delta, constants };
                        Policy::Rival { rival, training, rule }
                    }
                })
            })
        })),
        Acquisition::Pi => Box::new(routes.map(move |training| match rival {
            None => Policy::PemPi { training, gap },
            Some(rival) => Policy::Rival { rival, training, rule: RivalRule::Pi { gap } },
        })),
    }
}

/// The training data of a method: every N, by the route that its setting asks for.
fn routes<'a>(
    study: &'a Study,
    spec: &'a PriorSpec,
    method: Method,
) -> impl Iterator<Item = Training> + use<'a> {
    let grid = &study.grid;
    let shares = if method == Method::Plain { &[0][..] } else { &grid.missing };
    shares.iter().flat_map(move |&missing| {
        let estimator = route(spec, method, missing);
        grid.n.iter().map(move |&n| Training { n, estimator })
    })
}

fn route(spec: &PriorSpec, method: Method, missing: u32) -> Estimator {
    match (spec.setting, method, spec.features) {
        (_, Method::Plain, _) => Estimator::Wishart,
        (Setting::Finite | Setting::Data, ..) if missing > 0 => Estimator::Completed { missing },
        (Setting::Data, ..) => Estimator::Rows,
        (Setting::Finite, Method::Niw, _) => Estimator::Dense,
        (_, Method::TlsmBo, _) => Estimator::Simulated,
        (Setting::Compact, _, Some(Features::Learnt { functions })) => {
            Estimator::Learnt { functions }
        }
        _ => Estimator::Wishart,
    }
}

/// The weight of "box" is its acquisition function's, whichever the grid has.
fn boxed(study: &Study, training: Training) -> Policy {
    Policy::Rival { rival: Rival::Box, training, rule: RivalRule::Weight(study.box_weight) }
}

/// Refuses methods and axes that a setting does not have.
fn possible_setting(study: &Study, spec: &PriorSpec) -> Result<(), FileError> {
    let grid = &study.grid;
    if spec.setting == Setting::Compact && grid.missing != [0] {
        return Err(study.refuse(
            "grid.missing",
            None,
            "is about the matrices of the finite setting",
            "leave it out in the compact setting",
        ));
    }
    let kernel = [Method::Plain, Method::TlsmBo].into_iter().find(|m| grid.method.contains(m));
    if let (DomainSpec::Data { .. }, Some(method)) = (&spec.domain, kernel) {
        return Err(study.refuse(
            "grid.method",
            Some(format!("\"{}\"", method.name())),
            "has a kernel on the inputs of the data's columns, which prior.inputs does not give",
            "give inputs = \"inputs.csv\" or leave the method out",
        ));
    }
    if spec.setting != Setting::Data {
        return Ok(());
    }
    if grid.method.contains(&Method::KnownPrior) {
        return Err(study.refuse(
            "grid.method",
            Some("\"known-prior\"".to_owned()),
            "needs a prior, and of real data none is known",
            "leave it out",
        ));
    }
    if grid.design.contains(&Design::Fixed) {
        return Err(study.refuse(
            "grid.design",
            Some("\"fixed\"".to_owned()),
            "measures estimates against a prior, and of real data none is known",
            "leave it out",
        ));
    }
    Ok(())
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
        let key = if study.grid.portion.is_empty() { "grid.N" } else { "grid.portion" };
        let value = if study.grid.portion.is_empty() { n.to_string() } else { format!("{n} rows") };
        Err(study.refuse(key, Some(value), reason, valid))
    };
    let least = u64::from(horizon) + 2;
    if n < least {
        return refuse(format!("is too small for T = {horizon}"), least);
    }
    if let (Some(delta), Some(constants)) = (policy.delta(), policy.constants())
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
