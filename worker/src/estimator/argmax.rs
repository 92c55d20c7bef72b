//! The acquisition functions over lanes, and the running choice of the largest value.

use pulp::{Simd, WithSimd};

use super::{Rule, TINY};
use crate::simd::{Vector, groups, vectors, vectors_mut};

/// The largest acquisition value so far and its row, per lane; the first row on ties.
///
/// Rows are counted in doubles, exact far beyond any domain that fits in memory.
pub(crate) struct Best<'a, S: Simd, const L: usize> {
    simd: S,
    rule: Option<&'a Rule<L>>,
    precision: Vector<S>,
    value: [f64; L],
    row: [f64; L],
}

impl<'a, S: Simd, const L: usize> Best<'a, S, L> {
    /// Under a rule, where `precision * spread` is k_hat_t; without one nothing is chosen.
    pub(crate) fn new(simd: S, rule: Option<&'a Rule<L>>, precision: f64) -> Self {
        let precision = Vector::splat(simd, precision);
        Self { simd, rule, precision, value: [f64::NEG_INFINITY; L], row: [0.0; L] }
    }

    /// Offers lane group `g` of a row.
    #[inline(always)]
    pub(crate) fn offer(&mut self, g: usize, row: usize, mean: Vector<S>, spread: Vector<S>) {
        let simd = self.simd;
        let Some(rule) = self.rule else { return };
        let tiny = Vector::splat(simd, TINY);
        let deviation = (spread * self.precision).at_least(tiny).sqrt();
        let value = match rule {
            Rule::Ucb { zeta } => mean + Vector::splat(simd, *zeta) * deviation,
            Rule::Pi { target } => (mean - Vector::new(simd, vectors::<S>(target)[g])) / deviation,
        };
        let values = vectors_mut::<S>(&mut self.value);
        let rows = vectors_mut::<S>(&mut self.row);
        let (best, at) = (Vector::new(simd, values[g]), Vector::new(simd, rows[g]));
        let row = Vector::splat(simd, row as f64);
        values[g] = best.where_greater(value, best, value, best).lanes();
        rows[g] = best.where_greater(value, best, row, at).lanes();
    }

    pub(crate) fn rows(&self) -> [usize; L] {
        self.row.map(|row| row as usize)
    }
}

/// The choice under a rule over all rows. Observed rows have a mean of minus infinity.
pub(crate) struct Argmax<'a, const L: usize> {
    pub(crate) rule: &'a Rule<L>,
    pub(crate) mean: &'a [f64],
    pub(crate) spread: &'a [f64],
    pub(crate) precision: f64,
}

impl<const L: usize> WithSimd for Argmax<'_, L> {
    type Output = [usize; L];

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> [usize; L] {
        let count = groups::<S, L>();
        let mut best = Best::new(simd, Some(self.rule), self.precision);
        let means = vectors::<S>(self.mean).chunks_exact(count);
        let spreads = vectors::<S>(self.spread).chunks_exact(count);
        for (row, (mean, spread)) in means.zip(spreads).enumerate() {
            for g in 0..count {
                best.offer(g, row, Vector::new(simd, mean[g]), Vector::new(simd, spread[g]));
            }
        }
        best.rows()
    }
}
