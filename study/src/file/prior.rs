//! `[prior]` and the keys of it that `[grid]` sweeps: one specification per combination.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde_json::{Number, Value as Json};

use super::error::FileError;
use super::item::{Item, Section};
use super::keys;
use super::rewards;
use super::schema;
use super::tree::{Node, Value, dotted};
use crate::prior::PriorSpec;

/// More priors than anybody waits for; a sweep that has more is a slip.
pub(crate) const MOST_PRIORS: usize = 100_000;

/// A value of a swept key.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// A count.
    Integer(i64),
    /// A number.
    Float(f64),
    /// A name or a path.
    Text(String),
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Text(value) => write!(f, "{value:?}"),
        }
    }
}

/// A prior of the grid, and what it differs in from the others.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedPrior {
    /// The prior.
    pub spec: PriorSpec,
    /// Swept dotted keys with their values here, in order of key.
    pub swept: Vec<(String, Scalar)>,
}

/// A dotted key of `[grid]` and the values that it takes.
struct Sweep<'a> {
    item: Item<'a>,
    path: Vec<Part>,
    values: Vec<Item<'a>>,
}

/// A step from a value to one inside it.
#[derive(Clone, Debug)]
enum Part {
    Key(String),
    Index(usize),
}

/// Which priors of the grid are read.
#[derive(Clone, Copy)]
pub(super) enum Expand {
    All,
    /// Those with the least or the largest value of every swept number, and every swept name.
    Corners,
}

/// More corners than are looked at.
const MOST_CORNERS: usize = 64;

/// Priors of the grid, and the line of every key that one can be refused for.
pub(super) struct Priors {
    pub(super) planned: Arc<[PlannedPrior]>,
    /// How many priors the grid has.
    pub(super) total: usize,
    /// Whether what was asked for is there: a grid with too many corners gives its first prior alone.
    pub(super) complete: bool,
    pub(super) lines: BTreeMap<String, usize>,
}

/// Reads `[prior]` with the swept keys, which are those of `[grid]` that begin with `prior.`.
pub(super) fn read(
    prior: &Item<'_>,
    swept: &[Item<'_>],
    expand: Expand,
) -> Result<Priors, FileError> {
    let base = with_defaults(prior)?;
    let sweeps = swept.iter().map(sweep).collect::<Result<Vec<_>, _>>()?;
    let sizes = sweeps.iter().map(|sweep| sweep.values.len());
    let total = sizes.fold(1, usize::saturating_mul);
    if let Some(last) = sweeps.last().filter(|_| total > MOST_PRIORS) {
        let reason = format!("makes {total} priors with the other swept keys");
        return Err(last.item.refuse(reason, format!("valid are at most {MOST_PRIORS}")));
    }
    let mut lines = BTreeMap::new();
    collect_lines("prior", &base, &mut lines);
    for sweep in &sweeps {
        lines.insert(sweep.item.key.clone(), sweep.item.node.line);
    }
    let (complete, indices) = match expand {
        Expand::All => (true, (0..total).collect()),
        Expand::Corners => corners(&sweeps).map_or((false, vec![0]), |corners| (true, corners)),
    };
    let planned = indices.into_iter().map(|index| combination(prior.file, &base, &sweeps, index));
    let planned = planned.collect::<Result<_, _>>()?;
    Ok(Priors { planned, total, complete, lines })
}

/// The corners of the sweeps' product, as [`combination`] counts; `None` where there are too many.
fn corners(sweeps: &[Sweep<'_>]) -> Option<Vec<usize>> {
    let mut indices = vec![0];
    for sweep in sweeps {
        let places = extremes(&sweep.values);
        let crossed = indices.len().saturating_mul(places.len());
        if crossed > MOST_CORNERS {
            return None;
        }
        let next = |index| places.iter().map(move |place| index * sweep.values.len() + place);
        indices = indices.iter().flat_map(|&index| next(index)).collect();
    }
    Some(indices)
}

/// The places of the least and the largest number; of names all.
fn extremes(values: &[Item<'_>]) -> Vec<usize> {
    let numbers: Option<Vec<f64>> = values.iter().map(|value| value.number().ok()).collect();
    let Some(numbers) = numbers else { return (0..values.len()).collect() };
    let by_value = |&a: &usize, &b: &usize| numbers[a].total_cmp(&numbers[b]);
    let (least, largest) = ((0..values.len()).min_by(by_value), (0..values.len()).max_by(by_value));
    let mut places: Vec<usize> = least.into_iter().chain(largest).collect();
    places.dedup();
    places
}

/// The table with what may be left out of it: the finite setting, and a mean of zero; and with what
/// `rewards` and `from_data` stand for.
fn with_defaults(prior: &Item<'_>) -> Result<Node, FileError> {
    let section = prior.section()?;
    section.only(&keys::PRIOR.names())?;
    let mut table = section.table.clone();
    rewards::expand(&section, &mut table)?;
    let line = section.line;
    let text = |text: &str| Node { value: Value::Text(text.to_owned()), line };
    table.entry("setting".to_owned()).or_insert_with(|| text(schema::SETTINGS[0].0));
    let zero = || Value::Table([("kind".to_owned(), text("zero"))].into());
    table.entry("mean".to_owned()).or_insert_with(|| Node { value: zero(), line });
    Ok(Node { value: Value::Table(table), line })
}

fn collect_lines(key: &str, node: &Node, lines: &mut BTreeMap<String, usize>) {
    lines.insert(key.to_owned(), node.line);
    match &node.value {
        Value::Table(table) => {
            table.iter().for_each(|(name, node)| collect_lines(&dotted(key, name), node, lines));
        }
        Value::List(nodes) => {
            let each = nodes.iter().enumerate();
            each.for_each(|(i, node)| collect_lines(&format!("{key}[{i}]"), node, lines));
        }
        _ => {}
    }
}

fn sweep<'a>(item: &Item<'a>) -> Result<Sweep<'a>, FileError> {
    let values = item.entries()?;
    let mut seen = HashSet::new();
    for value in &values {
        if matches!(value.node.value, Value::List(_) | Value::Table(_)) {
            return Err(value.refuse("is not a scalar", "give numbers or strings"));
        }
        if !seen.insert(canonical(&value.node.value)) {
            return Err(value.refuse("is given twice", "give every value once"));
        }
    }
    Ok(Sweep { item: item.clone(), path: parts(item)?, values })
}

/// A text that is equal for values that are: 1 and 1.0, 0.0 and -0.0.
fn canonical(value: &Value) -> String {
    match value {
        // Above this, neighbouring whole numbers are the same f64 and say nothing of each other.
        Value::Float(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
            (*number as i64).to_string()
        }
        other => other.to_full(),
    }
}

/// The steps of a dotted key such as `prior.kernel.terms[0].lengthscale`, without `prior` itself.
fn parts(item: &Item<'_>) -> Result<Vec<Part>, FileError> {
    let refuse = || FileError {
        value: None,
        ..item.refuse(
            "is not the dotted key of a scalar of [prior]",
            "write for example \"prior.kernel.lengthscale\" or \"prior.kernel.terms[0].variance\"",
        )
    };
    let mut parts = Vec::new();
    for segment in item.key.split('.').skip(1) {
        let mut pieces = segment.split('[');
        let name = pieces.next().filter(|name| !name.is_empty()).ok_or_else(refuse)?;
        parts.push(Part::Key(name.to_owned()));
        for piece in pieces {
            let index = piece.strip_suffix(']').and_then(|index| index.parse().ok());
            parts.push(Part::Index(index.ok_or_else(refuse)?));
        }
    }
    if parts.is_empty() { Err(refuse()) } else { Ok(parts) }
}

/// The prior number `index` of the sweeps' product, the last key running fastest.
fn combination(
    file: &str,
    base: &Node,
    sweeps: &[Sweep<'_>],
    index: usize,
) -> Result<PlannedPrior, FileError> {
    let mut node = base.clone();
    let mut rest = index;
    for sweep in sweeps.iter().rev() {
        let value = &sweep.values[rest % sweep.values.len()];
        rest /= sweep.values.len();
        substitute(&mut node, sweep, value)?;
    }
    let prior = Item { file, key: "prior".to_owned(), node: &node };
    let section = prior.section()?;
    schema::check(&section)?;
    let spec = specification(&section)?;
    let json = serde_json::to_value(&spec).unwrap_or_default();
    let swept = sweeps.iter().map(|sweep| Ok((sweep.item.key.clone(), scalar(&json, sweep)?)));
    Ok(PlannedPrior { swept: swept.collect::<Result<_, _>>()?, spec })
}

/// Puts a value where a swept key says, in place of what stands there.
fn substitute(node: &mut Node, sweep: &Sweep<'_>, value: &Item<'_>) -> Result<(), FileError> {
    let mut place = node;
    for (depth, part) in sweep.path.iter().enumerate() {
        let last = depth + 1 == sweep.path.len();
        place = match (part, &mut place.value) {
            (Part::Key(name), Value::Table(table)) => {
                if !last && !table.contains_key(name) {
                    let siblings: Vec<&str> = table.keys().map(String::as_str).collect();
                    return Err(schema::no_such_place(&sweep.item, name, &siblings));
                }
                // A last key that is not there is one with a default, or a slip that the schema finds.
                table.entry(name.clone()).or_insert_with(|| value.node.clone())
            }
            (Part::Index(i), Value::List(nodes)) if *i < nodes.len() => &mut nodes[*i],
            (Part::Key(name), _) => return Err(schema::no_such_place(&sweep.item, name, &[])),
            (Part::Index(i), _) => {
                return Err(schema::no_such_place(&sweep.item, &format!("entry [{i}]"), &[]));
            }
        };
    }
    *place = value.node.clone();
    Ok(())
}

/// The specification, by its own types.
fn specification(section: &Section<'_>) -> Result<PriorSpec, FileError> {
    let fields = section.table.iter().map(|(key, node)| (key.clone(), json(&node.value)));
    serde_json::from_value(Json::Object(fields.collect())).map_err(|error| FileError {
        file: section.file.into(),
        line: section.line,
        key: section.key.clone(),
        value: None,
        reason: format!("cannot be read: {error}"),
        valid: "docs/study-file.md lists every key".to_owned(),
    })
}

fn json(value: &Value) -> Json {
    match value {
        Value::Text(text) | Value::Other(text) => Json::String(text.clone()),
        Value::Integer(number) => u64::try_from(*number)
            .map(Json::from)
            .or_else(|_| i64::try_from(*number).map(Json::from))
            .unwrap_or_else(|_| Json::from(*number as f64)),
        Value::Float(number) => Number::from_f64(*number).map_or(Json::Null, Json::Number),
        Value::Bool(flag) => Json::Bool(*flag),
        Value::List(nodes) => nodes.iter().map(|node| json(&node.value)).collect(),
        Value::Table(table) => {
            Json::Object(table.iter().map(|(key, node)| (key.clone(), json(&node.value))).collect())
        }
    }
}

/// The value of a swept key as the specification has it: 1 is 1.0 where a number is meant.
fn scalar(spec: &Json, sweep: &Sweep<'_>) -> Result<Scalar, FileError> {
    let step = |json: &'_ Json, part: &Part| match part {
        Part::Key(name) => json.get(name).cloned(),
        Part::Index(i) => json.get(*i).cloned(),
    };
    let found = sweep.path.iter().try_fold(spec.clone(), |json, part| step(&json, part));
    match found {
        Some(Json::String(text)) => Ok(Scalar::Text(text)),
        Some(Json::Number(number)) if number.is_f64() => {
            Ok(Scalar::Float(number.as_f64().unwrap_or_default()))
        }
        Some(Json::Number(number)) if number.as_i64().is_some() => {
            Ok(Scalar::Integer(number.as_i64().unwrap_or_default()))
        }
        _ => Err(sweep.item.refuse(
            "cannot be a column of records",
            "sweep strings, and numbers up to 9223372036854775807",
        )),
    }
}
