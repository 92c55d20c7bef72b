//! Chi-squares with any whole number of degrees of freedom, by the method of Marsaglia and Tsang
//! (2000) for the gamma law with shape a = dof/2 >= 1.
//!
//! With d = a - 1/3, c = 1/sqrt(9 d), x normal and v = (1 + c x)^3, the value 2 d v is accepted
//! where u < 1 - 0.0331 x^4 (the squeeze, nearly always), or where
//! log u < x^2/2 + d (1 - v + log v). One degree of freedom is the square of a normal; none is 0.

use super::stream::{Stream, open_uniform};

/// Variates handled at a time: few, because their room is cleared at every call.
const CHUNK: usize = 16;

/// Constants of the method for one number of degrees of freedom.
#[derive(Clone, Copy)]
struct Shape {
    d: f64,
    c: f64,
}

impl Shape {
    fn new(dof: u64) -> Self {
        let d = dof as f64 / 2.0 - 1.0 / 3.0;
        Self { d, c: 1.0 / (9.0 * d).sqrt() }
    }

    /// 1 + c x, cubed; not positive where x lies too far left.
    #[inline(always)]
    fn cube(self, x: f64) -> f64 {
        let root = 1.0 + self.c * x;
        root * root * root
    }

    fn accepts(self, x: f64, u: f64) -> bool {
        let v = self.cube(x);
        v > 0.0 && libm::log(u) < 0.5 * x * x + self.d * (1.0 - v + libm::log(v))
    }
}

/// Whether the squeeze accepts; it implies v > 0 because it fails for |x| > 2.35.
#[inline(always)]
fn squeezed(x: f64, u: f64) -> bool {
    u < 1.0 - 0.0331 * (x * x) * (x * x)
}

impl Stream {
    /// Fills `out` with chi-squares of `dof` degrees of freedom.
    pub fn chi_squares(&mut self, dof: u64, out: &mut [f64]) {
        self.chi_squares_in_lane(dof, 0, out.as_chunks_mut::<1>().0);
    }

    /// Fills one lane of `out` with chi-squares of `dof` degrees of freedom.
    pub(crate) fn chi_squares_in_lane<const L: usize>(
        &mut self,
        dof: u64,
        lane: usize,
        out: &mut [[f64; L]],
    ) {
        match dof {
            0 => out.iter_mut().for_each(|z| z[lane] = 0.0),
            1 => {
                self.normals_in_lane(lane, out);
                out.iter_mut().for_each(|z| z[lane] *= z[lane]);
            }
            _ => self.many(Shape::new(dof), lane, out),
        }
    }

    /// One chi-square of `dof` degrees of freedom.
    pub fn chi_square(&mut self, dof: u64) -> f64 {
        let mut out = [0.0];
        self.chi_squares(dof, &mut out);
        out[0]
    }

    /// Two words per variate: one for the normal, one for the uniform.
    fn many<const L: usize>(&mut self, shape: Shape, lane: usize, out: &mut [[f64; L]]) {
        assert!(lane < L, "a lane of {L}");
        let mut bytes = [0; 16 * CHUNK];
        for chunk in out.chunks_mut(CHUNK) {
            let bytes = &mut bytes[..16 * chunk.len()];
            self.fill(bytes);
            for (value, pair) in chunk.iter_mut().zip(bytes.as_chunks::<16>().0) {
                let word = u128::from_le_bytes(*pair);
                let x = self.finish_normal(word as u64);
                let u = open_uniform((word >> 64) as u64);
                let x = if squeezed(x, u) || shape.accepts(x, u) { x } else { self.redraw(shape) };
                value[lane] = 2.0 * shape.d * shape.cube(x);
            }
        }
    }

    /// Draws from the retries until a pair is accepted.
    #[cold]
    fn redraw(&mut self, shape: Shape) -> f64 {
        loop {
            let word = self.retry();
            let x = self.finish_normal(word);
            if shape.accepts(x, self.retry_uniform()) {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Key, Purpose};
    use super::*;

    fn stream() -> Stream {
        Stream::new(Key::new(1, &[1; 32], 0, Purpose::Estimator))
    }

    #[test]
    fn many_are_the_same_as_one_at_a_time() {
        for dof in [1, 2, 3, 17, 1_000_000] {
            let mut many = vec![0.0; 1000];
            stream().chi_squares(dof, &mut many);
            let mut s = stream();
            let single: Vec<f64> = (0..1000).map(|_| s.chi_square(dof)).collect();
            assert_eq!(many, single, "dof {dof}");
        }
    }

    #[test]
    fn no_degrees_of_freedom_give_zero() {
        assert_eq!(stream().chi_square(0), 0.0);
    }

    /// The squeeze must never accept what the exact test refuses.
    #[test]
    fn the_squeeze_is_inside_the_exact_test() {
        for dof in [2, 3, 5, 50, 5000] {
            let shape = Shape::new(dof);
            for i in -240..=240 {
                let x = f64::from(i) / 100.0;
                let bound = 1.0 - 0.0331 * x * x * x * x;
                if bound > 0.0 {
                    assert!(shape.accepts(x, bound * (1.0 - 1e-12)), "dof {dof}, x {x}");
                }
            }
        }
    }
}
