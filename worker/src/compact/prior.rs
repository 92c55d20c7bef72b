//! The prior of the compact setting: f = Phi(x)^T W on [0, 1]^d, W ~ N(0, diag).

use study::prior::{Files, Invalid, KernelSpec, PriorSpec};
use theory::dense::{Cholesky, Matrix};
use theory::{Factor, information};

use super::acquisition::{Acquisition, Belief, Rule};
use super::belief::Weights;
use super::domain::Domain;
use super::features::Cosines;
use super::maximise::{Effort, Search};
use super::spectrum;
use crate::prior::{ACCURACY_FLOOR, Points};
use crate::random::{Key, Purpose, Stream};
use crate::simd::Cpu;

/// The most features that a kernel may be split into.
const MOST_FEATURES: f64 = 4000.0;

/// Points among which information is gathered greedily.
const GREEDY: usize = 512;

/// The largest factor by which dependence on the others may inflate the variance of a weight: beyond it
/// fewer than six of its digits are right.
const MOST_INFLATION: f64 = 1e10;

/// What c is raised by over the largest variance that was found.
const MARGIN: f64 = 1e-6;

/// A prior on a box, and the points at which training functions are observed.
pub struct CompactPrior {
    /// x_bar.
    pub points: Points,
    /// Phi.
    pub(crate) cosines: Cosines,
    /// The variances of W.
    pub(crate) variances: Vec<f64>,
    /// sigma^2.
    pub noise_variance: f64,
    /// c >= max k(x, x) over the box.
    pub c: f64,
    /// For functions of Phi.
    pub(crate) search: Search,
    /// What the estimators need, where Phi may be given to them.
    pub(crate) given: Option<Given>,
    /// The kernel's own parameters (variance and lengthscale), where it is the squared-exponential.
    pub(crate) kernel: Option<(f64, f64)>,
}

/// What follows from the training design with given features.
pub(crate) struct Given {
    /// The root of Phi(x_bar) Phi(x_bar)^T.
    gram: Cholesky,
    /// u and a root of B = Sigma + sigma^2 (Phi(x_bar) Phi(x_bar)^T)^-1: the law of W_hat_i.
    pub(crate) estimate: Weights,
}

/// Why a compact prior cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// A value is out of range.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// A kernel that varies too fast.
    #[error(
        "prior.kernel.lengthscale asks for {needed:.0} features, more than {MOST_FEATURES}; use longer ones, or fewer dimensions"
    )]
    TooManyFeatures {
        /// How many.
        needed: f64,
    },
    /// Phi(x_bar) has not full row rank, which section 4.2 assumes.
    #[error(
        "the {functions} basis functions are dependent at the training points to working accuracy; use fewer functions, a shorter lengthscale or more points"
    )]
    Dependent {
        /// K.
        functions: usize,
    },
    /// Features that are no numbers.
    #[error("prior.kernel: {0}; use a longer lengthscale")]
    Features(String),
    /// The noise is too small beside c.
    #[error(
        "prior.noise_variance = {noise_variance:e} is too small beside the kernel's largest variance {c}; the least valid value is {least:e}, or exactly 0"
    )]
    NoiseTooSmall {
        /// sigma^2.
        noise_variance: f64,
        /// c.
        c: f64,
        /// What would be valid.
        least: f64,
    },
}

impl std::fmt::Debug for CompactPrior {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompactPrior")
            .field("basis", &self.basis())
            .field("c", &self.c)
            .finish_non_exhaustive()
    }
}

impl CompactPrior {
    /// Checks the specification and builds the prior.
    pub fn build(spec: &PriorSpec, files: &Files, cpu: Cpu) -> Result<Self, Error> {
        let shape = spec.validate(files)?;
        let points = Points::build(&spec.domain, shape, files)?;
        let (cosines, variances, kernel) = match &spec.kernel {
            KernelSpec::Cosine { functions, lengthscale, variance, seed } => {
                let lengths: Vec<f64> =
                    (0..shape.dimension).map(|j| lengthscale.along(j)).collect();
                let cosines = random_features(*functions as usize, &lengths, *seed)?;
                (cosines, vec![*variance; *functions as usize], None)
            }
            KernelSpec::SquaredExponential { lengthscale, variance } => {
                let lengths: Vec<f64> =
                    (0..shape.dimension).map(|j| lengthscale.along(j)).collect();
                let needed = spectrum::size(&lengths);
                if needed > MOST_FEATURES {
                    return Err(Error::TooManyFeatures { needed });
                }
                let split = spectrum::split(*variance, &lengths);
                let split = split.map_err(|error| Error::Features(error.to_string()))?;
                let common = lengths.iter().all(|l| *l == lengths[0]);
                (split.cosines, split.variances, common.then_some((*variance, lengths[0])))
            }
            _ => {
                let reason = "has no basis functions; use \"cosine\" or \"squared-exponential\"";
                let key = "prior.kernel".to_owned();
                return Err(Invalid::Setting { key, reason }.into());
            }
        };
        let domain = Domain::unit(shape.dimension);
        let effort = Effort::for_cosines(&cosines, &domain);
        let search = Search::for_cosines(cpu, &cosines, domain, effort);
        let c = largest_variance(cpu, &cosines, &variances, &search);
        let noise_variance = spec.noise_variance;
        let least = ACCURACY_FLOOR * c * (1.0 + 4.0 * f64::EPSILON);
        if noise_variance > 0.0 && noise_variance < ACCURACY_FLOOR * c {
            return Err(Error::NoiseTooSmall { noise_variance, c, least });
        }
        let given = match spec.ground().basis() {
            Some(_) => Some(Given::new(cpu, &cosines, &variances, &points, noise_variance)?),
            None => None,
        };
        Ok(Self { points, cosines, variances, noise_variance, c, search, given, kernel })
    }

    /// K, of the prior itself.
    pub fn basis(&self) -> usize {
        self.cosines.count()
    }

    /// d.
    pub(crate) fn dimension(&self) -> usize {
        self.points.dimension()
    }

    /// Phi(x).
    pub(crate) fn phi(&self, cpu: Cpu, x: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.cosines.count()];
        self.cosines.phi(cpu, x, &mut out);
        out
    }

    /// rho_t for t = 1 ..= `horizon`, lower and upper end; empty without noise.
    ///
    /// From below by greedy choice among points that fill the box; from above by
    /// (K/2) log(1 + t c/(K sigma^2)), the largest log det of a K x K matrix I + A/sigma^2 with
    /// tr A <= t c, and by (t/2) log(1 + c/sigma^2).
    pub(crate) fn information(&self, cpu: Cpu, horizon: u32) -> Vec<(f64, f64)> {
        let s2 = self.noise_variance;
        if s2 == 0.0 {
            return Vec::new();
        }
        let k = self.cosines.count();
        let domain = Domain::unit(self.dimension());
        let places = domain.fill(GREEDY.max(horizon as usize));
        let rows: Vec<Vec<f64>> =
            places.chunks_exact(self.dimension()).map(|x| self.phi(cpu, x)).collect();
        let columns: Vec<Vec<f64>> = (0..k)
            .map(|j| rows.iter().map(|row| row[j] * self.variances[j].sqrt()).collect())
            .collect();
        let factor = Factor::from_columns(rows.len(), &columns);
        let greedy = information::bracket(&factor, 0.0, s2, horizon as usize);
        let upper = |t: u32| {
            let (t, k) = (f64::from(t), k as f64);
            let by_trace = 0.5 * k * libm::log1p(t * self.c / (k * s2));
            let by_variance = 0.5 * t * libm::log1p(self.c / s2);
            if by_trace < by_variance { by_trace } else { by_variance }
        };
        let lower = |t: u32| greedy.as_ref()?.at(t as usize).map(|bounds| bounds.lo);
        (1..=horizon).filter_map(|t| Some((lower(t)?, upper(t)))).collect()
    }
}

impl Given {
    fn new(
        cpu: Cpu,
        cosines: &Cosines,
        variances: &[f64],
        points: &Points,
        noise_variance: f64,
    ) -> Result<Self, Error> {
        let k = cosines.count();
        let dependent = |_| Error::Dependent { functions: k };
        let mut gram = vec![0.0; k * k];
        let mut phi = vec![0.0; k];
        for x in points.iter() {
            cosines.phi(cpu, x, &mut phi);
            for (row, a) in gram.chunks_exact_mut(k).zip(&phi) {
                row.iter_mut().zip(&phi).for_each(|(entry, b)| *entry += a * b);
            }
        }
        let sizes: Vec<f64> = (0..k).map(|i| gram[i * k + i]).collect();
        let gram = Matrix::from_fn(k, k, |i, j| gram[i * k + j]);
        let gram = Cholesky::new(&gram).map_err(dependent)?;
        let inverse = gram.inverse();
        let covariance: Vec<f64> = (0..k * k)
            .map(|at| {
                let (i, j) = (at / k, at % k);
                let own = if i == j { variances[i] } else { 0.0 };
                own + noise_variance * inverse.at(i, j)
            })
            .collect();
        let estimate = Weights::with_covariance(vec![0.0; k], &covariance);
        let usable = (0..k).all(|i| {
            let inflation = sizes[i] * inverse.at(i, i);
            estimate.factor[i * k + i] > 0.0 && inflation < MOST_INFLATION
        });
        if usable { Ok(Self { gram, estimate }) } else { Err(Error::Dependent { functions: k }) }
    }

    /// sigma_bar^2 = sigma^2 Phi^T (Phi(x_bar) Phi(x_bar)^T)^-1 Phi (paper, section 4.2).
    pub(crate) fn sigma_bar2(&self, noise_variance: f64, phi: &[f64]) -> f64 {
        noise_variance * theory::dense::dot(phi, &self.gram.solve(phi))
    }
}

/// Random Fourier features of the squared-exponential kernel: normal frequencies over the lengthscales,
/// uniform phases.
fn random_features(functions: usize, lengths: &[f64], seed: u64) -> Result<Cosines, Error> {
    let mut stream = Stream::new(Key::new(seed, &[0; 32], 0, Purpose::Design));
    let (mut frequencies, mut phases) = (Vec::new(), Vec::new());
    for _ in 0..functions {
        frequencies.extend(lengths.iter().map(|l| stream.normal() / l));
        phases.push(std::f64::consts::TAU * stream.uniform());
    }
    Cosines::new(&frequencies, &phases, lengths.len())
        .map_err(|error| Error::Features(error.to_string()))
}

/// The largest prior variance on the box, found by search, with a margin.
fn largest_variance(cpu: Cpu, cosines: &Cosines, variances: &[f64], search: &Search) -> f64 {
    let prior = Weights::independent(variances);
    let belief = Belief::new(&prior.mean, &prior.factor);
    let objective = Acquisition::new(cpu, cosines, &belief, Rule::Ucb { zeta: 1.0 });
    let deviation = search.maximise(&objective, &[]).value;
    deviation * deviation * (1.0 + MARGIN)
}

#[cfg(test)]
mod tests;
