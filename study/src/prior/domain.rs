//! The domain: M points in dimension d.

use super::{Files, Invalid, data, invalid};
use crate::Digest;
use serde::{Deserialize, Serialize};

/// Dimensions for which direction numbers of the Sobol sequence are kept.
pub const SOBOL_DIMENSIONS: usize = 21;

/// More points than records can index.
const MOST_POINTS: usize = u32::MAX as usize;

/// Where the points come from. All but `points` fill the unit cube [0, 1]^d.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum DomainSpec {
    /// k points per axis, end points included, M = k^d of them; the last coordinate runs fastest.
    Grid {
        /// M, in all.
        points: usize,
        /// d.
        dimension: usize,
    },
    /// Independent uniform points.
    Uniform {
        /// M.
        points: usize,
        /// d.
        dimension: usize,
        /// Which draw; independent of the study's seed, so that the domain stays the same.
        #[serde(default)]
        seed: u64,
    },
    /// The first points of the unscrambled Sobol sequence, the origin first.
    Sobol {
        /// M.
        points: usize,
        /// d, at most [`SOBOL_DIMENSIONS`].
        dimension: usize,
    },
    /// A file of one point per row.
    Points {
        /// The file, relative to the study file.
        path: String,
    },
    /// The columns of a file of rewards, numbered 0, 1, 2, ..
    Data {
        /// The file, relative to the study file.
        path: String,
    },
}

/// The numbers of points and of coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// M.
    pub points: usize,
    /// d.
    pub dimension: usize,
}

impl DomainSpec {
    pub(super) fn validate(&self, key: &str, files: &Files) -> Result<Shape, Invalid> {
        let shape = match *self {
            Self::Grid { points, dimension }
            | Self::Uniform { points, dimension, .. }
            | Self::Sobol { points, dimension } => Shape { points, dimension },
            Self::Points { ref path } => {
                let size = files.whole(&format!("{key}.path"), path)?;
                Shape { points: size.rows, dimension: size.columns }
            }
            Self::Data { ref path } => {
                Shape { points: data::points(key, path, files)?, dimension: 1 }
            }
        };
        let most = if matches!(self, Self::Sobol { .. }) { SOBOL_DIMENSIONS } else { MOST_POINTS };
        invalid::count(&format!("{key}.points"), shape.points, MOST_POINTS)?;
        invalid::count(&format!("{key}.dimension"), shape.dimension, most)?;
        if matches!(self, Self::Grid { .. }) {
            whole_grid(key, shape)?;
        }
        Ok(shape)
    }

    pub(super) fn paths<'a>(&'a self, paths: &mut Vec<&'a str>) {
        if let Self::Points { path } | Self::Data { path } = self {
            paths.push(path);
        }
    }

    /// Feeds all that the points depend on.
    ///
    /// # Panics
    /// Where the file has not been loaded.
    pub fn feed(&self, files: &Files, digest: &mut Digest) {
        digest.tag("domain");
        match *self {
            Self::Grid { points, dimension } => {
                digest.tag("grid").u64(points as u64).u64(dimension as u64);
            }
            Self::Uniform { points, dimension, seed } => {
                digest.tag("uniform").u64(points as u64).u64(dimension as u64).u64(seed);
            }
            Self::Sobol { points, dimension } => {
                digest.tag("sobol").u64(points as u64).u64(dimension as u64);
            }
            Self::Points { ref path } => {
                digest.tag("points").bytes(files.digest(path));
            }
            Self::Data { ref path } => {
                digest.tag("data").bytes(files.digest(path));
            }
        }
    }
}

impl Shape {
    /// k, the points per axis of a grid of M = k^d points; `None` where there is no such k.
    pub fn side(self) -> Option<usize> {
        let k = root(self.points, self.dimension);
        (power(k, self.dimension) == self.points).then_some(k)
    }
}

fn whole_grid(key: &str, shape: Shape) -> Result<(), Invalid> {
    if shape.side().is_some() {
        return Ok(());
    }
    let Shape { points, dimension } = shape;
    let below = root(points, dimension);
    Err(Invalid::NotAGrid {
        key: format!("{key}.points"),
        points,
        dimension,
        below: power(below, dimension),
        above: power(below + 1, dimension),
    })
}

/// The largest k with k^d <= points.
fn root(points: usize, dimension: usize) -> usize {
    let (mut low, mut high) = (1, points + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if power(middle, dimension) <= points { low = middle } else { high = middle }
    }
    low
}

/// k^d, or the largest number where that is larger still.
fn power(k: usize, dimension: usize) -> usize {
    u32::try_from(dimension).map_or(usize::from(k == 1), |d| k.saturating_pow(d))
}
