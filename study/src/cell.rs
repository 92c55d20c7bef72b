//! A cell of a study: one setting that is replicated, and what its randomness depends on.

use std::fmt;

use theory::claims::{Barrier, Method};
use theory::{Delta, Form};

use crate::digest::Digest;
use crate::prior::{Files, PriorSpec};

/// How the training data, or estimators from them, come about. The first three have the same law.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Estimator {
    /// Lazily revealed; the cost does not grow with N.
    Wishart,
    /// The whole covariance matrix by Bartlett's decomposition.
    Dense,
    /// N rows of data, then their sample mean and covariance.
    Simulated,
    /// The same with entries missing at random, which nuclear-norm completion fills in.
    Completed {
        /// The share that is missing, in millionths.
        missing: u32,
    },
    /// Rows of a file.
    Rows,
    /// N rows of data, then cosine features fitted to them and the weights of each row (compact setting).
    Learnt {
        /// K.
        functions: u32,
    },
}

/// Millionths of 1.
pub const MILLION: u32 = 1_000_000;

impl Estimator {
    /// The name in study files and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wishart => "wishart",
            Self::Dense => "dense",
            Self::Simulated => "simulated",
            Self::Completed { .. } => "completed",
            Self::Rows => "rows",
            Self::Learnt { .. } => "learnt",
        }
    }

    /// The share of entries that is missing.
    pub fn missing(self) -> Option<f64> {
        match self {
            Self::Completed { missing } => Some(f64::from(missing) / f64::from(MILLION)),
            _ => None,
        }
    }

    /// K of learnt features.
    pub fn functions(self) -> Option<u32> {
        match self {
            Self::Learnt { functions } => Some(functions),
            _ => None,
        }
    }
}

/// The training data of meta-BO: N functions, and the route by which their estimators are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Training {
    /// N, the number of training functions.
    pub n: u64,
    /// The route.
    pub estimator: Estimator,
}

/// Which constants GP-UCB's zeta_t is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PolicyConstants {
    /// As the paper prints them.
    Printed,
    /// With the factor N restored.
    Corrected,
}

impl PolicyConstants {
    /// The form of the theory's constants.
    pub fn form(self) -> Form {
        match self {
            Self::Printed => Form::Printed,
            Self::Corrected => Form::Corrected,
        }
    }
}

/// What chooses the points, and what is known when it does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// Points drawn uniformly without replacement, independently of the estimators: Lemma 1's own
    /// hypothesis. The estimators are watched, not used.
    Fixed(Training),
    /// Meta-BO with GP-UCB.
    PemUcb {
        /// Training data.
        training: Training,
        /// The level that zeta_t is set for.
        delta: Delta,
        /// Constants of zeta_t.
        constants: PolicyConstants,
    },
    /// Meta-BO with PI.
    PemPi {
        /// Training data.
        training: Training,
        /// target = max f + gap.
        gap: f64,
    },
    /// GP-UCB with the true prior and zeta = sqrt(2 log(3/delta)): the limit N -> infinity.
    KnownUcb {
        /// The level that zeta is set for.
        delta: Delta,
    },
    /// PI with the true prior.
    KnownPi {
        /// target = max f + gap.
        gap: f64,
    },
    /// Points drawn uniformly without replacement; nothing is estimated.
    Random,
    /// A method that the paper's is compared with.
    Rival {
        /// Which.
        rival: Rival,
        /// Training data; those who use none are given the N of those who do, for zeta_t.
        training: Training,
        /// How it chooses.
        rule: RivalRule,
    },
}

/// The methods that the paper's is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rival {
    /// A squared-exponential kernel fitted to the run's own observations.
    Plain,
    /// The same, fitted to standardised training responses as well.
    TlsmBo,
    /// Plug-in estimates with a constant exploration weight.
    Box,
    /// Posterior means under a normal-inverse-Wishart prior.
    Niw,
}

impl Rival {
    /// The method's name for the theory.
    pub fn method(self) -> Method {
        match self {
            Self::Plain => Method::Plain,
            Self::TlsmBo => Method::TlsmBo,
            Self::Box => Method::Box,
            Self::Niw => Method::Niw,
        }
    }
}

/// How a rival chooses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RivalRule {
    /// GP-UCB with PEM-BO's zeta_t, as in the paper's experiments (appendix, "Experiments").
    Ucb {
        /// The level that zeta_t is set for.
        delta: Delta,
        /// Constants of zeta_t.
        constants: PolicyConstants,
    },
    /// GP-UCB with a constant weight.
    Weight(f64),
    /// PI.
    Pi {
        /// target = max f + gap.
        gap: f64,
    },
}

impl Policy {
    /// Whether the paper's own estimators are watched or used, so that claims about them can be tested.
    pub fn estimates(&self) -> bool {
        matches!(self, Self::Fixed(_) | Self::PemUcb { .. } | Self::PemPi { .. })
    }

    /// What is known of the prior, by the theory's name; `None` for a fixed design.
    pub fn known(&self) -> Option<Method> {
        match self {
            Self::Fixed(_) => None,
            Self::PemUcb { .. } | Self::PemPi { .. } => Some(Method::PemBo),
            Self::KnownUcb { .. } | Self::KnownPi { .. } => Some(Method::KnownPrior),
            Self::Random => Some(Method::Random),
            Self::Rival { rival, .. } => Some(rival.method()),
        }
    }

    /// The constant exploration weight.
    pub fn weight(&self) -> Option<f64> {
        match *self {
            Self::Rival { rule: RivalRule::Weight(weight), .. } => Some(weight),
            _ => None,
        }
    }

    /// The training data, where there are any.
    pub fn training(&self) -> Option<Training> {
        match *self {
            Self::Fixed(training)
            | Self::PemUcb { training, .. }
            | Self::PemPi { training, .. }
            | Self::Rival { training, .. } => Some(training),
            Self::KnownUcb { .. } | Self::KnownPi { .. } | Self::Random => None,
        }
    }

    /// The level, where the policy uses one.
    pub fn delta(&self) -> Option<Delta> {
        match *self {
            Self::PemUcb { delta, .. }
            | Self::KnownUcb { delta }
            | Self::Rival { rule: RivalRule::Ucb { delta, .. }, .. } => Some(delta),
            _ => None,
        }
    }

    /// PI's gap.
    pub fn gap(&self) -> Option<f64> {
        match *self {
            Self::PemPi { gap, .. }
            | Self::KnownPi { gap }
            | Self::Rival { rule: RivalRule::Pi { gap }, .. } => Some(gap),
            _ => None,
        }
    }

    /// The constants of zeta_t, where they matter.
    pub fn constants(&self) -> Option<PolicyConstants> {
        match *self {
            Self::PemUcb { constants, .. }
            | Self::Rival { rule: RivalRule::Ucb { constants, .. }, .. } => Some(constants),
            _ => None,
        }
    }

    /// `design` in records.
    pub fn design(&self) -> &'static str {
        if matches!(self, Self::Fixed(_)) { "fixed" } else { "adaptive" }
    }

    /// `method` in records.
    pub fn method(&self) -> &'static str {
        self.known().unwrap_or(Method::PemBo).name()
    }

    /// `acquisition` in records.
    pub fn acquisition(&self) -> Option<&'static str> {
        match self {
            Self::PemPi { .. }
            | Self::KnownPi { .. }
            | Self::Rival { rule: RivalRule::Pi { .. }, .. } => Some("pi"),
            Self::PemUcb { .. } | Self::KnownUcb { .. } | Self::Rival { .. } => Some("gp-ucb"),
            Self::Fixed(_) | Self::Random => None,
        }
    }

    fn feed(&self, digest: &mut Digest) {
        digest.tag("policy").text(self.design()).text(self.method());
        digest.text(self.acquisition().unwrap_or(""));
        if let Some(training) = self.training() {
            digest.tag("N").u64(training.n).text(training.estimator.name());
            match training.estimator {
                Estimator::Completed { missing: number }
                | Estimator::Learnt { functions: number } => _ = digest.u64(number.into()),
                Estimator::Wishart | Estimator::Dense | Estimator::Simulated | Estimator::Rows => {}
            }
        }
        if let Some(delta) = self.delta() {
            digest.tag("delta").f64(delta.get());
        }
        if let Some(gap) = self.gap() {
            digest.tag("gap").f64(gap);
        }
        if let Some(constants) = self.constants() {
            digest.tag("constants").text(constants.form().name());
        }
        if let Some(weight) = self.weight() {
            digest.tag("weight").f64(weight);
        }
    }
}

/// What a purpose's random draws depend on; cells that agree in it share the draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependence {
    /// f, the noise, designs, probes and random choices: the prior's shape alone.
    Function,
    /// The estimators: also the noise variance and N.
    Estimator,
}

/// Where a cell's functions live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ground {
    /// On the points of a finite domain.
    Finite,
    /// On a box, as combinations of basis functions.
    Compact {
        /// K, the number of the prior's basis functions, where they can be given to a method.
        basis: Option<u32>,
    },
    /// In the rows of a file.
    Data,
}

impl Ground {
    /// `setting` in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Finite => "finite",
            Self::Compact { .. } => "compact",
            Self::Data => "data",
        }
    }

    /// K of the compact setting.
    pub fn basis(self) -> Option<u32> {
        match self {
            Self::Compact { basis } => basis,
            Self::Finite | Self::Data => None,
        }
    }
}

/// One setting of a study.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Digest of the prior without its noise variance.
    pub shape: [u8; 32],
    /// sigma^2.
    pub noise_variance: f64,
    /// Where its functions live; the digest has it too.
    pub ground: Ground,
    /// What runs.
    pub policy: Policy,
}

/// BLAKE3 over a cell's parameters, shortened to 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CellId(pub u64);

impl fmt::Display for CellId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for CellId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Cell {
    /// A cell on a prior whose files are loaded.
    pub fn new(prior: &PriorSpec, files: &Files, policy: Policy) -> Self {
        Self {
            shape: prior.shape_digest(files),
            noise_variance: prior.noise_variance,
            ground: prior.ground(),
            policy,
        }
    }

    /// What puts the cell outside of the theory, if anything does.
    pub fn barrier(&self) -> Option<Barrier> {
        let route = self.policy.training().filter(|_| self.policy.estimates());
        match (self.ground, route.map(|training| training.estimator)) {
            (Ground::Data, _) => Some(Barrier::RealData),
            (_, Some(Estimator::Completed { .. })) => Some(Barrier::MissingEntries),
            (_, Some(Estimator::Learnt { .. })) => Some(Barrier::LearntFeatures),
            _ => None,
        }
    }

    /// The cell's address within its study.
    pub fn id(&self) -> CellId {
        let mut digest = Digest::default();
        digest.tag("cell v1").bytes(&self.shape).f64(self.noise_variance);
        self.policy.feed(&mut digest);
        let [a, b, c, d, e, f, g, h, ..] = digest.finish();
        CellId(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }

    /// What identifies the random draws of a purpose, beside the study's seed and the replicate.
    pub fn random_identity(&self, dependence: Dependence) -> [u8; 32] {
        match dependence {
            Dependence::Function => self.shape,
            Dependence::Estimator => {
                let n = self.policy.training().map_or(0, |training| training.n);
                let mut digest = Digest::default();
                digest.tag("estimator v1").bytes(&self.shape).f64(self.noise_variance).u64(n);
                digest.finish()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(policy: Policy) -> Cell {
        Cell { shape: [1; 32], noise_variance: 0.01, ground: Ground::Finite, policy }
    }

    fn ucb(n: u64, delta: f64) -> Policy {
        let training = Training { n, estimator: Estimator::Wishart };
        let delta = Delta::new(delta).unwrap();
        Policy::PemUcb { training, delta, constants: PolicyConstants::Printed }
    }

    #[test]
    fn every_parameter_is_part_of_the_id() {
        let pi = |gap| Policy::PemPi { training: ucb(100, 0.1).training().unwrap(), gap };
        let cells = [
            cell(ucb(100, 0.1)),
            cell(ucb(101, 0.1)),
            cell(ucb(100, 0.2)),
            cell(pi(0.0)),
            cell(pi(0.5)),
            cell(Policy::Fixed(ucb(100, 0.1).training().unwrap())),
            cell(Policy::Random),
            cell(Policy::KnownUcb { delta: Delta::new(0.1).unwrap() }),
            Cell { noise_variance: 0.02, ..cell(Policy::Random) },
            Cell { shape: [2; 32], ..cell(Policy::Random) },
        ];
        let mut ids: Vec<CellId> = cells.iter().map(Cell::id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), cells.len());
    }

    #[test]
    fn comparisons_are_paired() {
        let (a, b) = (cell(ucb(100, 0.1)), cell(ucb(100, 0.2)));
        assert_eq!(
            a.random_identity(Dependence::Estimator),
            b.random_identity(Dependence::Estimator)
        );
        let other_n = cell(ucb(200, 0.1));
        assert_eq!(
            a.random_identity(Dependence::Function),
            other_n.random_identity(Dependence::Function)
        );
        assert_ne!(
            a.random_identity(Dependence::Estimator),
            other_n.random_identity(Dependence::Estimator)
        );
    }

    #[test]
    fn the_noise_is_not_part_of_the_shape() {
        let spec = |noise: f64, lengthscale: f64| -> PriorSpec {
            serde_json::from_value(serde_json::json!({
                "setting": "finite",
                "domain": { "kind": "grid", "points": 9, "dimension": 1 },
                "kernel": { "kind": "matern12", "lengthscale": lengthscale },
                "mean": { "kind": "zero" },
                "noise_variance": noise,
            }))
            .unwrap()
        };
        let cell = |spec: &PriorSpec| Cell::new(spec, &Files::default(), Policy::Random);
        let (a, b, c) = (cell(&spec(0.1, 0.5)), cell(&spec(0.2, 0.5)), cell(&spec(0.1, 0.6)));
        assert_eq!(a.shape, b.shape);
        assert_ne!(a.id(), b.id());
        assert_ne!(a.shape, c.shape);
    }

    #[test]
    fn an_id_prints_as_sixteen_hexadecimal_digits() {
        assert_eq!(CellId(0xab).to_string(), "00000000000000ab");
    }
}
