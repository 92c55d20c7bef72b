//! Plain (paper, section 5): a squared-exponential kernel, its variance, lengthscale and noise fitted to
//! the run's own observations by maximum likelihood at every step. Nothing is transferred.

use super::{Method, Prediction, Stuck, best};
use crate::estimator::Rule;
use crate::gp::{Bounds, Distances, Gp, Noise, Scale, Search};
use crate::random::Stream;
use crate::simd::Cpu;

/// Starts of the likelihood's ascent at every step, the last optimum included.
const STARTS: usize = 3;

/// A run on the points of a finite domain.
pub(crate) struct Plain<'p> {
    gp: Gp<&'p Distances>,
    search: Search,
    responses: Vec<f64>,
    observed: Vec<bool>,
    mean: Vec<f64>,
    variance: Vec<f64>,
    /// The first point is drawn, as nothing speaks for any.
    first: usize,
}

/// The search for hyper-parameters on inputs with this extent.
pub(super) fn search(extent: Option<(f64, f64)>) -> Search {
    let (nearest, farthest) = extent.unwrap_or((1.0, 1.0));
    Search { bounds: Bounds::new(nearest, farthest), starts: STARTS }
}

/// A point that may be taken, drawn uniformly.
pub(super) fn first(observed: &[bool], stream: &mut Stream) -> usize {
    let open: Vec<usize> = (0..observed.len()).filter(|&i| !observed[i]).collect();
    open[stream.below(open.len())]
}

impl<'p> Plain<'p> {
    /// Nothing observed yet; where `observed` is set, points cannot be taken.
    pub(crate) fn new(
        distances: &'p Distances,
        observed: Vec<bool>,
        stream: &mut Stream,
        cpu: Cpu,
    ) -> Self {
        let size = distances.size();
        Self {
            gp: Gp::new(distances, cpu),
            search: search(distances.extent()),
            responses: Vec::new(),
            first: first(&observed, stream),
            observed,
            mean: vec![0.0; size],
            variance: vec![1.0; size],
        }
    }
}

impl Method<usize> for Plain<'_> {
    fn observe(&mut self, at: &usize, y: f64) -> Result<(), Stuck> {
        self.observed[*at] = true;
        self.responses.push(y);
        self.gp.observe(*at).map_err(|_| Stuck::NoFit)?;
        let scale = Scale::of(&self.responses);
        let responses: Vec<f64> = self.responses.iter().map(|&y| scale.standardise(y)).collect();
        let fitted = self.gp.fit(&responses, &self.search, Noise::Fitted);
        fitted.map_err(|_| Stuck::NoFit)?.predict(&mut self.mean, &mut self.variance);
        self.mean.iter_mut().for_each(|mean| *mean = scale.mean(*mean));
        self.variance.iter_mut().for_each(|variance| *variance = scale.variance(*variance));
        Ok(())
    }

    fn predict(&self, at: &usize) -> Prediction {
        Prediction { mean: self.mean[*at], variance: self.variance[*at] }
    }

    fn choose(&mut self, rule: &Rule<1>) -> usize {
        if self.responses.is_empty() {
            return self.first;
        }
        best(&self.observed, rule, |i| self.predict(&i))
    }
}
