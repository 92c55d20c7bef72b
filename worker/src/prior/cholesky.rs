//! Pivoted Cholesky: k = F F^T + what is left, without ever forming k.
//!
//! Step r takes the point p of the largest residual variance (the lowest index on ties) and the
//! column k(., p) (Harbrecht, Peters and Schneider 2012):
//!
//! ```text
//! F_ir = (k(x_i, x_p) - sum_{j < r} F_ij F_pj)/sqrt(residual_p)
//! residual_i <- residual_i - F_ir^2
//! ```
//!
//! and stops when the largest residual is at most tolerance * c. Points are kept in pivot order
//! while it runs: rows that have been pivots are zero from then on and are not visited again, so
//! rank r costs O(M r^2), and a full factorisation M^3/6 products.

use super::{ACCURACY_FLOOR, OutOfMemory};

/// Rows whose sums are kept in the nearest cache while the columns stream by.
const BLOCK: usize = 1024;

/// A symmetric matrix that is asked for by column.
pub(super) trait Covariance {
    /// Entries (i, i).
    fn diagonal(&self) -> Vec<f64>;

    /// Entries (i, j) for all i.
    fn column(&self, j: usize, out: &mut [f64]);
}

/// A kernel that is not positive semidefinite.
///
/// A residual below -max(1e-8, tolerance) c is no rounding: with pivots of at least 1e-15 c,
/// rounding leaves errors of some 1e-14 c. What is smaller does not touch the results, for the
/// noise that they need is at least as large ([`ACCURACY_FLOOR`]).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "prior.kernel is not positive semidefinite: after {given} pivots, the residual covariance of \
     points {row} and {column} is {value:e}, beyond rounding at a largest variance of {c}; if the \
     kernel comes from a file of few digits, raise prior.tolerance above their rounding"
)]
pub struct NotPositiveSemidefinite {
    /// How many points had been taken as pivots.
    pub given: usize,
    /// A point, counted from 0.
    pub row: usize,
    /// The same point where its variance is negative; another where two covary without variance.
    pub column: usize,
    /// The residual covariance.
    pub value: f64,
    /// The largest prior variance.
    pub c: f64,
}

/// Why there is no factor.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    NotPositiveSemidefinite(#[from] NotPositiveSemidefinite),
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
}

/// The factorisation while it runs. Position, not point, is what indexes rows: `order` says which
/// point stands where, pivots first.
pub(super) struct Cholesky {
    columns: Vec<Vec<f64>>,
    order: Vec<usize>,
    residual: Vec<f64>,
    /// The largest prior variance.
    c: f64,
    /// How far below zero a residual may be.
    slack: f64,
}

/// Factorises k up to `tolerance` * `c`; `admit` may refuse a rank before it is taken.
pub(super) fn factorise(
    covariance: &impl Covariance,
    c: f64,
    tolerance: f64,
    admit: impl Fn(usize) -> Result<(), OutOfMemory>,
) -> Result<Cholesky, Error> {
    let residual = covariance.diagonal();
    let slack = c * if tolerance > ACCURACY_FLOOR { tolerance } else { ACCURACY_FLOOR };
    let order = (0..residual.len()).collect();
    let mut state = Cholesky { columns: vec![], order, residual, c, slack };
    let mut kernel_column = vec![0.0; state.order.len()];
    while let Some(best) = state.pivot()? {
        if state.residual[best] <= tolerance * c {
            break;
        }
        admit(state.columns.len() + 1)?;
        covariance.column(state.order[best], &mut kernel_column);
        state.step(best, &kernel_column);
    }
    Ok(state)
}

impl Cholesky {
    /// The largest |residual variance| that is left.
    pub(super) fn residual(&self) -> f64 {
        let left = self.residual[self.columns.len()..].iter();
        left.fold(0.0, |largest, value| if value.abs() > largest { value.abs() } else { largest })
    }

    /// Refuses a matrix whose residual covariances exceed what its residual variances allow. Only
    /// points that were no pivots are checked: the columns of pivots are exact by construction.
    pub(super) fn check_covariances(
        &self,
        covariance: &impl Covariance,
    ) -> Result<(), NotPositiveSemidefinite> {
        let (rank, points) = (self.columns.len(), self.order.len());
        let (mut column, mut left) = (vec![0.0; points], vec![0.0; points]);
        for at in rank..points {
            covariance.column(self.order[at], &mut column);
            self.residual_column(at, &column, &mut left);
            let worst = (at..points).find(|&i| left[i].is_nan() || left[i].abs() > self.slack);
            if let Some(i) = worst {
                return Err(self.refusal(at, i, left[i]));
            }
        }
        Ok(())
    }

    /// The columns of F, by point.
    pub(super) fn into_columns(self) -> Vec<Vec<f64>> {
        let Self { mut columns, order, mut residual, .. } = self;
        for column in &mut columns {
            for (&point, &value) in order.iter().zip(&*column) {
                residual[point] = value;
            }
            column.copy_from_slice(&residual);
        }
        columns
    }

    /// The position of the largest residual; `None` where every point has been a pivot.
    fn pivot(&self) -> Result<Option<usize>, NotPositiveSemidefinite> {
        let rank = self.columns.len();
        let mut best: Option<usize> = None;
        for at in rank..self.order.len() {
            let value = self.residual[at];
            if value.is_nan() || value < -self.slack {
                return Err(self.refusal(at, at, value));
            }
            let better = best.is_none_or(|best| {
                let most = self.residual[best];
                value > most || (value == most && self.order[at] < self.order[best])
            });
            if better {
                best = Some(at);
            }
        }
        Ok(best)
    }

    fn step(&mut self, best: usize, kernel_column: &[f64]) {
        let rank = self.columns.len();
        self.order.swap(rank, best);
        self.residual.swap(rank, best);
        for column in &mut self.columns {
            column.swap(rank, best);
        }
        let root = self.residual[rank].sqrt();
        let mut column = vec![0.0; self.order.len()];
        self.residual_column(rank, kernel_column, &mut column);
        column[rank] = root;
        for (value, residual) in column[rank + 1..].iter_mut().zip(&mut self.residual[rank + 1..]) {
            *value /= root;
            *residual -= *value * *value;
        }
        self.columns.push(column);
    }

    /// out_i = k(x_i, x_p) - sum_j F_ij F_pj for positions from that of p on, j in order.
    fn residual_column(&self, p: usize, kernel_column: &[f64], out: &mut [f64]) {
        for (out, &point) in out[p..].iter_mut().zip(&self.order[p..]) {
            *out = kernel_column[point];
        }
        let row: Vec<f64> = self.columns.iter().map(|column| column[p]).collect();
        for start in (p..out.len()).step_by(BLOCK) {
            let end = out.len().min(start + BLOCK);
            let out = &mut out[start..end];
            let mut fours = self.columns.chunks_exact(4);
            let mut weights = row.chunks_exact(4);
            for (f, w) in fours.by_ref().zip(weights.by_ref()) {
                let (a, b) = (&f[0][start..end], &f[1][start..end]);
                let (c, d) = (&f[2][start..end], &f[3][start..end]);
                for ((((out, a), b), c), d) in out.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                    *out = *out - w[0] * a - w[1] * b - w[2] * c - w[3] * d;
                }
            }
            for (f, w) in fours.remainder().iter().zip(weights.remainder()) {
                for (out, f) in out.iter_mut().zip(&f[start..end]) {
                    *out -= w * f;
                }
            }
        }
    }

    fn refusal(&self, a: usize, b: usize, value: f64) -> NotPositiveSemidefinite {
        let (row, column) = (self.order[a], self.order[b]);
        let (given, c) = (self.columns.len(), self.c);
        NotPositiveSemidefinite { given, row, column, value, c }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nalgebra::DMatrix;
    use proptest::prelude::*;

    impl Covariance for DMatrix<f64> {
        fn diagonal(&self) -> Vec<f64> {
            (0..self.nrows()).map(|i| self[(i, i)]).collect()
        }

        fn column(&self, j: usize, out: &mut [f64]) {
            (0..self.nrows()).for_each(|i| out[i] = self[(i, j)]);
        }
    }

    fn run(matrix: &DMatrix<f64>, c: f64, tolerance: f64) -> Result<Cholesky, Error> {
        factorise(matrix, c, tolerance, |_| Ok(()))
    }

    #[test]
    fn by_hand() {
        // The pivots are points 1, then 2 (residual 2 - 1 = 1), then 0.
        let matrix = DMatrix::from_row_slice(3, 3, &[1., 1., 0.5, 1., 4., 2., 0.5, 2., 2.]);
        let found = run(&matrix, 4.0, 1e-12).unwrap();
        assert_eq!(found.order, [1, 2, 0]);
        assert_eq!(found.residual(), 0.0);
        let columns = found.into_columns();
        let root = 0.75_f64.sqrt();
        assert_eq!(columns, [vec![0.5, 2.0, 1.0], vec![0.0, 0.0, 1.0], vec![root, 0.0, 0.0]]);
    }

    #[test]
    fn ties_go_to_the_lowest_index() {
        let found = run(&DMatrix::identity(5, 5), 1.0, 1e-12).unwrap();
        assert_eq!(found.order, [0, 1, 2, 3, 4]);
        // After point 0, the others have been moved about, and point 1 still comes first.
        let matrix = DMatrix::from_diagonal(&vec![1.0, 1.0, 1.0, 2.0].into());
        assert_eq!(run(&matrix, 2.0, 1e-12).unwrap().order, [3, 0, 1, 2]);
    }

    #[test]
    fn what_is_not_a_covariance_is_refused() {
        let swapped = DMatrix::from_row_slice(2, 2, &[0.0, 1.0, 1.0, 0.0]);
        let found = run(&swapped, 1.0, 1e-12).unwrap();
        let error = found.check_covariances(&swapped).unwrap_err();
        assert_eq!((error.given, error.row, error.column, error.value), (0, 0, 1, 1.0));

        let negative = DMatrix::from_row_slice(2, 2, &[1.0, 2.0, 2.0, 1.0]);
        let error = run(&negative, 1.0, 1e-12).err().unwrap();
        let expected = NotPositiveSemidefinite { given: 1, row: 1, column: 1, value: -3.0, c: 1.0 };
        assert_eq!(error, Error::NotPositiveSemidefinite(expected));
        assert!(run(&DMatrix::from_element(1, 1, -1.0), 1.0, 1e-12).is_err());
        assert!(run(&DMatrix::from_element(1, 1, f64::NAN), 1.0, 1e-12).is_err());
    }

    #[test]
    fn a_rank_that_is_not_admitted_stops() {
        let refuse = |rank| {
            let limit = super::super::MemoryLimit { bytes: 1 << 10, state_per_point: 0 };
            limit.admit(study::prior::Shape { points: 10, dimension: 1 }, rank)
        };
        let error = factorise(&DMatrix::identity(10, 10), 1.0, 1e-12, refuse).err().unwrap();
        assert!(matches!(error, Error::OutOfMemory(OutOfMemory { rank: 6, .. })), "{error:?}");
    }

    proptest! {
        #[test]
        fn the_factor_reproduces_the_matrix(
            points in 1_usize..40,
            rank in 1_usize..12,
            entries in prop::collection::vec(-1.0_f64..1.0, 480),
            tolerance in prop_oneof![Just(1e-15), Just(1e-12), Just(1e-3)],
        ) {
            let given = DMatrix::from_fn(points, rank, |i, k| entries[i * 12 + k]);
            let matrix = &given * given.transpose();
            let c = matrix.diagonal().max();
            let found = run(&matrix, c, tolerance).unwrap();
            let (residual, order) = (found.residual(), found.order.clone());
            prop_assert!(residual <= tolerance * c + 1e-14);
            prop_assert!(found.check_covariances(&matrix).is_ok());
            let columns = found.into_columns();
            let most = if tolerance > 1e-14 { points.min(rank) } else { points };
            prop_assert!(columns.len() <= most);
            for (k, column) in columns.iter().enumerate() {
                // Zero at earlier pivots, positive at its own.
                prop_assert!(order[..k].iter().all(|&p| column[p] == 0.0));
                prop_assert!(column[order[k]] > 0.0);
            }
            let factor = DMatrix::from_fn(points, columns.len(), |i, k| columns[k][i]);
            let error = (&factor * factor.transpose() - matrix).abs().max();
            prop_assert!(error <= tolerance * c + 1e-13, "{error}");
        }
    }
}
