//! Running cells and reading their records.

use study::cell::{Cell, Estimator, Ground, Policy, PolicyConstants, Training};
use study::record::{COLUMNS, Value};
use study::{Digest, Record};
use theory::{Delta, Measurement};
use worker::Cpu;
use worker::prior::Prior;
use worker::trial::Trials;

/// A level that is written out.
///
/// # Panics
/// Outside (0, 1).
pub fn delta(level: f64) -> Delta {
    Delta::new(level).expect("a level in a test is a probability")
}

/// N functions by the lazily revealed route.
pub fn wishart(n: u64) -> Training {
    Training { n, estimator: Estimator::Wishart }
}

/// GP-UCB with printed constants.
pub fn ucb(training: Training, level: f64) -> Policy {
    Policy::PemUcb { training, delta: delta(level), constants: PolicyConstants::Printed }
}

/// The cell of a policy on a prior. All tests name a prior's shape alike: its factor decides.
pub fn cell(prior: &Prior, policy: Policy) -> Cell {
    Cell { shape: [7; 32], noise_variance: prior.noise_variance, ground: Ground::Finite, policy }
}

/// Runs replicates 0.. of a policy and returns their records.
///
/// # Panics
/// Where the cell is refused.
pub fn run(
    prior: &Prior,
    policy: Policy,
    seed: u64,
    checkpoints: &[u32],
    replicates: u64,
) -> Vec<Record> {
    let trials = Trials::new(prior, cell(prior, policy), seed, checkpoints, Cpu::detect())
        .unwrap_or_else(|error| panic!("{policy:?}: {error}"));
    let mut records = Vec::new();
    trials.run(0..replicates, &mut |record| records.push(record));
    records
}

/// What was measured at checkpoint t, failures left out.
pub fn measured(records: &[Record], t: u32) -> impl Iterator<Item = &Measurement> {
    records
        .iter()
        .filter(move |record| record.t == t)
        .filter_map(|record| record.outcome.as_ref().ok())
}

/// The values of a column at checkpoint t, nulls and failures left out; flags are 0 and 1.
///
/// # Panics
/// Where there is no such column, or where it holds text.
pub fn column(records: &[Record], t: u32, name: &str) -> Vec<f64> {
    let column = COLUMNS.iter().find(|column| column.name == name);
    let column = column.unwrap_or_else(|| panic!("no column {name}"));
    measured(records, t)
        .filter_map(|m| match (column.value)(m) {
            Value::Null => None,
            Value::Bool(flag) => Some(f64::from(u8::from(flag))),
            Value::Integer(value) => Some(value as f64),
            Value::Float(value) => Some(value),
            Value::Text(text) => panic!("column {name} holds {text}"),
        })
        .collect()
}

/// The digest of one record: equal where all its bits are.
pub fn bits(record: &Record) -> [u8; 32] {
    let mut digest = Digest::new();
    record.feed(&mut digest);
    digest.finish()
}
