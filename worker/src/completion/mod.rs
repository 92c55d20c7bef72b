//! Completion of a training set with missing entries, by the nuclear norm.
//!
//! The paper (section 4.1) lets entries of the N x M matrix of training observations be missing and
//! has them completed as Candes and Recht (2009) do. Their problem asks for the matrix of least
//! nuclear norm through the observed entries exactly; observations have noise, so we solve its
//! relaxation by soft-impute (Mazumder, Hastie and Tibshirani 2010):
//!
//!   minimise over Z  |P(X - Z)|_F^2 / 2 + lambda |Z|_*,
//!
//! where P keeps the observed entries and X has its columns centred by the means of their observed
//! entries. As lambda falls to zero this becomes the paper's problem. The result has the observed
//! entries as they are, and Z plus the means elsewhere.
//!
//! What nothing is known about keeps its mean: in a row without observed entries Z is zero, so it gets
//! the columns' means; a column without any gets the mean of all observed entries. Both are counted
//! in [`Completed`], for callers that would rather refuse.
//!
//! Lambda is found by holding entries out ([`HeldOut`]), or given.

mod centre;
mod choice;
mod cholesky;
mod eigen;
mod hash;
mod product;
mod solver;
#[cfg(test)]
mod tests;
mod threshold;

use crate::simd::Cpu;
use centre::Centred;
pub use choice::{HeldOut, Path};
use solver::{Fit, Solver};
use theory::eigen::NoConvergence;

/// A matrix of which some entries are missing.
#[derive(Clone, Copy, Debug)]
pub struct Incomplete<'a> {
    /// Training functions N.
    pub rows: usize,
    /// Points M.
    pub columns: usize,
    /// Row by row; what stands at missing entries is not read.
    pub values: &'a [f64],
    /// Which entries are there.
    pub observed: &'a [bool],
}

/// Where lambda comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lambda {
    /// From the observed entries.
    HeldOut(HeldOut),
    /// From the caller.
    Given(f64),
}

/// How to complete.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Where lambda comes from.
    pub lambda: Lambda,
    /// The values of lambda that are tried, or passed on the way to the one that was given.
    pub path: Path,
    /// A solution is accepted when a further step of soft-impute moves the missing entries, in
    /// Euclidean length, by less than this share of the centred observed entries' length.
    pub tolerance: f64,
    /// Steps allowed for each lambda.
    pub iterations: usize,
}

impl Options {
    /// Lambda by hold-out under this seed, and everything else as it serves most matrices.
    pub fn held_out(seed: u64) -> Self {
        Self {
            lambda: Lambda::HeldOut(HeldOut { seed, share: 0.1 }),
            path: Path { count: 30, smallest: 1e-3 },
            tolerance: 1e-5,
            iterations: 10_000,
        }
    }
}

/// A completed matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Completed {
    /// Row by row; observed entries as they were.
    pub values: Vec<f64>,
    /// The rank of Z; the means add at most one.
    pub rank: usize,
    /// The lambda of Z; 0 where there was nothing to solve, because no entry is missing or the columns
    /// are constant.
    pub lambda: f64,
    /// Steps taken, over all lambdas.
    pub iterations: usize,
    /// Root mean square error on the held-out entries at this lambda, where some were held out.
    pub held_out_error: Option<f64>,
    /// Rows without observed entries.
    pub empty_rows: usize,
    /// Columns without observed entries.
    pub empty_columns: usize,
}

/// Why a matrix could not be completed.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The slices do not have one entry per row and column.
    #[error("{rows} rows of {columns} entries, but {values} values and {observed} marks")]
    Shape {
        /// Rows as stated.
        rows: usize,
        /// Columns as stated.
        columns: usize,
        /// Values there are.
        values: usize,
        /// Marks there are.
        observed: usize,
    },
    /// No entry is observed.
    #[error("no entry is observed")]
    NothingObserved,
    /// An observed entry is infinite or not a number.
    #[error("the observed entry in row {row}, column {column} is not finite")]
    NotFinite {
        /// Its row, from 0.
        row: usize,
        /// Its column, from 0.
        column: usize,
    },
    /// Squares of centred entries overflow or vanish.
    #[error("the squares of the centred entries overflow or vanish; rescale the matrix")]
    Magnitude,
    /// An option is out of range.
    #[error("{option} is {value}; it must be {valid}")]
    Invalid {
        /// Its name.
        option: &'static str,
        /// Its value.
        value: f64,
        /// What would be valid.
        valid: &'static str,
    },
    /// The eigenvalues of a Gram matrix were not found.
    #[error(transparent)]
    Eigenvalues(#[from] NoConvergence),
    /// The iteration did not reach the tolerance.
    #[error("lambda = {lambda}: not within the tolerance after {iterations} steps")]
    NoConvergence {
        /// The lambda it was at.
        lambda: f64,
        /// Steps taken.
        iterations: usize,
    },
}

/// Completes a matrix. The result depends on the arguments alone, and not on the CPU.
pub fn complete(data: &Incomplete, options: &Options, cpu: Cpu) -> Result<Completed, Error> {
    options.check()?;
    data.check()?;
    let all: Vec<usize> = (0..data.values.len()).filter(|&at| data.observed[at]).collect();
    let centred = Centred::new(data, &all)?;
    let nothing_missing = all.len() == data.values.len();
    let Some(mut solver) = centred.solver(cpu)?.filter(|_| !nothing_missing) else {
        return Ok(data.completed(&centred, None, Fit::default(), (0.0, None)));
    };
    let (lambda, held_out_error, before) = match options.lambda {
        Lambda::Given(lambda) => (lambda, None, choice::approach(&mut solver, lambda, options)?),
        Lambda::HeldOut(held_out) => {
            let chosen = choice::choose(data, &all, &solver, held_out, options, cpu)?;
            if let Some(state) = chosen.state {
                solver.begin_at(state);
            }
            (chosen.lambda, Some(chosen.error), chosen.iterations)
        }
    };
    let Fit { rank, iterations } = solver.solve(lambda, options.tolerance, options.iterations)?;
    let fit = Fit { rank, iterations: before + iterations };
    Ok(data.completed(&centred, Some(&solver), fit, (lambda, held_out_error)))
}

impl Incomplete<'_> {
    fn check(&self) -> Result<(), Error> {
        let Self { rows, columns, values, observed } = *self;
        if rows.checked_mul(columns) != Some(values.len()) || values.len() != observed.len() {
            let (values, observed) = (values.len(), observed.len());
            return Err(Error::Shape { rows, columns, values, observed });
        }
        if !observed.contains(&true) {
            return Err(Error::NothingObserved);
        }
        match values.iter().zip(observed).position(|(v, seen)| *seen && !v.is_finite()) {
            Some(at) => Err(Error::NotFinite { row: at / columns, column: at % columns }),
            None => Ok(()),
        }
    }

    fn completed(
        &self,
        centred: &Centred,
        solver: Option<&Solver>,
        fit: Fit,
        (lambda, held_out_error): (f64, Option<f64>),
    ) -> Completed {
        let value = |at: usize| {
            let (row, column) = (at / self.columns, at % self.columns);
            if self.observed[at] {
                self.values[at]
            } else {
                centred.means[column] + solver.map_or(0.0, |solver| solver.at(row, column))
            }
        };
        let row_is_empty = |row: &&[bool]| !row.contains(&true);
        Completed {
            values: (0..self.values.len()).map(value).collect(),
            rank: fit.rank,
            lambda,
            iterations: fit.iterations,
            held_out_error,
            empty_rows: self.observed.chunks_exact(self.columns).filter(row_is_empty).count(),
            empty_columns: centred.empty_columns,
        }
    }
}

impl Options {
    fn check(&self) -> Result<(), Error> {
        let within = |option, value: f64, ok: bool, valid| {
            if ok { Ok(()) } else { Err(Error::Invalid { option, value, valid }) }
        };
        match self.lambda {
            Lambda::Given(l) => {
                within("lambda", l, l > 0.0 && l.is_finite(), "positive and finite")?;
            }
            Lambda::HeldOut(HeldOut { share, .. }) => {
                within("share", share, share > 0.0 && share <= 0.5, "above 0 and at most 0.5")?;
            }
        }
        let Path { count, smallest } = self.path;
        within("count", count as f64, (2..=1000).contains(&count), "from 2 to 1000")?;
        within("smallest", smallest, (1e-6..1.0).contains(&smallest), "from 1e-6 to below 1")?;
        let tolerance = self.tolerance;
        within("tolerance", tolerance, (1e-11..=1e-2).contains(&tolerance), "from 1e-11 to 0.01")?;
        within("iterations", self.iterations as f64, self.iterations > 0, "at least 1")
    }
}
