//! The maximum information gain rho_T, bracketed.
//!
//! ```text
//! rho_T = max over sets A of T distinct points of I(A),  I(A) = 1/2 log det(I + k(A)/sigma^2)
//! ```
//!
//! Finding the maximising set is NP-hard (Ko, Lee and Queyranne 1995). I is monotone and submodular
//! (Krause and Guestrin 2005), so the greedy set G_T and its marginal gains bound rho_T from both
//! sides, and eigenvalues bound it from above. A regret claim is confirmed with the lower end and
//! refuted with the upper end, so that the bracket cannot decide.

mod greedy;
mod spectrum;

use crate::Factor;
use crate::special::smaller;
use greedy::Greedy;

pub use spectrum::SPECTRUM_RANK_LIMIT;

/// What is known of rho_T for one T.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// I(G_T), the information of the greedy set: a lower bound.
    pub lo: f64,
    /// I(G_T)/(1 - (1 - 1/T)^T) (Nemhauser, Wolsey and Fisher 1978).
    pub by_greedy: f64,
    /// (T/2) log(1 + c/sigma^2), c the largest prior variance.
    pub by_variance: f64,
    /// 1/2 sum_{i <= T} log(1 + lambda_i/sigma^2), lambda_i the largest eigenvalues of k(X), which
    /// interlace those of k(A); `None` where the rank exceeds [`SPECTRUM_RANK_LIMIT`].
    pub by_spectrum: Option<f64>,
    /// min_j [I(G_j) + the T largest marginal gains given G_j], j = 0 ..= T
    /// (Leskovec et al. 2007): the online bound.
    pub by_prefix: f64,
    /// The least of the upper bounds, and never below `lo` by rounding.
    pub hi: f64,
}

/// [`Bounds`] for every horizon T = 1, 2, ..
#[derive(Clone, Debug, PartialEq)]
pub struct Bracket {
    bounds: Vec<Bounds>,
}

impl Bracket {
    /// The bounds on rho_T; `None` beyond the horizon for which the bracket was made, and at T = 0.
    pub fn at(&self, horizon: usize) -> Option<&Bounds> {
        self.bounds.get(horizon.checked_sub(1)?)
    }

    /// The bounds for T = 1, 2, .. in order.
    pub fn bounds(&self) -> &[Bounds] {
        &self.bounds
    }
}

/// Brackets rho_T for T = 1 ..= `horizon_max` under the prior k = F F^T + `white` I, in
/// O(M (r + log M) T + r T^2) for T = `horizon_max` and, for the spectrum, O((M + r) r^2). `None` where sigma^2 =
/// `noise_variance` is 0: the information is then infinite.
///
/// # Panics
/// Where `horizon_max` exceeds the number of points: there is no set of so many distinct ones.
pub fn bracket(
    factor: &Factor,
    white: f64,
    noise_variance: f64,
    horizon_max: usize,
) -> Option<Bracket> {
    assert!(horizon_max <= factor.rows(), "T <= M: evaluated points are not selected again");
    if noise_variance == 0.0 {
        return None;
    }
    let mut greedy = Greedy::new(factor, white, noise_variance);
    let by_variance = greedy.largest_gain();
    let by_spectrum = spectrum::cumulative(factor, white, noise_variance, horizon_max);
    let mut lo = Vec::with_capacity(horizon_max);
    let mut by_prefix = greedy.prefix_bounds(horizon_max);
    for _ in 0..horizon_max {
        lo.push(greedy.step());
        let prefix = lo.len();
        let bounds = greedy.prefix_bounds(horizon_max);
        // A prefix serves horizons from its own length on, so that adding horizons changes none.
        for (least, bound) in by_prefix.iter_mut().zip(bounds).skip(prefix - 1) {
            *least = smaller(*least, bound);
        }
    }
    let bounds = (0..horizon_max).map(|at| {
        let t = (at + 1) as f64;
        let mut bounds = Bounds {
            lo: lo[at],
            by_greedy: lo[at] / (1.0 - libm::pow(1.0 - 1.0 / t, t)),
            by_variance: t * by_variance,
            by_spectrum: by_spectrum.as_ref().map(|sums| sums[at]),
            by_prefix: by_prefix[at],
            hi: 0.0,
        };
        bounds.hi = bounds.least_upper();
        bounds
    });
    Some(Bracket { bounds: bounds.collect() })
}

impl Bounds {
    fn least_upper(&self) -> f64 {
        let least = smaller(smaller(self.by_greedy, self.by_variance), self.by_prefix);
        let least = self.by_spectrum.map_or(least, |bound| smaller(least, bound));
        if least < self.lo { self.lo } else { least }
    }
}

#[cfg(test)]
mod tests;
