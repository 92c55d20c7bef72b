//! What a dataset says about its cells and priors beside their records.

use serde::{Deserialize, Serialize};
use study::{Cell, CellId};

/// The value of a key that the study sweeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// A whole number.
    Integer(i64),
    /// A number.
    Float(f64),
    /// A name.
    Text(String),
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

/// A cell: what its rows have in common, and which rows there are.
#[derive(Clone, Debug, PartialEq)]
pub struct CellDescription {
    /// The cell's address.
    pub id: CellId,
    /// The cell.
    pub cell: Cell,
    /// The number of its prior.
    pub prior: u32,
    /// Dotted keys of the study file that are swept, and their values here.
    pub swept: Vec<(String, Scalar)>,
    /// Trials that ran.
    pub replicates: u64,
    /// The checkpoints at which each trial was recorded, ascending.
    pub checkpoints: Vec<u32>,
}

/// Bounds on the maximal information gain after t observations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rho {
    /// Observations.
    pub t: u32,
    /// Lower end.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
}

/// Whether the columns of real data look normal, as the theory assumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Normality {
    /// M.
    pub columns: u64,
    /// Columns that are not constant.
    pub varying: u64,
    /// Of these, how many a Jarque-Bera test rejects at level 1 %.
    pub rejected: u64,
}

/// A prior of the study: an entry of `priors.json`, and its points in `domain.parquet`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PriorSummary {
    /// The prior's number, from 0.
    pub index: u32,
    /// Dotted keys that are swept, and their values here.
    #[serde(with = "as_map")]
    pub swept: Vec<(String, Scalar)>,
    /// `[prior]` with the swept values in place.
    pub spec: serde_json::Value,
    /// The number of points.
    #[serde(rename = "M")]
    pub size: u64,
    /// The dimension of the points.
    pub d: u32,
    /// c = max k(x, x).
    pub c: f64,
    /// Rank of the kernel's factor.
    pub rank: u64,
    /// Largest variance that the factor leaves out.
    pub residual: f64,
    /// sigma^2.
    pub noise_variance: f64,
    /// w, the kernel's white part: k = F F^T + w I.
    pub white: f64,
    /// Information gain per checkpoint.
    pub rho: Vec<Rho>,
    /// How far real data are from normal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub normality: Option<Normality>,
    /// The points, one after the other: M rows of d coordinates.
    #[serde(skip)]
    pub points: Vec<f64>,
    /// mu at each point.
    #[serde(skip)]
    pub mean: Vec<f64>,
}

/// Pairs as a map, in their order.
pub(crate) mod as_map {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::Scalar;

    pub(crate) fn serialize<S: Serializer>(
        swept: &[(String, Scalar)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(swept.iter().map(|(key, value)| (key, value)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(String, Scalar)>, D::Error> {
        let map = BTreeMap::<String, Scalar>::deserialize(deserializer)?;
        Ok(map.into_iter().collect())
    }
}
