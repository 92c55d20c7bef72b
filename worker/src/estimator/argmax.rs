//! The acquisition functions over lanes, and the running choice of the largest value.

use pulp::{Simd, WithSimd};
use theory::PANEL;

use super::{Rule, TINY};
use crate::simd::{Vector, groups, vectors, vectors_mut};

/// The row of the largest acquisition value so far, per lane; the first on ties.
///
/// Values are compared by their squares, because roots and divisions would take as long as all else
/// that is done to a row. Rows are counted in doubles, exact far beyond any domain that fits in memory.
pub(crate) struct Best<'a, S: Simd, const L: usize> {
    simd: S,
    rule: Option<&'a Rule<L>>,
    /// Turns spreads into zeta^2 k_hat_t for GP-UCB.
    scale: Vector<S>,
    mean: [f64; L],
    spread: [f64; L],
    row: [f64; L],
}

impl<'a, S: Simd, const L: usize> Best<'a, S, L> {
    /// Under a rule, where `precision * spread` is k_hat_t; without one nothing is chosen.
    pub(crate) fn new(simd: S, rule: Option<&'a Rule<L>>, precision: f64) -> Self {
        let scale = match rule {
            Some(Rule::Ucb { zeta }) => zeta * zeta * precision,
            _ => 1.0,
        };
        let scale = Vector::splat(simd, scale);
        Self { simd, rule, scale, mean: [f64::NEG_INFINITY; L], spread: [0.0; L], row: [0.0; L] }
    }

    /// Offers lane group `g` of a panel that begins with row `first`, as means and spreads.
    ///
    /// Its rows are compared in pairs, and only the best of them with the best so far, so that
    /// panels do not wait for one another.
    #[inline(always)]
    pub(crate) fn offer(
        &mut self,
        g: usize,
        first: usize,
        means: [Vector<S>; PANEL],
        spreads: [Vector<S>; PANEL],
    ) {
        let simd = self.simd;
        let Some(rule) = self.rule else { return };
        let none = Vector::splat(simd, 0.0);
        let mut rows = [Entry { mean: none, spread: none, row: none }; PANEL];
        for (i, row) in rows.iter_mut().enumerate() {
            row.mean = means[i];
            row.spread = spreads[i] * self.scale;
            row.row = Vector::splat(simd, i as f64);
        }
        let mut width = PANEL;
        while width > 1 {
            width /= 2;
            for i in 0..width {
                rows[i] = rows[2 * i].or_better(simd, rows[2 * i + 1], rule, g);
            }
        }
        let mean = &mut vectors_mut::<S>(&mut self.mean)[g];
        let spread = &mut vectors_mut::<S>(&mut self.spread)[g];
        let row = &mut vectors_mut::<S>(&mut self.row)[g];
        let best = Entry {
            mean: Vector::new(simd, *mean),
            spread: Vector::new(simd, *spread),
            row: Vector::new(simd, *row),
        };
        rows[0].row = rows[0].row + Vector::splat(simd, first as f64);
        let best = best.or_better(simd, rows[0], rule, g);
        (*mean, *spread, *row) = (best.mean.lanes(), best.spread.lanes(), best.row.lanes());
    }

    pub(crate) fn rows(&self) -> [usize; L] {
        self.row.map(|row| row as usize)
    }
}

/// A row that may be chosen.
#[derive(Clone, Copy)]
struct Entry<S: Simd> {
    mean: Vector<S>,
    spread: Vector<S>,
    row: Vector<S>,
}

impl<S: Simd> Entry<S> {
    /// The other where it is better.
    #[inline(always)]
    fn or_better<const L: usize>(self, simd: S, other: Self, rule: &Rule<L>, g: usize) -> Self {
        let better = match rule {
            Rule::Ucb { .. } => larger_sum(simd, other.mean - self.mean, other.spread, self.spread),
            Rule::Pi { target } => {
                let target = Vector::new(simd, vectors::<S>(target)[g]);
                let with = |entry: Self| (entry.mean - target, entry.spread);
                larger_ratio(simd, with(other), with(self))
            }
        };
        Self {
            mean: other.mean.or_where_not(better, self.mean),
            spread: other.spread.or_where_not(better, self.spread),
            row: other.row.or_where_not(better, self.row),
        }
    }
}

/// ahead + sqrt(v) > sqrt(best), exactly as rounding allows: with w = best + ahead^2 - v that is
/// 2 ahead sqrt(best) > w, or ahead > sqrt(best), and squares that keep their signs compare like their
/// roots. False on equality and where `ahead` is no number.
#[inline(always)]
fn larger_sum<S: Simd>(simd: S, ahead: Vector<S>, v: Vector<S>, best: Vector<S>) -> S::m64s {
    let ahead_2 = ahead * ahead.abs();
    let w = best + ahead_2.abs() - v;
    let nearer = (Vector::splat(simd, 4.0) * ahead_2 * best).greater(w * w.abs());
    simd.or_m64s(nearer, ahead_2.greater(best))
}

/// a/sqrt(v) > b/sqrt(w) for (a, v) and (b, w): a |a| w > b |b| v.
#[inline(always)]
fn larger_ratio<S: Simd>(
    simd: S,
    (a, v): (Vector<S>, Vector<S>),
    (b, w): (Vector<S>, Vector<S>),
) -> S::m64s {
    let tiny = Vector::splat(simd, TINY);
    (a * a.abs() * w.at_least(tiny)).greater(b * b.abs() * v.at_least(tiny))
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
        let means = vectors::<S>(self.mean).chunks_exact(PANEL * count);
        let spreads = vectors::<S>(self.spread).chunks_exact(PANEL * count);
        for (p, (mean, spread)) in means.zip(spreads).enumerate() {
            for g in 0..count {
                let of = |from: &[S::f64s]| {
                    std::array::from_fn(|row| Vector::new(simd, from[row * count + g]))
                };
                best.offer(g, p * PANEL, of(mean), of(spread));
            }
        }
        best.rows()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Key, Purpose, Stream};
    use pulp::Scalar;

    /// Comparisons by squares are those of the values themselves, save for rounding.
    #[test]
    fn squares_compare_like_values() {
        let mut stream = Stream::new(Key::new(5, &[0; 32], 0, Purpose::Function));
        let ucb = Rule::<1>::Ucb { zeta: 2.5 };
        let pi = Rule::<1>::Pi { target: [1.5] };
        for rule in [ucb, pi] {
            let mut decided = 0;
            for _ in 0..100_000 {
                let mut draws = [0.0; 4];
                stream.normals(&mut draws);
                let [a, b, v, w] = [draws[0], draws[1], draws[2] * draws[2], draws[3] * draws[3]];
                let mut best = Best::<_, 1>::new(Scalar, Some(&rule), 0.3);
                let [first, second] = [stream.below(4), 4 + stream.below(4)];
                let mut means = [Vector::new(Scalar, f64::NEG_INFINITY); PANEL];
                let mut spreads = [Vector::new(Scalar, 1.0); PANEL];
                (means[first], spreads[first]) = (Vector::new(Scalar, a), Vector::new(Scalar, v));
                (means[second], spreads[second]) = (Vector::new(Scalar, b), Vector::new(Scalar, w));
                best.offer(0, 8, means, spreads);
                let second_row = 8 + second;
                let (first, second) = (rule.value(0, a, 0.3 * v), rule.value(0, b, 0.3 * w));
                if (first - second).abs() > 1e-13 * (first.abs() + second.abs()) {
                    assert_eq!(best.rows() == [second_row], second > first, "{rule:?}: {draws:?}");
                    decided += 1;
                }
            }
            assert!(decided > 99_000);
        }
    }

    #[test]
    fn the_first_on_ties_and_never_an_observed_row() {
        let rules = [Rule::<1>::Ucb { zeta: 3.0 }, Rule::<1>::Pi { target: [2.0] }];
        for rule in rules {
            for (mean, variance) in [(0.7, 0.3), (0.7, 0.0), (-1e-40, 1e-90), (1e40, 1e90)] {
                let mut best = Best::<_, 1>::new(Scalar, Some(&rule), 0.1);
                let mut means = [Vector::new(Scalar, f64::NEG_INFINITY); PANEL];
                let spreads = [Vector::new(Scalar, variance); PANEL];
                best.offer(0, 0, means, spreads);
                for row in [3, 4, 7] {
                    means[row] = Vector::new(Scalar, mean);
                }
                best.offer(0, 8, means, spreads);
                best.offer(0, 16, means, spreads);
                assert_eq!(best.rows(), [11], "{rule:?} at {mean}, {variance}");
            }
        }
    }
}
