//! The kernel k.

use super::{Files, Invalid, Shape, data, invalid};
use crate::Digest;
use serde::{Deserialize, Serialize};

/// How fast a kernel falls off: the same in every dimension, or one number for each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Lengthscale {
    /// One for all dimensions.
    Common(f64),
    /// One per dimension.
    Each(Vec<f64>),
}

/// k(x, y) (Rasmussen and Williams 2006, chapter 4), v = `variance`, l = `lengthscale`,
/// rho^2 = sum_j ((x_j - y_j)/l_j)^2.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[expect(missing_docs, reason = "each field is the letter of its variant's formula")]
pub enum KernelSpec {
    /// v exp(-rho^2/2).
    SquaredExponential {
        lengthscale: Lengthscale,
        #[serde(default = "one")]
        variance: f64,
    },
    /// v exp(-rho).
    Matern12 {
        lengthscale: Lengthscale,
        #[serde(default = "one")]
        variance: f64,
    },
    /// v (1 + sqrt(3) rho) exp(-sqrt(3) rho).
    Matern32 {
        lengthscale: Lengthscale,
        #[serde(default = "one")]
        variance: f64,
    },
    /// v (1 + sqrt(5) rho + 5 rho^2/3) exp(-sqrt(5) rho).
    Matern52 {
        lengthscale: Lengthscale,
        #[serde(default = "one")]
        variance: f64,
    },
    /// v (1 + rho^2/(2 alpha))^-alpha.
    RationalQuadratic {
        lengthscale: Lengthscale,
        alpha: f64,
        #[serde(default = "one")]
        variance: f64,
    },
    /// v exp(-2 sum_j sin^2(pi (x_j - y_j)/period)/l_j^2).
    Periodic {
        lengthscale: Lengthscale,
        period: f64,
        #[serde(default = "one")]
        variance: f64,
    },
    /// offset + v sum_j x_j y_j; the offset is the variance of a constant.
    Linear {
        #[serde(default = "one")]
        variance: f64,
        #[serde(default)]
        offset: f64,
    },
    /// v where x and y are the same point of the domain (the same index), 0 elsewhere.
    White {
        #[serde(default = "one")]
        variance: f64,
    },
    /// The sum of kernels.
    Sum { terms: Vec<KernelSpec> },
    /// The product of kernels.
    Product { factors: Vec<KernelSpec> },
    /// A file of M rows and M columns: k itself.
    Matrix { path: String },
    /// A file of M rows and any number of columns: F, with k = F F^T.
    Factor { path: String },
    /// A file of rewards, N rows of M columns: k is their sample covariance, F its centred rows.
    Data { path: String },
    /// v (2/K) sum_k cos(w_k . x + b_k) cos(w_k . y + b_k), K = `functions`: random cosine features of
    /// the squared-exponential kernel, drawn by `seed`. Compact setting only.
    Cosine {
        functions: u32,
        lengthscale: Lengthscale,
        #[serde(default = "one")]
        variance: f64,
        #[serde(default)]
        seed: u64,
    },
}

/// The most basis functions: their covariance matrix is held in full.
const MOST_FUNCTIONS: usize = 1000;

fn one() -> f64 {
    1.0
}

impl Lengthscale {
    /// l_j of coordinate j; the list must have been checked against the dimension.
    pub fn along(&self, j: usize) -> f64 {
        match self {
            Self::Common(value) => *value,
            Self::Each(values) => values[j],
        }
    }

    fn validate(&self, key: &str, dimension: usize) -> Result<(), Invalid> {
        match self {
            Self::Common(value) => invalid::positive(key, *value),
            Self::Each(values) => {
                invalid::entries(key, values.len(), dimension)?;
                let mut each = values.iter().enumerate();
                each.try_for_each(|(j, &value)| invalid::positive(&format!("{key}[{j}]"), value))
            }
        }
    }

    fn feed(&self, digest: &mut Digest) {
        match self {
            Self::Common(value) => _ = digest.tag("common").f64(*value),
            Self::Each(values) => {
                digest.tag("each").u64(values.len() as u64);
                values.iter().fold(digest, |digest, &value| digest.f64(value));
            }
        }
    }
}

impl KernelSpec {
    /// The name in study files.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SquaredExponential { .. } => "squared-exponential",
            Self::Matern12 { .. } => "matern12",
            Self::Matern32 { .. } => "matern32",
            Self::Matern52 { .. } => "matern52",
            Self::RationalQuadratic { .. } => "rational-quadratic",
            Self::Periodic { .. } => "periodic",
            Self::Linear { .. } => "linear",
            Self::White { .. } => "white",
            Self::Sum { .. } => "sum",
            Self::Product { .. } => "product",
            Self::Matrix { .. } => "matrix",
            Self::Factor { .. } => "factor",
            Self::Data { .. } => "data",
            Self::Cosine { .. } => "cosine",
        }
    }

    pub(super) fn validate(&self, key: &str, shape: Shape, files: &Files) -> Result<(), Invalid> {
        let name = |name: &str| format!("{key}.{name}");
        if let Some(lengthscale) = self.lengthscale() {
            lengthscale.validate(&name("lengthscale"), shape.dimension)?;
        }
        match self {
            Self::SquaredExponential { variance, .. }
            | Self::Matern12 { variance, .. }
            | Self::Matern32 { variance, .. }
            | Self::Matern52 { variance, .. }
            | Self::White { variance } => invalid::non_negative(&name("variance"), *variance),
            Self::RationalQuadratic { variance, alpha, .. } => {
                invalid::positive(&name("alpha"), *alpha)?;
                invalid::non_negative(&name("variance"), *variance)
            }
            Self::Periodic { variance, period, .. } => {
                invalid::positive(&name("period"), *period)?;
                invalid::non_negative(&name("variance"), *variance)
            }
            Self::Linear { variance, offset } => {
                invalid::non_negative(&name("offset"), *offset)?;
                invalid::non_negative(&name("variance"), *variance)
            }
            Self::Sum { terms } => validate_all(terms, &name("terms"), shape, files),
            Self::Product { factors } => validate_all(factors, &name("factors"), shape, files),
            Self::Matrix { path } => {
                let points = shape.points;
                let needed = format!("{points} rows of {points} columns (one per point)");
                files.shaped(&name("path"), path, needed, |size| {
                    (size.rows, size.columns) == (points, points)
                })
            }
            Self::Factor { path } => {
                let needed = format!("{} rows (one per point)", shape.points);
                files.shaped(&name("path"), path, needed, |size| size.rows == shape.points)
            }
            Self::Data { path } => data::rewards(key, path, shape.points, files),
            Self::Cosine { functions, variance, .. } => {
                invalid::count(&name("functions"), *functions as usize, MOST_FUNCTIONS)?;
                invalid::positive(&name("variance"), *variance)
            }
        }
    }

    pub(super) fn paths<'a>(&'a self, paths: &mut Vec<&'a str>) {
        match self {
            Self::Matrix { path } | Self::Factor { path } | Self::Data { path } => paths.push(path),
            _ => self.parts().iter().for_each(|part| part.paths(paths)),
        }
    }

    /// Feeds all that the kernel depends on.
    ///
    /// # Panics
    /// Where a file has not been loaded.
    pub fn feed(&self, files: &Files, digest: &mut Digest) {
        digest.tag("kernel").tag(self.name());
        if let Some(lengthscale) = self.lengthscale() {
            lengthscale.feed(digest);
        }
        match self {
            Self::SquaredExponential { variance, .. }
            | Self::Matern12 { variance, .. }
            | Self::Matern32 { variance, .. }
            | Self::Matern52 { variance, .. }
            | Self::White { variance } => _ = digest.f64(*variance),
            Self::RationalQuadratic { variance, alpha: other, .. }
            | Self::Periodic { variance, period: other, .. }
            | Self::Linear { variance, offset: other } => _ = digest.f64(*variance).f64(*other),
            Self::Matrix { path } | Self::Factor { path } | Self::Data { path } => {
                digest.bytes(files.digest(path));
            }
            Self::Cosine { functions, variance, seed, .. } => {
                digest.u64((*functions).into()).f64(*variance).u64(*seed);
            }
            Self::Sum { .. } | Self::Product { .. } => {
                digest.u64(self.parts().len() as u64);
                self.parts().iter().for_each(|part| part.feed(files, digest));
            }
        }
    }

    /// The terms of a sum, the factors of a product; none otherwise.
    fn parts(&self) -> &[Self] {
        match self {
            Self::Sum { terms: parts } | Self::Product { factors: parts } => parts,
            _ => &[],
        }
    }

    fn lengthscale(&self) -> Option<&Lengthscale> {
        match self {
            Self::SquaredExponential { lengthscale, .. }
            | Self::Matern12 { lengthscale, .. }
            | Self::Matern32 { lengthscale, .. }
            | Self::Matern52 { lengthscale, .. }
            | Self::RationalQuadratic { lengthscale, .. }
            | Self::Periodic { lengthscale, .. }
            | Self::Cosine { lengthscale, .. } => Some(lengthscale),
            _ => None,
        }
    }
}

fn validate_all(
    parts: &[KernelSpec],
    key: &str,
    shape: Shape,
    files: &Files,
) -> Result<(), Invalid> {
    if parts.is_empty() {
        return Err(Invalid::Empty { key: key.to_owned() });
    }
    let mut each = parts.iter().enumerate();
    each.try_for_each(|(i, part)| part.validate(&format!("{key}[{i}]"), shape, files))
}
