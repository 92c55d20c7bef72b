//! The solution at one lambda: minimise over Z
//!
//!   |P(X - Z)|_F^2 / 2 + lambda |Z|_*,
//!
//! where P keeps the observed entries. Soft-impute repeats Z <- S_lambda(P X + (I - P) Z), which is
//! the proximal gradient step of length 1. Here the step is taken from an extrapolated point Y (Beck
//! and Teboulle 2009), and the momentum is dropped where it points uphill (O'Donoghue and Candes 2015).
//!
//! Either way the rule to stop is |(I - P)(Z - Y)|_F <= tolerance |P X|_F. As S_lambda brings no two
//! matrices further apart, the next step from Z would move the missing entries by no more than that.
//! The step that stops is taken from Z before it, without momentum, and its own error is bounded and
//! counted in.

use theory::eigen::{NoConvergence, eigenvalues};

use super::Error;
use super::product::{LANES, Matrix, gram};
use super::threshold::{Subspace, Triplets};
use crate::simd::Cpu;

/// A singular value may exceed lambda by this share of the tolerance and still be overlooked.
const OVERLOOKED: f64 = 0.1;

/// Where an iteration stands, and where another may begin.
#[derive(Clone)]
pub(super) struct State {
    z: Matrix,
    subspace: Subspace,
}

/// What a solution took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fit {
    pub(super) rank: usize,
    pub(super) iterations: usize,
}

/// A centred incomplete matrix and the current Z, stored with no fewer rows than columns.
pub(super) struct Solver {
    cpu: Cpu,
    columns: usize,
    transposed: bool,
    /// P X + (I - P) Y.
    filled: Matrix,
    /// 1 where nothing was observed, 0 elsewhere.
    free: Matrix,
    /// |P X|_F.
    scale: f64,
    state: State,
    /// The other Z: the next one during a step, the one before after it.
    other: Matrix,
}

impl Solver {
    /// `entries` are the observed ones: row, column, value.
    pub(super) fn new(
        (rows, columns): (usize, usize),
        entries: &[(usize, usize, f64)],
        cpu: Cpu,
    ) -> Self {
        let transposed = rows < columns;
        let (rows, columns) = if transposed { (columns, rows) } else { (rows, columns) };
        let zeros = Matrix::zeros(rows, columns);
        let (mut filled, mut free, mut square) = (zeros.clone(), zeros.clone(), 0.0_f64);
        for i in 0..rows {
            free.row_mut(i)[..columns].fill(1.0);
        }
        for &(i, j, value) in entries {
            let (i, j) = if transposed { (j, i) } else { (i, j) };
            *filled.at_mut(i, j) = value;
            *free.at_mut(i, j) = 0.0;
            square += value * value;
        }
        let state = State { z: zeros.clone(), subspace: Subspace::new(columns) };
        let scale = square.sqrt();
        Self { cpu, columns, transposed, filled, free, scale, state, other: zeros }
    }

    /// |P X|_F.
    pub(super) fn scale(&self) -> f64 {
        self.scale
    }

    /// |P X|_2, the least lambda whose solution is Z = 0. To be asked before anything is solved.
    pub(super) fn largest(&self) -> Result<f64, Error> {
        let (gram, n) = (gram(&self.filled, self.cpu), self.columns);
        let rows = (0..n).flat_map(|i| gram.row(i)[..n].iter().copied()).collect();
        let square = eigenvalues(rows, n)?[0];
        Ok(if square > 0.0 { square.sqrt() } else { 0.0 })
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    pub(super) fn begin_at(&mut self, state: State) {
        self.state = state;
    }

    /// Z in this row and column.
    pub(super) fn at(&self, row: usize, column: usize) -> f64 {
        let (i, j) = if self.transposed { (column, row) } else { (row, column) };
        self.state.z.at(i, j)
    }

    /// Moves Z to the solution at `lambda`, in at most `limit` steps.
    pub(super) fn solve(
        &mut self,
        lambda: f64,
        tolerance: f64,
        limit: usize,
    ) -> Result<Fit, Error> {
        let tolerance = tolerance * self.scale;
        let mut momentum = Momentum::default();
        // Whether the coming step is one that may be the last.
        let mut last = false;
        self.extrapolate(0.0);
        for iterations in 1..=limit {
            let (triplets, progress) = self.step(lambda)?;
            if progress.length > tolerance {
                last = false;
                self.extrapolate_after(&mut momentum, &progress);
                continue;
            }
            if last {
                if self.accepts(&triplets, lambda, tolerance, progress.length) {
                    let rank = triplets.rank();
                    self.state.subspace.fit(rank);
                    return Ok(Fit { rank, iterations });
                }
                self.state.subspace.widen();
            }
            last = true;
            momentum = Momentum::default();
            self.extrapolate(0.0);
        }
        Err(Error::NoConvergence { lambda, iterations: limit })
    }

    /// Z <- S_lambda(P X + (I - P) Y).
    fn step(&mut self, lambda: f64) -> Result<(Triplets, Progress), NoConvergence> {
        let Self { state, other, filled, cpu, .. } = self;
        let triplets = state.subspace.threshold(filled, lambda, other, *cpu)?;
        std::mem::swap(&mut state.z, other);
        let progress = self.progress();
        Ok((triplets, progress))
    }

    /// Whether the step and what it may be off by stay within the tolerance.
    fn accepts(&self, triplets: &Triplets, lambda: f64, tolerance: f64, length: f64) -> bool {
        let limit = lambda + OVERLOOKED * tolerance;
        triplets.error(&self.filled, limit, self.cpu).is_some_and(|off| length + off <= tolerance)
    }

    fn progress(&self) -> Progress {
        let new = self.state.z.values().as_chunks::<LANES>().0;
        let old = self.other.values().as_chunks::<LANES>().0;
        let from = self.filled.values().as_chunks::<LANES>().0;
        let free = self.free.values().as_chunks::<LANES>().0;
        let (mut lengths, mut turns) = ([0.0; LANES], [0.0; LANES]);
        for (((new, old), from), free) in new.iter().zip(old).zip(from).zip(free) {
            for l in 0..LANES {
                let step = (new[l] - from[l]) * free[l];
                lengths[l] += step * step;
                turns[l] -= step * (new[l] - old[l]);
            }
        }
        let sum = |lanes: [f64; LANES]| lanes.iter().fold(0.0, |sum, lane| sum + lane);
        Progress { length: sum(lengths).sqrt(), turned_back: sum(turns) > 0.0 }
    }

    fn extrapolate_after(&mut self, momentum: &mut Momentum, progress: &Progress) {
        if progress.turned_back {
            *momentum = Momentum::default();
            self.extrapolate(0.0);
        } else {
            self.extrapolate(momentum.grow());
        }
    }

    /// Y = Z + weight (Z - Z before), where nothing was observed.
    fn extrapolate(&mut self, weight: f64) {
        let (z, before) = (self.state.z.values(), self.other.values());
        let filled = self.filled.values_mut().iter_mut();
        for (((filled, z), before), free) in filled.zip(z).zip(before).zip(self.free.values()) {
            let y = z + weight * (z - before);
            *filled = if *free == 0.0 { *filled } else { y };
        }
    }
}

/// What a step did to the missing entries.
struct Progress {
    /// |(I - P)(Z - Y)|_F.
    length: f64,
    /// Whether Z - Y and Z - Z before point in opposite directions.
    turned_back: bool,
}

/// t of Beck and Teboulle: t <- (1 + sqrt(1 + 4 t^2))/2, and the weight is (t before - 1)/t.
struct Momentum(f64);

impl Default for Momentum {
    fn default() -> Self {
        Self(1.0)
    }
}

impl Momentum {
    fn grow(&mut self) -> f64 {
        let before = self.0;
        self.0 = 0.5 * (1.0 + (1.0 + 4.0 * before * before).sqrt());
        (before - 1.0) / self.0
    }
}
