//! The points of a domain.

use super::sobol;
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use study::{
    Digest,
    prior::{DomainSpec, Files, Invalid, Shape},
};

/// M points in dimension d.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    dimension: usize,
    coordinates: Vec<f64>,
}

impl Points {
    /// Makes the points of a checked domain.
    pub(crate) fn build(spec: &DomainSpec, shape: Shape, files: &Files) -> Result<Self, Invalid> {
        let coordinates = match spec {
            DomainSpec::Grid { .. } => grid(shape),
            DomainSpec::Uniform { seed, .. } => uniform(shape, *seed),
            DomainSpec::Sobol { .. } => sobol::points(shape.points, shape.dimension),
            DomainSpec::Data { .. } => return Ok(Self::numbered(shape.points)),
            DomainSpec::Points { path } => {
                files.table("prior.domain.path", path)?.values().to_vec()
            }
        };
        Ok(Self { dimension: shape.dimension, coordinates })
    }

    /// 0, 1, 2, .. in one dimension.
    pub(crate) fn numbered(size: usize) -> Self {
        Self { dimension: 1, coordinates: (0..size).map(|i| i as f64).collect() }
    }

    /// M.
    pub fn size(&self) -> usize {
        self.coordinates.len() / self.dimension
    }

    /// d.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// The coordinates of point i.
    pub fn point(&self, i: usize) -> &[f64] {
        &self.coordinates[i * self.dimension..(i + 1) * self.dimension]
    }

    /// The points in order.
    pub fn iter(&self) -> impl Iterator<Item = &[f64]> {
        self.coordinates.chunks_exact(self.dimension)
    }
}

/// k^d points a/(k - 1), a = 0 .. k - 1 along each axis, the last axis fastest; 0 where k = 1.
fn grid(shape: Shape) -> Vec<f64> {
    let side = shape.side().expect("a checked grid has k^d points");
    let step = side.max(2) - 1;
    let mut out = Vec::with_capacity(shape.points * shape.dimension);
    let mut digits = vec![0; shape.dimension];
    for _ in 0..shape.points {
        out.extend(digits.iter().map(|&digit| digit as f64 / step as f64));
        for digit in digits.iter_mut().rev() {
            *digit = (*digit + 1) % side;
            if *digit != 0 {
                break;
            }
        }
    }
    out
}

/// Multiples of 2^-53 in [0, 1) from the ChaCha8 stream of the seed, point by point, so that more
/// points never change the first.
fn uniform(shape: Shape, seed: u64) -> Vec<f64> {
    let key = Digest::new().tag("domain.uniform").u64(seed).finish();
    let mut rng = ChaCha8Rng::from_seed(key);
    let unit = 1.0 / (1_u64 << 53) as f64;
    (0..shape.points * shape.dimension).map(|_| (rng.next_u64() >> 11) as f64 * unit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(spec: &DomainSpec, points: usize, dimension: usize) -> Points {
        Points::build(spec, Shape { points, dimension }, &Files::default()).unwrap()
    }

    #[test]
    fn a_grid_includes_the_corners_and_runs_the_last_axis_fastest() {
        let found = points(&DomainSpec::Grid { points: 9, dimension: 2 }, 9, 2);
        let rows: Vec<&[f64]> = found.iter().collect();
        let axis = [0.0, 0.5, 1.0];
        for (i, row) in rows.iter().enumerate() {
            assert_eq!(*row, [axis[i / 3], axis[i % 3]]);
        }
        assert_eq!((found.size(), found.dimension(), found.point(7)), (9, 2, &[1.0, 0.5][..]));
        let one = points(&DomainSpec::Grid { points: 1, dimension: 3 }, 1, 3);
        assert_eq!(one.point(0), [0.0; 3]);
    }

    #[test]
    fn uniform_points_are_pinned_and_grow_without_change() {
        let spec = |points, seed| DomainSpec::Uniform { points, dimension: 2, seed };
        let few = points(&spec(3, 0), 3, 2);
        let many = points(&spec(1000, 0), 1000, 2);
        assert_eq!(few.iter().collect::<Vec<_>>(), many.iter().take(3).collect::<Vec<_>>());
        assert_eq!(few.point(0), PINNED);
        assert_ne!(few, points(&spec(3, 1), 3, 2));
        assert!(many.coordinates.iter().all(|x| (0.0..1.0).contains(x)));
        // A mean of 2000 uniforms: 5 standard deviations, false alarm 6e-7.
        let mean = many.coordinates.iter().sum::<f64>() / 2000.0;
        assert!((mean - 0.5).abs() < 5.0 * (1.0 / 12.0_f64 / 2000.0).sqrt(), "{mean}");
    }

    /// From the first run: an upgrade of the generator must not move anyone's domain.
    const PINNED: [f64; 2] = [0.8234508468262576, 0.05958344850166708];
}
