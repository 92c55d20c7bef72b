//! A Gaussian belief about the weights of f, W ~ N(m, V V^T), conditioned on observations of f.
//!
//! With g = V^T Phi(x) and d = |g|^2 + s, s the variance of the noise, an observation y at x gives
//! m + V g (y - Phi^T m)/d and V (I - g g^T/d) V^T, whose root is V (I - a g g^T) with
//! a = (1 - sqrt(s/d))/|g|^2. The same serves the truth (s = sigma^2), the estimators, which condition
//! without noise (paper, section 4.2), and what they expect (`theory::lemma3`).

use theory::dense::dot;

/// m and V.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Weights {
    pub(crate) mean: Vec<f64>,
    /// K x r, row by row.
    pub(crate) factor: Vec<f64>,
}

/// Mean and variance of f at a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moments {
    pub(crate) mean: f64,
    pub(crate) variance: f64,
}

impl Weights {
    /// Independent weights of these variances.
    pub(crate) fn independent(variances: &[f64]) -> Self {
        let size = variances.len();
        let mut factor = vec![0.0; size * size];
        for (k, variance) in variances.iter().enumerate() {
            factor[k * size + k] = variance.sqrt();
        }
        Self { mean: vec![0.0; size], factor }
    }

    /// With a covariance matrix that may be singular: rows without variance left are determined by
    /// those before them.
    pub(crate) fn with_covariance(mean: Vec<f64>, covariance: &[f64]) -> Self {
        let size = mean.len();
        let mut factor = vec![0.0; size * size];
        for i in 0..size {
            for j in 0..=i {
                let done = dot(&factor[i * size..i * size + j], &factor[j * size..j * size + j]);
                let left = covariance[i * size + j] - done;
                let pivot = factor[j * size + j];
                factor[i * size + j] = match i == j {
                    true if left > SINGULAR * covariance[i * size + i] => left.sqrt(),
                    false if pivot > 0.0 => left / pivot,
                    _ => 0.0,
                };
            }
        }
        Self { mean, factor }
    }

    fn rank(&self) -> usize {
        self.factor.len() / self.mean.len()
    }

    /// V^T phi.
    fn loadings(&self, phi: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.rank()];
        for (row, phi) in self.factor.chunks_exact(out.len()).zip(phi) {
            out.iter_mut().zip(row).for_each(|(out, v)| *out += v * phi);
        }
        out
    }

    /// At features phi.
    pub(crate) fn at(&self, phi: &[f64]) -> Moments {
        let g = self.loadings(phi);
        Moments { mean: dot(phi, &self.mean), variance: dot(&g, &g) }
    }

    /// Takes in y at features phi, with noise of variance `noise`; `false` where the variance at phi is
    /// at most `floor` and nothing is changed.
    pub(crate) fn condition(&mut self, phi: &[f64], y: f64, noise: f64, floor: f64) -> bool {
        let g = self.loadings(phi);
        let explained = dot(&g, &g);
        let total = explained + noise;
        if total.is_nan() || total <= floor || explained <= 0.0 {
            return total > floor;
        }
        let gain = (y - dot(phi, &self.mean)) / total;
        let shrink = (1.0 - (noise / total).sqrt()) / explained;
        for (row, mean) in self.factor.chunks_exact_mut(g.len()).zip(&mut self.mean) {
            let along = dot(row, &g);
            *mean += along * gain;
            row.iter_mut().zip(&g).for_each(|(v, g)| *v -= shrink * along * g);
        }
        true
    }
}

/// A pivot below this fraction of its diagonal entry is rounding error.
const SINGULAR: f64 = 1e-12;

#[cfg(test)]
mod tests {
    use super::*;
    use theory::dense::Matrix;
    use theory::lemma3::CompactPrior;

    /// The theory's dense formulas are an independent route to the same moments.
    #[test]
    fn conditioning_agrees_with_dense_algebra() {
        let size = 5;
        let entry = |i: usize, j: usize| libm::sin((i * i + 3 * j + 1) as f64);
        let root = Matrix::from_fn(size, size, entry);
        let covariance = root.times(&root.transpose());
        let flat: Vec<f64> =
            (0..size * size).map(|at| covariance.at(at / size, at % size)).collect();
        let mean: Vec<f64> = (0..size).map(|i| 0.3 * i as f64 - 0.5).collect();
        let gram = Matrix::from_fn(size, size, |i, j| if i == j { 2.0 + i as f64 } else { 0.4 });
        let prior = CompactPrior { mean: mean.clone(), covariance, gram, noise_variance: 0.3 };
        let design = Matrix::from_fn(size, 3, |i, j| libm::cos((2 * i + 5 * j + i * i * j) as f64));
        let y = [0.4, -1.0, 0.7];
        let probe: Vec<f64> = (0..size).map(|i| libm::cos(0.7 * i as f64)).collect();
        let bias = prior.bias(&design, &y, &probe).unwrap();

        let mut truth = Weights::with_covariance(mean.clone(), &flat);
        let b = prior.estimate_covariance().unwrap();
        let flat: Vec<f64> = (0..size * size).map(|at| b.at(at / size, at % size)).collect();
        let mut expected = Weights::with_covariance(mean, &flat);
        for (j, &y) in y.iter().enumerate() {
            let phi: Vec<f64> = (0..size).map(|i| design.at(i, j)).collect();
            assert!(truth.condition(&phi, y, 0.3, 0.0));
            assert!(expected.condition(&phi, y, 0.0, 0.0));
        }
        let (truth, expected) = (truth.at(&probe), expected.at(&probe));
        let sigma_bar = prior.sigma_bar2(&probe).unwrap();
        assert!((truth.mean - bias.mean_claimed).abs() < 1e-12);
        assert!((truth.variance + sigma_bar - bias.variance_claimed).abs() < 1e-12);
        assert!((expected.mean - bias.mean_expected).abs() < 1e-12);
        assert!((expected.variance - bias.variance_expected).abs() < 1e-12);
    }

    #[test]
    fn without_noise_an_observed_point_is_known() {
        let mut weights = Weights::independent(&[1.0, 4.0]);
        assert!(weights.condition(&[1.0, 1.0], 2.0, 0.0, 1e-12));
        let Moments { mean, variance } = weights.at(&[1.0, 1.0]);
        assert!((mean - 2.0).abs() < 1e-15 && variance < 1e-30);
        assert!(!weights.condition(&[1.0, 1.0], 2.0, 0.0, 1e-12));
    }

    #[test]
    fn a_singular_covariance_has_a_root() {
        let covariance = [1.0, 2.0, 0.5, 2.0, 4.0, 1.0, 0.5, 1.0, 3.0];
        let weights = Weights::with_covariance(vec![0.0; 3], &covariance);
        for phi in [[1.0, 0.0, 0.0], [2.0, -1.0, 0.0], [0.3, 0.2, -1.0]] {
            let by_hand: f64 = (0..9).map(|at| phi[at / 3] * covariance[at] * phi[at % 3]).sum();
            assert!((weights.at(&phi).variance - by_hand).abs() < 1e-13);
        }
    }
}
