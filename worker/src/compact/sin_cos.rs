//! Sine and cosine of a whole vector, made of sums, products and bit operations alone.
//!
//! theta = n pi/2 + r with |r| <= pi/4, pi/2 taken off in three pieces of which the first two have 33
//! bits each, so that their products with n are exact up to |theta| = [`LIMIT`]; then the polynomials of
//! FreeBSD's msun for |r| <= pi/4. Within 2 units in the last place.

use pulp::Simd;

use crate::simd::Vector;

/// The largest |theta| that is reduced accurately.
pub(super) const LIMIT: f64 = 1e5;

/// 1.5 * 2^52: added to a small number, it rounds it to an integer and leaves that in the low bits.
const ROUND: f64 = 6755399441055744.0;
const TWO_OVER_PI: f64 = std::f64::consts::FRAC_2_PI;
/// pi/2 = `HALF_PI[0]` + `HALF_PI[1]` + `HALF_PI[2]`, the first two of 33 bits.
const HALF_PI: [f64; 3] = [1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21];

/// sin r = r + r^3 (S1 + S2 r^2 + ..), last coefficient first.
const SINE: [f64; 6] = [
    1.58969099521155e-10,
    -2.5050760253406863e-08,
    2.7557313707070068e-06,
    -0.0001984126982985795,
    0.00833333333332249,
    -0.16666666666666632,
];
/// cos r = 1 - r^2/2 + r^4 (C1 + C2 r^2 + ..), last coefficient first.
const COSINE: [f64; 6] = [
    -1.1359647557788195e-11,
    2.087572321298175e-09,
    -2.7557314351390663e-07,
    2.480158728947673e-05,
    -0.001388888888887411,
    0.0416666666666666,
];

#[inline(always)]
fn polynomial<S: Simd>(simd: S, coefficients: [f64; 6], z: Vector<S>) -> Vector<S> {
    let mut sum = Vector::splat(simd, coefficients[0]);
    for &coefficient in &coefficients[1..] {
        sum = sum * z + Vector::splat(simd, coefficient);
    }
    sum
}

/// (sin theta, cos theta) for |theta| <= [`LIMIT`].
#[inline(always)]
pub(super) fn sin_cos<S: Simd>(simd: S, theta: Vector<S>) -> (Vector<S>, Vector<S>) {
    let constant = |value| Vector::splat(simd, value);
    let shifted = theta * constant(TWO_OVER_PI) + constant(ROUND);
    let n = shifted - constant(ROUND);
    let r = HALF_PI.into_iter().fold(theta, |rest, piece| rest - n * constant(piece));
    let z = r * r;
    let sine = r + z * r * polynomial(simd, SINE, z);
    let half = constant(0.5) * z;
    let near = constant(1.0) - half;
    let cosine = near + ((constant(1.0) - near - half) + z * z * polynomial(simd, COSINE, z));
    // n mod 4 = 1: (cos r, -sin r); 2: (-sin r, -cos r); 3: (-cos r, sin r).
    let bits = simd.transmute_u64s_f64s(shifted.lanes());
    let has = |bits, bit| {
        let bit = simd.splat_u64s(bit);
        simd.equal_u64s(simd.and_u64s(bits, bit), bit)
    };
    let odd = has(bits, 1);
    let (s, c) = (cosine.or_where_not(odd, sine), sine.or_where_not(odd, cosine));
    let following = simd.add_u64s(bits, simd.splat_u64s(1));
    ((-s).or_where_not(has(bits, 2), s), (-c).or_where_not(has(following, 2), c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Key, Purpose, Stream};
    use crate::simd::{Cpu, vectors, vectors_mut};
    use pulp::WithSimd;

    struct All<'a> {
        theta: &'a [f64],
        sine: &'a mut [f64],
        cosine: &'a mut [f64],
    }

    impl WithSimd for All<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let sine = vectors_mut::<S>(self.sine).iter_mut();
            let cosine = vectors_mut::<S>(self.cosine).iter_mut();
            for ((&theta, s), c) in vectors::<S>(self.theta).iter().zip(sine).zip(cosine) {
                let (sin, cos) = sin_cos(simd, Vector::new(simd, theta));
                (*s, *c) = (sin.lanes(), cos.lanes());
            }
        }
    }

    fn all(cpu: Cpu, theta: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (mut sine, mut cosine) = (vec![0.0; theta.len()], vec![0.0; theta.len()]);
        cpu.run::<8, _>(All { theta, sine: &mut sine, cosine: &mut cosine });
        (sine, cosine)
    }

    /// Of every size up to the limit, and close to multiples of pi/4.
    fn angles() -> Vec<f64> {
        let mut stream = Stream::new(Key::new(1, &[9; 32], 0, Purpose::Design));
        let mut out = vec![0.0, -0.0, LIMIT, -LIMIT, 1e-300, 1e-20, 1.0, -1.0];
        for scale in [1e-3, 1.0, 10.0, 1e3, 2e4] {
            out.extend((0..20_000).map(|_| scale * stream.normal()).filter(|a| a.abs() <= LIMIT));
        }
        for n in 1..20_000_u32 {
            let near = f64::from(n) * std::f64::consts::FRAC_PI_4;
            out.extend([near, -near, near.next_up(), near * (1.0 + 1e-9)]);
        }
        out.resize(out.len() / 8 * 8, 0.0);
        out
    }

    /// Units in the last place between a value and the truth.
    fn ulps(value: f64, truth: f64) -> f64 {
        let unit = truth.abs().next_up() - truth.abs();
        (value - truth).abs() / unit
    }

    #[test]
    fn agrees_with_libm() {
        let theta = angles();
        let (sine, cosine) = all(Cpu::detect(), &theta);
        for ((&t, s), c) in theta.iter().zip(sine).zip(cosine) {
            assert!(ulps(s, libm::sin(t)) <= 2.0, "sin {t}: {s}");
            assert!(ulps(c, libm::cos(t)) <= 2.0, "cos {t}: {c}");
        }
    }

    #[test]
    fn plain_and_vector_code_give_the_same_bits() {
        let theta = angles();
        let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        let (a, b) = (all(Cpu::detect(), &theta), all(Cpu::plain(), &theta));
        assert_eq!((bits(&a.0), bits(&a.1)), (bits(&b.0), bits(&b.1)));
    }
}
