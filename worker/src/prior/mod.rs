//! A prior ready for trials: k = F F^T + w I on the points of a domain, its mean and its noise.
//!
//! The study's prior **is** F F^T + w I: truth, estimators and information gain all use the same F,
//! so that nothing is an approximation afterwards. What the factorisation left out is reported as
//! `residual`.

mod cholesky;
mod domain;
mod kernel;
mod mean;
mod memory;
mod smooth;
mod sobol;

use cholesky::Covariance;
use kernel::Kernel;
use smooth::{Node, Smooth};
use study::prior::{Files, Invalid, PriorSpec, Setting, Shape, Table};
use theory::Factor;

pub use cholesky::NotPositiveSemidefinite;
pub use domain::Points;
pub use kernel::KernelError;
pub use memory::{MemoryLimit, OutOfMemory};

/// The least s^2/c that keeps k_hat accurate, s^2 = w + sigma^2.
///
/// k_hat at a point close to evaluated ones is what is left of c after subtractions, so it loses
/// relative digits like 1e-16 c/s^2 times a factor (measured: 4e-10 at s^2/c = 1e-6). At this floor
/// some seven digits are left. With s^2 = 0 a trial runs as long as the true predictive variances
/// that it divides by stay above the floor, and is a failed record from there on; errors compound
/// over its pivots, and four digits are left in the worst case seen.
pub const ACCURACY_FLOOR: f64 = 1e-8;

/// A Gaussian process on M points, observed with noise.
#[derive(Clone, Debug, PartialEq)]
pub struct Prior {
    /// The domain.
    pub points: Points,
    /// mu at every point.
    pub mean: Vec<f64>,
    /// F.
    pub factor: Factor,
    /// w.
    pub white: f64,
    /// sigma^2.
    pub noise_variance: f64,
    /// The largest prior variance, max_i |F_i|^2 + w.
    pub c: f64,
    /// The largest variance that F leaves out of the kernel, at any point (not relative to c).
    pub residual: f64,
}

/// Why a prior cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// A value is out of range, or a file has another shape.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// A specification of another setting.
    #[error("setting = \"{0}\" has no prior on the points of a finite domain")]
    OtherSetting(&'static str),
    /// The kernel has no form smooth part + w I.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The kernel is no covariance.
    #[error(transparent)]
    NotPositiveSemidefinite(#[from] NotPositiveSemidefinite),
    /// The prior does not fit.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// A variance or a mean overflows.
    #[error("{key} gives {value} at point {point}; use smaller numbers, so that it is finite")]
    NotFinite {
        /// The kernel or the mean.
        key: &'static str,
        /// Counted from 0.
        point: usize,
        /// The variance or the mean.
        value: f64,
    },
    /// A number so large or small that squares of it would overflow, or that others would vanish in it.
    #[error("{key} gives {value:e}, which is out of proportion; use {valid}")]
    OutOfProportion {
        /// The kernel, the noise or the mean.
        key: &'static str,
        /// The value.
        value: f64,
        /// What would be valid.
        valid: String,
    },
    /// f would be its mean.
    #[error("prior.kernel has variance 0 at every point; give it a positive variance")]
    NoVariance,
    /// The noise is below [`ACCURACY_FLOOR`].
    #[error(
        "prior.noise_variance = {noise_variance:e} is too small for the estimators' accuracy beside \
         the kernel's largest variance {c} and white part {white}; the least valid value is \
         {least:e}, and without a white part also exactly 0"
    )]
    NoiseTooSmall {
        /// sigma^2.
        noise_variance: f64,
        /// w.
        white: f64,
        /// The largest prior variance.
        c: f64,
        /// The least sigma^2 > 0 that is valid with this kernel.
        least: f64,
    },
}

impl From<cholesky::Error> for Error {
    fn from(error: cholesky::Error) -> Self {
        match error {
            cholesky::Error::NotPositiveSemidefinite(error) => error.into(),
            cholesky::Error::OutOfMemory(error) => error.into(),
        }
    }
}

impl Prior {
    /// Checks the specification and builds the prior within the memory limit.
    pub fn build(spec: &PriorSpec, files: &Files, limit: MemoryLimit) -> Result<Self, Error> {
        if spec.setting != Setting::Finite {
            return Err(Error::OtherSetting(spec.ground().name()));
        }
        let shape = spec.validate(files)?;
        limit.admit(shape, 0)?;
        let points = Points::build(&spec.domain, shape, files)?;
        let mean = mean::values(&spec.mean, &points, files)?;
        finite("prior.mean", &mean)?;
        let kernel = Kernel::new(&spec.kernel, &points, files, spec.tolerance)?;
        let white = kernel.white;
        let (columns, residual) = match &kernel.smooth {
            None => (vec![], 0.0),
            Some(smooth) => columns(smooth, white, spec.tolerance, shape, limit)?,
        };
        let factor = Factor::from_columns(shape.points, &columns);
        let c = largest((0..shape.points).map(|i| factor.squared_norm(i))) + white;
        if c == 0.0 {
            return Err(Error::NoVariance);
        }
        let noise_variance = spec.noise_variance;
        proportionate(c, noise_variance, &mean)?;
        let s2 = white + noise_variance;
        if s2 > 0.0 && s2 < ACCURACY_FLOOR * c {
            // Rounded up, so that the value advised is a value taken.
            let least = (ACCURACY_FLOOR * c - white) * (1.0 + 4.0 * f64::EPSILON);
            return Err(Error::NoiseTooSmall { noise_variance, white, c, least });
        }
        Ok(Self { points, mean, factor, white, noise_variance, c, residual })
    }

    /// A prior with zero mean and a given factor, on the points 0, 1, 2, ..
    pub fn from_factor(factor: Factor, white: f64, noise_variance: f64) -> Self {
        let c = largest((0..factor.rows()).map(|i| factor.squared_norm(i))) + white;
        let mean = vec![0.0; factor.rows()];
        let points = Points::numbered(factor.rows());
        Self { points, mean, factor, white, noise_variance, c, residual: 0.0 }
    }

    /// M.
    pub fn size(&self) -> usize {
        self.mean.len()
    }

    /// r.
    pub fn rank(&self) -> usize {
        self.factor.rank()
    }

    /// s^2 = w + sigma^2: what an observation adds to F F^T on the diagonal.
    pub fn total_noise(&self) -> f64 {
        self.white + self.noise_variance
    }

    /// The variance of an observation at a point before any other: |F_i|^2 + s^2.
    pub fn observed_variance(&self, point: usize) -> f64 {
        self.factor.squared_norm(point) + self.total_noise()
    }
}

/// The columns of F, and the largest variance that they leave out. A factor from a file is F as it
/// stands.
fn columns(
    smooth: &Smooth,
    white: f64,
    tolerance: f64,
    shape: Shape,
    limit: MemoryLimit,
) -> Result<(Vec<Vec<f64>>, f64), Error> {
    let diagonal = smooth.diagonal();
    finite("prior.kernel", &diagonal)?;
    if let Node::Factor(table) = smooth.node {
        limit.admit(shape, table.columns())?;
        return Ok((transposed(table), 0.0));
    }
    let c = largest(diagonal.into_iter().map(f64::abs)) + white;
    finite("prior.kernel", &[c])?;
    let admit = |rank| limit.admit(shape, rank);
    let found = cholesky::factorise(smooth, c, tolerance, admit)?;
    if smooth.node.has_matrix() {
        found.check_covariances(smooth)?;
    }
    let residual = found.residual();
    Ok((found.into_columns(), residual))
}

/// Variances of a scale that can be squared, noise that is not lost beside c, means that leave digits
/// to f.
fn proportionate(c: f64, noise_variance: f64, mean: &[f64]) -> Result<(), Error> {
    let refuse = |key, value, valid| Err(Error::OutOfProportion { key, value, valid });
    let (least, most) = (1e-100, 1e100);
    if !(least..=most).contains(&c) {
        let valid = format!("kernel variances between {least:e} and {most:e}");
        return refuse("prior.kernel", c, valid);
    }
    if noise_variance > 0.0 && !(1e-30 * c..=most).contains(&noise_variance) {
        let valid = format!("0, or a value between {:e} and {most:e}", 1e-30 * c);
        return refuse("prior.noise_variance", noise_variance, valid);
    }
    let reach = 1e6 * (c + noise_variance).sqrt();
    match mean.iter().find(|mean| mean.abs() > reach) {
        Some(&value) => {
            refuse("prior.mean", value, format!("means between {:e} and {reach:e}", -reach))
        }
        None => Ok(()),
    }
}

fn finite(key: &'static str, values: &[f64]) -> Result<(), Error> {
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(point) => Err(Error::NotFinite { key, point, value: values[point] }),
    }
}

fn transposed(table: &Table) -> Vec<Vec<f64>> {
    let column = |k| (0..table.rows()).map(|i| table.row(i)[k]).collect();
    (0..table.columns()).map(column).collect()
}

fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |largest, value| if value > largest { value } else { largest })
}

#[cfg(test)]
mod tests;
