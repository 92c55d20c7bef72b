//! `[grid]`: the axes of a study.

use theory::Delta;
use theory::claims::{Acquisition, Design, Method};

use super::error::FileError;
use super::item::{Item, Section};
use super::keys;
use super::tree::{Table, Value, dotted};
use crate::cell::{MILLION, PolicyConstants};

/// The longest horizon: an estimator keeps a triangle of T x T numbers, 17 GiB at this T.
pub(crate) const LONGEST: u64 = 1 << 16;

/// The largest N: records hold it as a signed number, and f64 holds it exactly.
const MOST_FUNCTIONS: u64 = 1 << 53;

/// The largest share of training entries that may be missing.
pub(super) const MOST_MISSING: f64 = 0.95;

/// What holds where an axis of names is not given.
pub(super) const DEFAULT_DESIGN: Design = Design::Adaptive;
pub(super) const DEFAULT_METHOD: Method = Method::PemBo;
pub(super) const DEFAULT_ACQUISITION: Acquisition = Acquisition::GpUcb;
pub(super) const DEFAULT_CONSTANTS: PolicyConstants = PolicyConstants::Printed;

/// The axes, each in ascending order and without repetition.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// N, the numbers of training functions; empty where nothing is estimated.
    pub n: Vec<u64>,
    /// T, the horizons; one run of the longest serves all.
    pub t: Vec<u32>,
    /// delta.
    pub delta: Vec<Delta>,
    /// Who chooses the points.
    pub design: Vec<Design>,
    /// What is known of the prior.
    pub method: Vec<Method>,
    /// Acquisition functions.
    pub acquisition: Vec<Acquisition>,
    /// The constants of the policy's zeta_t.
    pub policy_constants: Vec<PolicyConstants>,
    /// Shares of the training entries that are missing, in millionths.
    pub missing: Vec<u32>,
    /// Shares of the rows of real data that train, in place of N.
    pub portion: Vec<f64>,
}

pub(super) const DESIGNS: &[(&str, Design)] =
    &[("fixed", Design::Fixed), ("adaptive", Design::Adaptive)];
pub(super) const METHODS: &[(&str, Method)] = &[
    ("pem-bo", Method::PemBo),
    ("known-prior", Method::KnownPrior),
    ("random", Method::Random),
    ("plain", Method::Plain),
    ("tlsm-bo", Method::TlsmBo),
    ("box", Method::Box),
    ("niw", Method::Niw),
];
pub(super) const ACQUISITIONS: &[(&str, Acquisition)] =
    &[("gp-ucb", Acquisition::GpUcb), ("pi", Acquisition::Pi)];
pub(super) const CONSTANTS: &[(&str, PolicyConstants)] =
    &[("printed", PolicyConstants::Printed), ("corrected", PolicyConstants::Corrected)];

/// Reads the axes; on real data N may be left out, as it follows from the protocol.
pub(super) fn read(grid: &Section<'_>, real: bool) -> Result<Grid, FileError> {
    let axes = keys::GRID.names();
    let swept = |key: &str| key == "prior" || key.starts_with("prior.");
    let slip = grid.table.iter().find(|(key, _)| !axes.contains(&key.as_str()) && !swept(key));
    if let Some((key, node)) = slip {
        let mut error = grid.unknown(key, node, &axes);
        error.valid.push_str(" and dotted keys such as \"prior.noise_variance\"");
        return Err(error);
    }
    let method = names(grid, "method", METHODS, DEFAULT_METHOD)?;
    let n_given = grid.get("N").is_some();
    let n = match grid.get("N") {
        Some(item) => item.axis(|n| n.count(1, MOST_FUNCTIONS), Ord::cmp)?,
        None if real => Vec::new(),
        None => match method.iter().find(|method| trains(**method)) {
            Some(method) => {
                let needs = format!("N = [200, 500] (method \"{}\" uses them)", method.name());
                return Err(grid.missing("N", &needs));
            }
            None => Vec::new(),
        },
    };
    let horizon = |t: &Item<'_>| Ok(t.count(1, LONGEST)? as u32);
    Ok(Grid {
        n,
        t: grid.need("T", "T = [1, 5, 20]")?.axis(horizon, Ord::cmp)?,
        delta: grid
            .need("delta", "delta = [0.1]")?
            .axis(delta, |a, b| a.get().total_cmp(&b.get()))?,
        design: names(grid, "design", DESIGNS, DEFAULT_DESIGN)?,
        method,
        acquisition: names(grid, "acquisition", ACQUISITIONS, DEFAULT_ACQUISITION)?,
        policy_constants: names(grid, "policy_constants", CONSTANTS, DEFAULT_CONSTANTS)?,
        missing: match grid.get("missing") {
            Some(item) => item.axis(share_missing, Ord::cmp)?,
            None => vec![0],
        },
        portion: match grid.get("portion") {
            Some(item) if real && !n_given => item.axis(portion, f64::total_cmp)?,
            Some(item) => {
                return Err(item.refuse(
                    "is a share of the rows of real data",
                    "use it with setting = \"data\" and without N",
                ));
            }
            None => Vec::new(),
        },
    })
}

/// Whether a method is given an N: `plain` takes zeta_t from it.
pub(crate) fn trains(method: Method) -> bool {
    !matches!(method, Method::KnownPrior | Method::Random)
}

fn share_missing(item: &Item<'_>) -> Result<u32, FileError> {
    let share = item.number()?;
    let parts = libm::round(share * f64::from(MILLION));
    if (0.0..=MOST_MISSING).contains(&share) && (parts / f64::from(MILLION) - share).abs() < 1e-12 {
        return Ok(parts as u32);
    }
    Err(item.refuse(
        "is not a share that may be missing",
        "valid are numbers from 0 to 0.95 with at most six decimals",
    ))
}

fn portion(item: &Item<'_>) -> Result<f64, FileError> {
    let share = item.number()?;
    if share > 0.0 && share <= 1.0 {
        return Ok(share);
    }
    Err(item.refuse("is not a share of the rows", "valid are numbers above 0, up to 1"))
}

fn delta(item: &Item<'_>) -> Result<Delta, FileError> {
    let refuse = |_| {
        let valid = "valid are numbers below 1, from 1e-20 on, such as 0.1";
        item.refuse("is not a probability strictly between 0 and 1", valid)
    };
    Delta::new(item.number()?).map_err(refuse)
}

/// An axis of names, in the order in which they are documented.
fn names<T: Copy + PartialEq>(
    grid: &Section<'_>,
    key: &str,
    choices: &[(&str, T)],
    default: T,
) -> Result<Vec<T>, FileError> {
    let Some(item) = grid.get(key) else {
        return Ok(vec![default]);
    };
    let place = |value: &Item<'_>| {
        let chosen = value.choice(choices)?;
        Ok(choices.iter().position(|choice| choice.1 == chosen).unwrap_or_default())
    };
    let places = item.axis(place, Ord::cmp)?;
    Ok(places.into_iter().map(|place| choices[place].1).collect())
}

/// The swept keys of `[prior]`, in order of key, whether written as `"prior.a.b"` or as `prior.a.b`.
pub(super) fn swept<'a>(grid: &Section<'a>) -> Vec<Item<'a>> {
    let mut items = Vec::new();
    for (key, node) in grid.table {
        match &node.value {
            Value::Table(table) if key == "prior" => leaves("prior", table, grid.file, &mut items),
            _ if key == "prior" || key.starts_with("prior.") => {
                items.push(Item { file: grid.file, key: key.clone(), node });
            }
            _ => {}
        }
    }
    items.sort_by(|a, b| a.key.cmp(&b.key));
    items
}

fn leaves<'a>(key: &str, table: &'a Table, file: &'a str, items: &mut Vec<Item<'a>>) {
    for (name, node) in table {
        let key = dotted(key, name);
        match &node.value {
            Value::Table(table) => leaves(&key, table, file, items),
            _ => items.push(Item { file, key, node }),
        }
    }
}
