//! PEM-BO from an explicit matrix of training responses: the paper's estimators (section 4.1) where they
//! cannot be drawn from their law, because data are real or entries were filled in.

use super::estimate::{Estimate, Scale};
use super::responses::Responses;

/// mu_hat and k_hat of the responses.
pub(crate) fn from_responses(responses: &Responses) -> Estimate {
    let (mean, covariance) = responses.moments();
    Estimate::new(mean, covariance, Scale::Unbiased { n: responses.rows() as u64 })
}
