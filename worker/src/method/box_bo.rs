//! BOX (Kim, Kaelbling and Lozano-Perez 2017): the same point estimates as PEM-BO, plugged in as if
//! they were the prior, with a constant exploration weight.
//!
//! The plug-in variance is PEM-BO's without its factor (N-1)/(N-t-1), so that BOX is PEM-BO with
//! another weight at every step, and needs no estimators of its own.

/// What PEM-BO's deviation is multiplied by at evaluation t (t - 1 observations), t < N.
pub(crate) fn weight(constant: f64, n: u64, t: u32) -> f64 {
    constant * ((n - u64::from(t)) as f64 / (n - 1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::estimate::{Estimate, Scale};
    use super::super::{Method, Prediction};
    use super::*;

    #[test]
    fn the_weight_undoes_the_scale_of_the_variance() {
        let c = vec![2.0, 0.5, 0.5, 1.0];
        let make = |scale| {
            let mut estimate = Estimate::new(vec![0.0; 2], c.clone(), scale);
            estimate.observe(&0, 1.0).unwrap();
            let Prediction { mean, variance } = estimate.predict(&1);
            (mean, variance.sqrt())
        };
        let (scaled, plugged) = (make(Scale::Unbiased { n: 7 }), make(Scale::PlugIn));
        assert_eq!(scaled.0, plugged.0);
        assert!((weight(2.0, 7, 2) * scaled.1 - 2.0 * plugged.1).abs() < 1e-15);
    }
}
