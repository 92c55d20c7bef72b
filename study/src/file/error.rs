//! What is wrong with a study file, and where.

use std::fmt;

use strsim::damerau_levenshtein;

/// A value that cannot be used: where it stands, what it is, why not, and what would be valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The study file.
    pub file: Box<str>,
    /// Counted from 1, as editors do.
    pub line: usize,
    /// The dotted key; empty where the file is not TOML.
    pub key: String,
    /// The value as it was written, shortened; `None` where the key itself is at fault.
    pub value: Option<String>,
    /// Why it is refused.
    pub reason: String,
    /// What would be valid.
    pub valid: String,
}

impl std::error::Error for FileError {}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, key, value, reason, valid } = self;
        write!(f, "{file}:{line}: ")?;
        if !key.is_empty() {
            write!(f, "{key} ")?;
        }
        if let Some(value) = value {
            write!(f, "= {value} ")?;
        }
        write!(f, "{reason}; {valid}")
    }
}

/// How many names a message lists.
const LISTED: usize = 12;

/// "did you mean ..? valid are ..", from the names that would have been valid.
pub(super) fn suggest(wrong: &str, names: &[&str]) -> String {
    let listed: Vec<&str> = names.iter().take(LISTED).copied().collect();
    let more = if names.len() > LISTED { ", .." } else { "" };
    let valid = format!("valid are {}{more}", listed.join(", "));
    match nearest(wrong, names) {
        Some(name) => format!("did you mean {name}? {valid}"),
        None => valid,
    }
}

/// The name at the smallest edit distance, if that is near enough to be a slip.
pub fn nearest<'a>(wrong: &str, names: &[&'a str]) -> Option<&'a str> {
    // Distances take quadratic time, and no slip makes a name many times as long.
    let wrong: String = wrong.chars().take(64).collect::<String>().to_lowercase();
    let distance = |name: &str| damerau_levenshtein(&wrong, &name.to_lowercase());
    let (least, name) = names.iter().map(|name| (distance(name), *name)).min()?;
    (least <= 1 + name.len() / 4).then_some(name)
}
