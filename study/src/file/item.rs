//! Values with their dotted key, and the checks that keys share.

use super::error::{FileError, suggest};
use super::tree::{Node, Table, Value, dotted};

/// A value of the study file, with all that a message about it needs.
#[derive(Clone, Debug)]
pub(super) struct Item<'a> {
    pub(super) file: &'a str,
    pub(super) key: String,
    pub(super) node: &'a Node,
}

/// A table of the study file.
#[derive(Clone, Debug)]
pub(super) struct Section<'a> {
    pub(super) file: &'a str,
    /// The dotted key; empty at the top.
    pub(super) key: String,
    /// Where the table begins.
    pub(super) line: usize,
    pub(super) table: &'a Table,
}

impl<'a> Section<'a> {
    /// Refuses every key but these.
    pub(super) fn only(&self, keys: &[&str]) -> Result<(), FileError> {
        match self.table.iter().find(|(key, _)| !keys.contains(&key.as_str())) {
            None => Ok(()),
            Some((key, node)) => Err(self.unknown(key, node, keys)),
        }
    }

    /// A key that is none of those that would be valid.
    pub(super) fn unknown(&self, key: &str, node: &Node, keys: &[&str]) -> FileError {
        FileError {
            file: self.file.into(),
            line: node.line,
            key: dotted(&self.key, key),
            value: None,
            reason: "is not a key of study files".to_owned(),
            valid: suggest(key, keys),
        }
    }

    /// The value of a key, where it is given.
    pub(super) fn get(&self, key: &str) -> Option<Item<'a>> {
        let node = self.table.get(key)?;
        Some(Item { file: self.file, key: dotted(&self.key, key), node })
    }

    /// The value of a key that must be given, with an example of one.
    pub(super) fn need(&self, key: &str, example: &str) -> Result<Item<'a>, FileError> {
        self.get(key).ok_or_else(|| self.missing(key, example))
    }

    /// A key that should have been given.
    pub(super) fn missing(&self, key: &str, example: &str) -> FileError {
        FileError {
            file: self.file.into(),
            line: self.line,
            key: dotted(&self.key, key),
            value: None,
            reason: "is missing".to_owned(),
            valid: format!("give for example {example}"),
        }
    }
}

impl<'a> Item<'a> {
    /// An error about this value.
    pub(super) fn refuse(&self, reason: impl Into<String>, valid: impl Into<String>) -> FileError {
        FileError {
            file: self.file.into(),
            line: self.node.line,
            key: self.key.clone(),
            value: Some(self.node.value.to_string()),
            reason: reason.into(),
            valid: valid.into(),
        }
    }

    /// A table.
    pub(super) fn section(&self) -> Result<Section<'a>, FileError> {
        match &self.node.value {
            Value::Table(table) => {
                Ok(Section { file: self.file, key: self.key.clone(), line: self.node.line, table })
            }
            _ => Err(self.refuse("is not a table", format!("write [{}] or {{ .. }}", self.key))),
        }
    }

    /// A string.
    pub(super) fn text(&self) -> Result<&'a str, FileError> {
        match &self.node.value {
            Value::Text(text) => Ok(text),
            _ => Err(self.refuse("is not a string", "write it in quotation marks")),
        }
    }

    /// A finite number; whole ones may be written without a point.
    pub(super) fn number(&self) -> Result<f64, FileError> {
        match self.node.value {
            Value::Float(number) if number.is_finite() => Ok(number),
            Value::Integer(number) => Ok(number as f64),
            Value::Float(_) => Err(self.refuse("is not a finite number", "give one")),
            _ => Err(self.refuse("is not a number", "give one, without quotation marks")),
        }
    }

    /// A whole number from `least` to `most`.
    pub(super) fn count(&self, least: u64, most: u64) -> Result<u64, FileError> {
        let valid = || format!("valid are whole numbers from {least} to {most}");
        match self.node.value {
            Value::Integer(number) => u64::try_from(number)
                .ok()
                .filter(|number| (least..=most).contains(number))
                .ok_or_else(|| self.refuse("is outside its range", valid())),
            Value::Other(ref text) if text.chars().all(|c| c.is_ascii_digit() || c == '-') => {
                Err(self.refuse("is outside its range", valid()))
            }
            Value::Text(_) => {
                let valid = format!("{}, without quotation marks", valid());
                Err(self.refuse("is not a whole number", valid))
            }
            _ => Err(self.refuse("is not a whole number", valid())),
        }
    }

    /// One of a few names.
    pub(super) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, FileError> {
        let text = self.text()?;
        let names: Vec<&str> = choices.iter().map(|choice| choice.0).collect();
        let found = choices.iter().find(|choice| choice.0 == text);
        found
            .map(|choice| choice.1)
            .ok_or_else(|| self.refuse("is not known here", suggest(text, &names)))
    }

    /// The entries of a list; a scalar stands for a list of itself alone.
    pub(super) fn entries(&self) -> Result<Vec<Item<'a>>, FileError> {
        match &self.node.value {
            Value::List(nodes) if nodes.is_empty() => {
                Err(self.refuse("is empty", "give at least one value, or leave the key out"))
            }
            Value::List(nodes) => {
                let entry = |node| Item { file: self.file, key: self.key.clone(), node };
                Ok(nodes.iter().map(entry).collect())
            }
            _ => Ok(vec![self.clone()]),
        }
    }

    /// An axis: every entry read, none of them twice, in ascending order.
    pub(super) fn axis<T>(
        &self,
        read: impl Fn(&Item<'a>) -> Result<T, FileError>,
        order: impl Fn(&T, &T) -> std::cmp::Ordering,
    ) -> Result<Vec<T>, FileError> {
        let entries = self.entries()?;
        let mut values: Vec<(T, &Item<'a>)> = Vec::with_capacity(entries.len());
        for entry in &entries {
            values.push((read(entry)?, entry));
        }
        values.sort_by(|a, b| order(&a.0, &b.0));
        if let Some(pair) = values.windows(2).find(|pair| order(&pair[0].0, &pair[1].0).is_eq()) {
            return Err(pair[1].1.refuse("is given twice", "give every value once"));
        }
        Ok(values.into_iter().map(|(value, _)| value).collect())
    }
}
