//! Weighted least squares of y = A + B n^-c with weights 1/MCSE^2.
//!
//! For each c the best A and B are those of a line ([`super::profile`]), so that only c is searched
//! for, within [`EXPONENTS`]: on a grid that is even in log c, then by the derivative. A least value
//! at an end of the range is an answer of its own, [`Place::AtBound`].
//!
//! The p-value and the standard errors take the points as independent and their errors as known.
//! Cells that share seeds are not independent: for an interval use [`super::exponent_interval`].
//! Sharing makes differences between sizes more certain than the errors say, so that the test for a
//! trend ([`TREND_LEVEL`]) refuses too often rather than too rarely, and a small p-value is a misfit.
//! The sign of B is free: a quantity may come down to its limit or up to it.

use super::minimum::{Minimum, Smooth};
use super::points::check;
use super::profile::{Basis, Design, Deviations};
use super::standard_errors::standard_errors;
use super::{FitError, Floor, Point, StandardErrors};
use theory::special::chi2_sf;

/// The exponents that are searched.
pub const EXPONENTS: (f64, f64) = (0.02, 4.0);

/// There is a trend where a constant is rejected at this level.
pub const TREND_LEVEL: f64 = 0.05;

/// Nodes of the grid: neighbours differ by a factor of 200^(1/96), or 5.7 %.
const NODES: usize = 97;

/// An end of [`EXPONENTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The least exponent: slower decay would fit better.
    Slowest,
    /// The largest exponent: faster decay would fit better.
    Fastest,
}

/// Where the best exponent lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Within the range.
    Inside,
    /// At an end of the range, which then is no estimate.
    AtBound(Bound),
}

/// A fitted A + B n^-c.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// A, the limit for large n.
    pub a: f64,
    /// B.
    pub b: f64,
    /// c, the exponent of the decay.
    pub c: f64,
    /// Whether c is an estimate or an end of the range.
    pub place: Place,
    /// Gauss-Newton standard errors; `None` at a bound.
    pub errors: Option<StandardErrors>,
    /// sum (y - fit)^2/MCSE^2.
    pub chi_square: f64,
    /// Points minus fitted parameters.
    pub degrees: usize,
    /// P(chi-square with `degrees` > `chi_square`).
    pub p_value: f64,
}

impl Fit {
    /// The curve at a size.
    pub fn at(&self, size: f64) -> f64 {
        self.a + self.b * libm::exp(-self.c * libm::log(size))
    }
}

/// Fits A + B n^-c to points with at least [`super::MIN_SIZES`] distinct sizes.
pub fn fit_power_law(points: &[Point], floor: Floor) -> Result<Fit, FitError> {
    let fitter = Fitter::new(points, floor)?;
    let values: Vec<f64> = points.iter().map(|point| point.value).collect();
    fitter.fit(&values)
}

/// What fits to the same sizes, weights and floor share.
pub(super) struct Fitter {
    design: Design,
    nodes: Vec<f64>,
    grid: Vec<Basis>,
}

impl Fitter {
    pub(super) fn new(points: &[Point], floor: Floor) -> Result<Self, FitError> {
        check(points)?;
        let design = Design::new(points, floor);
        let nodes = nodes();
        let grid = nodes.iter().map(|&c| design.basis(c)).collect();
        Ok(Self { design, nodes, grid })
    }

    /// The best exponent for `values`; an error where there is no trend.
    pub(super) fn exponent(&self, values: &[f64]) -> Result<(f64, Place), FitError> {
        let y = self.design.deviations(values);
        self.trend(&y)?;
        let curve = Smooth {
            value: |c| self.design.chi_square(&self.design.basis(c), &y),
            derivative: |c| self.design.line(&self.design.basis(c), &y).slope,
        };
        let at_nodes: Vec<f64> =
            self.grid.iter().map(|basis| self.design.chi_square(basis, &y)).collect();
        Ok(match curve.minimum(&self.nodes, &at_nodes) {
            Minimum::Inside(c) => (c, Place::Inside),
            Minimum::FirstNode => (EXPONENTS.0, Place::AtBound(Bound::Slowest)),
            Minimum::LastNode => (EXPONENTS.1, Place::AtBound(Bound::Fastest)),
        })
    }

    pub(super) fn fit(&self, values: &[f64]) -> Result<Fit, FitError> {
        let (c, place) = self.exponent(values)?;
        let line = self.design.line(&self.design.basis(c), &self.design.deviations(values));
        let errors = match place {
            Place::Inside => standard_errors(&self.design, line.b, c),
            Place::AtBound(_) => None,
        };
        let degrees = values.len() - self.parameters();
        Ok(Fit {
            a: line.a,
            b: self.design.unscaled(line.b, c),
            c,
            place,
            errors,
            chi_square: line.chi_square,
            degrees,
            p_value: chi2_sf(degrees as f64, line.chi_square),
        })
    }

    fn parameters(&self) -> usize {
        match self.design.floor {
            Floor::Free => 3,
            Floor::Known(_) => 2,
        }
    }

    /// Tests B = 0, with which c would mean nothing.
    fn trend(&self, y: &Deviations) -> Result<(), FitError> {
        // B = 0 leaves A alone, if that is free.
        let degrees = self.design.weights.len() + 2 - self.parameters();
        let p_value = chi2_sf(degrees as f64, y.squares);
        if p_value > TREND_LEVEL { Err(FitError::NoTrend { p_value }) } else { Ok(()) }
    }
}

/// [`EXPONENTS`] in equal steps of log c, with exact ends.
fn nodes() -> Vec<f64> {
    let (low, high) = EXPONENTS;
    let step = libm::log(high / low) / (NODES - 1) as f64;
    let node = |k: usize| low * libm::exp(step * k as f64);
    (0..NODES).map(|k| if k + 1 == NODES { high } else { node(k) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZES: [f64; 7] = [30.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0];

    fn points(curve: impl Fn(f64) -> f64, error: f64) -> Vec<Point> {
        SIZES.iter().map(|&size| Point { size, value: curve(size), error }).collect()
    }

    fn power(b: f64, c: f64) -> impl Fn(f64) -> f64 {
        move |n| b * libm::exp(-c * libm::log(n))
    }

    #[test]
    fn four_sizes_are_refused_even_when_repeated() {
        let mut few = points(power(1.0, 0.5), 0.01);
        few.truncate(4);
        few.extend(few.clone());
        assert_eq!(fit_power_law(&few, Floor::Free), Err(FitError::TooFewSizes { found: 4 }));
        assert_eq!(fit_power_law(&[], Floor::Free), Err(FitError::TooFewSizes { found: 0 }));
    }

    #[test]
    fn unusable_points_are_named() {
        for broken in [
            Point { size: 0.0, value: 1.0, error: 1.0 },
            Point { size: 1.0, value: f64::NAN, error: 1.0 },
            Point { size: 1.0, value: 1.0, error: 0.0 },
        ] {
            let mut data = points(power(1.0, 0.5), 0.01);
            data[3] = broken;
            let refused = fit_power_law(&data, Floor::Free);
            assert_eq!(refused, Err(FitError::InvalidPoint { index: 3 }));
        }
    }

    #[test]
    fn a_constant_has_no_exponent() {
        let flat = points(|n| 1.0 + 1e-3 * libm::sin(n), 0.01);
        assert!(matches!(fit_power_law(&flat, Floor::Free), Err(FitError::NoTrend { .. })));
        assert!(matches!(fit_power_law(&flat, Floor::Known(1.0)), Err(FitError::NoTrend { .. })));
        // Above a known floor of 0 the same values do not decay, which is an answer.
        let fit = fit_power_law(&flat, Floor::Known(0.0)).unwrap();
        assert_eq!((fit.c, fit.place), (0.02, Place::AtBound(Bound::Slowest)));
        assert_eq!(fit.errors, None);
    }

    #[test]
    fn too_fast_a_decay_is_at_the_other_end() {
        let fit = fit_power_law(&points(power(1e12, 6.0), 1e-3), Floor::Free).unwrap();
        assert_eq!((fit.c, fit.place), (4.0, Place::AtBound(Bound::Fastest)));
    }

    proptest! {
        #[test]
        fn exact_curves_are_recovered(
            a in -1.0_f64..1.0, b in 0.5_f64..20.0, c in 0.1_f64..3.0, rising: bool,
        ) {
            let b = if rising { -b } else { b } * libm::exp(c * libm::log(30.0));
            let data = points(|n| a + power(b, c)(n), 1e-3);
            for floor in [Floor::Free, Floor::Known(a)] {
                let fit = fit_power_law(&data, floor).unwrap();
                prop_assert!((fit.c / c - 1.0).abs() < 1e-9, "{} {c}", fit.c);
                prop_assert!((fit.b / b - 1.0).abs() < 1e-8);
                prop_assert!((fit.a - a).abs() < 1e-8 * (1.0 + b.abs()));
                prop_assert!(fit.chi_square < 1e-6 && fit.p_value > 0.999);
                prop_assert!((fit.at(SIZES[2]) - data[2].value).abs() < 1e-9);
            }
        }

        #[test]
        fn units_do_not_matter(
            noise in prop::collection::vec(-1.0_f64..1.0, 7), scale in 0.01_f64..100.0,
        ) {
            let make = |size: f64, unit: f64| -> Vec<Point> {
                SIZES.iter().zip(&noise).map(|(&n, e)| Point {
                    size: n * size,
                    value: unit * (0.3 + power(4.0, 0.5)(n) + 0.004 * e),
                    error: unit * 0.004,
                }).collect()
            };
            let one = fit_power_law(&make(1.0, 1.0), Floor::Free).unwrap();
            let other = fit_power_law(&make(scale, 3.0), Floor::Free).unwrap();
            prop_assert!((one.c / other.c - 1.0).abs() < 1e-9);
            prop_assert!((one.chi_square - other.chi_square).abs() < 1e-8 * one.chi_square);
        }
    }
}
