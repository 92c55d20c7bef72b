//! Observations with repeated inputs collapsed, exactly.
//!
//! Let input i be observed n_i times, with average a_i and sum of squares W_i about it. The average
//! is f(x_i) plus noise of variance s/n_i, independent of W_i, so with m inputs, n observations and
//! K the kernel matrix of the inputs
//!
//! ```text
//! log p(y) = log N(a; 0, K + s diag(1/n_i))
//!            - 1/2 [(n - m) log(2 pi s) + sum_i log n_i + sum_i W_i/s]
//! ```
//!
//! and the posterior of f depends on a and n_i alone.

use theory::PANEL;

use super::Error;
use super::blocks::{BLOCK, entry, upper};
use super::points::{FAR, Points};
use crate::simd::Buffer;

/// Which inputs were observed, in order, and the squared distances of the distinct ones.
pub(super) struct Design<P: Points> {
    points: P,
    inputs: Vec<P::Point>,
    /// The input of each observation.
    input_of: Vec<usize>,
    /// Above the diagonal the squared distances, [`FAR`] in the padding; elsewhere 0.
    squared: Buffer,
    /// Block columns that there is room for.
    capacity: usize,
}

impl<P: Points> Design<P> {
    pub(super) fn new(points: P) -> Self {
        let (inputs, input_of) = (vec![], vec![]);
        Self { points, inputs, input_of, squared: Buffer::zeros(0), capacity: 0 }
    }

    /// Adds an observation at x.
    pub(super) fn observe(&mut self, x: P::Point) -> Result<(), Error> {
        let new = self.inputs.len();
        let squared: Vec<f64> =
            self.inputs.iter().map(|input| self.points.squared_distance(input, &x)).collect();
        // What is not finite has no distance from itself either.
        let itself = self.points.squared_distance(&x, &x);
        if let Some(&squared) = squared.iter().chain([&itself]).find(|d| d.is_nan() || **d > FAR) {
            return Err(Error::Distance { squared });
        }
        if let Some(known) = squared.iter().position(|&d| d == 0.0) {
            self.input_of.push(known);
            return Ok(());
        }
        if new == self.capacity * PANEL {
            self.grow();
        }
        squared.iter().enumerate().for_each(|(i, &d)| self.squared[entry(i, new)] = d);
        self.inputs.push(x);
        self.input_of.push(new);
        Ok(())
    }

    /// Forgets all but the first observations.
    pub(super) fn truncate(&mut self, observations: usize) {
        self.input_of.truncate(observations);
        let left = self.input_of.iter().map(|&i| i + 1).max().unwrap_or(0);
        for j in left..self.inputs.len() {
            (0..j).for_each(|i| self.squared[entry(i, j)] = FAR);
        }
        self.inputs.truncate(left);
    }

    fn grow(&mut self) {
        let capacity = (2 * self.capacity).max(4);
        let mut squared = Buffer::filled(FAR, upper(capacity));
        squared[..upper(self.capacity)].copy_from_slice(&self.squared);
        for j in self.capacity..capacity {
            let diagonal = &mut squared[upper(j) + BLOCK * j..upper(j + 1)];
            for (r, row) in diagonal.chunks_exact_mut(PANEL).enumerate() {
                row[..=r].fill(0.0);
            }
        }
        (self.squared, self.capacity) = (squared, capacity);
    }

    pub(super) fn points(&self) -> &P {
        &self.points
    }

    /// The distinct inputs, in order of their first observation.
    pub(super) fn inputs(&self) -> &[P::Point] {
        &self.inputs
    }

    pub(super) fn observations(&self) -> usize {
        self.input_of.len()
    }

    /// Block columns in use.
    pub(super) fn blocks(&self) -> usize {
        self.inputs.len().div_ceil(PANEL)
    }

    /// The squared distances of the block columns in use.
    pub(super) fn squared(&self) -> &[f64] {
        &self.squared[..upper(self.blocks())]
    }

    /// One response per observation, collapsed.
    pub(super) fn collapse(&self, responses: &[f64]) -> Result<Collapsed, Error> {
        if responses.len() != self.input_of.len() {
            return Err(Error::Length { given: responses.len(), expected: self.input_of.len() });
        }
        if let Some(at) = responses.iter().position(|y| y.is_nan() || y.abs() > LARGEST) {
            return Err(Error::Response { at, value: responses[at] });
        }
        let (inputs, padded) = (self.inputs.len(), self.blocks() * PANEL);
        let (mut counts, mut means) = (vec![0.0; inputs], vec![0.0; padded]);
        for (&i, &y) in self.input_of.iter().zip(responses) {
            counts[i] += 1.0;
            means[i] += y;
        }
        (0..inputs).for_each(|i| means[i] /= counts[i]);
        let squares = self.input_of.iter().zip(responses).map(|(&i, &y)| y - means[i]);
        let within = squares.fold(0.0, |sum, d| sum + d * d);
        let mut shares = vec![0.0; padded];
        (0..inputs).for_each(|i| shares[i] = 1.0 / counts[i]);
        let log_counts = counts.iter().fold(0.0, |sum, &n| sum + libm::log(n));
        let observations = responses.len();
        Ok(Collapsed { means, shares, log_counts, within, inputs, observations })
    }
}

/// Responses beyond might overflow when they are squared and divided by the noise.
const LARGEST: f64 = 1e100;

/// What the likelihood and the posterior depend on.
#[derive(Clone, Debug)]
pub(super) struct Collapsed {
    /// a_i; 0 in the padding.
    pub(super) means: Vec<f64>,
    /// 1/n_i; 0 in the padding.
    pub(super) shares: Vec<f64>,
    /// sum_i log n_i.
    pub(super) log_counts: f64,
    /// sum_i W_i.
    pub(super) within: f64,
    /// m.
    pub(super) inputs: usize,
    /// n.
    pub(super) observations: usize,
}

#[cfg(test)]
mod tests {
    use super::super::points::Space;
    use super::*;

    #[test]
    fn repeated_inputs_are_collapsed() {
        let mut design = Design::new(Space);
        for x in [0.0, 2.0, 0.0, 0.0, 5.0] {
            design.observe(vec![x]).unwrap();
        }
        let found = design.collapse(&[1.0, 7.0, 2.0, 6.0, -1.0]).unwrap();
        assert_eq!((found.inputs, found.observations), (3, 5));
        assert_eq!(found.means, [3.0, 7.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(found.shares[..4], [1.0 / 3.0, 1.0, 1.0, 0.0]);
        assert_eq!(found.within, 4.0 + 1.0 + 9.0);
        assert_eq!(found.log_counts, libm::log(3.0));
        assert_eq!(design.squared()[entry(1, 2)], 9.0);
        assert_eq!(design.squared()[entry(1, 3)], FAR);
    }

    #[test]
    fn truncated_is_as_if_never_observed() {
        let (mut one, mut other) = (Design::new(Space), Design::new(Space));
        for i in 0..40_u8 {
            let x = vec![f64::from(i % 37)];
            if i < 11 {
                other.observe(x.clone()).unwrap();
            }
            one.observe(x).unwrap();
        }
        one.truncate(11);
        assert_eq!((one.observations(), one.inputs()), (11, other.inputs()));
        assert_eq!(one.squared(), other.squared());
    }

    #[test]
    fn bad_values_are_refused() {
        let mut design = Design::new(Space);
        assert!(matches!(design.observe(vec![f64::NAN]), Err(Error::Distance { .. })));
        design.observe(vec![0.0]).unwrap();
        for x in [f64::NAN, f64::INFINITY, 1e200] {
            assert!(matches!(design.observe(vec![x]), Err(Error::Distance { .. })));
        }
        assert!(matches!(design.collapse(&[]), Err(Error::Length { given: 0, expected: 1 })));
        assert!(matches!(design.collapse(&[f64::NAN]), Err(Error::Response { at: 0, .. })));
    }
}
