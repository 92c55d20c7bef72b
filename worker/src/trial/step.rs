//! An evaluation of a lockstep group between its choice and its account.
//!
//! No choice depends on the true posterior, so that it may follow the trials some steps behind, where
//! solving for several points together is cheaper. What the account of a step needs of its moment is
//! kept until then.

use study::Failure;

use crate::posterior::Located;

/// What is kept of evaluation t.
pub(super) struct Step<const L: usize> {
    pub(super) t: u32,
    /// x_t.
    pub(super) here: Located<L>,
    /// y_t.
    pub(super) values: [f64; L],
    /// The estimators before y_t, where the policy has them.
    pub(super) estimated: Option<[Estimated; L]>,
    /// Why the estimators could not be conditioned on y_t.
    pub(super) failures: [Option<Failure>; L],
}

/// mu_hat_{t-1} and k_hat_{t-1} at x_t, and at x* unless that has been observed.
#[derive(Clone, Copy)]
pub(super) struct Estimated {
    pub(super) mean: f64,
    pub(super) variance: f64,
    pub(super) mean_star: f64,
    pub(super) variance_star: f64,
}
