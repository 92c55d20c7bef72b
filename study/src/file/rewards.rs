//! `rewards` and `from_data` of `[prior]`: a matrix of real rewards, a row for each function.
//!
//! `setting = "data"` with `rewards` optimises the rows themselves; `from_data` makes their Gaussian
//! twin, with the columns' means as mean and the centred rows as factor. Both are written in terms of the
//! "data" kinds of domain, kernel and mean.

use super::error::FileError;
use super::item::Section;
use super::schema::SENSES;
use super::tree::{Node, Table, Value};

/// Which rows train, the default first.
pub(super) const PROTOCOLS: [(&str, ()); 3] =
    [("leave-one-out", ()), ("first", ()), ("random", ())];

/// Puts in what the keys of rewards stand for.
pub(super) fn expand(section: &Section<'_>, table: &mut Table) -> Result<(), FileError> {
    let is_data = matches!(section.get("setting").map(|item| item.text()), Some(Ok("data")));
    let key = if is_data { "rewards" } else { "from_data" };
    let Some(item) = section.get(key) else {
        return match ["rewards", "from_data", "inputs", "sense", "protocol"]
            .iter()
            .find_map(|key| section.get(key))
        {
            _ if is_data => Err(section.missing("rewards", "rewards = \"rewards.csv\"")),
            Some(item) => Err(item.refuse(
                "is a key of real data",
                "use setting = \"data\" with rewards, or from_data for their Gaussian twin",
            )),
            None => Ok(()),
        };
    };
    let forbidden =
        ["domain", "kernel", "mean", "features", if is_data { "from_data" } else { "protocol" }];
    if let Some(other) = forbidden.iter().find_map(|key| section.get(key)) {
        let reason = format!("does not go with {key}, which stands for all of it");
        return Err(other.refuse(reason, "leave one of them out"));
    }
    let line = item.node.line;
    let text = |text: &str| Node { value: Value::Text(text.to_owned()), line };
    let entries = |pairs: Vec<(&str, Node)>| {
        let table = pairs.into_iter().map(|(key, node)| (key.to_owned(), node)).collect();
        Node { value: Value::Table(table), line }
    };
    let rewards = item.text()?;
    let from = |path: &str, kind: &str| vec![("kind", text(kind)), ("path", text(path))];
    let domain = match section.get("inputs") {
        Some(inputs) => from(inputs.text()?, "points"),
        None => from(rewards, "data"),
    };
    let mut mean = from(rewards, "data");
    let mut data = Vec::new();
    if let Some(sense) = section.get("sense") {
        sense.choice(&SENSES)?;
        mean.push(("sense", sense.node.clone()));
        data.push(("sense", sense.node.clone()));
    }
    if let Some(protocol) = section.get("protocol") {
        protocol.choice(&PROTOCOLS)?;
        data.push(("protocol", protocol.node.clone()));
    }
    let kernel = from(rewards, "data");
    for key in [key, "inputs", "sense", "protocol"] {
        table.remove(key);
    }
    table.insert("domain".to_owned(), entries(domain));
    table.insert("kernel".to_owned(), entries(kernel));
    table.insert("mean".to_owned(), entries(mean));
    if is_data {
        table.insert("data".to_owned(), entries(data));
        let zero = Node { value: Value::Float(0.0), line };
        table.entry("noise_variance".to_owned()).or_insert(zero);
    }
    Ok(())
}
