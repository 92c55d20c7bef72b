//! The greedy set, in weight space.
//!
//! With weights of posterior covariance C (C = I before any point), the posterior variance at an
//! unchosen point is k_A(x_i) = w + q_i, q_i = F_i C F_i^T, and its marginal gain is
//! 1/2 log(1 + k_A(x_i)/sigma^2). Choosing p, with s^2 = w + sigma^2:
//!
//! ```text
//! u = C F_p^T,   C <- C - u u^T/(s^2 + q_p),   q_i <- q_i - (F_i u)^2/(s^2 + q_p)
//! ```
//!
//! C is kept as the list of its u, so a step costs one sweep over F and O(r t).

use crate::{Factor, PANEL};

/// A direction u that has been conditioned on, and s^2 + q_p.
struct Conditioned {
    direction: Vec<f64>,
    scale: f64,
}

/// The greedy prefix G_j and the marginal gains given it.
pub(super) struct Greedy<'a> {
    factor: &'a Factor,
    white: f64,
    noise_variance: f64,
    /// q_i, and `None` at chosen points.
    variances: Vec<Option<f64>>,
    conditioned: Vec<Conditioned>,
    information: f64,
}

impl<'a> Greedy<'a> {
    /// The empty prefix.
    pub(super) fn new(factor: &'a Factor, white: f64, noise_variance: f64) -> Self {
        let variances = (0..factor.rows()).map(|i| Some(factor.squared_norm(i))).collect();
        Self { factor, white, noise_variance, variances, conditioned: vec![], information: 0.0 }
    }

    /// Adds the unchosen point of the largest gain (the lowest index on ties), and returns I(G_j).
    pub(super) fn step(&mut self) -> f64 {
        let (p, variance) = self.best().expect("bracket asks for at most M steps");
        self.information += self.gain(variance);
        self.variances[p] = None;
        let scale = self.white + self.noise_variance + variance;
        let direction = self.posterior_row(p);
        self.sweep(&direction, scale);
        self.conditioned.push(Conditioned { direction, scale });
        self.information
    }

    /// The largest marginal gain; 0 when every point has been chosen.
    pub(super) fn largest_gain(&self) -> f64 {
        self.best().map_or(0.0, |(_, variance)| self.gain(variance))
    }

    /// I(G_j) + the T largest marginal gains, for T = 1 ..= `horizon_max`. A chosen point gains
    /// nothing, so the sum stops growing where the unchosen ones run out.
    pub(super) fn prefix_bounds(&self, horizon_max: usize) -> Vec<f64> {
        let mut unchosen: Vec<f64> = self.variances.iter().copied().flatten().collect();
        if (1..unchosen.len()).contains(&horizon_max) {
            unchosen.select_nth_unstable_by(horizon_max - 1, |a, b| b.total_cmp(a));
            unchosen.truncate(horizon_max);
        }
        unchosen.sort_unstable_by(|a, b| b.total_cmp(a));
        let mut sum = self.information;
        let gains = (0..horizon_max).map(|at| unchosen.get(at).map_or(0.0, |&q| self.gain(q)));
        gains
            .map(|gain| {
                sum += gain;
                sum
            })
            .collect()
    }

    /// 1/2 log(1 + (w + q)/sigma^2).
    fn gain(&self, variance: f64) -> f64 {
        0.5 * libm::log1p((self.white + variance) / self.noise_variance)
    }

    fn best(&self) -> Option<(usize, f64)> {
        let unchosen = self.variances.iter().enumerate().filter_map(|(i, q)| q.map(|q| (i, q)));
        unchosen.reduce(|best, next| if next.1 > best.1 { next } else { best })
    }

    /// u = C F_p^T.
    fn posterior_row(&self, p: usize) -> Vec<f64> {
        let row: Vec<f64> = self.factor.row(p).collect();
        let mut out = row.clone();
        for Conditioned { direction, scale } in &self.conditioned {
            let along = direction.iter().zip(&row).fold(0.0, |sum, (u, f)| sum + u * f);
            for (out, u) in out.iter_mut().zip(direction) {
                *out -= along / scale * u;
            }
        }
        out
    }

    /// q_i <- q_i - (F_i u)^2/scale, never below 0, at all unchosen points.
    fn sweep(&mut self, direction: &[f64], scale: f64) {
        for (j, variances) in self.variances.chunks_mut(PANEL).enumerate() {
            let mut products = [0.0; PANEL];
            for (panel, u) in self.factor.panel(j).chunks_exact(PANEL).zip(direction) {
                for (product, f) in products.iter_mut().zip(panel) {
                    *product += f * u;
                }
            }
            for (variance, product) in variances.iter_mut().zip(products) {
                if let Some(q) = variance {
                    let left = *q - product * product / scale;
                    *q = if left > 0.0 { left } else { 0.0 };
                }
            }
        }
    }
}
