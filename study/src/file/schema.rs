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

/// What holds where a key of a kind is not given. The types of [`crate::prior`] fill it in, and a test
/// compares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Absent {
    /// It has to be given.
    Required,
    /// This number.
    Number(f64),
    /// This name.
    Name(&'static str),
}

/// A key of a kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(super) takes: Takes,
    pub(crate) absent: Absent,
}

/// A kind of domain, kernel, mean or features.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [Field],
    /// What it is: a formula where there is one.
    pub(crate) meaning: &'static str,
}

const fn kind_of(name: &'static str, fields: &'static [Field], meaning: &'static str) -> Kind {
    Kind { name, fields, meaning }
}

const fn needed(name: &'static str, takes: Takes) -> Field {
    Field { name, takes, absent: Absent::Required }
}

const fn optional(name: &'static str, takes: Takes, absent: Absent) -> Field {
    Field { name, takes, absent }
}

const VARIANCE: Field = optional("variance", Takes::Number, Absent::Number(1.0));
const LENGTHSCALE: Field = needed("lengthscale", Takes::Numbers);
const PATH: Field = needed("path", Takes::Path);
const POINTS: Field = needed("points", Takes::Count);
const DIMENSION: Field = needed("dimension", Takes::Count);
const SEED: Field = optional("seed", Takes::Count, Absent::Number(0.0));

pub(crate) const DOMAINS: &[Kind] = &[
    kind_of(
        "grid",
        &[POINTS, DIMENSION],
        "k^d points on [0, 1]^d, end points included; `points` is M = k^d",
    ),
    kind_of(
        "uniform",
        &[POINTS, DIMENSION, SEED],
        "independent uniform points; the seed is the domain's own",
    ),
    kind_of(
        "sobol",
        &[POINTS, DIMENSION],
        "the first points of the Sobol sequence, in at most 21 dimensions",
    ),
    kind_of("points", &[PATH], "a file of one point per row"),
    kind_of(
        "data",
        &[PATH],
        "the columns of a file of rewards, numbered 0, 1, .. in one dimension",
    ),
];

pub(crate) const KERNELS: &[Kind] = &[
    kind_of("squared-exponential", &[LENGTHSCALE, VARIANCE], "v exp(-rho^2/2)"),
    kind_of("matern12", &[LENGTHSCALE, VARIANCE], "v exp(-rho)"),
    kind_of("matern32", &[LENGTHSCALE, VARIANCE], "v (1 + sqrt(3) rho) exp(-sqrt(3) rho)"),
    kind_of(
        "matern52",
        &[LENGTHSCALE, VARIANCE],
        "v (1 + sqrt(5) rho + 5 rho^2/3) exp(-sqrt(5) rho)",
    ),
    kind_of(
        "rational-quadratic",
        &[LENGTHSCALE, needed("alpha", Takes::Number), VARIANCE],
        "v (1 + rho^2/(2 alpha))^-alpha",
    ),
    kind_of(
        "periodic",
        &[LENGTHSCALE, needed("period", Takes::Number), VARIANCE],
        "v exp(-2 sum_j sin^2(pi (x_j - y_j)/period)/l_j^2)",
    ),
    kind_of(
        "linear",
        &[VARIANCE, optional("offset", Takes::Number, Absent::Number(0.0))],
        "offset + v sum_j x_j y_j",
    ),
    kind_of("white", &[VARIANCE], "v where x and y are the same point, else 0"),
    kind_of("sum", &[needed("terms", Takes::Kernels)], "the sum of a list of kernels"),
    kind_of("product", &[needed("factors", Takes::Kernels)], "the product of a list of kernels"),
    kind_of("matrix", &[PATH], "a file of M rows and M columns: k itself"),
    kind_of("factor", &[PATH], "a file of M rows: F, with k = F F^T"),
    kind_of(
        "data",
        &[PATH],
        "the sample covariance of a file of rewards, N rows of M columns; what `from_data` is written in",
    ),
    kind_of(
        "cosine",
        &[needed("functions", Takes::Count), LENGTHSCALE, VARIANCE, SEED],
        "compact setting only: v (2/K) sum_k cos(w_k.x + b_k) cos(w_k.y + b_k), K = `functions` (at most 1000), w_k normal with deviations 1/l_j, b_k uniform",
    ),
];

pub(crate) const MEANS: &[Kind] = &[
    kind_of("zero", &[], "0"),
    kind_of("constant", &[needed("value", Takes::Number)], "value"),
    kind_of(
        "linear",
        &[
            needed("weights", Takes::Numbers),
            optional("intercept", Takes::Number, Absent::Number(0.0)),
        ],
        "intercept + sum_j weights_j x_j",
    ),
    kind_of(
        "sine",
        &[
            needed("amplitude", Takes::Number),
            needed("frequency", Takes::Number),
            optional("phase", Takes::Number, Absent::Number(0.0)),
        ],
        "amplitude sin(2 pi frequency sum_j x_j + phase)",
    ),
    kind_of("file", &[PATH], "one value per row, in the order of the points"),
    kind_of(
        "data",
        &[PATH, optional("sense", Takes::Sense, Absent::Name(SENSES[0].0))],
        "the columns' means of a file of rewards",
    ),
];

pub(crate) const FEATURES: &[Kind] = &[
    kind_of("given", &[], "the kernel's own, as the theory takes them"),
    kind_of(
        "learnt",
        &[needed("functions", Takes::Count)],
        "K = `functions` cosine features, learnt from the N training functions of every trial anew",
    ),
];

/// Where functions live, the default first.
pub(super) const SETTINGS: [(&str, ()); 3] = [("finite", ()), ("compact", ()), ("data", ())];

/// What is left of `[prior]` once `rewards` and `from_data` are written as domain, kernel, mean and data.
const EXPANDED: [&str; 8] =
    ["setting", "domain", "kernel", "mean", "noise_variance", "tolerance", "features", "data"];

/// Checks the keys and the types of `[prior]` as [`super::rewards::expand`] leaves it.
pub(super) fn check(prior: &Section<'_>) -> Result<(), FileError> {
    prior.only(&EXPANDED)?;
    let setting = prior.need("setting", "setting = \"finite\"")?;
    setting.choice(&SETTINGS)?;
    let example = "domain = { kind = \"grid\", points = 80, dimension = 1 }";
    kind(&prior.need("domain", example)?, DOMAINS)?;
    let example = "kernel = { kind = \"squared-exponential\", lengthscale = 0.1 }";
    kind(&prior.need("kernel", example)?, KERNELS)?;
    kind(&prior.need("mean", "mean = { kind = \"zero\" }")?, MEANS)?;
    prior.need("noise_variance", "noise_variance = 0.01")?.number()?;
    prior.get("features").map_or(Ok(()), |item| kind(&item, FEATURES))?;
    prior.get("tolerance").map_or(Ok(()), |item| item.number().map(drop))
}

/// Which rewards are good, the default first.
pub(super) const SENSES: [(&str, ()); 2] = [("max", ()), ("min", ())];

fn kind(item: &Item<'_>, kinds: &[Kind]) -> Result<(), FileError> {
    let section = item.section()?;
    let example = format!("kind = \"{}\"", kinds[0].name);
    let choices: Vec<(&str, &[Field])> =
        kinds.iter().map(|kind| (kind.name, kind.fields)).collect();
    let fields = section.need("kind", &example)?.choice(&choices)?;
    let mut keys: Vec<&str> = fields.iter().map(|field| field.name).collect();
    keys.push("kind");
    section.only(&keys)?;
    for &Field { name, takes, absent } in fields {
        match section.get(name) {
            Some(item) => value(&item, takes)?,
            None if absent == Absent::Required => {
                return Err(section.missing(name, example_of(name)));
            }
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
