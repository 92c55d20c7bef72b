//! Random search, which the bounds of the other methods are compared with.

use super::gathered::Gathered;
use crate::dataset::DataCell;

/// Whether a cell is one of random search.
pub(super) fn is_random(cell: &DataCell) -> bool {
    cell.cell.policy.method() == "random"
}

/// What random search reached, by prior and t: best-sample and simple regret, trial by trial.
pub(super) struct Rivals(Vec<Vec<(u32, [Vec<f64>; 2])>>);

impl Rivals {
    pub(super) fn new(priors: usize) -> Self {
        Self(vec![vec![]; priors])
    }

    /// Takes over what a cell of random search reached.
    pub(super) fn learn(&mut self, gathered: &Gathered<'_>) {
        if !is_random(gathered.data) {
            return;
        }
        for (slot, checkpoint) in gathered.questions.at.iter().enumerate() {
            let kept = gathered.reached(slot).map(<[f64]>::to_vec);
            self.0[gathered.data.prior].push((checkpoint.t, kept));
        }
    }

    /// What the first of its cells with the same prior reached at t.
    pub(super) fn at(&self, cell: &DataCell, t: u32) -> Option<[&[f64]; 2]> {
        let found = self.0[cell.prior].iter().find(|entry| entry.0 == t)?;
        Some(found.1.each_ref().map(Vec::as_slice))
    }
}
