//! Gauss-Newton standard errors of A + B n^-c.
//!
//! With J the derivatives of the curve in its parameters, divided by the points' errors, the
//! covariance of the estimates is (J^T J)^-1 to first order (Seber and Wild, Nonlinear Regression,
//! section 2.1.2). The errors are taken as known: nothing is rescaled by chi-square. J is factored
//! as Q R in the parameters (A + b, b, c), b = B n0^-c, which are far less correlated than (A, B, c);
//! the error of a function with gradient g there is |R^-T g|.

use super::Floor;
use super::profile::Design;

/// Standard errors of a fit's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StandardErrors {
    /// Of A; 0 where the floor is known.
    pub a: f64,
    /// Of B.
    pub b: f64,
    /// Of c.
    pub c: f64,
}

/// The errors at the estimate (b, c); `None` where the derivatives are dependent.
pub(super) fn standard_errors(design: &Design, b: f64, c: f64) -> Option<StandardErrors> {
    let column = |derivative: &dyn Fn(f64) -> f64| -> Vec<f64> {
        let pairs = design.logs.iter().zip(&design.weights);
        pairs.map(|(&l, &w)| w.sqrt() * derivative(l)).collect()
    };
    let by_c = column(&|l| -b * l * libm::exp(-c * l));
    // B = b n0^c has the derivatives n0^c in b and B log n0 in c.
    let (by_scale, by_exponent) =
        (design.unscaled(1.0, c), design.unscaled(b, c) * design.ln_centre);
    match design.floor {
        Floor::Free => {
            let r = triangle([column(&|_| 1.0), column(&|l| libm::expm1(-c * l)), by_c])?;
            Some(StandardErrors {
                a: error(&r, [1.0, -1.0, 0.0]),
                b: error(&r, [0.0, by_scale, by_exponent]),
                c: error(&r, [0.0, 0.0, 1.0]),
            })
        }
        Floor::Known(_) => {
            let r = triangle([column(&|l| libm::exp(-c * l)), by_c])?;
            Some(StandardErrors {
                a: 0.0,
                b: error(&r, [by_scale, by_exponent]),
                c: error(&r, [0.0, 1.0]),
            })
        }
    }
}

/// R of the columns' QR factors, by modified Gram-Schmidt; `None` where a column depends on those
/// before it.
fn triangle<const K: usize>(mut columns: [Vec<f64>; K]) -> Option<[[f64; K]; K]> {
    let dot = |x: &[f64], y: &[f64]| -> f64 { x.iter().zip(y).map(|(a, b)| a * b).sum() };
    let mut r = [[0.0; K]; K];
    for j in 0..K {
        let whole = dot(&columns[j], &columns[j]).sqrt();
        for i in 0..j {
            let (done, rest) = columns.split_at_mut(j);
            let along = dot(&done[i], &rest[0]);
            r[i][j] = along;
            rest[0].iter_mut().zip(&done[i]).for_each(|(x, q)| *x -= along * q);
        }
        let length = dot(&columns[j], &columns[j]).sqrt();
        // Below this nothing but rounding is left of the column.
        if length.is_nan() || length <= 1e-13 * whole {
            return None;
        }
        r[j][j] = length;
        columns[j].iter_mut().for_each(|x| *x /= length);
    }
    Some(r)
}

/// |R^-T g|, by forward substitution.
fn error<const K: usize>(r: &[[f64; K]; K], g: [f64; K]) -> f64 {
    let mut z = g;
    for j in 0..K {
        for i in 0..j {
            z[j] -= r[i][j] * z[i];
        }
        z[j] /= r[j][j];
    }
    z.iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_line_by_hand() {
        // Columns 1 and (0, 1, 2): the slope's variance is 1/2, the intercept's 5/6.
        let r = triangle([vec![1.0; 3], vec![0.0, 1.0, 2.0]]).unwrap();
        assert!((error(&r, [0.0, 1.0]) - 0.5_f64.sqrt()).abs() < 1e-15);
        assert!((error(&r, [1.0, 0.0]) - (5.0_f64 / 6.0).sqrt()).abs() < 1e-15);
        assert_eq!(triangle([vec![1.0; 3], vec![2.0; 3]]), None);
        assert_eq!(triangle([vec![0.0; 3]]), None);
    }
}
