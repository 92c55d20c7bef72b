//! The global maximum of a smooth function over a box.
//!
//! Candidates of low discrepancy are evaluated all at once. Those that no neighbour exceeds are where
//! basins are, and the best few of them start an ascent. A [`Search`] is built once per prior: the
//! candidates, their neighbours and their features serve every function of it. Everything is
//! deterministic; among equals the one with the lowest index wins.

#[cfg(test)]
mod tests;

use theory::PANEL;

use super::ascent::Ascent;
use super::domain::Domain;
use super::features::Cosines;
use super::neighbours::neighbours;
use super::panels::Panels;
use crate::simd::Cpu;

/// A function to maximise. It should be smooth; where it is not a number it is never chosen.
pub trait Objective {
    /// The value at x.
    fn value(&self, x: &[f64]) -> f64;

    /// The value at x, and the gradient there.
    fn value_and_gradient(&self, x: &[f64], gradient: &mut [f64]) -> f64;

    /// The values at all candidates.
    fn values(&self, candidates: &Candidates, out: &mut [f64]) {
        candidates.each(|i, x| out[i] = self.value(x));
    }
}

/// How hard is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Candidates; rounded up to a multiple of eight.
    pub candidates: usize,
    /// Ascents.
    pub starts: usize,
}

impl Effort {
    /// Candidates in proportion to the number of lengths on which the features vary that fit into the
    /// box, within limits.
    pub fn for_cosines(cosines: &Cosines, domain: &Domain) -> Self {
        let d = domain.dimension();
        let lengths = (0..d).fold(1.0, |product, j| {
            product * (1.0 + domain.length(j) * cosines.bandwidth(j)) * PER_LENGTH
        });
        let candidates = if lengths < MOST as f64 { lengths as usize } else { MOST };
        Self { candidates: candidates.max(LEAST), starts: STARTS * d }
    }
}

/// Candidates along each axis per length on which the features vary. Of 1000 random functions each in
/// one, two and three dimensions (lengthscales 0.1 to 0.5 of the box) this misses the maximum of 0, 0 and
/// 1; with 3 instead of 6 it misses 0, 2 and 4.
const PER_LENGTH: f64 = 6.0;
/// Limits on the number of candidates.
const LEAST: usize = 64;
const MOST: usize = 4096;
/// Ascents per dimension.
const STARTS: usize = 6;

/// Points that every maximisation looks at first.
pub struct Candidates {
    dimension: usize,
    points: Vec<f64>,
    /// K x C.
    features: Option<Panels>,
}

impl Candidates {
    /// Calls with the index and place of each.
    pub fn each(&self, mut call: impl FnMut(usize, &[f64])) {
        self.points.chunks_exact(self.dimension).enumerate().for_each(|(i, x)| call(i, x));
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.points.len() / self.dimension
    }

    fn point(&self, i: usize) -> &[f64] {
        &self.points[i * self.dimension..(i + 1) * self.dimension]
    }

    /// Their features, K x C, where the search was built for some.
    pub(super) fn features(&self) -> Option<&Panels> {
        self.features.as_ref()
    }
}

/// The largest value found.
#[derive(Clone, Debug, PartialEq)]
pub struct Maximum {
    /// Where.
    pub at: Vec<f64>,
    /// The value there.
    pub value: f64,
}

/// What all maximisations over one box share.
pub struct Search {
    domain: Domain,
    candidates: Candidates,
    /// Along each axis, the length on which objectives vary.
    scales: Vec<f64>,
    /// The nearest candidates of each, `near` of them.
    neighbours: Vec<u32>,
    near: usize,
    starts: usize,
}

impl Search {
    /// For any objective that varies on lengths of about `scales` along the axes.
    ///
    /// # Panics
    /// Where `scales` has not d entries.
    pub fn new(domain: Domain, scales: Vec<f64>, effort: Effort) -> Self {
        assert_eq!(scales.len(), domain.dimension(), "a scale per axis");
        let dimension = domain.dimension();
        let count = effort.candidates.max(1).next_multiple_of(PANEL);
        let points = domain.fill(count);
        let near = (2 << dimension.min(4)).min(count - 1);
        let neighbours = neighbours(&points, &scales, near);
        let candidates = Candidates { dimension, points, features: None };
        Self { domain, candidates, scales, neighbours, near, starts: effort.starts.max(1) }
    }

    /// For functions of these features.
    ///
    /// # Panics
    /// Where features and box are of different dimensions.
    pub fn for_cosines(cpu: Cpu, cosines: &Cosines, domain: Domain, effort: Effort) -> Self {
        let d = domain.dimension();
        assert_eq!(cosines.dimension(), d, "features of the box's dimension");
        let scale = |j: usize| {
            let (bandwidth, length) = (cosines.bandwidth(j), domain.length(j));
            if bandwidth * length > 1.0 { 1.0 / bandwidth } else { length }
        };
        let scales = (0..d).map(scale).collect();
        let mut this = Self::new(domain, scales, effort);
        let columns = Panels::from_rows(&this.candidates.points, d).transpose();
        this.candidates.features = Some(cosines.batch(cpu, &columns));
        this
    }

    /// The box.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The candidates.
    pub fn candidates(&self) -> &Candidates {
        &self.candidates
    }

    /// The largest value found; `hints` are further points to look at, one after the other.
    ///
    /// # Panics
    /// Where `hints` are not whole points.
    pub fn maximise(&self, objective: &impl Objective, hints: &[f64]) -> Maximum {
        let d = self.domain.dimension();
        assert!(hints.len().is_multiple_of(d), "hints of dimension d");
        let mut values = vec![0.0; self.candidates.count()];
        objective.values(&self.candidates, &mut values);
        let mut starts = self.peaks(&values);
        values.extend(hints.chunks_exact(d).map(|x| objective.value(x)));
        starts.extend(self.candidates.count()..values.len());
        // Stable, so that the lowest index comes first among equals.
        starts.sort_by(|&a, &b| rank(values[b]).total_cmp(&rank(values[a])));
        let mut ascent = Ascent::new(&self.domain, &self.scales);
        let mut best: Option<Maximum> = None;
        for &start in starts.iter().take(self.starts) {
            let value = ascent.climb(objective, self.start(start, hints));
            if best.as_ref().is_none_or(|best| value > best.value) {
                best = Some(Maximum { at: ascent.place().to_vec(), value });
            }
        }
        best.expect("there is a candidate, so there is a peak")
    }

    fn start<'a>(&'a self, index: usize, hints: &'a [f64]) -> &'a [f64] {
        let d = self.domain.dimension();
        match index.checked_sub(self.candidates.count()) {
            None => self.candidates.point(index),
            Some(hint) => &hints[hint * d..(hint + 1) * d],
        }
    }

    /// Candidates that no neighbour exceeds, nor equals with a lower index.
    fn peaks(&self, values: &[f64]) -> Vec<usize> {
        (0..values.len())
            .filter(|&i| {
                let value = rank(values[i]);
                self.neighbours[i * self.near..(i + 1) * self.near].iter().all(|&n| {
                    let (n, other) = (n as usize, rank(values[n as usize]));
                    other < value || (other == value && i < n)
                })
            })
            .collect()
    }
}

/// What is not a number ranks last.
#[inline(always)]
fn rank(value: f64) -> f64 {
    if value.is_nan() { f64::NEG_INFINITY } else { value }
}
