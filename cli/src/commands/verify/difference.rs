//! Two batches of the same trials, value by value.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;
use study::Batch;
use study::record::{COLUMNS, Kind};

/// A value that is not what the study gives.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Difference {
    /// The trial.
    pub(super) address: String,
    pub(super) t: u32,
    /// The column, or "record" where a whole record is missing on one side.
    pub(super) column: &'static str,
    pub(super) stored: Value,
    pub(super) recomputed: Value,
}

/// Every value in which two batches of a cell differ, in order of replicate, t and column.
pub(super) fn differences(study: &str, stored: &Batch, recomputed: &Batch) -> Vec<Difference> {
    // Batches are equal where all bits of their values are.
    if stored == recomputed {
        return vec![];
    }
    let (a, b) = (rows(stored), rows(recomputed));
    let keys: BTreeSet<(u64, u32)> = a.keys().chain(b.keys()).copied().collect();
    let mut found = Vec::new();
    for key in keys {
        let address = format!("{study}/{}/{}", stored.cell(), key.0);
        let mut add = |column, stored: Value, recomputed: Value| {
            found.push(Difference {
                address: address.clone(),
                t: key.1,
                column,
                stored,
                recomputed,
            });
        };
        match (a.get(&key), b.get(&key)) {
            (Some(a), Some(b)) => {
                for ((column, a), b) in names().zip(a).zip(b) {
                    // As text, in which 0 and -0 differ too.
                    let (stored, again) = (a.to_string(), b.to_string());
                    if stored != again {
                        add(column, a.clone(), b.clone());
                    }
                }
            }
            (a, _) => {
                let of = |there: bool| Value::from(if there { "present" } else { "absent" });
                add("record", of(a.is_some()), of(a.is_none()));
            }
        }
    }
    found
}

fn names() -> impl Iterator<Item = &'static str> {
    ["status"].into_iter().chain(COLUMNS.iter().map(|column| column.name))
}

/// Status and measured values of every record; numbers in the shortest form that is theirs alone.
fn rows(batch: &Batch) -> BTreeMap<(u64, u32), Vec<Value>> {
    let keys = batch.replicates().iter().copied().zip(batch.checkpoints().iter().copied());
    let statuses = batch.statuses().map(|status| vec![Value::from(status)]);
    let mut rows: Vec<((u64, u32), Vec<Value>)> = keys.zip(statuses).collect();
    for (values, column) in batch.columns().iter().zip(COLUMNS) {
        let values: Vec<Value> = match column.kind {
            Kind::Bool => values.bools().map(Value::from).collect(),
            Kind::Integer => values.integers().map(Value::from).collect(),
            Kind::Float => values.floats().map(|value| value.map_or(Value::Null, float)).collect(),
        };
        rows.iter_mut().zip(values).for_each(|((_, row), value)| row.push(value));
    }
    rows.into_iter().collect()
}

/// JSON has no infinity.
pub(crate) fn float(value: f64) -> Value {
    if value.is_finite() { Value::from(value) } else { Value::from(value.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use study::CellId;

    fn batch(y: &[f64]) -> Batch {
        let rows = y.len();
        let value = |column: &study::record::Column, row: usize| match column.name {
            "y" => Some(y[row].to_bits()),
            _ => None,
        };
        let columns =
            COLUMNS.iter().map(|column| (0..rows).map(|row| value(column, row)).collect());
        let replicates = (0..rows as u64).collect();
        Batch::from_columns(
            CellId(5),
            replicates,
            vec![3; rows],
            &vec!["ok"; rows],
            columns.collect(),
        )
        .unwrap()
    }

    #[test]
    fn a_last_bit_a_sign_of_zero_and_a_missing_record_are_found() {
        let stored = batch(&[1.0, 0.0, 2.0]);
        assert_eq!(differences("s", &stored, &stored.clone()), []);
        let found = differences("s", &stored, &batch(&[1.0_f64.next_up(), -0.0]));
        let told: Vec<(u32, &str, String, String)> = found
            .iter()
            .map(|d| (d.t, d.column, d.stored.to_string(), d.recomputed.to_string()))
            .collect();
        let expected = [
            (3, "y", "1.0", "1.0000000000000002"),
            (3, "y", "0.0", "-0.0"),
            (3, "record", "\"present\"", "\"absent\""),
        ];
        let expected = expected.map(|(t, column, a, b)| (t, column, a.to_owned(), b.to_owned()));
        assert_eq!(told, expected);
        assert_eq!(found[2].address, "s/0000000000000005/2");
    }
}
