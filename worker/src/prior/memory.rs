//! How much memory a prior may take, checked before it is taken.

use study::prior::Shape;

/// What a worker can spare for one prior and the trials on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// In all.
    pub bytes: u64,
    /// What the trials keep per point besides the prior.
    pub state_per_point: u64,
}

/// A prior that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{points} points at rank {rank} (so far) need {needed} bytes, and {limit} are allowed; what \
     fits is {points_that_fit} points at this rank or rank {rank_that_fits} with these points: use \
     fewer points, a smoother kernel, a larger prior.tolerance or a higher limit"
)]
pub struct OutOfMemory {
    /// M.
    pub points: usize,
    /// Columns of F that were needed when the limit was met; the factorisation may need more.
    pub rank: usize,
    /// Bytes for that rank.
    pub needed: u64,
    /// Bytes allowed.
    pub limit: u64,
    /// The largest M at this rank.
    pub points_that_fit: u64,
    /// The largest rank with this M; 0 also where not even the points fit.
    pub rank_that_fits: u64,
}

impl MemoryLimit {
    /// Refuses a rank at which the prior would not fit: M (8 (d + 1) + 16 r + state) bytes, for
    /// points, mean, F (twice, while its columns are put into panels) and the trials.
    pub(super) fn admit(self, shape: Shape, rank: usize) -> Result<(), OutOfMemory> {
        let fixed = (8 * (shape.dimension as u64 + 1)).saturating_add(self.state_per_point);
        let per_point = fixed.saturating_add(16 * rank as u64);
        let needed = per_point.saturating_mul(shape.points as u64);
        if needed <= self.bytes {
            return Ok(());
        }
        Err(OutOfMemory {
            points: shape.points,
            rank,
            needed,
            limit: self.bytes,
            points_that_fit: self.bytes / per_point,
            rank_that_fits: (self.bytes / shape.points as u64).saturating_sub(fixed) / 16,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_to_fit_fits_and_no_more() {
        let limit = MemoryLimit { bytes: 100_000, state_per_point: 40 };
        let shape = Shape { points: 500, dimension: 2 };
        let error = limit.admit(shape, 10).unwrap_err();
        assert_eq!((error.needed, error.points_that_fit, error.rank_that_fits), (112_000, 446, 8));
        assert!(limit.admit(shape, 8).is_ok() && limit.admit(shape, 9).is_err());
        let fewer = |points| limit.admit(Shape { points, dimension: 2 }, 10);
        assert!(fewer(446).is_ok() && fewer(447).is_err());
        assert!(error.to_string().starts_with(
            "500 points at rank 10 (so far) need 112000 bytes, and 100000 are allowed; what fits \
             is 446 points at this rank or rank 8 with these points"
        ));
    }
}
