//! The textbook's dense formulas of a Gaussian process, O(t^3) at every call: what the worker's
//! incremental ones are held against.

use worker::prior::Prior;

/// A prior conditioned on observations, by a Cholesky factorisation of k(x_t) + sigma^2 I.
pub struct Conditioned<'a> {
    prior: &'a Prior,
    points: Vec<usize>,
    /// Lower triangular, row by row.
    root: Vec<Vec<f64>>,
    /// L^-1 (y_t - mu(x_t)).
    whitened: Vec<f64>,
}

/// k(x_i, x_j) = F_i . F_j + w [i = j].
pub fn kernel(prior: &Prior, i: usize, j: usize) -> f64 {
    let smooth: f64 = prior.factor.row(i).zip(prior.factor.row(j)).map(|(a, b)| a * b).sum();
    if i == j { smooth + prior.white } else { smooth }
}

impl<'a> Conditioned<'a> {
    /// Conditions on y at distinct points; `None` where a pivot is not positive.
    pub fn new(prior: &'a Prior, points: &[usize], y: &[f64]) -> Option<Self> {
        let mut root: Vec<Vec<f64>> = Vec::new();
        for (a, &p) in points.iter().enumerate() {
            let covariances: Vec<f64> = points[..a].iter().map(|&q| kernel(prior, p, q)).collect();
            let mut row = solve_lower(&root, &covariances);
            let pivot = kernel(prior, p, p) + prior.noise_variance - dot(&row, &row);
            if pivot <= 0.0 {
                return None;
            }
            row.push(pivot.sqrt());
            root.push(row);
        }
        let centred: Vec<f64> = points.iter().zip(y).map(|(&p, y)| y - prior.mean[p]).collect();
        let whitened = solve_lower(&root, &centred);
        Some(Self { prior, points: points.to_vec(), root, whitened })
    }

    /// (mu_t, k_t) at any point, observed or not.
    pub fn at(&self, point: usize) -> (f64, f64) {
        let covariances: Vec<f64> =
            self.points.iter().map(|&p| kernel(self.prior, point, p)).collect();
        let loadings = solve_lower(&self.root, &covariances);
        let mean = self.prior.mean[point] + dot(&loadings, &self.whitened);
        (mean, kernel(self.prior, point, point) - dot(&loadings, &loadings))
    }

    /// K = (y_t - mu)^T (k(x_t) + sigma^2 I)^-1 (y_t - mu).
    pub fn quadratic_form(&self) -> f64 {
        dot(&self.whitened, &self.whitened)
    }

    /// 1/2 log det(I + k(x_t)/sigma^2), for sigma > 0.
    pub fn information(&self) -> f64 {
        let noise = self.prior.noise_variance;
        self.root.iter().enumerate().map(|(a, row)| libm::log(row[a] / noise.sqrt())).sum()
    }

    /// trace((k(x_t) + sigma^2 I)^-1), which times the largest variance bounds the condition number.
    pub fn inverse_trace(&self) -> f64 {
        let size = self.root.len();
        let unit = |j: usize| (0..size).map(|i| f64::from(u8::from(i == j))).collect::<Vec<f64>>();
        let columns = (0..size).map(|j| solve_lower(&self.root, &unit(j)));
        columns.map(|column| dot(&column, &column)).sum()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// L^-1 v.
fn solve_lower(root: &[Vec<f64>], v: &[f64]) -> Vec<f64> {
    let mut x: Vec<f64> = Vec::with_capacity(v.len());
    for (row, value) in root.iter().zip(v) {
        let known = dot(&row[..x.len()], &x);
        x.push((value - known) / row[x.len()]);
    }
    x
}
