//! The compact setting (paper, section 4.2): cosine features, how they are learnt from training data,
//! and the search for the maximum of what is built on them.

pub mod acquisition;
mod ascent;
pub(crate) mod belief;
mod cholesky;
pub(crate) mod conditioned;
pub mod dataset;
pub mod domain;
pub mod features;
#[cfg(test)]
mod fixture;
mod lbfgs;
pub mod learn;
mod loss;
pub mod maximise;
mod neighbours;
mod panels;
pub mod prior;
mod qr;
mod sin_cos;
mod spectrum;
pub mod weights;
