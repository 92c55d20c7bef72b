//! The spectral bound: 1/2 sum_{i <= T} log(1 + lambda_i/sigma^2).
//!
//! The eigenvalues of k = F F^T + w I are those of F^T F plus w, and w for the rest.

use crate::{Factor, PANEL, eigen::eigenvalues};

/// The rank beyond which the spectral bound is left out: it costs O((M + r) r^2) (0.4 s at
/// M = r = 1000, 6 s at 2000), and the other bounds hold without it.
pub const SPECTRUM_RANK_LIMIT: usize = 1000;

/// The sums for T = 1 ..= `horizon_max`; `None` beyond [`SPECTRUM_RANK_LIMIT`], or where the
/// eigenvalues did not converge.
pub(super) fn cumulative(
    factor: &Factor,
    white: f64,
    noise_variance: f64,
    horizon_max: usize,
) -> Option<Vec<f64>> {
    let rank = factor.rank();
    if rank > SPECTRUM_RANK_LIMIT {
        return None;
    }
    let smooth = eigenvalues(gram(factor), rank).ok()?;
    let mut sum = 0.0;
    let terms = (0..horizon_max).map(|i| {
        // F^T F has no negative eigenvalue but for rounding.
        let lambda = smooth.get(i).map_or(0.0, |&value| if value > 0.0 { value } else { 0.0 });
        0.5 * libm::log1p((lambda + white) / noise_variance)
    });
    let sums = terms.map(|term| {
        sum += term;
        sum
    });
    Some(sums.collect())
}

/// The lower triangle of F^T F, panel by panel.
fn gram(factor: &Factor) -> Vec<f64> {
    let rank = factor.rank();
    let mut out = vec![0.0; rank * rank];
    let mut rows = vec![0.0; PANEL * rank];
    for j in 0..factor.panels() {
        for (k, group) in factor.panel(j).chunks_exact(PANEL).enumerate() {
            for (l, &value) in group.iter().enumerate() {
                rows[l * rank + k] = value;
            }
        }
        for a in 0..rank {
            let target = &mut out[a * rank..=a * rank + a];
            for rows in rows.chunks_exact(2 * rank) {
                let (first, second) = rows.split_at(rank);
                let (fa, ga) = (first[a], second[a]);
                for ((sum, f), g) in target.iter_mut().zip(first).zip(second) {
                    *sum += fa * f + ga * g;
                }
            }
        }
    }
    out
}
