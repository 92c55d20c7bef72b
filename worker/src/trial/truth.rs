//! mu_t and k_t from the weights' posterior, at points that have been observed and at others.

use crate::posterior::Located;
use crate::prior::Prior;

/// mu_t and k_t at a point.
#[derive(Clone, Copy)]
pub(super) struct Truth {
    pub(super) mean: f64,
    pub(super) variance: f64,
}

/// mu_t and k_t at a point that has not been observed: k_t = F_x C F_x^T + w.
pub(super) fn unobserved<const L: usize>(prior: &Prior, at: &Located<L>, lane: usize) -> Truth {
    let variance = at.variance[lane];
    Truth {
        mean: prior.mean[at.points[lane]] + at.mean[lane],
        variance: if variance > 0.0 { variance } else { 0.0 } + prior.white,
    }
}

/// mu_t and k_t at an observed point x_j, where y_j also tells of the white part. With
/// q = sigma^2/s^2: mu_t = y_j - q (y_j - mu_j - F_j m), k_t = q w + q^2 F_j C F_j^T.
pub(super) fn observed<const L: usize>(
    prior: &Prior,
    at: &Located<L>,
    lane: usize,
    y: f64,
) -> Truth {
    let total = prior.total_noise();
    let share = if total > 0.0 { prior.noise_variance / total } else { 0.0 };
    let fit = prior.mean[at.points[lane]] + at.mean[lane];
    let variance = at.variance[lane];
    let variance = if variance > 0.0 { variance } else { 0.0 };
    Truth { mean: y - share * (y - fit), variance: share * prior.white + share * share * variance }
}
