//! The prior of a study: what `[prior]` of a study file says, checked and named by its content.

mod data;
mod domain;
mod files;
mod invalid;
mod kernel;
mod mean;
mod npy;
mod table;

use crate::Digest;
use crate::cell::Ground;
use serde::{Deserialize, Serialize};

pub use data::{DataSpec, Protocol, Sense};
pub use domain::{DomainSpec, SOBOL_DIMENSIONS, Shape};
pub use files::{File, Files};
pub use invalid::Invalid;
pub use kernel::{KernelSpec, Lengthscale};
pub use mean::MeanSpec;
pub use npy::{NpyError, to_npy};
pub use table::{Table, TableError};

/// The tolerances that a pivoted Cholesky factorisation in f64 can honour. Below the least, pivots
/// are rounding errors; above the largest, the prior is not the kernel that the study names.
pub const TOLERANCES: (f64, f64) = (1e-15, 1e-2);

/// The tolerance where a study names none.
pub const TOLERANCE: f64 = 1e-12;

/// Which half of the paper is put to the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// Section 4.1: estimates at the M points of a finite domain.
    Finite,
    /// Section 4.2: estimates of the weights of K basis functions.
    Compact,
    /// Section 5: functions are rows of real data, of which no prior is known.
    Data,
}

/// Where the basis functions of the compact setting come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Features {
    /// They are the prior's own, as the theory takes them.
    Given {},
    /// Cosines learnt from the training data (section 5).
    Learnt {
        /// K.
        functions: u32,
    },
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
    /// The basis functions that methods use; the prior's own where it says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Features>,
    /// How rewards are used, where functions are rows of real data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataSpec>,
}

fn default_tolerance() -> f64 {
    TOLERANCE
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
        self.validate_setting(shape)?;
        if self.setting != Setting::Data {
            for path in self.paths() {
                files.whole("prior", path)?;
            }
        }
        Ok(shape)
    }

    /// Checks what only some settings take.
    fn validate_setting(&self, shape: Shape) -> Result<(), Invalid> {
        let compact = self.setting == Setting::Compact;
        let kernel = match (compact, &self.kernel) {
            (true, KernelSpec::Cosine { .. } | KernelSpec::SquaredExponential { .. }) => true,
            (true, _) | (false, KernelSpec::Cosine { .. }) => false,
            (false, _) => true,
        };
        let refuse =
            |key: &str, reason: &'static str| Err(Invalid::Setting { key: key.to_owned(), reason });
        if !kernel && compact {
            return refuse(
                "prior.kernel",
                "has no basis functions; the compact setting takes \"cosine\" and \"squared-exponential\"",
            );
        }
        if !kernel {
            return refuse("prior.kernel", "is of the compact setting; use setting = \"compact\"");
        }
        if compact && !matches!(self.mean, MeanSpec::Zero {}) {
            return refuse("prior.mean", "is no combination of the basis functions; use \"zero\"");
        }
        match (compact, self.features) {
            (false, Some(_)) => {
                refuse("prior.features", "is of the compact setting; use setting = \"compact\"")
            }
            (true, Some(Features::Learnt { functions })) => {
                invalid::count("prior.features.functions", functions as usize, shape.points)
            }
            (true, _) if self.ground().basis().is_none() => refuse(
                "prior.features",
                "has to say how many functions are learnt: the squared-exponential kernel has no finite \
                 basis; use features = { kind = \"learnt\", functions = 100 }",
            ),
            (true, _) => {
                let needed = self.ground().basis().unwrap_or_default() as usize;
                invalid::at_least("prior.domain.points", shape.points, needed)
            }
            _ => Ok(()),
        }
    }

    /// Where the prior's functions live.
    pub fn ground(&self) -> Ground {
        match (self.setting, &self.kernel) {
            (Setting::Finite, _) => Ground::Finite,
            (Setting::Data, _) => Ground::Data,
            (Setting::Compact, KernelSpec::Cosine { functions, .. }) => {
                Ground::Compact { basis: Some(*functions) }
            }
            (Setting::Compact, _) => Ground::Compact { basis: None },
        }
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
            Setting::Data => "data",
        });
        self.domain.feed(files, digest);
        self.kernel.feed(files, digest);
        self.mean.feed(files, digest);
        digest.tag("tolerance").f64(self.tolerance);
        if let Some(DataSpec { sense, protocol }) = self.data {
            digest.tag("data").f64(sense.sign()).u64(protocol as u64);
        }
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
