//! The low-rank factor F of a prior's covariance, `k = F F^T + w I`.
//!
//! Rows are stored in panels of [`PANEL`] so that a sweep `F v` reads memory in order and
//! multiplies a whole panel by one entry of `v`: entry (i, k) stands at
//! `(i / PANEL * rank + k) * PANEL + i % PANEL`. The last panel is padded with zero rows.

/// Rows per panel.
pub const PANEL: usize = 8;

/// An M x r matrix in panels.
#[derive(Clone, Debug, PartialEq)]
pub struct Factor {
    rows: usize,
    rank: usize,
    values: Vec<f64>,
}

impl Factor {
    /// Takes r columns of M entries each; `rows` is needed where there is no column at all.
    ///
    /// # Panics
    /// Where a column's length is not `rows`.
    pub fn from_columns(rows: usize, columns: &[Vec<f64>]) -> Self {
        let rank = columns.len();
        let mut values = vec![0.0; rows.next_multiple_of(PANEL) * rank];
        for (k, column) in columns.iter().enumerate() {
            assert_eq!(column.len(), rows, "a column of a factor has one entry per point");
            for (i, &value) in column.iter().enumerate() {
                values[(i / PANEL * rank + k) * PANEL + i % PANEL] = value;
            }
        }
        Self { rows, rank, values }
    }

    /// M, the number of points.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// r, the number of columns.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Entry (i, k).
    pub fn entry(&self, i: usize, k: usize) -> f64 {
        self.values[(i / PANEL * self.rank + k) * PANEL + i % PANEL]
    }

    /// Row i, entry by entry.
    pub fn row(&self, i: usize) -> impl Iterator<Item = f64> + '_ {
        let start = i / PANEL * self.rank * PANEL + i % PANEL;
        self.values[start.min(self.values.len())..].iter().step_by(PANEL).take(self.rank).copied()
    }

    /// Panel j (rows `j * PANEL ..`): `rank` groups of `PANEL` entries.
    pub fn panel(&self, j: usize) -> &[f64] {
        let size = self.rank * PANEL;
        &self.values[j * size..(j + 1) * size]
    }

    /// Number of panels.
    pub fn panels(&self) -> usize {
        self.rows.div_ceil(PANEL)
    }

    /// |F_i|^2, summed in order of k.
    pub fn squared_norm(&self, i: usize) -> f64 {
        self.row(i).fold(0.0, |sum, v| sum + v * v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_entries_and_panels_agree() {
        let columns: Vec<Vec<f64>> =
            (0..3).map(|k| (0..11).map(|i| f64::from(10 * i + k)).collect()).collect();
        let factor = Factor::from_columns(11, &columns);
        assert_eq!((factor.rows(), factor.rank(), factor.panels()), (11, 3, 2));
        for (k, column) in columns.iter().enumerate() {
            for (i, &value) in column.iter().enumerate() {
                assert_eq!(factor.row(i).nth(k), Some(value));
                assert_eq!(factor.entry(i, k), value);
                assert_eq!(factor.panel(i / PANEL)[k * PANEL + i % PANEL], value);
            }
        }
        assert_eq!(factor.squared_norm(1), 10.0 * 10.0 + 11.0 * 11.0 + 12.0 * 12.0);
    }

    #[test]
    fn a_factor_without_columns_has_empty_rows() {
        let factor = Factor::from_columns(9, &[]);
        assert_eq!((factor.panels(), factor.row(8).count(), factor.panel(1).len()), (2, 0, 0));
        assert_eq!(factor.squared_norm(8), 0.0);
    }
}
