//! Special functions, bit-identical on every CPU: built on the `libm` crate and plain arithmetic.
//!
//! Tails are computed on their own side, in logarithms where they can underflow, and the leading
//! power terms in deviance form, so that large arguments do not cancel.

mod beta;
mod gamma;
mod logs;
mod normal;
mod root;
mod stirling;

pub use beta::{Split, beta_quantile, inc_beta, ln_beta, ln_power, ln_tail_ratios, ln_tails};
pub use gamma::{chi2_cdf, chi2_quantile, chi2_sf, chi2_upper_quantile, inc_gamma, ln_poisson};
pub use logs::{ln_1m_exp, ln_1p_minus, ln_add_exp};
pub use normal::{normal_cdf, normal_quantile, normal_sf};
pub use root::{Bracket, find_root};
pub use stirling::{ln_gamma, stirling_error};

/// Relative size below which a term no longer moves a sum or a product.
const NEGLIGIBLE: f64 = 1e-17;

/// The larger of two numbers.
pub(crate) fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// The smaller of two numbers.
pub(crate) fn smaller(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}
