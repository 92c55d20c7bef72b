//! The prior of a study: what `[prior]` of a study file says, checked and named by its content.

mod domain;
mod files;
mod invalid;
mod kernel;
mod mean;
mod table;

use crate::Digest;
use serde::{Deserialize, Serialize};

pub use domain::{DomainSpec, SOBOL_DIMENSIONS, Shape};
pub use files::{File, Files, LoadError};
pub use invalid::Invalid;
pub use kernel::{KernelSpec, Lengthscale};
pub use mean::MeanSpec;
pub use table::{Table, TableError};

/// The tolerances that a pivoted Cholesky factorisation in f64 can honour. Below the least, pivots
/// are rounding errors; above the largest, the prior is not the kernel that the study names.
pub const TOLERANCES: (f64, f64) = (1e-15, 1e-2);

/// Which half of the paper is put to the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// Section 4.1: estimates at the M points of a finite domain.
    Finite,
    /// Section 4.2: estimates of the weights of K basis functions.
    Compact,
}

/// A Gaussian process on a finite set of points, and the noise on what is observed of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorSpec {
    /// Finite or compact.
    pub setting: Setting,
    /// The points.
    pub domain: DomainSpec,
    /// k.
    pub kernel: KernelSpec,
    /// mu.
    pub mean: MeanSpec,
    /// sigma^2.
    pub noise_variance: f64,
    /// The largest residual variance of the kernel's factorisation, relative to c = max k(x, x).
    #[serde(default = "default_tolerance")]
    pub tolerance: f64,
}

fn default_tolerance() -> f64 {
    1e-12
}

impl PriorSpec {
    /// Checks every value, and the shape of every file, and returns the domain's shape.
    pub fn validate(&self, files: &Files) -> Result<Shape, Invalid> {
        let shape = self.domain.validate("prior.domain", files)?;
        self.kernel.validate("prior.kernel", shape, files)?;
        self.mean.validate("prior.mean", shape, files)?;
        invalid::non_negative("prior.noise_variance", self.noise_variance)?;
        let (least, most) = TOLERANCES;
        invalid::within("prior.tolerance", self.tolerance, least, most)?;
        Ok(shape)
    }

    /// The files that the prior names, as it writes them.
    pub fn paths(&self) -> Vec<&str> {
        let mut paths = Vec::new();
        self.domain.paths(&mut paths);
        self.kernel.paths(&mut paths);
        self.mean.paths(&mut paths);
        paths
    }

    /// Feeds all that the prior's values depend on. Files count by content, not by name.
    ///
    /// # Panics
    /// Where a file that the prior names has not been loaded.
    pub fn feed(&self, files: &Files, digest: &mut Digest) {
        self.feed_shape(files, digest);
        digest.tag("noise_variance").f64(self.noise_variance);
    }

    /// Feeds all that f depends on: everything but the noise.
    fn feed_shape(&self, files: &Files, digest: &mut Digest) {
        digest.tag(match self.setting {
            Setting::Finite => "finite",
            Setting::Compact => "compact",
        });
        self.domain.feed(files, digest);
        self.kernel.feed(files, digest);
        self.mean.feed(files, digest);
        digest.tag("tolerance").f64(self.tolerance);
    }

    /// The digest of all that f depends on: everything but the noise. Cells of the same shape share
    /// their functions.
    ///
    /// # Panics
    /// Where a file that the prior names has not been loaded.
    pub fn shape_digest(&self, files: &Files) -> [u8; 32] {
        let mut digest = Digest::new();
        self.feed_shape(files, &mut digest);
        digest.finish()
    }
}

#[cfg(test)]
mod tests;
