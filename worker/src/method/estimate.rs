//! An estimated prior, mean vector and covariance matrix, conditioned as its pseudo-inverse would.
//!
//! After observations at S = x_1..x_t the belief is mu_hat + C_{.S} C_SS^+ (y - mu_hat_S), and the
//! variance c_xx - C_xS C_SS^+ C_Sx, C_SS^+ being the Moore-Penrose inverse: real data have columns
//! without variance and covariances that are not of full rank. With C_SS = L L^T, L of t rows and
//! rank(C_SS) columns, and G = L^T L, C_SS^+ = L G^-1 G^-1 L^T; an observation that the earlier ones
//! determine adds a row to L and no column, one at a point without variance adds nothing.

use super::{Method, Prediction, Stuck, best};
use crate::estimator::Rule;

/// A pivot below this fraction of the largest variance is zero: the estimates' rounding errors, over the
/// largest.
const ZERO: f64 = 1e-10;

/// How the variance that is left is scaled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scale {
    /// By (N-1)/(N-t-1), which makes it unbiased (paper, section 4.1).
    Unbiased {
        /// N.
        n: u64,
    },
    /// Not at all.
    PlugIn,
}

/// The estimate, and what it has been told.
pub(crate) struct Estimate {
    mean: Vec<f64>,
    /// Row-major M x M.
    covariance: Vec<f64>,
    scale: Scale,
    /// What counts as no variance.
    floor: f64,
    /// Points that may not be taken any more.
    observed: Vec<bool>,
    t: u64,
    /// S, without points of no variance.
    points: Vec<usize>,
    /// y - mu_hat at S.
    residuals: Vec<f64>,
    /// Rows of L, each as long as the rank was when it was added.
    root: Vec<Vec<f64>>,
    /// The rows of L that added a column; they are triangular among themselves.
    pivots: Vec<usize>,
    /// C_SS^+ (y - mu_hat_S).
    weights: Vec<f64>,
    /// The lower triangular root of G, row after row.
    gram_root: Vec<f64>,
}

impl Estimate {
    /// Nothing observed yet.
    pub(crate) fn new(mean: Vec<f64>, covariance: Vec<f64>, scale: Scale) -> Self {
        let size = mean.len();
        let largest = (0..size).map(|i| covariance[i * size + i]).fold(0.0, larger);
        Self {
            observed: vec![false; size],
            mean,
            covariance,
            scale,
            floor: ZERO * largest,
            t: 0,
            points: Vec::new(),
            residuals: Vec::new(),
            root: Vec::new(),
            pivots: Vec::new(),
            weights: Vec::new(),
            gram_root: Vec::new(),
        }
    }

    /// Marks points at which f cannot be observed.
    pub(crate) fn without(mut self, unobservable: &[bool]) -> Self {
        for (observed, &not) in self.observed.iter_mut().zip(unobservable) {
            *observed |= not;
        }
        self
    }

    fn row(&self, point: usize) -> &[f64] {
        let size = self.mean.len();
        &self.covariance[point * size..(point + 1) * size]
    }

    /// L^T v, for v with an entry for each point of S.
    fn transposed(&self, v: impl Iterator<Item = f64>) -> Vec<f64> {
        let mut out = vec![0.0; self.pivots.len()];
        for (row, v) in self.root.iter().zip(v) {
            for (out, l) in out.iter_mut().zip(row) {
                *out += l * v;
            }
        }
        out
    }

    /// G^-1 v.
    fn solve(&self, v: &mut [f64]) {
        let (r, root) = (self.pivots.len(), &self.gram_root);
        for i in 0..r {
            let done: f64 = (0..i).map(|k| root[i * r + k] * v[k]).sum();
            v[i] = (v[i] - done) / root[i * r + i];
        }
        for i in (0..r).rev() {
            let done: f64 = (i + 1..r).map(|k| root[k * r + i] * v[k]).sum();
            v[i] = (v[i] - done) / root[i * r + i];
        }
    }

    /// Adds the row of L that belongs to a point with variance.
    fn extend(&mut self, point: usize) {
        let mut row: Vec<f64> = Vec::with_capacity(self.pivots.len() + 1);
        for (k, &pivot) in self.pivots.iter().enumerate() {
            let l = &self.root[pivot];
            let done: f64 = l.iter().zip(&row).map(|(a, b)| a * b).sum();
            row.push((self.row(point)[self.points[pivot]] - done) / l[k]);
        }
        let left = self.row(point)[point] - row.iter().map(|l| l * l).sum::<f64>();
        if left > self.floor {
            row.push(left.sqrt());
            self.pivots.push(self.root.len());
        }
        self.root.push(row);
        self.points.push(point);
    }

    /// The Cholesky root of G = L^T L.
    fn factorise(&mut self) -> Result<(), Stuck> {
        let r = self.pivots.len();
        let mut gram = vec![0.0; r * r];
        for row in &self.root {
            for (i, a) in row.iter().enumerate() {
                for (j, b) in row.iter().enumerate().take(i + 1) {
                    gram[i * r + j] += a * b;
                }
            }
        }
        for i in 0..r {
            for j in 0..=i {
                let done: f64 = (0..j).map(|k| gram[i * r + k] * gram[j * r + k]).sum();
                let left = gram[i * r + j] - done;
                if i > j {
                    gram[i * r + j] = left / gram[j * r + j];
                } else if left > 0.0 {
                    gram[i * r + i] = left.sqrt();
                } else {
                    return Err(Stuck::ZeroPivot);
                }
            }
        }
        self.gram_root = gram;
        Ok(())
    }
}

fn larger(a: f64, b: f64) -> f64 {
    if b > a { b } else { a }
}

impl Method<usize> for Estimate {
    fn observe(&mut self, at: &usize, y: f64) -> Result<(), Stuck> {
        self.observed[*at] = true;
        self.t += 1;
        if self.row(*at)[*at] <= self.floor {
            return Ok(());
        }
        self.extend(*at);
        self.residuals.push(y - self.mean[*at]);
        self.factorise()?;
        let mut v = self.transposed(self.residuals.iter().copied());
        self.solve(&mut v);
        self.solve(&mut v);
        self.weights =
            self.root.iter().map(|row| row.iter().zip(&v).map(|(l, v)| l * v).sum()).collect();
        Ok(())
    }

    fn predict(&self, at: &usize) -> Prediction {
        let row = self.row(*at);
        let gain: f64 = self.points.iter().zip(&self.weights).map(|(&p, w)| row[p] * w).sum();
        let mut v = self.transposed(self.points.iter().map(|&p| row[p]));
        self.solve(&mut v);
        let left = row[*at] - v.iter().map(|v| v * v).sum::<f64>();
        let left = if left > 0.0 { left } else { 0.0 };
        let variance = match self.scale {
            Scale::Unbiased { n } => left * (n - 1) as f64 / (n - 1 - self.t) as f64,
            Scale::PlugIn => left,
        };
        Prediction { mean: self.mean[*at] + gain, variance }
    }

    fn choose(&mut self, rule: &Rule<1>) -> usize {
        best(&self.observed, rule, |i| self.predict(&i))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nalgebra::{DMatrix, DVector};

    /// Rows of deterministic noise, with a column without variance and dependent ones.
    fn covariance(size: usize, rank: usize) -> Vec<f64> {
        let entry = |i: usize, k: usize| libm::sin((3 * i * i + 7 * k + i * k) as f64);
        let factor = DMatrix::from_fn(size, rank, |i, k| if i == 2 { 0.0 } else { entry(i, k) });
        let product = &factor * factor.transpose();
        (0..size * size).map(|at| product[(at / size, at % size)]).collect()
    }

    #[test]
    fn conditioning_is_that_of_the_pseudo_inverse() {
        let (size, rank) = (9, 4);
        let c = covariance(size, rank);
        let mean: Vec<f64> = (0..size).map(|i| 0.1 * i as f64).collect();
        let mut estimate = Estimate::new(mean.clone(), c.clone(), Scale::Unbiased { n: 30 });
        let matrix = DMatrix::from_row_slice(size, size, &c);
        let seen = [4, 2, 0, 7, 1, 8, 3];
        for t in 1..=seen.len() {
            // Values that no function of this covariance has, once its rank is exceeded.
            estimate.observe(&seen[t - 1], libm::cos(t as f64)).unwrap();
            let points = &seen[..t];
            let k = DMatrix::from_fn(t, t, |i, j| matrix[(points[i], points[j])]);
            let inverse = k.pseudo_inverse(1e-9).unwrap();
            let residuals = DVector::from_fn(t, |i, _| libm::cos((i + 1) as f64) - mean[points[i]]);
            for x in (0..size).filter(|x| !points.contains(x)) {
                let cross = DVector::from_fn(t, |i, _| matrix[(x, points[i])]);
                let gain = cross.dot(&(&inverse * &residuals));
                let left = matrix[(x, x)] - cross.dot(&(&inverse * &cross));
                let found = estimate.predict(&x);
                assert!((found.mean - mean[x] - gain).abs() < 1e-7, "t = {t}, x = {x}");
                let scaled = left * 29.0 / (29 - t) as f64;
                assert!((found.variance - scaled).abs() < 1e-7, "t = {t}, x = {x}");
            }
        }
    }

    #[test]
    fn points_without_variance_teach_nothing_and_are_taken_last() {
        let size = 4;
        let c: Vec<f64> =
            (0..16).map(|at| if at / size == at % size && at != 10 { 1.0 } else { 0.0 }).collect();
        let mut estimate = Estimate::new(vec![0.0; size], c, Scale::PlugIn);
        let rule = Rule::Ucb { zeta: 1.0 };
        estimate.observe(&2, 5.0).unwrap();
        assert_eq!(estimate.predict(&0), Prediction { mean: 0.0, variance: 1.0 });
        assert_eq!(estimate.choose(&rule), 0);
        for point in [0, 1, 3] {
            estimate.observe(&point, -1.0).unwrap();
        }
        assert_eq!(estimate.predict(&2), Prediction { mean: 0.0, variance: 0.0 });
    }
}
