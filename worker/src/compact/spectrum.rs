//! The squared-exponential kernel on [0, 1]^d as cosine features, to the accuracy of a tolerance.
//!
//! Its spectral density is normal, and the trapezoidal rule for the inverse transform, with frequencies
//! m h_j, h_j = 2 pi/P_j, is exact but for the kernel's repetitions at distance P_j and for the
//! frequencies left out: with P_j = 1 + R l_j and frequencies up to R/l_j both are below
//! exp(-R^2/2) (Poisson's summation formula). A frequency w != 0 has the two features cos(w x) and
//! sin(w x) = cos(w x - pi/2).

use std::f64::consts::{FRAC_PI_2, TAU};

use super::features::{Cosines, Invalid};

/// R: what is left out is about 1e-10 of the kernel.
const REACH: f64 = 6.8;

/// Features, and the variance of the weight of each: Phi^T diag(variances) Phi is the kernel.
pub(crate) struct Spectrum {
    pub(crate) cosines: Cosines,
    pub(crate) variances: Vec<f64>,
}

/// The number of features that the lengthscales ask for, before the corners are cut.
pub(crate) fn size(lengthscales: &[f64]) -> f64 {
    lengthscales.iter().map(|l| 2.0 * count(*l) as f64 + 1.0).product()
}

/// Frequencies on either side of zero.
fn count(lengthscale: f64) -> i64 {
    let step = TAU / (1.0 + REACH * lengthscale);
    libm::ceil(REACH / (lengthscale * step)) as i64
}

/// Splits the kernel of a variance and of one lengthscale per axis.
pub(crate) fn split(variance: f64, lengthscales: &[f64]) -> Result<Spectrum, Invalid> {
    let d = lengthscales.len();
    let mut found: Vec<(Vec<f64>, f64)> = Vec::new();
    let mut at: Vec<i64> = lengthscales.iter().map(|l| -count(*l)).collect();
    loop {
        let mut frequency = Vec::with_capacity(d);
        let mut squares = 0.0;
        for (m, l) in at.iter().zip(lengthscales) {
            let w = *m as f64 * TAU / (1.0 + REACH * l);
            squares += w * l * w * l;
            frequency.push(w);
        }
        // Of w and -w the one is kept whose first coordinate that is not zero is positive.
        let first = at.iter().find(|m| **m != 0).copied().unwrap_or(0);
        if first >= 0 && squares <= REACH * REACH {
            let both = if first == 0 { 1.0 } else { 2.0 };
            found.push((frequency, both * libm::exp(-0.5 * squares)));
        }
        let Some(axis) = (0..d).rev().find(|&j| at[j] < count(lengthscales[j])) else { break };
        at[axis] += 1;
        for (m, l) in at.iter_mut().zip(lengthscales).skip(axis + 1) {
            *m = -count(*l);
        }
    }
    let total: f64 = found.iter().map(|(_, weight)| weight).sum();
    let (mut frequencies, mut phases, mut variances) = (Vec::new(), Vec::new(), Vec::new());
    for (frequency, weight) in &found {
        let still = frequency.iter().all(|w| *w == 0.0);
        for phase in [0.0, -FRAC_PI_2].iter().take(if still { 1 } else { 2 }) {
            frequencies.extend_from_slice(frequency);
            phases.push(*phase);
            variances.push(variance * weight / total);
        }
    }
    // Features are sqrt(2/K) cos.
    let per_feature = phases.len() as f64 / 2.0;
    variances.iter_mut().for_each(|variance| *variance *= per_feature);
    Ok(Spectrum { cosines: Cosines::new(&frequencies, &phases, d)?, variances })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Cpu;

    #[test]
    fn the_features_make_the_kernel() {
        for lengthscales in [vec![0.3], vec![0.1], vec![0.25, 0.4]] {
            let Spectrum { cosines, variances } = split(1.7, &lengthscales).unwrap();
            let phi = |x: &[f64]| {
                let mut out = vec![0.0; cosines.count()];
                cosines.phi(Cpu::detect(), x, &mut out);
                out
            };
            let d = lengthscales.len();
            for i in 0..40 {
                let x: Vec<f64> = (0..d).map(|j| 0.5 + 0.5 * libm::sin((i + j) as f64)).collect();
                let y: Vec<f64> =
                    (0..d).map(|j| 0.5 + 0.5 * libm::cos((3 * i + j) as f64)).collect();
                let squares: f64 = (0..d)
                    .map(|j| (x[j] - y[j]) / lengthscales[j])
                    .map(|difference| difference * difference)
                    .sum();
                let (a, b) = (phi(&x), phi(&y));
                let sum: f64 = (0..a.len()).map(|k| a[k] * variances[k] * b[k]).sum();
                let kernel = 1.7 * libm::exp(-0.5 * squares);
                assert!((sum - kernel).abs() < 1e-8, "{lengthscales:?}: {sum} for {kernel}");
            }
        }
    }

    #[test]
    fn the_size_is_told_before_it_is_made() {
        let made = split(1.0, &[0.25, 0.4]).unwrap().cosines.count();
        assert!(made as f64 <= size(&[0.25, 0.4]) && made > 100, "{made}");
    }
}
