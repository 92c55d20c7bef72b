//! Bracketing root finding by Brent's method: secant and inverse quadratic steps where they help,
//! bisection where they do not.

/// An interval at whose ends a function has opposite signs, or a zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bracket {
    /// One end.
    pub low: f64,
    /// The other.
    pub high: f64,
}

/// Enough for bisection alone to exhaust an f64 several times over.
const MAX_STEPS: usize = 300;

/// A zero of `f` within the bracket, to the last bits of its argument.
///
/// Where the ends do not bracket a zero, the end with the smaller |f| is returned: for a
/// monotone function that is the nearest admissible argument.
pub fn find_root(f: impl Fn(f64) -> f64, bracket: Bracket) -> f64 {
    let (mut a, mut b) = (bracket.low, bracket.high);
    let (mut fa, mut fb) = (f(a), f(b));
    if fa * fb > 0.0 {
        return if fa.abs() < fb.abs() { a } else { b };
    }
    let (mut c, mut fc) = (a, fa);
    let (mut step, mut previous) = (b - a, b - a);
    for _ in 0..MAX_STEPS {
        if (fb > 0.0) == (fc > 0.0) {
            (c, fc) = (a, fa);
            step = b - a;
            previous = step;
        }
        if fc.abs() < fb.abs() {
            (a, b, c) = (b, c, b);
            (fa, fb, fc) = (fb, fc, fb);
        }
        let tolerance = f64::EPSILON * b.abs() + f64::MIN_POSITIVE;
        let middle = 0.5 * (c - b);
        if middle.abs() <= tolerance || fb == 0.0 {
            return b;
        }
        let trial = if previous.abs() < tolerance || fa.abs() <= fb.abs() {
            None
        } else {
            interpolate([a, b, c], [fa, fb, fc], tolerance, previous)
        };
        previous = if trial.is_some() { step } else { middle };
        step = trial.unwrap_or(middle);
        (a, fa) = (b, fb);
        b += if step.abs() > tolerance { step } else { tolerance.copysign(middle) };
        fb = f(b);
    }
    b
}

/// Brent's interpolating step from b, or `None` where bisection is safer.
fn interpolate(x: [f64; 3], y: [f64; 3], tolerance: f64, previous: f64) -> Option<f64> {
    let [a, b, c] = x;
    let [fa, fb, fc] = y;
    let middle = 0.5 * (c - b);
    let s = fb / fa;
    let (mut p, mut q) = if a == c {
        (2.0 * middle * s, 1.0 - s)
    } else {
        let (q, r) = (fa / fc, fb / fc);
        (s * (2.0 * middle * q * (q - r) - (b - a) * (r - 1.0)), (q - 1.0) * (r - 1.0) * (s - 1.0))
    };
    if p > 0.0 {
        q = -q;
    }
    p = p.abs();
    let inside = 2.0 * p < 3.0 * middle * q - (tolerance * q).abs();
    (inside && 2.0 * p < (previous * q).abs()).then(|| p / q)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn steep_flat_and_linear() {
        let unit = Bracket { low: 0.0, high: 1.0 };
        let root = find_root(|x| libm::exp(50.0 * x) - 1e10, unit);
        assert!((root - libm::log(1e10) / 50.0).abs() < 1e-15);
        let nine = find_root(|x| (x - 0.25) * (x - 0.25) * (x - 0.25), unit);
        assert!((nine - 0.25).abs() < 1e-5);
        assert_eq!(find_root(|x| x - 0.5, unit), 0.5);
    }

    #[test]
    fn without_a_sign_change_the_nearer_end_is_returned() {
        assert_eq!(find_root(|x| x + 1.0, Bracket { low: 0.0, high: 1.0 }), 0.0);
        assert_eq!(find_root(|x| x - 2.0, Bracket { low: 0.0, high: 1.0 }), 1.0);
    }

    proptest! {
        #[test]
        fn finds_cube_roots(y in 1e-6_f64..1e6) {
            let root = find_root(|x| x * x * x - y, Bracket { low: 0.0, high: 200.0 });
            prop_assert!((root / libm::cbrt(y) - 1.0).abs() < 1e-14);
        }
    }
}
