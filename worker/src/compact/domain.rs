//! The box that is searched, and points that fill it evenly.

/// Bounds that make no box.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Invalid {
    /// No axis, or as many upper as lower bounds are missing.
    #[error("{low} lower and {high} upper bounds: a box has as many of each, and at least one")]
    Bounds {
        /// Lower bounds given.
        low: usize,
        /// Upper bounds given.
        high: usize,
    },
    /// An axis without length.
    #[error("axis {axis} from {low} to {high}: a box needs finite bounds, the lower one first")]
    Axis {
        /// The axis, from 0.
        axis: usize,
        /// Its lower bound.
        low: f64,
        /// Its upper bound.
        high: f64,
    },
}

/// How far candidates reach beyond the box before they are moved onto its faces, in spacings.
const MARGIN: f64 = 0.5;

/// The product of the intervals [low_j, high_j].
#[derive(Clone, Debug, PartialEq)]
pub struct Domain {
    low: Vec<f64>,
    high: Vec<f64>,
}

impl Domain {
    /// Checks the bounds.
    pub fn new(low: &[f64], high: &[f64]) -> Result<Self, Invalid> {
        if low.is_empty() || low.len() != high.len() {
            return Err(Invalid::Bounds { low: low.len(), high: high.len() });
        }
        for (axis, (&low, &high)) in low.iter().zip(high).enumerate() {
            if !(low < high && (high - low).is_finite()) {
                return Err(Invalid::Axis { axis, low, high });
            }
        }
        Ok(Self { low: low.to_vec(), high: high.to_vec() })
    }

    /// [0, 1]^d.
    ///
    /// # Panics
    /// Where d is zero.
    pub fn unit(dimension: usize) -> Self {
        assert!(dimension > 0, "a box has an axis");
        Self { low: vec![0.0; dimension], high: vec![1.0; dimension] }
    }

    /// d.
    pub fn dimension(&self) -> usize {
        self.low.len()
    }

    /// The length of axis j.
    pub fn length(&self, j: usize) -> f64 {
        self.high[j] - self.low[j]
    }

    /// The nearest value inside, on axis j.
    #[inline(always)]
    pub(super) fn clamped(&self, j: usize, x: f64) -> f64 {
        if x < self.low[j] {
            self.low[j]
        } else if x > self.high[j] {
            self.high[j]
        } else {
            x
        }
    }

    /// Whether a gradient at x points out of the box on axis j.
    #[inline(always)]
    pub(super) fn pinned(&self, j: usize, x: f64, slope: f64) -> bool {
        (x <= self.low[j] && slope <= 0.0) || (x >= self.high[j] && slope >= 0.0)
    }

    /// The first `count` points of a sequence of low discrepancy, point by point: multiples of
    /// (1/g, 1/g^2, ..) modulo 1, g^(d+1) = g + 1 (Roberts 2018, a generalised golden ratio). They fill a
    /// box that is larger by `MARGIN` spacings on every side and are then moved to the nearest place
    /// inside: maxima are often on a face, where a basin may be too narrow for a point of the interior.
    pub(super) fn fill(&self, count: usize) -> Vec<f64> {
        let steps = steps(self.dimension());
        let margin = MARGIN * libm::pow(count as f64, -1.0 / steps.len() as f64);
        let mut out = Vec::with_capacity(count * steps.len());
        for i in 0..count {
            for (j, step) in steps.iter().enumerate() {
                let turns = 0.5 + (i + 1) as f64 * step;
                let part = (turns - turns.floor()) * (1.0 + 2.0 * margin) - margin;
                out.push(self.clamped(j, self.low[j] + part * self.length(j)));
            }
        }
        out
    }
}

/// 1/g, 1/g^2, .. 1/g^d.
fn steps(dimension: usize) -> Vec<f64> {
    let degree = (dimension + 1) as f64;
    // Contracts by more than half at every step.
    let ratio = (0..64).fold(2.0, |g, _| libm::pow(1.0 + g, 1.0 / degree));
    (0..dimension)
        .scan(1.0, |step, _| {
            *step /= ratio;
            Some(*step)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_checked() {
        assert_eq!(Domain::new(&[], &[]), Err(Invalid::Bounds { low: 0, high: 0 }));
        assert_eq!(Domain::new(&[0.0], &[]), Err(Invalid::Bounds { low: 1, high: 0 }));
        let flat = Domain::new(&[0.0, 1.0], &[1.0, 1.0]);
        assert_eq!(flat, Err(Invalid::Axis { axis: 1, low: 1.0, high: 1.0 }));
        assert!(Domain::new(&[f64::NAN], &[1.0]).is_err());
    }

    #[test]
    fn steps_are_powers_of_the_generalised_golden_ratio() {
        assert!((steps(1)[0] - 0.6180339887498949).abs() < 1e-15);
        assert!((steps(2)[0] - 0.7548776662466927).abs() < 1e-15);
        assert!((steps(2)[1] - 0.5698402909980532).abs() < 1e-15);
    }

    /// Every cell of a grid with a quarter as many cells as points holds at least one.
    #[test]
    fn points_fill_the_box() {
        let domain = Domain::new(&[-1.0, 10.0], &[1.0, 30.0]).unwrap();
        let points = domain.fill(256);
        let mut seen = [false; 64];
        for x in points.chunks(2) {
            let cell = |j: usize| ((x[j] - domain.low[j]) / domain.length(j) * 7.999) as usize;
            seen[cell(0) * 8 + cell(1)] = true;
        }
        assert!(seen.iter().all(|&s| s));
    }
}
