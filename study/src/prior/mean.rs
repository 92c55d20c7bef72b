//! The mean function mu.

use super::{Files, Invalid, Sense, Shape, data, invalid};
use crate::Digest;
use serde::{Deserialize, Serialize};

/// mu(x) for x = (x_1, .., x_d).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum MeanSpec {
    /// 0.
    Zero {},
    /// `value`.
    Constant {
        /// The mean at every point.
        value: f64,
    },
    /// `intercept` + sum_j `weights`_j x_j.
    Linear {
        /// One per dimension.
        weights: Vec<f64>,
        /// The mean at the origin.
        #[serde(default)]
        intercept: f64,
    },
    /// `amplitude` sin(2 pi `frequency` sum_j x_j + `phase`).
    Sine {
        /// The largest value.
        amplitude: f64,
        /// Periods per unit of sum_j x_j.
        frequency: f64,
        /// In radians.
        #[serde(default)]
        phase: f64,
    },
    /// A file of one value per row, in the order of the points.
    File {
        /// The file, relative to the study file.
        path: String,
    },
    /// The means of the columns of a file of rewards.
    Data {
        /// The file, relative to the study file.
        path: String,
        /// Which rewards are good.
        #[serde(default)]
        sense: Sense,
    },
}

impl MeanSpec {
    pub(super) fn validate(&self, key: &str, shape: Shape, files: &Files) -> Result<(), Invalid> {
        let number = |name: &str, value| invalid::finite(&format!("{key}.{name}"), value);
        match self {
            Self::Zero {} => Ok(()),
            Self::Constant { value } => number("value", *value),
            Self::Linear { weights, intercept } => {
                invalid::entries(&format!("{key}.weights"), weights.len(), shape.dimension)?;
                for (j, &weight) in weights.iter().enumerate() {
                    number(&format!("weights[{j}]"), weight)?;
                }
                number("intercept", *intercept)
            }
            Self::Sine { amplitude, frequency, phase } => {
                number("amplitude", *amplitude)?;
                number("frequency", *frequency)?;
                number("phase", *phase)
            }
            Self::File { path } => {
                let needed = format!("{} rows (one per point) of 1 column", shape.points);
                files.shaped(&format!("{key}.path"), path, needed, |size| {
                    size.rows == shape.points && size.columns == 1
                })
            }
            Self::Data { path, .. } => data::rewards(key, path, shape.points, files),
        }
    }

    pub(super) fn paths<'a>(&'a self, paths: &mut Vec<&'a str>) {
        if let Self::File { path } | Self::Data { path, .. } = self {
            paths.push(path);
        }
    }

    /// Feeds all that the mean depends on.
    ///
    /// # Panics
    /// Where the file has not been loaded.
    pub fn feed(&self, files: &Files, digest: &mut Digest) {
        digest.tag("mean");
        match self {
            Self::Zero {} => digest.tag("zero"),
            Self::Constant { value } => digest.tag("constant").f64(*value),
            Self::Linear { weights, intercept } => {
                digest.tag("linear").f64(*intercept).u64(weights.len() as u64);
                weights.iter().fold(digest, |digest, &weight| digest.f64(weight))
            }
            Self::Sine { amplitude, frequency, phase } => {
                digest.tag("sine").f64(*amplitude).f64(*frequency).f64(*phase)
            }
            Self::File { path } => digest.tag("file").bytes(files.digest(path)),
            Self::Data { path, sense } => {
                digest.tag("data").bytes(files.digest(path)).f64(sense.sign())
            }
        };
    }
}
