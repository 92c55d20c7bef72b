//! A cell in the manifest: its size, and all that makes it what it is.

use serde::{Deserialize, Serialize};
use study::cell::{
    Cell, CellId, Estimator, Ground, Policy, PolicyConstants, Rival, RivalRule, Training,
};
use theory::Delta;

use crate::description::{CellDescription, Scalar, as_map};

/// A cell, its size and its parameters, so that a dataset can be analysed without the files that its
/// study names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellEntry {
    /// The cell: 16 hexadecimal digits.
    pub cell: String,
    /// Trials that ran.
    pub replicates: u64,
    /// Where each was recorded.
    pub checkpoints: Vec<u32>,
    /// Its prior, as an index into `priors.json`.
    pub prior: u32,
    /// Digest of the prior without its noise variance.
    pub shape: String,
    /// sigma^2.
    pub noise_variance: f64,
    /// "finite", "compact" or "data"; datasets of older versions are all finite.
    #[serde(default = "finite")]
    pub setting: String,
    /// K, the number of given basis functions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<u32>,
    /// "fixed" or "adaptive".
    pub design: String,
    /// The method.
    pub method: String,
    /// The acquisition function, where there is one.
    pub acquisition: Option<String>,
    /// The form of zeta_t's constants, where they matter.
    pub policy_constants: Option<String>,
    /// N, where functions are used for training.
    #[serde(rename = "N")]
    pub n: Option<u64>,
    /// How the estimators were drawn.
    pub estimator: Option<String>,
    /// The share of missing training entries, in millionths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<u32>,
    /// K of learnt features.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functions: Option<u32>,
    /// A constant exploration weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// The level that the policy is set for.
    pub delta: Option<f64>,
    /// PI's target is max f + gap.
    pub gap: Option<f64>,
    /// Dotted keys that are swept, and their values here.
    #[serde(with = "as_map")]
    pub swept: Vec<(String, Scalar)>,
}

impl CellEntry {
    /// Describes a cell.
    pub fn new(description: &CellDescription) -> Self {
        let Cell { shape, noise_variance, ground, policy } = description.cell;
        let training = policy.training();
        // As a map is written and read: by key.
        let mut swept = description.swept.clone();
        swept.sort_by(|a, b| a.0.cmp(&b.0));
        Self {
            cell: description.id.to_string(),
            replicates: description.replicates,
            checkpoints: description.checkpoints.clone(),
            prior: description.prior,
            shape: blake3::Hash::from_bytes(shape).to_hex().to_string(),
            noise_variance,
            setting: ground.name().to_owned(),
            basis: ground.basis(),
            design: policy.design().to_owned(),
            method: policy.method().to_owned(),
            acquisition: policy.acquisition().map(str::to_owned),
            policy_constants: policy.constants().map(|constants| constants.form().to_string()),
            n: training.map(|training| training.n),
            estimator: training.map(|training| training.estimator.name().to_owned()),
            missing: match training.map(|training| training.estimator) {
                Some(Estimator::Completed { missing }) => Some(missing),
                _ => None,
            },
            functions: training.and_then(|training| training.estimator.functions()),
            weight: policy.weight(),
            delta: policy.delta().map(Delta::get),
            gap: policy.gap(),
            swept,
        }
    }

    /// The cell, if these are the parameters of the cell that the entry names.
    pub fn parse(&self) -> Option<(CellId, Cell)> {
        let shape = *blake3::Hash::from_hex(&self.shape).ok()?.as_bytes();
        let cell = Cell {
            shape,
            noise_variance: self.noise_variance,
            ground: match self.setting.as_str() {
                "finite" => Ground::Finite,
                "compact" => Ground::Compact { basis: self.basis },
                "data" => Ground::Data,
                _ => return None,
            },
            policy: self.policy()?,
        };
        let id = cell.id();
        (id.to_string() == self.cell).then_some((id, cell))
    }

    fn policy(&self) -> Option<Policy> {
        let delta = || Delta::new(self.delta?).ok();
        let parts = (self.design.as_str(), self.method.as_str(), self.acquisition.as_deref());
        Some(match parts {
            ("fixed", "pem-bo", None) => Policy::Fixed(self.training()?),
            ("adaptive", "pem-bo", Some("gp-ucb")) => Policy::PemUcb {
                training: self.training()?,
                delta: delta()?,
                constants: self.constants()?,
            },
            ("adaptive", "pem-bo", Some("pi")) => {
                Policy::PemPi { training: self.training()?, gap: self.gap? }
            }
            ("adaptive", "known-prior", Some("gp-ucb")) => Policy::KnownUcb { delta: delta()? },
            ("adaptive", "known-prior", Some("pi")) => Policy::KnownPi { gap: self.gap? },
            ("adaptive", "random", None) => Policy::Random,
            ("adaptive", method, Some(acquisition)) => {
                let all = [Rival::Plain, Rival::TlsmBo, Rival::Box, Rival::Niw];
                let rival = all.into_iter().find(|rival| rival.method().name() == method)?;
                let rule = match (acquisition, self.weight) {
                    ("gp-ucb", Some(weight)) => RivalRule::Weight(weight),
                    ("gp-ucb", None) => {
                        RivalRule::Ucb { delta: delta()?, constants: self.constants()? }
                    }
                    ("pi", _) => RivalRule::Pi { gap: self.gap? },
                    _ => return None,
                };
                Policy::Rival { rival, training: self.training()?, rule }
            }
            _ => return None,
        })
    }

    fn training(&self) -> Option<Training> {
        let estimator = match self.estimator.as_deref()? {
            "wishart" => Estimator::Wishart,
            "dense" => Estimator::Dense,
            "simulated" => Estimator::Simulated,
            "rows" => Estimator::Rows,
            "completed" => Estimator::Completed { missing: self.missing? },
            "learnt" => Estimator::Learnt { functions: self.functions? },
            _ => return None,
        };
        Some(Training { n: self.n?, estimator })
    }

    fn constants(&self) -> Option<PolicyConstants> {
        let all = [PolicyConstants::Printed, PolicyConstants::Corrected];
        let name = self.policy_constants.as_deref()?;
        all.into_iter().find(|constants| constants.form().name() == name)
    }
}

fn finite() -> String {
    Ground::Finite.name().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(policy: Policy) -> CellEntry {
        let cell = Cell { shape: [7; 32], noise_variance: 0.01, ground: Ground::Finite, policy };
        CellEntry::new(&CellDescription {
            id: cell.id(),
            cell,
            prior: 3,
            swept: vec![("prior.noise_variance".into(), Scalar::Float(0.01))],
            replicates: 10,
            checkpoints: vec![1, 5],
        })
    }

    #[test]
    fn every_policy_survives_its_text() {
        let training = Training { n: 200, estimator: Estimator::Wishart };
        let delta = Delta::new(0.1).unwrap();
        let constants = PolicyConstants::Corrected;
        let policies = [
            Policy::Fixed(training),
            Policy::PemUcb { training, delta, constants },
            Policy::PemPi { training, gap: 0.25 },
            Policy::KnownUcb { delta },
            Policy::KnownPi { gap: 0.0 },
            Policy::Random,
            Policy::Rival {
                rival: Rival::Niw,
                training: Training { n: 50, estimator: Estimator::Completed { missing: 250_000 } },
                rule: RivalRule::Ucb { delta, constants },
            },
            Policy::Rival { rival: Rival::Box, training, rule: RivalRule::Weight(2.0) },
            Policy::Rival { rival: Rival::Plain, training, rule: RivalRule::Pi { gap: 0.5 } },
            Policy::PemPi {
                training: Training { n: 50, estimator: Estimator::Learnt { functions: 30 } },
                gap: 0.0,
            },
        ];
        for policy in policies {
            let text = serde_json::to_string(&entry(policy)).unwrap();
            let read: CellEntry = serde_json::from_str(&text).unwrap();
            assert_eq!(read, entry(policy));
            assert_eq!(read.parse().unwrap().1.policy, policy);
        }
    }

    #[test]
    fn an_entry_with_other_parameters_is_no_cell() {
        let mut entry = entry(Policy::Random);
        entry.noise_variance = 0.02;
        assert_eq!(entry.parse(), None);
    }
}
