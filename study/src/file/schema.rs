//! The keys of `[prior]`, kind by kind, so that a slip is found with its line.
//!
//! The specification itself is read by the types of [`crate::prior`]; a test holds the two against
//! each other.

use super::error::{FileError, suggest};
use super::item::{Item, Section};
use super::tree::Value;

/// What a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Number,
    /// A number, or a list of them.
    Numbers,
    Count,
    Path,
    /// "max" or "min".
    Sense,
    /// A list of kernels.
    Kernels,
}

/// A key of a kind, what it takes, and whether it may be left out.
pub(super) type Field = (&'static str, Takes, bool);

/// A kind and its keys.
pub(super) type Kind = (&'static str, &'static [Field]);

const NEEDED: bool = true;
const OPTIONAL: bool = false;

const VARIANCE: Field = ("variance", Takes::Number, OPTIONAL);
const LENGTHSCALE: Field = ("lengthscale", Takes::Numbers, NEEDED);
const PATH: Field = ("path", Takes::Path, NEEDED);
const POINTS: Field = ("points", Takes::Count, NEEDED);
const DIMENSION: Field = ("dimension", Takes::Count, NEEDED);

pub(super) const DOMAINS: &[Kind] = &[
    ("grid", &[POINTS, DIMENSION]),
    ("uniform", &[POINTS, DIMENSION, ("seed", Takes::Count, OPTIONAL)]),
    ("sobol", &[POINTS, DIMENSION]),
    ("points", &[PATH]),
    ("data", &[PATH]),
];

pub(super) const KERNELS: &[Kind] = &[
    ("squared-exponential", &[LENGTHSCALE, VARIANCE]),
    ("matern12", &[LENGTHSCALE, VARIANCE]),
    ("matern32", &[LENGTHSCALE, VARIANCE]),
    ("matern52", &[LENGTHSCALE, VARIANCE]),
    ("rational-quadratic", &[LENGTHSCALE, ("alpha", Takes::Number, NEEDED), VARIANCE]),
    ("periodic", &[LENGTHSCALE, ("period", Takes::Number, NEEDED), VARIANCE]),
    ("linear", &[VARIANCE, ("offset", Takes::Number, OPTIONAL)]),
    ("white", &[VARIANCE]),
    ("sum", &[("terms", Takes::Kernels, NEEDED)]),
    ("product", &[("factors", Takes::Kernels, NEEDED)]),
    ("matrix", &[PATH]),
    ("factor", &[PATH]),
    ("data", &[PATH]),
    (
        "cosine",
        &[
            ("functions", Takes::Count, NEEDED),
            LENGTHSCALE,
            VARIANCE,
            ("seed", Takes::Count, OPTIONAL),
        ],
    ),
];

pub(super) const MEANS: &[Kind] = &[
    ("zero", &[]),
    ("constant", &[("value", Takes::Number, NEEDED)]),
    ("linear", &[("weights", Takes::Numbers, NEEDED), ("intercept", Takes::Number, OPTIONAL)]),
    (
        "sine",
        &[
            ("amplitude", Takes::Number, NEEDED),
            ("frequency", Takes::Number, NEEDED),
            ("phase", Takes::Number, OPTIONAL),
        ],
    ),
    ("file", &[PATH]),
    ("data", &[PATH, ("sense", Takes::Sense, OPTIONAL)]),
];

pub(super) const FEATURES: &[Kind] =
    &[("given", &[]), ("learnt", &[("functions", Takes::Count, NEEDED)])];

/// Checks the keys and the types of `[prior]`.
pub(super) fn check(prior: &Section<'_>) -> Result<(), FileError> {
    let keys =
        ["setting", "domain", "kernel", "mean", "noise_variance", "tolerance", "features", "data"];
    prior.only(&keys)?;
    let setting = prior.need("setting", "setting = \"finite\"")?;
    setting.choice(&[("finite", ()), ("compact", ()), ("data", ())])?;
    let example = "domain = { kind = \"grid\", points = 80, dimension = 1 }";
    kind(&prior.need("domain", example)?, DOMAINS)?;
    let example = "kernel = { kind = \"squared-exponential\", lengthscale = 0.1 }";
    kind(&prior.need("kernel", example)?, KERNELS)?;
    kind(&prior.need("mean", "mean = { kind = \"zero\" }")?, MEANS)?;
    prior.need("noise_variance", "noise_variance = 0.01")?.number()?;
    prior.get("features").map_or(Ok(()), |item| kind(&item, FEATURES))?;
    prior.get("tolerance").map_or(Ok(()), |item| item.number().map(drop))
}

/// Which rewards are good.
pub(super) const SENSES: [(&str, ()); 2] = [("max", ()), ("min", ())];

fn kind(item: &Item<'_>, kinds: &[Kind]) -> Result<(), FileError> {
    let section = item.section()?;
    let example = format!("kind = \"{}\"", kinds[0].0);
    let choices: Vec<(&str, &[Field])> = kinds.to_vec();
    let fields = section.need("kind", &example)?.choice(&choices)?;
    let mut keys: Vec<&str> = fields.iter().map(|field| field.0).collect();
    keys.push("kind");
    section.only(&keys)?;
    for &(name, takes, needed) in fields {
        match section.get(name) {
            Some(item) => value(&item, takes)?,
            None if needed => return Err(section.missing(name, example_of(name))),
            None => {}
        }
    }
    Ok(())
}

fn example_of(name: &str) -> &'static str {
    match name {
        "lengthscale" => "lengthscale = 0.1",
        "points" => "points = 80",
        "dimension" => "dimension = 1",
        "functions" => "functions = 50",
        "path" => "path = \"points.csv\"",
        "terms" | "factors" => "a list of kernels",
        "weights" => "weights = [1.0]",
        _ => "a number",
    }
}

fn value(item: &Item<'_>, takes: Takes) -> Result<(), FileError> {
    match takes {
        Takes::Number => item.number().map(drop),
        Takes::Count => item.count(0, u64::MAX).map(drop),
        Takes::Path => item.text().map(drop),
        Takes::Sense => item.choice(&SENSES),
        // Of empty lists the specification itself says what they would have to hold.
        Takes::Numbers => each(item, |entry| entry.number().map(drop)),
        Takes::Kernels => {
            if !matches!(item.node.value, Value::List(_)) {
                return Err(item.refuse("is not a list", "write [{ kind = .. }, ..]"));
            }
            each(item, |entry| kind(entry, KERNELS))
        }
    }
}

fn each(
    item: &Item<'_>,
    check: impl Fn(&Item<'_>) -> Result<(), FileError>,
) -> Result<(), FileError> {
    let Value::List(nodes) = &item.node.value else {
        return check(item);
    };
    nodes.iter().enumerate().try_for_each(|(i, node)| {
        check(&Item { file: item.file, key: format!("{}[{i}]", item.key), node })
    })
}

/// What to say of a swept key whose place is not there.
pub(super) fn no_such_place(item: &Item<'_>, part: &str, siblings: &[&str]) -> FileError {
    FileError {
        value: None,
        reason: format!("sweeps a key of [prior], in which there is no {part}"),
        valid: suggest(part, siblings),
        ..item.refuse("", "")
    }
}
