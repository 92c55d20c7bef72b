//! Training responses as a matrix: a row for each function, a column for each point, NaN where an
//! entry is missing.

use crate::completion::{self, Incomplete, Options};
use crate::prior::Prior;
use crate::random::Stream;
use crate::simd::Cpu;

/// N functions at M points.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Responses {
    pub(crate) columns: usize,
    pub(crate) values: Vec<f64>,
}

impl Responses {
    /// N functions drawn from a prior and observed with noise at every point.
    pub(crate) fn simulate(prior: &Prior, n: u64, stream: &mut Stream) -> Self {
        let columns = prior.factor.rows();
        let s = prior.total_noise().sqrt();
        let mut values = Vec::new();
        let mut z = vec![0.0; prior.factor.rank()];
        for _ in 0..n {
            stream.normals(&mut z);
            let begin = values.len();
            values.resize(begin + columns, 0.0);
            let row = &mut values[begin..];
            stream.normals(row);
            for (i, value) in row.iter_mut().enumerate() {
                let smooth: f64 = prior.factor.row(i).zip(&z).map(|(f, z)| f * z).sum();
                *value = prior.mean[i] + smooth + s * *value;
            }
        }
        Self { columns, values }
    }

    /// N.
    pub(crate) fn rows(&self) -> usize {
        self.values.len() / self.columns
    }

    /// The rows in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks_exact(self.columns)
    }

    /// The largest response that is there.
    pub(crate) fn largest(&self) -> f64 {
        let larger = |a: f64, &b: &f64| if b > a { b } else { a };
        self.values.iter().fold(f64::NEG_INFINITY, larger)
    }

    /// Takes entries away, each with the same probability and independently of all else.
    pub(crate) fn lose(&mut self, share: f64, stream: &mut Stream) {
        for value in &mut self.values {
            if stream.uniform() < share {
                *value = f64::NAN;
            }
        }
    }

    /// Fills in what is missing by nuclear-norm completion; `None` where that is not possible, as of
    /// a column without any entry.
    pub(crate) fn complete(self, seed: u64, cpu: Cpu) -> Option<Self> {
        let observed: Vec<bool> = self.values.iter().map(|value| !value.is_nan()).collect();
        if observed.iter().all(|&there| there) {
            return Some(self);
        }
        let values: Vec<f64> =
            self.values.iter().map(|&value| if value.is_nan() { 0.0 } else { value }).collect();
        let data = Incomplete {
            rows: self.rows(),
            columns: self.columns,
            values: &values,
            observed: &observed,
        };
        let completed = completion::complete(&data, &Options::held_out(seed), cpu).ok()?;
        Some(Self { columns: self.columns, values: completed.values })
    }

    /// The mean of every column and the matrix of their sample covariances, row-major.
    pub(crate) fn moments(&self) -> (Vec<f64>, Vec<f64>) {
        let (n, size) = (self.rows() as f64, self.columns);
        let mean: Vec<f64> =
            (0..size).map(|i| self.iter().map(|row| row[i]).sum::<f64>() / n).collect();
        let mut covariance = vec![0.0; size * size];
        for row in self.iter() {
            let centred: Vec<f64> = row.iter().zip(&mean).map(|(y, m)| y - m).collect();
            for (entries, a) in covariance.chunks_exact_mut(size).zip(&centred) {
                // Rewards are often the same in most rows.
                if *a == 0.0 {
                    continue;
                }
                for (entry, b) in entries.iter_mut().zip(&centred) {
                    *entry += a * b;
                }
            }
        }
        covariance.iter_mut().for_each(|entry| *entry /= n - 1.0);
        (mean, covariance)
    }
}
