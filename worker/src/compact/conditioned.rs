//! A belief about the weights of f and the observations that it is conditioned on, some of them perhaps of
//! one point.

use super::belief::{Moments, Weights};

/// Features of squared distance below this are those of one point.
const SAME: f64 = 1e-9;

/// An observation at a point at which nothing is left to learn, and which is none of those that were seen.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ZeroPivot;

/// W given D_t. Further observations of a point count as the pseudo-inverse has them, by the mean of all that
/// were made there: PI asks for them where noise has lifted a value above its target.
#[derive(Clone)]
pub(crate) struct Conditioned {
    weights: Weights,
    /// What was believed before any observation.
    initial: Weights,
    /// What conditioning adds to the variance of an observation.
    noise: f64,
    /// A variance at most this is rounding error.
    floor: f64,
    places: Vec<Place>,
}

/// The observations at a point.
#[derive(Clone)]
struct Place {
    phi: Vec<f64>,
    sum: f64,
    count: f64,
}

impl Conditioned {
    pub(crate) fn new(initial: Weights, noise: f64, floor: f64) -> Self {
        Self { weights: initial.clone(), initial, noise, floor, places: Vec::new() }
    }

    pub(crate) fn weights(&self) -> &Weights {
        &self.weights
    }

    /// At features phi.
    pub(crate) fn at(&self, phi: &[f64]) -> Moments {
        self.weights.at(phi)
    }

    /// How many points were observed, each counted once.
    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }

    /// Takes in y at features phi.
    pub(crate) fn observe(&mut self, phi: &[f64], y: f64) -> Result<(), ZeroPivot> {
        if self.weights.condition(phi, y, self.noise, self.floor) {
            self.places.push(Place { phi: phi.to_vec(), sum: y, count: 1.0 });
            return Ok(());
        }
        let distance =
            |other: &[f64]| other.iter().zip(phi).fold(0.0, |sum, (a, b)| sum + (a - b) * (a - b));
        let places = self.places.iter_mut().map(|place| (distance(&place.phi), place));
        let nearest = places.min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, place)) = nearest.filter(|(squared, _)| *squared < SAME) else {
            return Err(ZeroPivot);
        };
        place.sum += y;
        place.count += 1.0;
        self.weights = self.initial.clone();
        for Place { phi, sum, count } in &self.places {
            self.weights.condition(phi, sum / count, self.noise, self.floor);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_that_is_seen_again_counts_by_its_mean() {
        let initial = Weights::independent(&[1.0, 2.0, 0.5]);
        let (a, b) = ([1.0, 0.5, -0.3], [0.2, -1.0, 0.7]);
        let mut again = Conditioned::new(initial.clone(), 0.0, 1e-11);
        let mut once = again.clone();
        for (phi, y) in [(&a, 0.4), (&b, -1.0), (&a, 1.0), (&a, 0.1)] {
            again.observe(phi, y).unwrap();
        }
        for (phi, y) in [(&a, 0.5), (&b, -1.0)] {
            once.observe(phi, y).unwrap();
        }
        assert_eq!((again.places(), once.places()), (2, 2));
        let probe = [0.3, 0.3, 0.9];
        let (again, once) = (again.at(&probe), once.at(&probe));
        assert!((again.mean - once.mean).abs() < 1e-15);
        assert!((again.variance - once.variance).abs() < 1e-15);
    }

    #[test]
    fn a_point_that_others_determine_is_refused() {
        let mut belief = Conditioned::new(Weights::independent(&[1.0, 1.0]), 0.0, 1e-11);
        belief.observe(&[1.0, 0.0], 0.3).unwrap();
        belief.observe(&[0.0, 1.0], 0.4).unwrap();
        assert_eq!(belief.observe(&[1.0, 1.0], 0.7), Err(ZeroPivot));
        assert_eq!(belief.places(), 2);
    }
}
