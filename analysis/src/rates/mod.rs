//! Empirical against theoretical rates (docs/mathematics.md): regret and its quantiles by N and T, the
//! excess over the known prior, the estimators' error, and how fast each falls.

mod compare;
mod fits;
mod pairs;
mod point;

pub(crate) use compare::name;
pub use compare::{Comparison, Entrant, compare};
pub use fits::{Against, Quantity, RateFit, fits};
pub use point::{Bias, Compared, Estimate, Quantile, RatePoint, points};

use study::cell::Policy;

use crate::dataset::{DataCell, Dataset};

/// The run with the known prior on the same functions: the limit of a run for large N.
fn limit(dataset: &Dataset, cell: &DataCell) -> Option<usize> {
    let wanted = match cell.cell.policy {
        Policy::PemUcb { delta, .. } => Policy::KnownUcb { delta },
        Policy::PemPi { gap, .. } => Policy::KnownPi { gap },
        _ => return None,
    };
    dataset.cells.iter().position(|other| other.prior == cell.prior && other.cell.policy == wanted)
}
