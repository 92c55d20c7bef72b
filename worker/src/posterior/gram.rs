//! F F^T over a whole domain, computed once for all trials, and F row by row.

use theory::PANEL;

use crate::prior::Prior;
use crate::simd::{Buffer, Cpu};
use crate::sweep::Sweep;

/// The most points, for two mebibytes, which a core's own cache holds.
const MOST: usize = 512;

/// F_i . F_j for all i and j.
pub(crate) struct Gram {
    size: usize,
    /// Row by row.
    entries: Vec<f64>,
    rank: usize,
    /// F row by row: in panels a row's entries stand on as many cache lines.
    factor: Vec<f64>,
}

impl Gram {
    /// `None` where it would not pay: with many points, or with so few columns that t observations
    /// cost more by a t x t root, t^3/6 in all, than by t directions of r entries, t^2 r in all.
    pub(crate) fn new(prior: &Prior, cpu: Cpu) -> Option<Self> {
        let (factor, size) = (&prior.factor, prior.factor.rows());
        if size > MOST || size >= 6 * factor.rank() {
            return None;
        }
        let mut entries = vec![0.0; size * size];
        let mut out = Buffer::zeros(factor.panels() * PANEL * PANEL);
        for (p, rows) in entries.chunks_mut(size * PANEL).enumerate() {
            // A panel of rows stands as weights do, one row per lane.
            let (weights, out) = (factor.panel(p), &mut *out);
            cpu.run::<PANEL, _>(Sweep::<PANEL> { factor, weights, out });
            for (lane, row) in rows.chunks_mut(size).enumerate() {
                let products = out.as_chunks::<PANEL>().0;
                row.iter_mut().zip(products).for_each(|(entry, lanes)| *entry = lanes[lane]);
            }
        }
        let rows = (0..size).flat_map(|i| factor.row(i)).collect();
        Some(Self { size, entries, rank: factor.rank(), factor: rows })
    }

    /// F_i.
    pub(super) fn factor_row(&self, i: usize) -> &[f64] {
        &self.factor[i * self.rank..(i + 1) * self.rank]
    }

    /// F_i . F_j for all j.
    pub(super) fn row(&self, i: usize) -> &[f64] {
        &self.entries[i * self.size..(i + 1) * self.size]
    }
}
