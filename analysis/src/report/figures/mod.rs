//! The figures of a report, each made where the study has the data for it.

mod audit;
mod best;
mod coverage;
mod heat;
mod laws;
mod rates;
mod regret;

use crate::Analysis;
use crate::dataset::DataCell;
use crate::figures::Figure;
use crate::words;

/// Panels that fit into one figure.
const MOST_PANELS: usize = 6;

/// Priors for which figures are drawn; tables have all.
const MOST_PRIORS: usize = 4;

/// All figures.
pub(crate) fn all(analysis: &Analysis) -> Vec<Figure> {
    let mut figures = Vec::new();
    for prior in 0..analysis.dataset.priors.len().min(MOST_PRIORS) {
        figures.extend(coverage::figures(analysis, prior));
        figures.extend(heat::figures(analysis, prior));
        figures.extend(regret::figures(analysis, prior));
        figures.extend(laws::figures(analysis, prior));
        figures.extend(best::figures(analysis, prior));
    }
    figures.extend(rates::figures(analysis));
    figures.extend(audit::figure(analysis));
    figures
}

/// An id that is unique where a study has several priors.
fn id(analysis: &Analysis, prior: usize, stem: &str) -> String {
    if analysis.dataset.priors.len() == 1 {
        stem.to_owned()
    } else {
        format!("{stem}-prior{prior}")
    }
}

/// A caption's last words: which prior.
fn of_prior(analysis: &Analysis, prior: usize) -> String {
    format!("Prior: {}.", words::prior(&analysis.dataset.priors[prior]))
}

/// The N of a cell.
fn functions(cell: &DataCell) -> Option<u64> {
    cell.cell.policy.training().map(|training| training.n)
}

/// At most so many of a list, from its start to its end evenly.
fn spread<T: Clone>(all: &[T], most: usize) -> Vec<T> {
    if all.len() <= most {
        return all.to_vec();
    }
    (0..most).map(|place| all[place * (all.len() - 1) / (most - 1)].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn ends_are_kept() {
        assert_eq!(spread(&[1, 2, 3], 6), [1, 2, 3]);
        assert_eq!(spread(&(0..10).collect::<Vec<_>>(), 4), [0, 3, 6, 9]);
    }
}
