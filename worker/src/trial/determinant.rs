//! 1/2 log det(I + k(x_t, x_t)/sigma^2), by a Cholesky factorisation of the matrix itself.
//!
//! The information-gain identity (paper, appendix, Lemma 5.3) says that this is the sum of
//! 1/2 log(1 + k_{s-1}(x_s)/sigma^2), which a trial takes from its posterior. Nothing here comes from
//! there: entries are products of rows of F, and a row of the root is found from the rows above it,
//! so that the value at t does not depend on where else it was asked for.

use pulp::{Simd, WithSimd};

use super::LANES;
use crate::prior::Prior;
use crate::simd::Cpu;

/// One replicate in so many has a determinant, which keeps its cost near a hundredth of a trial's.
pub(super) const EVERY: u64 = 16;

/// The most points of a determinant: its cost grows like t^3, that of a trial more slowly.
const MOST: usize = 256;

/// Running sums of a product, so that no addition waits for the one before it.
const SUMS: usize = 8;

/// The factorisation of one trial's matrix so far.
#[derive(Default)]
pub(super) struct Determinant {
    /// F_x of the points, each divided by sigma, one after the other.
    rows: Vec<f64>,
    /// The root's rows below its diagonal, one after the other.
    root: Vec<f64>,
    /// The root's diagonal.
    diagonal: Vec<f64>,
    half_log: f64,
    exists: bool,
}

impl Determinant {
    /// Goes on to `points`, which begin with those of the last call.
    pub(super) fn extend(&mut self, prior: &Prior, cpu: Cpu, points: &[usize]) {
        self.exists = prior.noise_variance > 0.0 && points.len() <= MOST;
        if self.exists {
            // With the widest vectors, although there is one trial alone.
            cpu.run::<LANES, _>(Extend { determinant: self, prior, points });
        }
    }

    /// The value at the points of the last call; `None` where sigma = 0, where they are too many, and
    /// where a pivot is lost to rounding.
    pub(super) fn value(&self) -> Option<f64> {
        (self.exists && self.half_log.is_finite()).then_some(self.half_log)
    }

    /// Takes in the next point. A pivot that is not positive has a logarithm that is not finite.
    #[inline(always)]
    fn push(&mut self, prior: &Prior, point: usize) {
        let (done, rank) = (self.diagonal.len(), prior.rank());
        let sigma = prior.noise_variance.sqrt();
        self.rows.extend(prior.factor.row(point).map(|entry| entry / sigma));
        let (before, row) = self.rows.split_at(done * rank);
        let begin = self.root.len();
        for j in 0..done {
            let product = dot(&before[j * rank..(j + 1) * rank], row);
            let (above, here) = self.root.split_at(begin);
            let above = &above[j * j.saturating_sub(1) / 2..][..j];
            self.root.push((product - dot(above, here)) / self.diagonal[j]);
        }
        let here = &self.root[begin..];
        let excess = dot(row, row) + prior.white / prior.noise_variance - dot(here, here);
        self.diagonal.push((1.0 + excess).sqrt());
        self.half_log += 0.5 * libm::log1p(excess);
    }
}

/// [`Determinant::push`] for the points that are new.
struct Extend<'a> {
    determinant: &'a mut Determinant,
    prior: &'a Prior,
    points: &'a [usize],
}

impl WithSimd for Extend<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for &point in &self.points[self.determinant.diagonal.len()..] {
            self.determinant.push(self.prior, point);
        }
    }
}

/// a . b, in [`SUMS`] running sums that are then added up in order.
#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<SUMS>(), b.as_chunks::<SUMS>());
    let mut sums = [0.0; SUMS];
    for (a, b) in a.iter().zip(b) {
        for i in 0..SUMS {
            sums[i] += a[i] * b[i];
        }
    }
    let rest = a_rest.iter().zip(b_rest).map(|(a, b)| a * b);
    sums.into_iter().chain(rest).fold(0.0, |total, part| total + part)
}
