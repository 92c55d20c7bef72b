//! The exact estimators of the paper's section 4.1, revealed only as far as the algorithm looks.
//!
//! mu_hat ~ N(mu, S/N) and (N-1) k_hat = V V^T with V = F Z + s E, where S = F F^T + s^2 I,
//! Z (r x n) and E (M x n) are standard normal and n = N - 1. Rotating R^n makes Z = [A, 0] with A
//! of Bartlett form. Row i of V is v_i = m_i + s e_i, m_i = (F_i A, 0). Of e_i only its component b_i
//! along m_i and the squared length rest_i of the remainder are drawn at first:
//!
//! residual_i = |v_i|^2 = (|m_i| + s b_i)^2 + s^2 rest_i = (N-1) k_hat(x_i).
//!
//! The direction of the remainder is uniform and independent of all that the algorithm has seen, so
//! it can be revealed one axis at a time, in the frame that the algorithm's own choices define.
//! Conditioning on x_1..x_t projects all rows off span(v_{x_1}..v_{x_t}); one sweep over F a step
//! does it, whatever N is. A row without a part in the factor (F_i = 0) has no m_i: its b_i is zero
//! and its remainder has one more dimension.
//!
//! Coordinates are drawn in blocks of [`BLOCK`] steps, so that a trial does not depend on how many
//! steps follow.

use pulp::{Simd, WithSimd};
use theory::{Factor, PANEL};

use super::argmax::{Argmax, Best};
use super::frame::{Chosen, Frame};
use super::{Estimator, Observation, PIVOT_FLOOR, Rule, Step};
use crate::prior::Prior;
use crate::random::{Purpose, Stream, interleaved_normals};
use crate::simd::{Buffer, Cpu, Vector, groups, vectors, vectors_mut};
use crate::sweep::{SquaredLengths, Sweep, panel_product};

/// Steps whose coordinates are drawn together.
const BLOCK: usize = 16;
/// Rows whose coordinates are drawn together; part of the order of the draws.
const TILE: usize = 16;
/// 1 - beta^2 and |m_i| are kept above these, so that nothing overflows.
const FLATTEST: f64 = 1e-32;
const SHORTEST: f64 = 1e-150;

/// The lazily revealed estimator. Entry (i, lane) of every array stands at `i * L + lane`.
pub struct Wishart<'p, const L: usize> {
    prior: &'p Prior,
    cpu: Cpu,
    streams: Streams<L>,
    /// N - 1.
    n: u64,
    /// Observations so far.
    t: usize,
    s: f64,
    frame: Frame<L>,
    /// |m_i|; 1 where the row has no part in the factor, which is as good because b_i is zero there.
    length: Buffer,
    /// b_i.
    along: Buffer,
    /// rest_i at the beginning of the current block.
    rest: Buffer,
    /// |v_i|^2 after projection.
    residual: Buffer,
    /// mu_hat_t; minus infinity at observed points and padding, which are never chosen.
    mean: Buffer,
    /// x_{i,t} for the steps of the current block, step by step.
    axes: Buffer,
    /// |F_i|^2.
    norms: Vec<f64>,
}

/// The random streams of `L` trials.
struct Streams<const L: usize> {
    /// What is drawn before any observation.
    setup: [Stream; L],
    /// Coordinates of all rows, block by block.
    axes: [Stream; L],
    /// What is drawn for the chosen point.
    steps: [Stream; L],
}

impl<const L: usize> Streams<L> {
    fn open(open: &dyn Fn(Purpose) -> [Stream; L]) -> Self {
        Self {
            setup: open(Purpose::Estimator),
            axes: open(Purpose::EstimatorAxes),
            steps: open(Purpose::EstimatorSteps),
        }
    }
}

impl<'p, const L: usize> Wishart<'p, L> {
    /// Draws what the algorithm sees before its first observation, for `n_train` = N functions.
    pub fn draw(
        prior: &'p Prior,
        n_train: u64,
        cpu: Cpu,
        open: &dyn Fn(Purpose) -> [Stream; L],
    ) -> Self {
        let n = n_train - 1;
        let rows = || Buffer::zeros(prior.factor.panels() * PANEL * L);
        let mut this = Self {
            prior,
            cpu,
            streams: Streams::open(open),
            n,
            t: 0,
            s: prior.total_noise().sqrt(),
            frame: Frame::new(prior.rank(), n),
            length: rows(),
            along: rows(),
            rest: rows(),
            residual: rows(),
            mean: rows(),
            axes: Buffer::zeros(prior.factor.panels() * PANEL * L * BLOCK),
            norms: (0..prior.size()).map(|i| prior.factor.squared_norm(i)).collect(),
        };
        this.begin();
        this
    }

    fn begin(&mut self) {
        self.t = 0;
        self.frame.draw(self.n, &mut self.streams.setup);
        self.draw_lengths();
        self.draw_mean();
    }

    /// |m_i|, b_i, rest_i and residual_i.
    fn draw_lengths(&mut self) {
        let factor = &self.prior.factor;
        let (used, s, dof) = (factor.rows() * L, self.s, self.dimensions());
        let (columns, out) = (self.frame.triangle(), &mut *self.length);
        self.cpu.run::<L, _>(SquaredLengths::<L> { factor, columns, out });
        if factor.rank() > 0 {
            interleaved_normals(&mut self.streams.setup, &mut self.along[..used]);
        }
        for (lane, stream) in self.streams.setup.iter_mut().enumerate() {
            stream.chi_squares_in_lane(dof, lane, self.rest[..used].as_chunks_mut::<L>().0);
        }
        for i in 0..used {
            let length = self.length[i].sqrt();
            if length == 0.0 {
                // No m_i: what would lie along it belongs to the remainder.
                self.rest[i] += self.along[i] * self.along[i];
                self.along[i] = 0.0;
            }
            self.length[i] = if length == 0.0 { 1.0 } else { length };
            let reach = length + s * self.along[i];
            self.residual[i] = reach * reach + s * s * self.rest[i];
        }
        self.length[used..].fill(1.0);
    }

    /// mu_hat = mu + (F z + s e)/sqrt(N).
    fn draw_mean(&mut self) {
        let factor = &self.prior.factor;
        let used = factor.rows() * L;
        let mut z = Buffer::zeros(factor.rank() * L);
        interleaved_normals(&mut self.streams.setup, &mut z);
        // The first block's room serves as scratch: its coordinates are not drawn yet.
        let size = self.mean.len();
        let (weights, out) = (&*z, &mut self.axes[..size]);
        self.cpu.run::<L, _>(Sweep::<L> { factor, weights, out });
        interleaved_normals(&mut self.streams.setup, &mut self.mean[..used]);
        let shrink = 1.0 / ((self.n + 1) as f64).sqrt();
        for (i, mean) in self.mean[..used].iter_mut().enumerate() {
            *mean = self.prior.mean[i / L] + (self.axes[i] + self.s * *mean) * shrink;
        }
        self.mean[used..].fill(f64::NEG_INFINITY);
    }

    /// Dimensions of a row's remainder before any observation, where the row has an m_i; without a
    /// factor no row has one.
    fn dimensions(&self) -> u64 {
        if self.prior.factor.rank() == 0 { self.n } else { self.n - 1 }
    }

    /// Draws x_{i,t} for the next [`BLOCK`] steps: x = sqrt(rest) h / sqrt(sum h^2 + chi2_{d-B}) with
    /// d dimensions left, and only d coordinates where d <= B.
    fn draw_axes(&mut self) {
        let rows = self.prior.factor.rows();
        let left = self.dimensions() - self.t as u64;
        let beyond = left.saturating_sub(BLOCK as u64);
        if self.t > 0 {
            self.cpu.run::<L, _>(SpendAxes::<L> { rest: &mut self.rest, axes: &self.axes });
        }
        let mut tile = Tile::<L>::new();
        for start in (0..rows).step_by(TILE) {
            let count = TILE.min(rows - start);
            for (lane, stream) in self.streams.axes.iter_mut().enumerate() {
                stream.normals_in_lane(lane, &mut tile.normals[..count * BLOCK]);
                stream.chi_squares_in_lane(beyond, lane, &mut tile.tails[..count]);
            }
            tile.usable = [left.min(BLOCK as u64) as usize; TILE];
            for (row, usable) in tile.usable[..count].iter_mut().enumerate() {
                if self.widened(start + row) {
                    *usable = (left + 1).min(BLOCK as u64) as usize;
                    if left >= BLOCK as u64 {
                        for (lane, stream) in self.streams.axes.iter_mut().enumerate() {
                            let extra = stream.normal();
                            tile.tails[row][lane] += extra * extra;
                        }
                    }
                }
            }
            let (rest, axes) = (&self.rest, &mut self.axes);
            self.cpu.run::<L, _>(PlaceAxes::<L> { tile: &tile, start, count, rest, axes });
        }
    }

    /// Whether a row has no m_i although the prior has a factor: its remainder then has one dimension
    /// more than [`Self::dimensions`].
    fn widened(&self, row: usize) -> bool {
        self.prior.rank() > 0 && self.norms[row] == 0.0
    }

    /// rest_i of one entry now, within the current block.
    fn rest_now(&self, at: usize) -> f64 {
        let stride = self.rest.len();
        let spent = self.axes.iter().skip(at).step_by(stride).take(self.t % BLOCK);
        spent.fold(self.rest[at], |rest, x| rest - x * x)
    }

    /// 1/(N - t - 1), which turns residuals into k_hat_t.
    fn precision(&self) -> f64 {
        1.0 / (self.n - self.t as u64) as f64
    }
}

impl<const L: usize> Estimator<L> for Wishart<'_, L> {
    fn redraw(&mut self, open: &dyn Fn(Purpose) -> [Stream; L]) {
        self.streams = Streams::open(open);
        self.begin();
    }

    fn choose(&self, rule: &Rule<L>) -> [usize; L] {
        let (mean, spread) = (&self.mean, &self.residual);
        self.cpu.run::<L, _>(Argmax { rule, mean, spread, precision: self.precision() })
    }

    fn observe(&mut self, seen: &Observation<'_, L>, rule: Option<&Rule<L>>) -> Step<L> {
        if self.t.is_multiple_of(BLOCK) {
            self.draw_axes();
        }
        let factor = &self.prior.factor;
        let entry: [usize; L] = std::array::from_fn(|lane| seen.at.points[lane] * L + lane);
        let chosen = Chosen {
            row: &seen.at.row,
            along: entry.map(|at| self.along[at]),
            rest: entry.map(|at| self.rest_now(at)),
            s: self.s,
        };
        let outside = self.n - self.t as u64 - self.frame.columns() as u64;
        self.frame.reveal(self.cpu, &chosen, outside, &mut self.streams.steps);

        let mut step = Step { next: [0; L], zero_pivot: [false; L] };
        let mut gain = [0.0; L];
        for (lane, &at) in entry.iter().enumerate() {
            let usual = self.n as f64 * (self.norms[seen.at.points[lane]] + self.s * self.s);
            let pivot = self.residual[at];
            step.zero_pivot[lane] = pivot <= PIVOT_FLOOR * usual;
            if !step.zero_pivot[lane] {
                gain[lane] = (seen.values[lane] - self.mean[at]) / pivot.sqrt();
            }
            self.mean[at] = f64::NEG_INFINITY;
        }
        let stride = self.rest.len();
        let axis = &self.axes[self.t % BLOCK * stride..][..stride];
        self.t += 1;
        let precision = self.precision();
        step.next = self.cpu.run::<L, _>(Project {
            factor,
            weights: self.frame.weights(),
            axis,
            s: self.s,
            gain,
            length: &mut self.length,
            along: &mut self.along,
            residual: &mut self.residual,
            mean: &mut self.mean,
            rule,
            precision,
        });
        step
    }

    fn mean(&self, lane: usize, point: usize) -> f64 {
        self.mean[point * L + lane]
    }

    fn variance(&self, lane: usize, point: usize) -> f64 {
        self.residual[point * L + lane] * self.precision()
    }
}

/// Steps 2 to 4 of the sampler in one pass over the rows: alpha_i = F_i . (A c), the rotation of each
/// row, the update of mu_hat and residual, and the next choice.
///
/// With beta = alpha_i/|m_i| and gamma = sqrt(1 - beta^2): eps = beta b + gamma x, b <- gamma b - beta x,
/// |m_i| <- gamma |m_i|, g_i = alpha_i + s eps, mu_hat_i += g_i (y - mu_hat_p)/g_p, residual_i -= g_i^2.
struct Project<'a, const L: usize> {
    factor: &'a Factor,
    weights: &'a [f64],
    axis: &'a [f64],
    s: f64,
    /// (y - mu_hat_p)/g_p.
    gain: [f64; L],
    length: &'a mut [f64],
    along: &'a mut [f64],
    residual: &'a mut [f64],
    mean: &'a mut [f64],
    rule: Option<&'a Rule<L>>,
    precision: f64,
}

impl<const L: usize> WithSimd for Project<'_, L> {
    type Output = [usize; L];

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> [usize; L] {
        let mut best = Best::new(simd, self.rule, self.precision);
        self.rows(simd, &mut best);
        best.rows()
    }
}

impl<const L: usize> Project<'_, L> {
    #[inline(always)]
    fn rows<S: Simd>(self, simd: S, best: &mut Best<'_, S, L>) {
        let count = groups::<S, L>();
        let at = |slice: &[S::f64s], i: usize| Vector::new(simd, slice[i]);
        let one = Vector::splat(simd, 1.0);
        let zero = Vector::splat(simd, 0.0);
        let flattest = Vector::splat(simd, FLATTEST);
        let shortest = Vector::splat(simd, SHORTEST);
        let s = Vector::splat(simd, self.s);
        let weights = vectors::<S>(self.weights);
        let gain = vectors::<S>(&self.gain);
        let size = PANEL * count;
        let axes = vectors::<S>(self.axis).chunks_exact(size);
        let lengths = vectors_mut::<S>(self.length).chunks_exact_mut(size);
        let alongs = vectors_mut::<S>(self.along).chunks_exact_mut(size);
        let residuals = vectors_mut::<S>(self.residual).chunks_exact_mut(size);
        let means = vectors_mut::<S>(self.mean).chunks_exact_mut(size);
        let panels = axes.zip(lengths).zip(alongs).zip(residuals).zip(means);
        for (p, ((((axis, length), along), residual), mean)) in panels.enumerate() {
            for g in 0..count {
                let gain = at(gain, g);
                let alphas = panel_product(simd, self.factor.panel(p), weights, count, g);
                for (row, alpha) in alphas.into_iter().enumerate() {
                    let i = row * count + g;
                    let (x, b, before) = (at(axis, i), at(along, i), at(length, i));
                    let beta = (alpha * (one / before)).at_most(one).at_least(-one);
                    let gamma = (one - beta * beta).at_least(flattest).sqrt();
                    let eps = beta * b + gamma * x;
                    along[i] = (gamma * b - beta * x).lanes();
                    length[i] = (before * gamma).at_least(shortest).lanes();
                    let g_i = alpha + s * eps;
                    let updated = at(mean, i) + g_i * gain;
                    let left = (at(residual, i) - g_i * g_i).at_least(zero);
                    mean[i] = updated.lanes();
                    residual[i] = left.lanes();
                    best.offer(g, p * PANEL + row, updated, left);
                }
            }
        }
    }
}

/// Draws for [`TILE`] rows, on cache lines of their own.
#[repr(align(64))]
struct Tile<const L: usize> {
    /// h, row by row.
    normals: [[f64; L]; TILE * BLOCK],
    /// chi2_{d-B} of each row.
    tails: [[f64; L]; TILE],
    /// Coordinates that exist in each row.
    usable: [usize; TILE],
}

impl<const L: usize> Tile<L> {
    fn new() -> Self {
        Self { normals: [[0.0; L]; TILE * BLOCK], tails: [[0.0; L]; TILE], usable: [0; TILE] }
    }
}

/// Scales a tile's normals to coordinates and puts them in their places.
struct PlaceAxes<'a, const L: usize> {
    tile: &'a Tile<L>,
    start: usize,
    count: usize,
    rest: &'a [f64],
    axes: &'a mut [f64],
}

impl<const L: usize> WithSimd for PlaceAxes<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let groups = groups::<S, L>();
        let stride = vectors::<S>(self.rest).len();
        let rest = vectors::<S>(self.rest);
        let axes = vectors_mut::<S>(self.axes);
        let zero = Vector::splat(simd, 0.0);
        let normals = self.tile.normals.chunks_exact(BLOCK);
        for (row, (h, tail)) in normals.zip(&self.tile.tails).take(self.count).enumerate() {
            let usable = self.tile.usable[row];
            for g in 0..groups {
                let at = (self.start + row) * groups + g;
                let h = |j: usize| Vector::new(simd, vectors::<S>(&h[j])[g]);
                let mut total = Vector::new(simd, vectors::<S>(tail)[g]);
                for j in 0..usable {
                    total = total + h(j) * h(j);
                }
                let scale = (Vector::new(simd, rest[at]) / total).sqrt();
                for j in 0..BLOCK {
                    let x = if j < usable { scale * h(j) } else { zero };
                    axes[j * stride + at] = x.lanes();
                }
            }
        }
    }
}

/// Takes a finished block's coordinates off the remainders: rest <- rest - sum x^2, not below zero.
struct SpendAxes<'a, const L: usize> {
    rest: &'a mut [f64],
    axes: &'a [f64],
}

impl<const L: usize> WithSimd for SpendAxes<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let rest = vectors_mut::<S>(self.rest);
        for axis in vectors::<S>(self.axes).chunks_exact(rest.len()) {
            for (rest, &x) in rest.iter_mut().zip(axis) {
                let x = Vector::new(simd, x);
                let left = Vector::new(simd, *rest) - x * x;
                *rest = left.at_least(Vector::splat(simd, 0.0)).lanes();
            }
        }
    }
}

/// The random numbers and the sweeps over F of a group of trials, alone: the floor of
/// `regretta bench`.
pub(crate) struct Floor<'p, const L: usize> {
    prior: &'p Prior,
    cpu: Cpu,
    n: u64,
    streams: Streams<L>,
    frame: Frame<L>,
    weights: Buffer,
    out: Buffer,
    buffer: Vec<f64>,
}

impl<'p, const L: usize> Floor<'p, L> {
    pub(crate) fn new(
        prior: &'p Prior,
        n_train: u64,
        cpu: Cpu,
        open: &dyn Fn(Purpose) -> [Stream; L],
    ) -> Self {
        let factor = &prior.factor;
        Self {
            prior,
            cpu,
            n: n_train - 1,
            streams: Streams::open(open),
            frame: Frame::new(factor.rank(), n_train - 1),
            weights: Buffer::filled(0.5, factor.rank() * L),
            out: Buffer::zeros(factor.panels() * PANEL * L),
            buffer: vec![0.0; factor.rows()],
        }
    }

    /// What [`Wishart::draw`] draws, and its products F A and F z.
    pub(crate) fn setup(&mut self, open: &dyn Fn(Purpose) -> [Stream; L]) {
        let factor = &self.prior.factor;
        self.streams = Streams::open(open);
        self.frame.draw(self.n, &mut self.streams.setup);
        let (columns, out) = (self.frame.triangle(), &mut *self.out);
        self.cpu.run::<L, _>(SquaredLengths::<L> { factor, columns, out });
        for stream in &mut self.streams.setup {
            stream.normals(&mut self.buffer);
            stream.chi_squares(self.n - 1, &mut self.buffer);
            stream.normals(&mut self.buffer[..factor.rank()]);
            stream.normals(&mut self.buffer);
        }
        self.sweep();
    }

    /// One sweep over F.
    pub(crate) fn sweep(&mut self) {
        let (factor, weights, out) = (&self.prior.factor, &*self.weights, &mut *self.out);
        self.cpu.run::<L, _>(Sweep::<L> { factor, weights, out });
    }

    /// What step t draws, and its sweep.
    pub(crate) fn step(&mut self, t: usize) -> f64 {
        let (rows, rank) = (self.prior.size(), self.prior.rank());
        let left = self.n - 1 - t as u64;
        let buffer = &mut self.buffer;
        for lane in 0..L {
            if t.is_multiple_of(BLOCK) {
                for start in (0..rows).step_by(TILE) {
                    let count = TILE.min(rows - start);
                    let mut normals = [0.0; TILE * BLOCK];
                    self.streams.axes[lane].normals(&mut normals[..count * BLOCK]);
                    let tails = &mut buffer[start..start + count];
                    self.streams.axes[lane].chi_squares(left.saturating_sub(BLOCK as u64), tails);
                    buffer[start] += normals[0];
                }
            }
            let columns = rank.min(left as usize);
            self.streams.steps[lane].normals(&mut buffer[..columns]);
            buffer[0] += self.streams.steps[lane].chi_square(left + 1 - columns as u64);
        }
        self.sweep();
        self.out[t % rows] + self.buffer[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::posterior::Posterior;
    use crate::random::{Key, Purpose};

    fn streams<const L: usize>(purpose: Purpose) -> [Stream; L] {
        std::array::from_fn(|lane| Stream::new(Key::new(9, &[4; 32], lane as u64, purpose)))
    }

    /// A prior with a random factor, some of whose rows are zero and some nearly alike.
    fn prior(rows: usize, rank: usize, white: f64, noise_variance: f64) -> Prior {
        let mut stream = Stream::new(Key::new(3, &[0; 32], 0, Purpose::Function));
        let mut columns = vec![vec![0.0; rows]; rank];
        for column in &mut columns {
            stream.normals(column);
            column[rows / 2] = 0.0;
            column[1] = column[0] + 1e-4 * column[1];
        }
        Prior::from_factor(Factor::from_columns(rows, &columns), white, noise_variance)
    }

    /// After every step |F_i A|^2 = |m_i|^2, the invariant that ties the frame to the rows.
    #[test]
    fn lengths_follow_the_frame() {
        const L: usize = 8;
        for (rank, n, white, noise) in [
            (6, 500, 0.0, 0.1),
            (6, 500, 0.5, 0.0),
            (12, 9, 0.1, 0.1),
            (5, 8, 0.0, 1e-6),
            (7, 9, 0.0, 0.0),
            (1, 40, 0.0, 0.01),
        ] {
            let prior = prior(30, rank, white, noise);
            let cpu = Cpu::detect();
            let mut wishart = Wishart::<L>::draw(&prior, n, cpu, &streams);
            let truth = Posterior::new(&prior, cpu);
            for t in 0..(n as usize - 2).min(if noise + white == 0.0 { rank - 1 } else { 25 }) {
                let points = std::array::from_fn(|lane| (3 * t + lane) % 30);
                let at = truth.locate(&prior, points);
                let seen = Observation { at: &at, values: &[0.3; L], truth: &truth };
                wishart.observe(&seen, None);
                for lane in 0..L {
                    for i in (0..30).filter(|i| (0..=t).all(|t| (3 * t + lane) % 30 != *i)) {
                        let row: Vec<f64> = prior.factor.row(i).collect();
                        let length = wishart.length[i * L + lane];
                        let tracked = if wishart.norms[i] == 0.0 { 0.0 } else { length * length };
                        let framed = wishart.frame.squared_length(lane, &row);
                        let scale = n as f64 * prior.factor.squared_norm(i);
                        assert!(
                            (tracked - framed).abs() <= 1e-13 * scale,
                            "rank {rank}, N {n}, t {t}, row {i}: {tracked} and {framed} of {scale}"
                        );
                    }
                }
            }
        }
    }
}
