//! Where responses are observed: an index into a list of candidates, or coordinates.
//!
//! The isotropic kernel sees inputs through their squared distances alone.

use theory::PANEL;

use super::Error;

/// Inputs of a Gaussian process.
pub trait Points {
    /// One input.
    type Point: Clone;

    /// |a - b|^2. Two inputs at distance 0 are one input.
    fn squared_distance(&self, a: &Self::Point, b: &Self::Point) -> f64;
}

/// A squared distance at which nothing correlates, whatever the length-scale. Finite, so that its
/// product with a correlation of 0 is 0.
pub(super) const FAR: f64 = 1e300;

/// Pairwise squared distances of M candidates, computed once and shared by all trials.
#[derive(Clone, Debug)]
pub struct Distances {
    size: usize,
    /// Row by row, each padded to whole panels with [`FAR`].
    squared: Vec<f64>,
    /// The smallest positive and the largest distance.
    extent: Option<(f64, f64)>,
}

impl Distances {
    /// Distances between `points`, one after the other in `coordinates`.
    ///
    /// # Panics
    /// Where the coordinates are no whole number of points.
    pub fn new(dimension: usize, coordinates: &[f64]) -> Result<Self, Error> {
        assert_eq!(coordinates.len() % dimension, 0, "every point has {dimension} coordinates");
        let points: Vec<&[f64]> = coordinates.chunks_exact(dimension).collect();
        let (size, stride) = (points.len(), points.len().next_multiple_of(PANEL));
        let mut squared = vec![FAR; size * stride];
        let mut extent: Option<(f64, f64)> = None;
        for i in 0..size {
            for j in 0..=i {
                let value = squared_distance(points[i], points[j]);
                if value.is_nan() || value > FAR {
                    return Err(Error::Distance { squared: value });
                }
                squared[i * stride + j] = value;
                squared[j * stride + i] = value;
                if value > 0.0 {
                    let (least, most) = extent.unwrap_or((value, value));
                    let least = if value < least { value } else { least };
                    let most = if value > most { value } else { most };
                    extent = Some((least, most));
                }
            }
        }
        let extent = extent.map(|(least, most)| (least.sqrt(), most.sqrt()));
        Ok(Self { size, squared, extent })
    }

    /// M, the number of candidates.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The smallest positive and the largest distance; `None` where all candidates coincide.
    pub fn extent(&self) -> Option<(f64, f64)> {
        self.extent
    }

    /// Squared distances of candidate i to all, padded to whole panels.
    pub(super) fn row(&self, i: usize) -> &[f64] {
        let stride = self.size.next_multiple_of(PANEL);
        &self.squared[i * stride..(i + 1) * stride]
    }
}

impl Points for &Distances {
    type Point = usize;

    fn squared_distance(&self, a: &usize, b: &usize) -> f64 {
        self.row(*a)[*b]
    }
}

/// Inputs given by their coordinates.
#[derive(Clone, Copy, Debug)]
pub struct Space;

impl Points for Space {
    type Point = Vec<f64>;

    fn squared_distance(&self, a: &Vec<f64>, b: &Vec<f64>) -> f64 {
        squared_distance(a, b)
    }
}

fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).fold(0.0, |sum, (a, b)| sum + (a - b) * (a - b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let table = Distances::new(2, &[0.0, 0.0, 3.0, 4.0, 3.0, 4.0, 0.0, 1.0]).unwrap();
        assert_eq!(table.size(), 4);
        assert_eq!(table.extent(), Some((1.0, 5.0)));
        assert_eq!(table.row(0), [0.0, 25.0, 25.0, 1.0, FAR, FAR, FAR, FAR]);
        assert_eq!((&table).squared_distance(&1, &2), 0.0);
        assert_eq!((&table).squared_distance(&3, &1), 18.0);
        assert_eq!(Space.squared_distance(&vec![0.0, 1.0], &vec![3.0, 4.0]), 18.0);
        assert_eq!(Distances::new(1, &[2.0, 2.0]).unwrap().extent(), None);
        assert_eq!(Distances::new(1, &[]).unwrap().size(), 0);
        assert!(Distances::new(1, &[0.0, f64::NAN]).is_err());
        assert!(Distances::new(1, &[f64::INFINITY]).is_err());
    }
}
