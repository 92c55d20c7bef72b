//! Mean, variance and Monte-Carlo standard error of a sample.
//!
//! Welford's updates (Technometrics 4, 1962) of x = value - first: with d = x - mean before x,
//!
//! ```text
//! mean += d/n,   squares += d (x - mean),   variance = squares/(n-1),   MCSE = sqrt(variance/n)
//! ```
//!
//! One pass in the order of the values, and no difference of large sums: what all values have in
//! common leaves with the first.

use theory::evidence::MeanSample;

/// Mean and sample variance of `values`, in their order; `None` without values.
///
/// One value alone has variance 0 and no standard error.
pub fn summary(values: impl IntoIterator<Item = f64>) -> Option<MeanSample> {
    let mut values = values.into_iter();
    let first = values.next()?;
    let (mut count, mut mean, mut squares) = (1_u64, 0.0, 0.0);
    for value in values {
        count += 1;
        let x = value - first;
        let gap = x - mean;
        mean += gap / count as f64;
        squares += gap * (x - mean);
    }
    let variance = if count > 1 { squares / (count - 1) as f64 } else { 0.0 };
    Some(MeanSample { count, mean: first + mean, variance })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_samples() {
        assert_eq!(summary([]), None);
        let one = summary([3.0]).unwrap();
        assert_eq!((one.count, one.mean, one.variance), (1, 3.0, 0.0));
        assert_eq!(one.standard_error(), None);
        let three = summary([1.0, 2.0, 6.0]).unwrap();
        assert_eq!((three.mean, three.variance), (3.0, 7.0));
    }

    proptest! {
        #[test]
        fn a_large_offset_does_not_cancel(values in prop::collection::vec(0_u32..1000, 2..200)) {
            // Integers, so that the shifted values are exact.
            let near = summary(values.iter().map(|&v| f64::from(v))).unwrap();
            let far = summary(values.iter().map(|&v| f64::from(v) + 1e9)).unwrap();
            prop_assert!((far.mean - near.mean - 1e9).abs() < 1e-6);
            prop_assert!((far.variance - near.variance).abs() <= 1e-12 * near.variance);
        }
    }
}
