//! Values of pairs of categories: coloured, and printed in their cells.

use super::cells;
use super::csv::{self, Table};
use super::scene::Scene;

/// A table of coloured cells with a colour bar.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatMap {
    /// The categories from left to right.
    pub columns: Categories,
    /// The categories from top to bottom.
    pub rows: Categories,
    /// The cells of each row. Those that are not there are missing.
    pub cells: Vec<Vec<Cell>>,
    /// The colour scale.
    pub colours: Colours,
    /// What the values are: the label of the colour bar.
    pub value: String,
    /// The decimals that are printed.
    pub decimals: usize,
}

/// What is along one side of a heat map.
#[derive(Clone, Debug, PartialEq)]
pub struct Categories {
    /// What they are categories of.
    pub label: String,
    /// Their names.
    pub names: Vec<String>,
}

/// One cell; without a value it is shown as missing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cell {
    /// The value.
    pub value: Option<f64>,
    /// The verdict beside the value.
    pub mark: Option<Mark>,
}

/// A verdict, drawn beside a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A tick.
    Confirmed,
    /// A cross.
    Refuted,
}

impl Mark {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Refuted => "refuted",
        }
    }
}

/// A colour scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Colours {
    /// From light to dark.
    Sequential,
    /// Orange below the centre, blue above.
    Diverging {
        /// The value that is white.
        centre: f64,
    },
}

impl HeatMap {
    pub(super) fn scene(&self) -> Scene {
        cells::draw(self)
    }

    /// The cell of a row and a column; its value is finite.
    pub(super) fn cell(&self, row: usize, column: usize) -> Cell {
        let cell = self.cells.get(row).and_then(|cells| cells.get(column));
        let cell = cell.copied().unwrap_or_default();
        Cell { value: cell.value.filter(|value| value.is_finite()), ..cell }
    }

    /// Row, column, value, mark; missing cells have no value.
    pub(super) fn csv(&self) -> String {
        let mut table = Table::new(&["row", "column", "value", "mark"]);
        for (i, row) in self.rows.names.iter().enumerate() {
            for (j, column) in self.columns.names.iter().enumerate() {
                let Cell { value, mark } = self.cell(i, j);
                let mark = mark.map_or("", Mark::word).to_owned();
                table.row([csv::text(row), csv::text(column)], [csv::number(value), mark]);
            }
        }
        table.finish()
    }
}
