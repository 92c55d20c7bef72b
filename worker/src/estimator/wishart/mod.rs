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
//! `frame` holds A, `axes` the coordinates of the remainders, `project` the pass over the rows.

mod axes;
mod floor;
mod frame;
mod project;

use theory::PANEL;

use super::argmax::Argmax;
use super::{Estimator, Observation, PIVOT_FLOOR, Rule, Step};
use crate::prior::Prior;
use crate::random::{Purpose, Stream, interleaved_normals};
use crate::simd::{Buffer, Cpu};
use crate::sweep::Sweep;
use axes::{Axes, BLOCK, Dimensions};
use frame::{Chosen, Frame};
use project::Project;

pub(crate) use floor::Floor;

/// The lazily revealed estimator. Entry (i, lane) of every array stands at `i * L + lane`.
pub(crate) struct Wishart<'p, const L: usize> {
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
    /// |v_i|^2 after projection.
    residual: Buffer,
    /// mu_hat_t; minus infinity at observed points and padding, which are never chosen.
    mean: Buffer,
    /// x_{i,t}, and rest_i.
    axes: Axes,
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
    pub(crate) fn draw(
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
            residual: rows(),
            mean: rows(),
            axes: Axes::new(prior.factor.panels() * PANEL * L),
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
        self.frame.squared_lengths(self.cpu, factor, &mut self.length);
        if factor.rank() > 0 {
            interleaved_normals(&mut self.streams.setup, &mut self.along[..used]);
        }
        for (lane, stream) in self.streams.setup.iter_mut().enumerate() {
            let rest = &mut self.axes.rest[..used];
            stream.chi_squares_in_lane(dof, lane, rest.as_chunks_mut::<L>().0);
        }
        for i in 0..used {
            let length = self.length[i].sqrt();
            if length == 0.0 {
                // No m_i: what would lie along it belongs to the remainder.
                self.axes.rest[i] += self.along[i] * self.along[i];
                self.along[i] = 0.0;
            }
            self.length[i] = if length == 0.0 { 1.0 } else { length };
            let reach = length + s * self.along[i];
            self.residual[i] = reach * reach + s * s * self.axes.rest[i];
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
        let (weights, out) = (&*z, self.axes.scratch());
        self.cpu.run::<L, _>(Sweep::<L> { factor, weights, out });
        interleaved_normals(&mut self.streams.setup, &mut self.mean[..used]);
        let shrink = 1.0 / ((self.n + 1) as f64).sqrt();
        let swept = self.axes.scratch();
        for (i, mean) in self.mean[..used].iter_mut().enumerate() {
            *mean = self.prior.mean[i / L] + (swept[i] + self.s * *mean) * shrink;
        }
        self.mean[used..].fill(f64::NEG_INFINITY);
    }

    /// Dimensions of a row's remainder before any observation, where the row has an m_i; without a
    /// factor no row has one.
    fn dimensions(&self) -> u64 {
        if self.prior.factor.rank() == 0 { self.n } else { self.n - 1 }
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

    fn choose(&mut self, rule: &Rule<L>) -> [usize; L] {
        let (mean, spread) = (&self.mean, &self.residual);
        self.cpu.run::<L, _>(Argmax { rule, mean, spread, precision: self.precision() })
    }

    fn observe(&mut self, seen: &Observation<'_, L>, rule: Option<&Rule<L>>) -> Step<L> {
        if self.t.is_multiple_of(BLOCK) {
            let left = self.dimensions() - self.t as u64;
            // Without an m_i a row's remainder has one dimension more than the others'.
            let bare = |row: usize| self.prior.rank() > 0 && self.norms[row] == 0.0;
            let dimensions = Dimensions { left, one_more: bare };
            let (rows, streams) = (self.prior.size(), &mut self.streams.axes);
            self.axes.draw(self.cpu, self.t, rows, &dimensions, streams);
        }
        let factor = &self.prior.factor;
        let entry: [usize; L] = std::array::from_fn(|lane| seen.at.points[lane] * L + lane);
        let chosen = Chosen {
            row: &seen.at.row,
            along: entry.map(|at| self.along[at]),
            rest: entry.map(|at| self.axes.rest_after(self.t, at)),
            s: self.s,
        };
        let outside = self.n - self.t as u64 - self.frame.columns() as u64;
        self.frame.reveal(self.cpu, &chosen, outside, &mut self.streams.steps);

        let mut step = Step { next: [0; L], zero_pivot: [false; L], no_fit: [false; L] };
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
        let axis = self.axes.at(self.t);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::posterior::Posterior;
    use crate::random::Key;
    use theory::Factor;

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
            let truth = Posterior::new(&prior, None, cpu);
            for t in 0..(n as usize - 2).min(if noise + white == 0.0 { rank - 1 } else { 25 }) {
                let points = std::array::from_fn(|lane| (3 * t + lane) % 30);
                let at = truth.locate(points);
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
