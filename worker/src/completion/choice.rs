//! The choice of lambda.
//!
//! A share of the observed entries is held out, the path of lambdas is solved from the others, and the
//! lambda whose Z predicts the held-out entries best is taken, for a last solution from all observed
//! entries. It needs no noise level and no rank: without noise the error falls to the end of the path,
//! with noise it has its minimum near the noise's spectral norm, where overfitting begins, and it
//! adapts to spectra that decay without a gap, as those of Gaussian processes do. The error is flat
//! about its minimum, so that one split is enough: its own randomness costs little.
//!
//! The path begins at |P X|_2, where Z = 0: the means alone are a candidate. It is left when the error
//! has not fallen for some lambdas.

use super::centre::Centred;
use super::hash::word;
use super::solver::{Solver, State};
use super::{Error, Incomplete, Options};
use crate::simd::Cpu;

/// Lambdas without improvement after which the path is left.
const PATIENCE: usize = 3;

/// A geometric path of lambdas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// How many, the first of which is |P X|_2, the least with Z = 0.
    pub count: usize,
    /// The last as a share of the first. Far below the tolerance, nothing more is resolved.
    pub smallest: f64,
}

impl Path {
    /// The lambda at `step`, from `largest` on.
    fn lambda(&self, largest: f64, step: usize) -> f64 {
        let along = step as f64 / (self.count - 1) as f64;
        largest * libm::pow(self.smallest, along)
    }
}

/// Which of the observed entries are held out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldOut {
    /// Decides which entries these are, and nothing else.
    pub seed: u64,
    /// How many of the observed entries, at least one.
    pub share: f64,
}

impl HeldOut {
    /// Splits places into the kept and the held out, those whose hashes are smallest.
    fn split(&self, places: &[usize]) -> (Vec<usize>, Vec<usize>) {
        let mut order: Vec<(u64, usize)> =
            places.iter().map(|&at| (word(self.seed, at as u64), at)).collect();
        order.sort_unstable();
        let count = (self.share * places.len() as f64) as usize;
        let count = if count == 0 { 1 } else { count };
        let (out, kept) = order.split_at(count);
        let ordered = |part: &[(u64, usize)]| {
            let mut places: Vec<usize> = part.iter().map(|(_, at)| *at).collect();
            places.sort_unstable();
            places
        };
        (ordered(kept), ordered(out))
    }
}

/// The lambda that was chosen.
pub(super) struct Chosen {
    pub(super) lambda: f64,
    /// Root mean square error on the held-out entries.
    pub(super) error: f64,
    /// Steps taken.
    pub(super) iterations: usize,
    /// Where the last solution begins; at zero where there is none.
    pub(super) state: Option<State>,
}

/// Chooses lambda for the entries at `places`, of which there are at least two.
pub(super) fn choose(
    data: &Incomplete,
    places: &[usize],
    all: &Solver,
    held_out: HeldOut,
    options: &Options,
    cpu: Cpu,
) -> Result<Chosen, Error> {
    let (kept, out) = held_out.split(places);
    let centred = Centred::new(data, &kept)?;
    let error = |solver: Option<&Solver>| {
        let squares = out.iter().map(|&at| {
            let (row, column) = (at / data.columns, at % data.columns);
            let gap = data.values[at]
                - centred.means[column]
                - solver.map_or(0.0, |solver| solver.at(row, column));
            gap * gap
        });
        (squares.fold(0.0, |sum, square| sum + square) / out.len() as f64).sqrt()
    };
    let Some(mut solver) = centred.solver(cpu)? else {
        let lambda = all.largest()?;
        return Ok(Chosen { lambda, error: error(None), iterations: 0, state: None });
    };
    let largest = solver.largest()?;
    let mut best = Chosen { lambda: largest, error: error(None), iterations: 0, state: None };
    let (mut iterations, mut since) = (0, 0);
    for step in 1..options.path.count {
        let lambda = options.path.lambda(largest, step);
        iterations += solver.solve(lambda, options.tolerance, options.iterations)?.iterations;
        let error = error(Some(&solver));
        if error < best.error {
            best = Chosen { lambda, error, iterations, state: Some(solver.state().clone()) };
            since = 0;
        } else {
            since += 1;
            if since == PATIENCE {
                break;
            }
        }
    }
    Ok(Chosen { iterations, ..best })
}

/// Solves along the path until `lambda` is next; the steps it took.
pub(super) fn approach(
    solver: &mut Solver,
    lambda: f64,
    options: &Options,
) -> Result<usize, Error> {
    let largest = solver.largest()?;
    let mut iterations = 0;
    for step in 1..options.path.count {
        let before = options.path.lambda(largest, step);
        if before <= lambda {
            break;
        }
        iterations += solver.solve(before, options.tolerance, options.iterations)?.iterations;
    }
    Ok(iterations)
}
