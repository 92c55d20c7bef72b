//! The exact laws of Lemma 1's two statistics (docs/mathematics.md, section 2).
//!
//! For a design fixed independently of the estimators and x not in x_t,
//!
//! ```text
//! error = (mu_hat_t - mu_t)^2/(k_t + sigma^2) ~ Z^2 [1/N + (1 + 1/N) V],  V ~ chi2_t/chi2_{N-t}
//! ratio = k_hat_t/(k_t + sigma^2)             ~ chi2_{N-t-1}/(N-t-1),     independent of error
//! ```
//!
//! whatever kernel, x, sigma and M are. Given D_t, with K of the appendix's Lemma 1,
//! error ~ Z^2 [1/N + Q/(N chi2_{N-t})], Q non-central chi-square with t degrees of freedom and
//! non-centrality N K: a Poisson(N K/2) mixture of chi2_{t+2j}.
//!
//! Both errors are scale mixtures of Z^2. The scale is integrated by the trapezoidal rule in
//! u = log V, where the density is analytic in a strip and decays exponentially on both sides, so
//! that the rule converges exponentially in 1/step.

use crate::special::{
    Bracket, Split, chi2_cdf, chi2_quantile, chi2_sf, chi2_upper_quantile, find_root, larger,
    ln_poisson, ln_power, smaller,
};

/// How far below the peak (log scale) the density of a node may be before it no longer counts.
const CUT: f64 = 42.0;

/// The same towards large scales, on which upper tails of the error rest: tails down to 1e-20, the
/// smallest that a level asks for, keep all their digits.
const UPPER_CUT: f64 = 80.0;

/// The law of the mean's squared error: sum of weight times the law of Z^2 scale.
#[derive(Clone, Debug)]
pub struct ErrorLaw {
    /// (weight, scale), weights summing to 1.
    nodes: Vec<(f64, f64)>,
}

impl ErrorLaw {
    /// The law over y_t too. `None` unless t < N.
    pub fn new(n: u64, t: u32) -> Option<Self> {
        if u64::from(t) >= n {
            return None;
        }
        let inverse = 1.0 / n as f64;
        if t == 0 {
            return Some(Self { nodes: vec![(1.0, inverse)] });
        }
        let mut nodes = Vec::new();
        let (alpha, beta) = (0.5 * f64::from(t), 0.5 * (n - u64::from(t)) as f64);
        push_chi_ratio(&mut nodes, 1.0, alpha, beta, |v| inverse + (1.0 + inverse) * v);
        Some(Self::normalised(nodes))
    }

    /// The law given D_t, through K = (y_t - mu)^T (k(x_t) + sigma^2 I)^-1 (y_t - mu) >= 0.
    /// `None` unless t < N.
    pub fn given(n: u64, t: u32, k: f64) -> Option<Self> {
        if u64::from(t) >= n {
            return None;
        }
        let inverse = 1.0 / n as f64;
        if t == 0 {
            return Some(Self { nodes: vec![(1.0, inverse)] });
        }
        let beta = 0.5 * (n - u64::from(t)) as f64;
        let mut nodes = Vec::new();
        for (j, weight) in poisson_nodes(0.5 * n as f64 * k) {
            let alpha = 0.5 * f64::from(t) + j;
            push_chi_ratio(&mut nodes, weight, alpha, beta, |v| inverse + inverse * v);
        }
        Some(Self::normalised(nodes))
    }

    fn normalised(mut nodes: Vec<(f64, f64)>) -> Self {
        let total: f64 = nodes.iter().map(|node| node.0).sum();
        for node in &mut nodes {
            node.0 /= total;
        }
        Self { nodes }
    }

    /// P(error <= a).
    pub fn cdf(&self, a: f64) -> f64 {
        if a <= 0.0 {
            return 0.0;
        }
        let sum: f64 =
            self.nodes.iter().map(|&(w, scale)| w * libm::erf((0.5 * a / scale).sqrt())).sum();
        // The weights add up to 1 but for rounding.
        if sum < 1.0 { sum } else { 1.0 }
    }

    /// P(error > a), accurate relative to the tail.
    pub fn sf(&self, a: f64) -> f64 {
        if a <= 0.0 {
            return 1.0;
        }
        self.nodes.iter().map(|&(w, scale)| w * libm::erfc((0.5 * a / scale).sqrt())).sum()
    }

    /// The a with P(error > a) = tail, tail in (0, 1).
    pub fn upper_quantile(&self, tail: f64) -> f64 {
        let ln_tail = libm::log(tail);
        let miss = |ln_a: f64| ln_tail - libm::log(self.sf(libm::exp(ln_a)));
        let scale: f64 = self.nodes.iter().map(|&(w, scale)| w * scale).sum();
        let centre = libm::log(scale);
        let (mut low, mut high) = (centre - 1.0, centre + 3.0);
        while miss(low) > 0.0 && low > centre - 700.0 {
            low -= 4.0;
        }
        while miss(high) < 0.0 && high < centre + 700.0 {
            high += 2.0;
        }
        libm::exp(find_root(miss, Bracket { low, high }))
    }
}

/// Adds the trapezoidal nodes of V = chi2_{2 alpha}/chi2_{2 beta} in u = log V.
///
/// With p = V/(1 + V) the density in u is p^alpha (1-p)^beta/B(alpha, beta). The step is a fixed
/// share of its standard deviation (Gaussian part: error exp(-2 pi^2 s^2/h^2)), and at most a
/// fifth (strip |Im u| < pi/2, in which erf of the scale stays bounded: error exp(-pi^2/h)).
fn push_chi_ratio(
    nodes: &mut Vec<(f64, f64)>,
    share: f64,
    alpha: f64,
    beta: f64,
    scale: impl Fn(f64) -> f64,
) {
    let deviation = (1.0 / alpha + 1.0 / beta).sqrt();
    let step = smaller(0.2, 0.5 * deviation);
    let mode = libm::log(alpha / beta);
    let peak = ln_power(alpha, beta, Split::logistic(mode));
    let weigh = |u: f64| ln_power(alpha, beta, Split::logistic(u));
    for (direction, first, cut) in [(-1.0, 0.0, CUT), (1.0, 1.0, UPPER_CUT)] {
        let mut k = first;
        loop {
            let u = mode + direction * step * k;
            let density = weigh(u);
            if density < peak - cut {
                break;
            }
            nodes.push((share * step * libm::exp(density), scale(libm::exp(u))));
            k += 1.0;
        }
    }
}

/// (j, weight) for sums over a Poisson law of mean `mean`.
///
/// For a large mean every h-th term stands for h: the aliasing error exp(-2 pi^2 mean/h^2) is
/// below rounding at h = sqrt(mean)/1.5.
fn poisson_nodes(mean: f64) -> Vec<(f64, f64)> {
    if mean <= 0.0 {
        return vec![(0.0, 1.0)];
    }
    let centre = mean.floor();
    let stride = larger(1.0, (mean.sqrt() / 1.5).floor());
    let peak = ln_poisson(centre, mean);
    let mut nodes = Vec::new();
    for direction in [-1.0, 1.0] {
        let mut j = if direction < 0.0 { centre } else { centre + stride };
        while j >= 0.0 {
            let ln_weight = ln_poisson(j, mean);
            if ln_weight < peak - CUT {
                break;
            }
            nodes.push((j, stride * libm::exp(ln_weight)));
            j += direction * stride;
        }
    }
    nodes
}

/// The law of the variance ratio, chi2_d/d with d = N - t - 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioLaw {
    degrees: f64,
}

impl RatioLaw {
    /// `None` unless N >= t + 2.
    pub fn new(n: u64, t: u32) -> Option<Self> {
        let degrees = n.checked_sub(u64::from(t) + 1)?;
        (degrees > 0).then_some(Self { degrees: degrees as f64 })
    }

    /// P(ratio <= r).
    pub fn cdf(self, r: f64) -> f64 {
        chi2_cdf(self.degrees, self.degrees * r)
    }

    /// P(ratio > r), accurate relative to the tail.
    pub fn sf(self, r: f64) -> f64 {
        chi2_sf(self.degrees, self.degrees * r)
    }

    /// The r with P(ratio <= r) = p.
    pub fn quantile(self, p: f64) -> f64 {
        chi2_quantile(self.degrees, p) / self.degrees
    }

    /// The r with P(ratio > r) = p.
    pub fn upper_quantile(self, p: f64) -> f64 {
        chi2_upper_quantile(self.degrees, p) / self.degrees
    }

    /// P(low < ratio < high).
    pub fn between(self, low: f64, high: f64) -> f64 {
        1.0 - (self.cdf(low) + self.sf(high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn mixing_the_conditional_law_gives_its_mean() {
        // E[error | K] = (N - 2 + N K)/(N (N-t-2)) is the mean of the scales.
        for (n, t, k) in [(50, 3, 2.0), (200, 20, 31.5), (1000, 1, 0.0), (10_000_000, 50, 60.0)] {
            let law = ErrorLaw::given(n, t, k).unwrap();
            let mean: f64 = law.nodes.iter().map(|&(w, s)| w * s).sum();
            let (n, t) = (n as f64, f64::from(t));
            let formula = (n - 2.0 + n * k) / (n * (n - t - 2.0));
            assert!((mean / formula - 1.0).abs() < 1e-12, "{n} {t} {k}: {mean} {formula}");
        }
    }

    #[test]
    fn no_observation_leaves_a_normal() {
        let law = ErrorLaw::new(100, 0).unwrap();
        assert!((law.cdf(0.04) - libm::erf((2.0_f64).sqrt())).abs() < 1e-15);
        assert!(ErrorLaw::new(5, 5).is_none() && RatioLaw::new(5, 4).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn tails_complement_and_quantiles_invert(
            extra in 1_u64..5000, t in 0_u32..200, tail in 1e-6_f64..0.99,
        ) {
            let law = ErrorLaw::new(u64::from(t) + extra, t).unwrap();
            let a = law.upper_quantile(tail);
            prop_assert!((law.sf(a) / tail - 1.0).abs() < 1e-11);
            prop_assert!((law.cdf(a) + law.sf(a) - 1.0).abs() < 1e-13);
        }
    }
}
