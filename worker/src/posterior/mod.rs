//! The true posterior mu_t, k_t at a handful of points, for `L` trials in lockstep.
//!
//! With k = F F^T + w I the observations are y = mu + F theta + (white part and noise), theta ~ N(0, I)
//! and variance s^2 = w + sigma^2 of what theta does not explain. A point x has loadings
//! l_j(x) = Cov(F_x theta, innovation j), with which
//!
//! F_x E[theta | D_t] = sum_j l_j(x) z_j,  F_x C_t F_x^T = |F_x|^2 - sum_j l_j(x)^2,
//! d = F_p C_{t-1} F_p^T + s^2,  z_t = (y_t - mu_{t-1}(x_t))/sqrt(d)  for p = x_t,
//!
//! and sum z_j^2 is the K of Lemma 1's proof. There are two ways to the loadings of a point, both
//! free of M:
//!
//! - `weights`: from directions, q_t = (F_p - sum_j l_j(p) q_j)/sqrt(d), as l_j(x) = q_j . F_x. A step
//!   costs O(r t).
//! - `root`: the l(x_j) are the rows of the Cholesky root of F F^T + s^2 I at x_1..x_t, and
//!   l_j(x) = (F_x . F_{x_j} - sum_{i<j} l_i(x_j) l_i(x))/sqrt(d_j). A step costs O(t^2), less where
//!   the products are at hand in a [`Gram`] matrix.

mod gram;
mod root;
mod weights;

use pulp::Simd;

use crate::prior::Prior;
use crate::simd::{Buffer, Cpu, Vector, groups, vectors, vectors_mut};

pub(crate) use gram::Gram;

/// The observations so far.
pub(crate) struct Posterior<'p, const L: usize> {
    prior: &'p Prior,
    cpu: Cpu,
    /// The products of rows of F, where points are located by the root.
    gram: Option<&'p Gram>,
    /// x_1..x_t of all lanes.
    points: Vec<[usize; L]>,
    /// q_1.. or l(x_1).., entry k of a lane at `k * L + lane`; those beyond t are room.
    vectors: Vec<Buffer>,
    /// 1/sqrt(d_j).
    scales: Vec<f64>,
    /// z_j.
    innovations: Vec<f64>,
}

/// One point per lane, with what the weights' posterior says of it.
pub(crate) struct Located<const L: usize> {
    /// The points.
    pub(crate) points: [usize; L],
    /// F_x . E[theta | D_t].
    pub(crate) mean: [f64; L],
    /// F_x C_t F_x^T.
    pub(crate) variance: [f64; L],
    /// F_x, entry k of a lane at `k * L + lane`.
    pub(crate) row: Buffer,
    /// By the root l(x); by weights sqrt(d) q_t, if the point were observed where it was located.
    vector: Buffer,
    /// Whether mean, variance and vector are those of the observations so far.
    solved: bool,
}

/// Points that are best solved for together: the root and the products, which would not stay in the cache
/// from step to step, are then read once for all.
pub(crate) const TOGETHER: usize = 16;

impl<'p, const L: usize> Posterior<'p, L> {
    /// No observations yet. Without a Gram matrix points are located by weights.
    pub(crate) fn new(prior: &'p Prior, gram: Option<&'p Gram>, cpu: Cpu) -> Self {
        let (points, vectors) = (vec![], vec![]);
        let (scales, innovations) = (vec![], vec![]);
        Self { prior, cpu, gram, points, vectors, scales, innovations }
    }

    /// Forgets all observations.
    pub(crate) fn clear(&mut self) {
        self.points.clear();
        self.scales.clear();
        self.innovations.clear();
    }

    /// The posterior at one point per lane.
    pub(crate) fn locate(&self, points: [usize; L]) -> Located<L> {
        self.locate_in(None, points)
    }

    /// The posterior at one point per lane, in the room of another if there is one.
    pub(crate) fn locate_in(&self, spare: Option<Located<L>>, points: [usize; L]) -> Located<L> {
        let mut located = self.place(spare, points);
        self.solve(&mut [&mut located]);
        located
    }

    /// One point per lane, in the room of another if there is one, not solved for.
    pub(crate) fn place(&self, spare: Option<Located<L>>, points: [usize; L]) -> Located<L> {
        let mut located = spare.unwrap_or_else(|| {
            let row = Buffer::zeros(self.prior.rank() * L);
            let vector = match self.gram {
                None => Buffer::zeros(row.len()),
                Some(_) => Buffer::zeros(self.prior.size() * L),
            };
            Located { points, mean: [0.0; L], variance: [0.0; L], row, vector, solved: false }
        });
        (located.points, located.solved) = (points, false);
        let row = located.row.as_chunks_mut::<L>().0;
        if let Some(gram) = self.gram {
            let rows = points.map(|point| gram.factor_row(point));
            for (k, entry) in row.iter_mut().enumerate() {
                *entry = std::array::from_fn(|lane| rows[lane][k]);
            }
        } else {
            for (lane, &point) in points.iter().enumerate() {
                let entries = row.iter_mut().zip(self.prior.factor.row(point));
                entries.for_each(|(entry, factor)| entry[lane] = factor);
            }
        }
        located
    }

    /// The posterior at points that were placed, given the observations so far.
    pub(crate) fn solve(&self, located: &mut [&mut Located<L>]) {
        let mut open: Vec<&mut Located<L>> =
            located.iter_mut().map(|at| &mut **at).filter(|at| !at.solved).collect();
        for at in &mut open {
            (at.mean, at.solved) = ([0.0; L], true);
        }
        match self.gram {
            None => open.into_iter().for_each(|at| self.locate_by_weights(at)),
            Some(gram) => self.locate_by_root(gram, &mut open),
        }
    }

    /// Moves one lane of `located` to another point.
    pub(crate) fn relocate(&self, located: &mut Located<L>, lane: usize, point: usize) {
        let alone = self.locate([point; L]);
        located.points[lane] = point;
        located.mean[lane] = alone.mean[lane];
        located.variance[lane] = alone.variance[lane];
        for (to, from) in [(&mut located.row, &alone.row), (&mut located.vector, &alone.vector)] {
            let to = to.as_chunks_mut::<L>().0.iter_mut();
            to.zip(from.as_chunks::<L>().0).for_each(|(to, from)| to[lane] = from[lane]);
        }
    }

    /// Conditions on y at a point located just now, which can no longer be observed; `surprise` is
    /// y - mu_{t-1} and `variance` k_{t-1} + sigma^2, the latter positive.
    pub(crate) fn observe(
        &mut self,
        here: &mut Located<L>,
        surprise: &[f64; L],
        variance: &[f64; L],
    ) {
        let scale = variance.map(|d| 1.0 / d.sqrt());
        let t = self.seen();
        let size = if self.gram.is_some() { t * L } else { here.vector.len() };
        if self.vectors.len() == t {
            self.vectors.push(Buffer::zeros(size));
        }
        let vector = &mut self.vectors[t];
        if self.gram.is_some() {
            vector.copy_from_slice(&here.vector[..size]);
        } else {
            let entries = vector.as_chunks_mut::<L>().0.iter_mut();
            for (q, u) in entries.zip(here.vector.as_chunks::<L>().0) {
                *q = std::array::from_fn(|lane| u[lane] * scale[lane]);
            }
        }
        self.points.push(here.points);
        self.scales.extend(scale);
        self.innovations.extend((0..L).map(|lane| surprise[lane] * scale[lane]));
    }

    /// Brings the means and variances of located points up to date with the last observation.
    pub(crate) fn advance(&self, located: &mut [&mut Located<L>]) {
        match self.gram {
            None => self.advance_by_weights(located),
            Some(gram) => self.advance_by_root(gram, located),
        }
    }

    /// t.
    fn seen(&self) -> usize {
        self.points.len()
    }

    /// q_t of the last observation; only where points are located by weights.
    pub(crate) fn last_direction(&self) -> &[f64] {
        debug_assert!(self.gram.is_none(), "the root has no directions");
        &self.vectors[self.seen() - 1]
    }

    /// z_t of the last observation.
    pub(crate) fn last_innovation(&self) -> &[f64] {
        &self.innovations[self.innovations.len() - L..]
    }
}

impl<const L: usize> Located<L> {
    /// Takes a loading l_j into account, in lane group g, with the innovation z_j.
    #[inline(always)]
    fn load<S: Simd>(&mut self, simd: S, g: usize, loading: Vector<S>, z: Vector<S>) {
        let mean = &mut vectors_mut::<S>(&mut self.mean)[g];
        let variance = &mut vectors_mut::<S>(&mut self.variance)[g];
        *mean = (Vector::new(simd, *mean) + loading * z).lanes();
        *variance = (Vector::new(simd, *variance) - loading * loading).lanes();
    }
}

impl<const L: usize> Located<L> {
    /// Takes all loadings into account, with the innovations z.
    #[inline(always)]
    fn load_all<S: Simd>(&mut self, simd: S, innovations: &[f64]) {
        let (loadings, z) = (vectors::<S>(&self.vector), vectors::<S>(innovations));
        let count = groups::<S, L>();
        for g in 0..count {
            let mut mean = Vector::new(simd, vectors::<S>(&self.mean)[g]);
            let mut variance = Vector::new(simd, vectors::<S>(&self.variance)[g]);
            for i in (g..z.len()).step_by(count) {
                let loading = Vector::new(simd, loadings[i]);
                mean = mean + loading * Vector::new(simd, z[i]);
                variance = variance - loading * loading;
            }
            vectors_mut::<S>(&mut self.mean)[g] = mean.lanes();
            vectors_mut::<S>(&mut self.variance)[g] = variance.lanes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Key, Purpose, Stream};
    use theory::Factor;

    const L: usize = 8;

    /// A prior with a random factor of 40 rows, one of which is zero.
    fn prior(rank: usize) -> Prior {
        let mut stream = Stream::new(Key::new(3, &[0; 32], 0, Purpose::Function));
        let mut columns = vec![vec![0.0; 40]; rank];
        for column in &mut columns {
            stream.normals(column);
            column[7] = 0.0;
        }
        Prior::from_factor(Factor::from_columns(40, &columns), 0.1, 0.05)
    }

    /// Means and variances at tracked points, at points as they are chosen, and at a lane that moved.
    fn walk(prior: &Prior, gram: Option<&Gram>) -> Vec<[f64; L]> {
        let mut posterior = Posterior::<L>::new(prior, gram, Cpu::detect());
        let mut seen = Vec::new();
        for _ in 0..2 {
            posterior.clear();
            let mut star = posterior.locate([3; L]);
            let mut probe = posterior.locate(std::array::from_fn(|lane| 20 + lane));
            let mut spare = None;
            for t in 0..30 {
                let points = std::array::from_fn(|lane| (7 * t + lane) % 40);
                let mut here = posterior.place(spare, points);
                posterior.solve(&mut [&mut here]);
                seen.extend([here.mean, here.variance]);
                let surprise = here.mean.map(|mean| (t as f64).sqrt() - mean);
                let predictive = here.variance.map(|variance| variance + prior.total_noise());
                posterior.observe(&mut here, &surprise, &predictive);
                posterior.advance(&mut [&mut star, &mut probe]);
                posterior.relocate(&mut probe, t % L, (11 * t) % 40);
                posterior.advance(&mut [&mut here]);
                seen.extend([here.mean, here.variance, star.mean, star.variance]);
                seen.extend([probe.mean, probe.variance]);
                spare = Some(here);
            }
        }
        seen
    }

    #[test]
    fn the_root_and_the_weights_agree() {
        for rank in [8, 20, 40] {
            let prior = prior(rank);
            let gram = Gram::new(&prior, Cpu::detect()).expect("40 points are few");
            let (by_root, by_weights) = (walk(&prior, Some(&gram)), walk(&prior, None));
            for (a, b) in by_root.iter().flatten().zip(by_weights.iter().flatten()) {
                assert!((a - b).abs() <= 1e-11 * prior.c, "rank {rank}: {a} and {b}");
            }
        }
    }

    #[test]
    fn points_are_solved_for_together_as_alone() {
        let prior = prior(20);
        let gram = Gram::new(&prior, Cpu::detect()).expect("40 points are few");
        for gram in [None, Some(&gram)] {
            let mut posterior = Posterior::<L>::new(&prior, gram, Cpu::detect());
            for t in 0..23 {
                let mut here = posterior.locate(std::array::from_fn(|lane| (7 * t + lane) % 40));
                let predictive = here.variance.map(|variance| variance + prior.total_noise());
                posterior.observe(&mut here, &[0.3; L], &predictive);
            }
            let points = |i: usize| std::array::from_fn(|lane| (5 * i + lane) % 40);
            let mut together: [_; 5] = std::array::from_fn(|i| posterior.place(None, points(i)));
            posterior.solve(&mut together.each_mut());
            for (i, at) in together.iter().enumerate() {
                let alone = posterior.locate(points(i));
                assert_eq!((at.mean, at.variance), (alone.mean, alone.variance));
                assert_eq!(at.vector[..], alone.vector[..]);
            }
        }
    }

    #[test]
    fn a_gram_matrix_holds_products_of_rows_summed_in_order() {
        let prior = prior(9);
        let gram = Gram::new(&prior, Cpu::detect()).expect("40 points are few");
        for i in 0..40 {
            for j in 0..40 {
                let pairs = prior.factor.row(i).zip(prior.factor.row(j));
                assert_eq!(gram.row(i)[j], pairs.fold(0.0, |sum, (a, b)| sum + a * b));
            }
        }
        assert!(Gram::new(&self::prior(6), Cpu::detect()).is_none());
    }
}
