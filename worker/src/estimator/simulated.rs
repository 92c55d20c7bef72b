//! The estimators as the paper computes them: N functions are drawn and observed at every point, and
//! mu_hat, k_hat are their sample mean and covariance (section 4.1). O(N M^2); an oracle.

use super::sample::Sample;
use crate::method::responses::Responses;
use crate::prior::Prior;
use crate::random::Stream;

/// Draws N rows of data and takes their mean and covariance.
pub(crate) fn draw(prior: &Prior, n_train: u64, stream: &mut Stream) -> Sample {
    let (mean, covariance) = Responses::simulate(prior, n_train, stream).moments();
    let usual = (0..prior.size()).map(|i| prior.observed_variance(i)).collect();
    Sample::new(mean, covariance, usual, n_train)
}
