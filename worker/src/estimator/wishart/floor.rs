//! The random numbers and the sweeps over F of a group of trials, alone: the floor of
//! `regretta bench`.

use theory::PANEL;

use super::Streams;
use super::axes::{BLOCK, TILE};
use super::frame::Frame;
use crate::prior::Prior;
use crate::random::{Purpose, Stream};
use crate::simd::{Buffer, Cpu};
use crate::sweep::Sweep;

/// What a group of trials cannot do without.
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

    /// What [`super::Wishart::draw`] draws, and its products F A and F z.
    pub(crate) fn setup(&mut self, open: &dyn Fn(Purpose) -> [Stream; L]) {
        let factor = &self.prior.factor;
        self.streams = Streams::open(open);
        self.frame.draw(self.n, &mut self.streams.setup);
        self.frame.squared_lengths(self.cpu, factor, &mut self.out);
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
