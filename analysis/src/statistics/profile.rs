//! A + B n^-c with c held fixed: a straight line, solved exactly.
//!
//! Variable projection (Golub and Pereyra, SIAM J. Numer. Anal. 10, 1973): for a given c the best
//! (A, B) are those of a weighted line in x = n^-c, and what is left is a function of c alone. With
//! l = log(n/n0), n0 the geometric mean of the sizes, and residuals r of the line,
//!
//! ```text
//! chi2(c) = sum w r^2,   w = 1/MCSE^2
//! chi2'(c) = 2 b sum w r l exp(-c l),   b = B n0^-c
//! ```
//!
//! (A and B do not enter the derivative, being stationary). With a free floor the regressor is
//! exp(-c l) - 1, centred: for small c it nearly is a constant, and only the difference tells.

use super::{Floor, Point};

/// The sizes, weights and floor of a fit, whatever the values.
#[derive(Clone, Debug)]
pub(super) struct Design {
    /// log n0.
    pub(super) ln_centre: f64,
    /// l of every point.
    pub(super) logs: Vec<f64>,
    /// 1/MCSE^2 of every point.
    pub(super) weights: Vec<f64>,
    pub(super) floor: Floor,
}

/// The regressor at one c.
#[derive(Clone, Debug)]
pub(super) struct Basis {
    /// What was taken off exp(-c l): 1 + the weighted mean of the rest, or 0 with a known floor.
    offset: f64,
    regressor: Vec<f64>,
    /// sum w regressor^2.
    squares: f64,
}

/// Values with their constant part taken off: the weighted mean, or the floor where it is known.
#[derive(Clone, Debug)]
pub(super) struct Deviations {
    constant: f64,
    values: Vec<f64>,
    /// sum w deviation^2: the chi-square of B = 0.
    pub(super) squares: f64,
}

/// The best line at one c.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// A.
    pub(super) a: f64,
    /// b = B n0^-c.
    pub(super) b: f64,
    pub(super) chi_square: f64,
    /// d chi_square/dc.
    pub(super) slope: f64,
}

impl Design {
    pub(super) fn new(points: &[Point], floor: Floor) -> Self {
        let mut logs: Vec<f64> = points.iter().map(|point| libm::log(point.size)).collect();
        let ln_centre = logs.iter().sum::<f64>() / logs.len() as f64;
        logs.iter_mut().for_each(|l| *l -= ln_centre);
        let weights = points.iter().map(|point| 1.0 / (point.error * point.error)).collect();
        Self { ln_centre, logs, weights, floor }
    }

    fn mean(&self, values: &[f64]) -> f64 {
        let total: f64 = self.weights.iter().sum();
        self.sum(|i| values[i]) / total
    }

    /// sum w term.
    fn sum(&self, term: impl Fn(usize) -> f64) -> f64 {
        self.weights.iter().enumerate().map(|(i, w)| w * term(i)).sum()
    }

    pub(super) fn basis(&self, c: f64) -> Basis {
        let (offset, regressor): (f64, Vec<f64>) = match self.floor {
            Floor::Known(_) => (0.0, self.logs.iter().map(|l| libm::exp(-c * l)).collect()),
            Floor::Free => {
                let rest: Vec<f64> = self.logs.iter().map(|l| libm::expm1(-c * l)).collect();
                let mean = self.mean(&rest);
                (1.0 + mean, rest.into_iter().map(|x| x - mean).collect())
            }
        };
        let squares = self.sum(|i| regressor[i] * regressor[i]);
        Basis { offset, regressor, squares }
    }

    pub(super) fn deviations(&self, values: &[f64]) -> Deviations {
        let constant = match self.floor {
            Floor::Known(a) => a,
            Floor::Free => self.mean(values),
        };
        let values: Vec<f64> = values.iter().map(|y| y - constant).collect();
        let squares = self.sum(|i| values[i] * values[i]);
        Deviations { constant, values, squares }
    }

    /// b of the best line.
    fn scale(&self, basis: &Basis, y: &Deviations) -> f64 {
        self.sum(|i| basis.regressor[i] * y.values[i]) / basis.squares
    }

    /// chi2(c).
    pub(super) fn chi_square(&self, basis: &Basis, y: &Deviations) -> f64 {
        let b = self.scale(basis, y);
        let residual = |i: usize| y.values[i] - b * basis.regressor[i];
        self.sum(|i| residual(i) * residual(i))
    }

    /// The best line, with chi2 and its derivative.
    pub(super) fn line(&self, basis: &Basis, y: &Deviations) -> Line {
        let b = self.scale(basis, y);
        let residual = |i: usize| y.values[i] - b * basis.regressor[i];
        let x = |i: usize| basis.regressor[i] + basis.offset;
        Line {
            a: match self.floor {
                Floor::Known(a) => a,
                Floor::Free => y.constant - b * basis.offset,
            },
            b,
            chi_square: self.chi_square(basis, y),
            slope: 2.0 * b * self.sum(|i| residual(i) * self.logs[i] * x(i)),
        }
    }

    /// B = b n0^c.
    pub(super) fn unscaled(&self, b: f64, c: f64) -> f64 {
        b * libm::exp(c * self.ln_centre)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn points(values: &[f64]) -> Vec<Point> {
        let size = |i: usize| 20.0 * f64::from(1_u32 << i);
        let error = |i: usize| 0.01 * (1.0 + i as f64);
        let point = |(i, &value): (usize, &f64)| Point { size: size(i), value, error: error(i) };
        values.iter().enumerate().map(point).collect()
    }

    proptest! {
        #[test]
        fn the_slope_is_the_derivative(
            values in prop::collection::vec(0.1_f64..2.0, 7), c in 0.05_f64..3.0, free: bool,
        ) {
            let floor = if free { Floor::Free } else { Floor::Known(0.05) };
            let design = Design::new(&points(&values), floor);
            let y = design.deviations(&values);
            let chi2 = |c: f64| design.line(&design.basis(c), &y);
            let step = 1e-5;
            let difference = (chi2(c + step).chi_square - chi2(c - step).chi_square) / (2.0 * step);
            let scale = y.squares;
            prop_assert!((chi2(c).slope - difference).abs() < 1e-6 * scale, "{}", chi2(c).slope);
        }

        #[test]
        fn the_line_is_the_best(
            values in prop::collection::vec(0.1_f64..2.0, 7), c in 0.05_f64..3.0,
            da in -0.1_f64..0.1, db in -0.1_f64..0.1,
        ) {
            let design = Design::new(&points(&values), Floor::Free);
            let line = design.line(&design.basis(c), &design.deviations(&values));
            let chi2 = |a: f64, b: f64| -> f64 {
                (0..7).map(|i| {
                    let r = values[i] - a - b * libm::exp(-c * design.logs[i]);
                    design.weights[i] * r * r
                }).sum()
            };
            prop_assert!((chi2(line.a, line.b) / line.chi_square - 1.0).abs() < 1e-9);
            prop_assert!(chi2(line.a + da, line.b + db) >= line.chi_square * (1.0 - 1e-9));
        }
    }
}
