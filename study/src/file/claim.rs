//! `[claims]` and `[[claim]]`: what is tested.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use theory::claims;

use super::error::{FileError, nearest};
use super::item::{Item, Section};
use super::keys;
use super::tree::Value;

/// For which t a claim of one's own is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Quantifier {
    /// At each checkpoint by itself.
    #[serde(rename = "each t")]
    EachT,
    /// At all checkpoints of a trial at once.
    #[serde(rename = "all t")]
    AllT,
}

impl Quantifier {
    /// The name in study files.
    pub fn name(self) -> &'static str {
        QUANTIFIERS.iter().find(|(_, one)| *one == self).map_or("", |(name, _)| name)
    }
}

/// Quantifiers by name, the default first.
pub(super) const QUANTIFIERS: &[(&str, Quantifier)] =
    &[("each t", Quantifier::EachT), ("all t", Quantifier::AllT)];

/// A claim of one's own, over record columns and study scalars.
#[derive(Clone, Debug, Eq, Serialize, Deserialize)]
pub struct OwnClaim {
    /// Its name.
    pub id: String,
    /// A SQL expression that is true of records for which the claim holds.
    pub holds: String,
    /// The failure probability that it allows: an expression.
    pub budget: String,
    /// For which t.
    pub quantifier: Quantifier,
    /// Where it stands in the study file.
    #[serde(skip)]
    pub line: usize,
}

/// The same claim elsewhere in the file, or in a record without lines, is no other one.
impl PartialEq for OwnClaim {
    fn eq(&self, other: &Self) -> bool {
        let Self { id, holds, budget, quantifier, line: _ } = self;
        (id, holds, budget, quantifier)
            == (&other.id, &other.holds, &other.budget, &other.quantifier)
    }
}

impl OwnClaim {
    /// Whether a study file could have this claim: claims come from manifests, too.
    pub fn check(&self) -> Result<(), String> {
        check_id(&self.id).map_err(|problem| format!("its id {problem}"))?;
        check_expression(&self.holds).map_err(|problem| format!("holds {problem}"))?;
        check_expression(&self.budget).map_err(|problem| format!("budget {problem}"))
    }
}

/// Reads every `[[claim]]`.
pub(super) fn own(item: &Item<'_>) -> Result<Vec<OwnClaim>, FileError> {
    if !matches!(item.node.value, Value::List(_)) {
        return Err(item.refuse("is not a list of tables", "write [[claim]]"));
    }
    let mut ids = BTreeSet::new();
    let mut own = Vec::new();
    for entry in item.entries()? {
        let claim = one(&entry.section()?)?;
        if !ids.insert(claim.id.clone()) {
            let id = entry.section()?.need("id", "")?;
            return Err(id.refuse("is the id of two claims", "give each its own"));
        }
        own.push(claim);
    }
    Ok(own)
}

fn one(section: &Section<'_>) -> Result<OwnClaim, FileError> {
    section.only(&keys::CLAIM.names())?;
    let id = section.need("id", "id = \"mine.cumulative\"")?;
    let holds = section.need("holds", "holds = \"cumulative_regret <= 8 * sqrt(t)\"")?;
    let budget = section.need("budget", "budget = \"delta\"")?;
    let quantifier = section.get("quantifier").map(|item| item.choice(QUANTIFIERS)).transpose()?;
    Ok(OwnClaim {
        id: own_id(&id)?.to_owned(),
        holds: expression(&holds)?.to_owned(),
        budget: match budget.node.value {
            Value::Text(_) => expression(&budget)?.to_owned(),
            _ => allowed(&budget)?.to_string(),
        },
        quantifier: quantifier.unwrap_or(QUANTIFIERS[0].1),
        line: section.line,
    })
}

fn own_id<'a>(id: &Item<'a>) -> Result<&'a str, FileError> {
    let text = id.text()?;
    check_id(text).map_err(|problem| {
        id.refuse(problem, "valid are letters, digits, and - _ . / +, as in \"mine.cumulative\"")
    })?;
    if claims::find(text).is_some() {
        let valid = format!("choose another, such as \"mine.{text}\"");
        return Err(id.refuse("is a claim of the registry", valid));
    }
    Ok(text)
}

fn check_id(text: &str) -> Result<(), &'static str> {
    let valid = |c: char| c.is_ascii_alphanumeric() || "-_./+".contains(c);
    let is_name = !text.is_empty() && text.len() <= 100 && text.chars().all(valid);
    if is_name { Ok(()) } else { Err("is not a name") }
}

fn expression<'a>(item: &Item<'a>) -> Result<&'a str, FileError> {
    let text = item.text()?;
    check_expression(text).map_err(|problem| {
        let most = format!("valid are at most {MOST_TERMS}; make it several claims");
        let empty = text.trim().is_empty();
        item.refuse(problem, if empty { "give an expression over record columns" } else { &most })
    })?;
    Ok(text)
}

/// Refuses an expression that is empty, or too long to be parsed and evaluated, wherever it comes from.
pub fn check_expression(text: &str) -> Result<(), String> {
    match terms(text) {
        0 => Err("is empty".to_owned()),
        terms if terms > MOST_TERMS => Err(format!("has {terms} words and symbols")),
        _ => Ok(()),
    }
}

/// The longest expression, in words and symbols. It is evaluated recursively, `a AND b AND c` as deep as
/// `((a))`, on threads with 2 MiB of stack.
const MOST_TERMS: usize = 500;

/// Words, numbers and symbols, of which an expression has at least as many as levels.
fn terms(text: &str) -> usize {
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let mut terms = 0;
    let mut within = false;
    for c in text.chars() {
        terms += usize::from(!(c.is_whitespace() || within && word(c)));
        within = word(c);
    }
    terms
}

fn allowed(item: &Item<'_>) -> Result<f64, FileError> {
    let budget = item.number()?;
    if !(0.0..1.0).contains(&budget) {
        return Err(item.refuse("is not a probability below 1", "valid are 0 to 1, 1 excluded"));
    }
    Ok(budget)
}

/// Reads `[claims]`: the globs of what is tested, all where there are none.
pub(super) fn tested(section: &Section<'_>, own: &[OwnClaim]) -> Result<Vec<String>, FileError> {
    section.only(&keys::CLAIMS.names())?;
    let Some(test) = section.get("test") else {
        return Ok(Vec::new());
    };
    let ids: Vec<&str> =
        claims::all().map(|claim| claim.id).chain(own.iter().map(|own| own.id.as_str())).collect();
    let glob = |item: &Item<'_>| {
        let glob = item.text()?;
        if ids.iter().any(|id| claims::names(glob, id)) {
            return Ok(glob.to_owned());
        }
        let plain = glob.replace('*', "");
        let near = nearest(&plain, &ids).or_else(|| {
            let families: Vec<&str> = ids.iter().map(|id| family(id)).collect();
            nearest(family(&plain), &families)
        });
        let meant = near.map_or(String::new(), |near| format!("did you mean {near}? "));
        let valid = format!("{meant}`regretta claims` lists them");
        Err(item.refuse("names no claim", valid))
    };
    test.axis(glob, Ord::cmp)
}

/// The lemma or theorem that a claim belongs to.
fn family(id: &str) -> &str {
    id.split(['.', '/', '+']).next().unwrap_or(id)
}
