//! Weights of training functions on given features, W_hat_i = (Phi(x_bar)^T)^+ y_bar_i (paper, section 4.2).
//!
//! By QR of Phi(x_bar)^T itself: its normal equations would square a condition number that is large
//! for smooth features. A ridge, if any, enters as K more rows sqrt(ridge M/K) I with responses zero; it
//! is the one that features were learnt with, and keeps weights of nearly dependent features small.

#[cfg(test)]
mod tests;

use super::dataset::Dataset;
use super::features::Cosines;
use super::panels::Panels;
use super::qr::LeastSquares;
use crate::simd::Cpu;

/// Why there are no weights.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// K > M: the weights are not determined.
    #[error("weights of {features} features need at least as many points; there are {points}")]
    TooFewPoints {
        /// K.
        features: usize,
        /// M.
        points: usize,
    },
    /// Points and features are of different dimensions.
    #[error("points of dimension {points} do not suit features of dimension {features}")]
    Dimension {
        /// d of the points.
        points: usize,
        /// d of the features.
        features: usize,
    },
    /// The ridge is negative or not a number.
    #[error("ridge {ridge} must not be negative, and finite")]
    Ridge {
        /// The ridge given.
        ridge: f64,
    },
    /// Phi(x_bar) has not full row rank, which the paper assumes.
    #[error("the {features} features have numerical rank {rank} at the training points")]
    Rank {
        /// K.
        features: usize,
        /// Their rank.
        rank: usize,
    },
}

/// W_hat, N x K row by row.
pub fn weights(
    cpu: Cpu,
    cosines: &Cosines,
    data: &Dataset<'_>,
    ridge: f64,
) -> Result<Vec<f64>, Error> {
    let (features, points, n) = (cosines.count(), data.points(), data.functions());
    if data.dimension() != cosines.dimension() {
        let (points, features) = (data.dimension(), cosines.dimension());
        return Err(Error::Dimension { points, features });
    }
    if points < features {
        return Err(Error::TooFewPoints { features, points });
    }
    if !(ridge >= 0.0 && ridge.is_finite()) {
        return Err(Error::Ridge { ridge });
    }
    let inputs = Panels::from_rows(data.inputs(), data.dimension()).transpose();
    let phi = cosines.batch(cpu, &inputs);
    let width = features + n;
    let mut rows = Vec::with_capacity((points + features) * width);
    for m in 0..points {
        rows.extend((0..features).map(|k| phi.at(k, m)));
        rows.extend(data.responses().iter().skip(m).step_by(points));
    }
    let root = (ridge * points as f64 / features as f64).sqrt();
    if ridge > 0.0 {
        for k in 0..features {
            rows.extend((0..width).map(|j| if j == k { root } else { 0.0 }));
        }
    }
    LeastSquares::new(rows, features, width).solve().map_err(|rank| Error::Rank { features, rank })
}
