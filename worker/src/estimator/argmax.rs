//! The acquisition functions over lanes, and the running choice of the largest value.

use pulp::{Simd, WithSimd};

use super::{Rule, TINY};
use crate::simd::{Vector, groups, vectors, vectors_mut};

/// The largest value so far and its row, per lane; the first row on ties.
///
/// Rows are counted in doubles, exact far beyond any domain that fits in memory.
pub(crate) struct Best<const L: usize> {
    value: [f64; L],
    row: [f64; L],
}

impl<const L: usize> Best<L> {
    pub(crate) fn new() -> Self {
        Self { value: [f64::NEG_INFINITY; L], row: [0.0; L] }
    }

    /// Offers lane group `g` of a row.
    #[inline(always)]
    pub(crate) fn offer<S: Simd>(&mut self, simd: S, g: usize, row: usize, value: Vector<S>) {
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

/// A rule over `precision * spread`, where `spread_i * precision` is k_hat_t(x_i).
#[inline(always)]
pub(crate) fn acquisition<S: Simd, const L: usize>(
    simd: S,
    rule: &Rule<L>,
    precision: f64,
) -> impl Fn(usize, Vector<S>, Vector<S>) -> Vector<S> {
    let precision = Vector::splat(simd, precision);
    let tiny = Vector::splat(simd, TINY);
    let rule = *rule;
    move |g, mean, spread| {
        let deviation = (spread * precision).at_least(tiny).sqrt();
        match &rule {
            Rule::Ucb { zeta } => mean + Vector::splat(simd, *zeta) * deviation,
            Rule::Pi { target } => (mean - Vector::new(simd, vectors::<S>(target)[g])) / deviation,
        }
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
        let value = acquisition(simd, self.rule, self.precision);
        let mut best = Best::<L>::new();
        let means = vectors::<S>(self.mean).chunks_exact(count);
        let spreads = vectors::<S>(self.spread).chunks_exact(count);
        for (row, (mean, spread)) in means.zip(spreads).enumerate() {
            for g in 0..count {
                let mean = Vector::new(simd, mean[g]);
                best.offer(simd, g, row, value(g, mean, Vector::new(simd, spread[g])));
            }
        }
        best.rows()
    }
}
