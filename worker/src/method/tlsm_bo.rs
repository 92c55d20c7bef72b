//! TLSM-BO (paper, section 5; Yogatama and Mann 2014): transfer by one Gaussian process over the
//! responses of all training functions and of the current one, each function standardised on its own, as
//! if all had the same response surface.
//!
//! As in the paper at most 1000 training responses are used, drawn at random from all, each paired with
//! its own input. The kernel is fitted to the training responses and fitted again when the number of
//! current observations reaches a power of two; in between its parameters stay.

use super::plain::{first, search};
use super::responses::Responses;
use super::{Method, Prediction, Stuck, best};
use crate::estimator::Rule;
use crate::gp::{Distances, Gp, Noise, Parameters, Scale, Search};
use crate::random::Stream;
use crate::simd::Cpu;

/// The paper's limit of training responses.
pub(crate) const MOST: usize = 1000;

/// Column and standardised value of training responses, at most [`MOST`], those that are there drawn at
/// random without replacement.
pub(crate) fn sample(responses: &Responses, stream: &mut Stream) -> Vec<(usize, f64)> {
    let mut all = Vec::new();
    for row in responses.iter() {
        let there: Vec<f64> = row.iter().copied().filter(|value| !value.is_nan()).collect();
        let scale = Scale::of(&there);
        let entries = row.iter().enumerate().filter(|(_, value)| !value.is_nan());
        all.extend(entries.map(|(column, &value)| (column, scale.standardise(value))));
    }
    for next in 0..MOST.min(all.len()) {
        let pick = next + stream.below(all.len() - next);
        all.swap(next, pick);
    }
    all.truncate(MOST);
    all
}

/// A run on the points of a finite domain.
pub(crate) struct TlsmBo<'p> {
    gp: Gp<&'p Distances>,
    search: Search,
    /// Standardised, in the order in which the process has them.
    training: Vec<f64>,
    responses: Vec<f64>,
    fitted: Option<Parameters>,
    observed: Vec<bool>,
    mean: Vec<f64>,
    variance: Vec<f64>,
    /// Taken where there is nothing to transfer.
    first: usize,
    stuck: bool,
}

impl<'p> TlsmBo<'p> {
    /// Fits the kernel to the training responses.
    pub(crate) fn new(
        distances: &'p Distances,
        training: &[(usize, f64)],
        observed: Vec<bool>,
        stream: &mut Stream,
        cpu: Cpu,
    ) -> Self {
        let size = distances.size();
        let mut gp = Gp::new(distances, cpu);
        let taken = training.iter().try_for_each(|(column, _)| gp.observe(*column));
        let mut this = Self {
            gp,
            search: search(distances.extent()),
            training: training.iter().map(|(_, value)| *value).collect(),
            responses: Vec::new(),
            fitted: None,
            first: first(&observed, stream),
            observed,
            mean: vec![0.0; size],
            variance: vec![1.0; size],
            stuck: taken.is_err(),
        };
        if !training.is_empty() {
            this.stuck |= this.fit().is_err();
        }
        this
    }

    fn fit(&mut self) -> Result<(), Stuck> {
        let scale = Scale::of(&self.responses);
        let current = self.responses.iter().map(|&y| scale.standardise(y));
        let responses: Vec<f64> = self.training.iter().copied().chain(current).collect();
        let again = self.responses.is_empty() || self.responses.len().is_power_of_two();
        let posterior = match self.fitted.filter(|_| !again) {
            Some(parameters) => self.gp.posterior(&responses, parameters),
            None => self.gp.fit(&responses, &self.search, Noise::Fitted),
        };
        let posterior = posterior.map_err(|_| Stuck::NoFit)?;
        self.fitted = Some(posterior.parameters());
        posterior.predict(&mut self.mean, &mut self.variance);
        self.mean.iter_mut().for_each(|mean| *mean = scale.mean(*mean));
        self.variance.iter_mut().for_each(|variance| *variance = scale.variance(*variance));
        Ok(())
    }
}

impl Method<usize> for TlsmBo<'_> {
    fn observe(&mut self, at: &usize, y: f64) -> Result<(), Stuck> {
        if self.stuck {
            return Err(Stuck::NoFit);
        }
        self.observed[*at] = true;
        self.responses.push(y);
        self.gp.observe(*at).map_err(|_| Stuck::NoFit)?;
        self.fit()
    }

    fn predict(&self, at: &usize) -> Prediction {
        Prediction { mean: self.mean[*at], variance: self.variance[*at] }
    }

    fn choose(&mut self, rule: &Rule<1>) -> usize {
        if self.responses.is_empty() && self.training.is_empty() {
            return self.first;
        }
        best(&self.observed, rule, |i| self.predict(&i))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Key, Purpose};

    fn stream() -> Stream {
        Stream::new(Key::new(3, &[0; 32], 0, Purpose::Estimator))
    }

    #[test]
    fn responses_are_standardised_row_by_row_and_keep_their_inputs() {
        let responses = Responses { columns: 3, values: vec![1.0, 2.0, 3.0, 10.0, f64::NAN, 30.0] };
        let mut sample = sample(&responses, &mut stream());
        sample.sort_by(|a, b| a.partial_cmp(b).unwrap());
        let unit = 1.5_f64.sqrt();
        let expected = [(0, -unit), (0, -1.0), (1, 0.0), (2, 1.0), (2, unit)];
        assert_eq!(sample.len(), expected.len());
        for (found, expected) in sample.iter().zip(expected) {
            assert!(found.0 == expected.0 && (found.1 - expected.1).abs() < 1e-15, "{sample:?}");
        }
    }

    #[test]
    fn at_most_a_thousand_responses_are_taken() {
        let values = (0..3000).map(|i| libm::sin(f64::from(i))).collect();
        let sample = sample(&Responses { columns: 30, values }, &mut stream());
        assert_eq!(sample.len(), MOST);
        let mut seen = vec![0; 30];
        sample.iter().for_each(|(column, _)| seen[*column] += 1);
        assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
    }

    /// Training functions that all peak at the same point send the first evaluation there.
    #[test]
    fn what_all_functions_share_is_transferred() {
        let coordinates: Vec<f64> = (0..21).map(|i| f64::from(i) / 20.0).collect();
        let distances = Distances::new(1, &coordinates).unwrap();
        let shape = |i: usize| libm::exp(-20.0 * (coordinates[i] - 0.7) * (coordinates[i] - 0.7));
        let values = (0..5_usize).flat_map(|n| (0..21).map(move |i| (n, i)));
        let values = values.map(|(n, i)| n as f64 + (1.0 + n as f64) * shape(i)).collect();
        let responses = Responses { columns: 21, values };
        let training = sample(&responses, &mut stream());
        let mut method =
            TlsmBo::new(&distances, &training, vec![false; 21], &mut stream(), Cpu::detect());
        assert_eq!(method.choose(&Rule::Ucb { zeta: 0.1 }), 14);
    }
}
