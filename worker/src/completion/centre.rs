//! Columns less the means of their observed entries.

use super::solver::Solver;
use super::{Error, Incomplete};
use crate::simd::Cpu;

/// Some of a matrix's entries, centred.
pub(super) struct Centred {
    shape: (usize, usize),
    /// One per column; the mean of all entries for a column without any.
    pub(super) means: Vec<f64>,
    pub(super) empty_columns: usize,
    /// Row, column, value.
    entries: Vec<(usize, usize, f64)>,
}

impl Centred {
    /// Of the entries at these places, of which there is at least one.
    pub(super) fn new(data: &Incomplete, places: &[usize]) -> Result<Self, Error> {
        let (overall, columns) = means(data, places);
        let means: Vec<f64> = columns.iter().map(|mean| mean.unwrap_or(overall)).collect();
        let entries = places.iter().map(|&at| {
            let (row, column) = (at / data.columns, at % data.columns);
            (row, column, data.values[at] - means[column])
        });
        let entries: Vec<_> = entries.collect();
        if !means.iter().all(|mean| mean.is_finite()) {
            return Err(Error::Magnitude);
        }
        Ok(Self {
            shape: (data.rows, data.columns),
            entries,
            empty_columns: columns.iter().filter(|mean| mean.is_none()).count(),
            means,
        })
    }

    /// The problem that these entries pose; none where all are zero.
    pub(super) fn solver(&self, cpu: Cpu) -> Result<Option<Solver>, Error> {
        if self.entries.iter().all(|(_, _, value)| *value == 0.0) {
            return Ok(None);
        }
        let solver = Solver::new(self.shape, &self.entries, cpu);
        // Fourth powers and their sums stay inside the range of doubles.
        if (1e-60..1e60).contains(&solver.scale()) {
            Ok(Some(solver))
        } else {
            Err(Error::Magnitude)
        }
    }
}

/// The mean of all entries, and of each column's. Sums are of differences from the first entry, so
/// that a column of equal entries has exactly their value as its mean.
fn means(data: &Incomplete, places: &[usize]) -> (f64, Vec<Option<f64>>) {
    let mut columns = vec![Running::default(); data.columns];
    let mut overall = Running::default();
    for &at in places {
        columns[at % data.columns].add(data.values[at]);
        overall.add(data.values[at]);
    }
    (overall.mean().unwrap_or(0.0), columns.iter().map(Running::mean).collect())
}

#[derive(Clone, Default)]
struct Running {
    first: f64,
    sum: f64,
    count: usize,
}

impl Running {
    fn add(&mut self, value: f64) {
        if self.count == 0 {
            self.first = value;
        }
        self.sum += value - self.first;
        self.count += 1;
    }

    fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.first + self.sum / self.count as f64)
    }
}
