//! Lemma 3's claims of unbiasedness beside the exact bias of its estimators.

use super::{integer, size};
use crate::Analysis;
use crate::rates::{Compared, Estimate};
use crate::tables::{Align, Cell, Column, Table};

pub(super) fn table(analysis: &Analysis) -> Table {
    let column = |key: &str, head: &str, align| Column::new(key, head, align);
    let mut table = Table::new(
        "bias",
        "The bias of the compact setting's estimators at the probe: E[μ̂_t − μ_t]/√(k_t + σ̄²), of which Lemma 3 claims 0, and \
         E[k̂_t]/(k_t + σ̄²), of which it claims 1; measured, exact (both averaged over the same trials), and their paired \
         difference",
        vec![
            column("prior", "prior", Align::Right),
            column("design", "design", Align::Left),
            column("N", "N", Align::Right),
            column("t", "t", Align::Right),
            column("mean", "mean, measured", Align::Right),
            column("mean_exact", "exact", Align::Right),
            column("mean_difference", "difference", Align::Right),
            column("ratio", "ratio, measured", Align::Right),
            column("ratio_exact", "exact", Align::Right),
            column("ratio_difference", "difference", Align::Right),
        ],
    );
    let mut seen = std::collections::BTreeSet::new();
    for point in &analysis.points {
        let cell = &analysis.dataset.cells[point.cell];
        let Some(bias) = point.bias.filter(|_| seen.insert((point.cell, point.t))) else {
            continue;
        };
        let estimate = |e: Estimate| Cell::Estimate { value: e.value, error: e.error };
        let three = |c: Compared| [c.measured, c.exact, c.difference].map(estimate);
        let policy = &cell.cell.policy;
        let mut row = vec![
            size(cell.prior),
            Cell::text(policy.acquisition().unwrap_or("fixed")),
            integer(policy.training().map(|training| training.n)),
            Cell::Integer(point.t.into()),
        ];
        row.extend(three(bias.mean));
        row.extend(three(bias.variance));
        table.push(row);
    }
    table.note(
        "Lemma 3 conditions without σ²I on observations that carry noise, so its estimators are biased for t > 0 in \
         general; the exact values follow from their law. Under an adaptive design D_t depends on the estimators, and the \
         exact value, which is for a design that does not, need not be met.",
    );
    table
}
