//! How a table fits a line of text: its size of type and the room of its statements.

use super::layout::width;
use super::model::{Align, Row, Table};
use std::fmt::Write as _;

/// Width of a line of text in points.
const LINE: f64 = 345.0;
/// A column of statements is readable from this share of the line on.
const SHARE: f64 = 0.25;
/// Letters are narrower than digits, on average by this.
const LETTER: f64 = 0.9;

/// A size of type.
pub(super) struct Size {
    pub(super) command: &'static str,
    /// Width of a digit in points.
    digit: f64,
    /// Space between two columns in points.
    gap: f64,
}

const SIZES: [Size; 4] = [
    Size { command: "", digit: 5.0, gap: 12.0 },
    Size { command: r"\small", digit: 4.6, gap: 12.0 },
    Size { command: r"\footnotesize", digit: 4.2, gap: 12.0 },
    Size { command: r"\scriptsize\setlength{\tabcolsep}{3pt}", digit: 3.8, gap: 6.0 },
];

/// The size at which a table fits, and how wide its columns then are.
pub(super) struct Plan {
    pub(super) size: &'static Size,
    /// Points of each column.
    widths: Vec<f64>,
}

impl Plan {
    pub(super) fn new(table: &Table) -> Self {
        let natural: Vec<f64> = (0..table.columns().len()).map(|at| natural(table, at)).collect();
        let smallest = SIZES.last().expect("there are sizes");
        let size = SIZES.iter().find(|size| room(table, &natural, size) >= 0.0).unwrap_or(smallest);
        let own = |at: usize| natural[at] * size.digit;
        let wraps = |at: &usize| is_wrapped(table, *at) && own(*at) > SHARE * LINE;
        let wrapped = (0..natural.len()).filter(wraps).count();
        let spare = room(table, &natural, size);
        let extra = if spare > 0.0 { spare / wrapped as f64 } else { 0.0 };
        let share = |at| if wraps(&at) { SHARE * LINE + extra } else { own(at) };
        let smaller = |at| if own(at) < share(at) { own(at) } else { share(at) };
        Self { size, widths: (0..natural.len()).map(smaller).collect() }
    }

    /// The columns of a tabular.
    pub(super) fn columns(&self, table: &Table) -> String {
        let mut columns = String::from("@{}");
        for (column, points) in table.columns().iter().zip(&self.widths) {
            match column.align {
                Align::Left => columns.push('l'),
                Align::Right => columns.push('r'),
                Align::Center => columns.push('c'),
                Align::Wrap => {
                    let share = points / LINE;
                    columns += ">{\\raggedright\\arraybackslash}";
                    _ = write!(columns, "p{{{share:.2}\\linewidth}}");
                }
            }
        }
        columns + "@{}"
    }

    /// Lines of type that the body takes.
    pub(super) fn lines(&self, table: &Table) -> f64 {
        let mut lines = 0.0;
        for row in table.rows() {
            let mut tallest = 1.0;
            if let Row::Cells(cells) = row {
                for (at, cell) in cells.iter().enumerate().filter(|(at, _)| is_wrapped(table, *at))
                {
                    let own = width(&cell.plain()) as f64 * LETTER * self.size.digit;
                    let height = libm::ceil(own / self.widths[at]);
                    tallest = if height > tallest { height } else { tallest };
                }
            }
            lines += tallest;
        }
        lines
    }
}

fn is_wrapped(table: &Table, at: usize) -> bool {
    table.columns()[at].align == Align::Wrap
}

/// Width of the widest cell of a column, in digits.
fn natural(table: &Table, at: usize) -> f64 {
    let column = &table.columns()[at];
    let cells = table.cells().map(|cells| width(&cells[at].plain()));
    let widest = cells.max().unwrap_or(0).max(width(&column.head.plain));
    widest as f64 * if column.align == Align::Right { 1.0 } else { LETTER }
}

/// Points that are left of a line when each column of statements takes its least share.
fn room(table: &Table, natural: &[f64], size: &Size) -> f64 {
    let mut room = LINE + size.gap;
    for (at, natural) in natural.iter().enumerate() {
        let own = natural * size.digit;
        let least = if is_wrapped(table, at) && own > SHARE * LINE { SHARE * LINE } else { own };
        room -= size.gap + least;
    }
    room
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{Cell, Column};

    /// `columns` of eight digits beside a statement of `statement` characters.
    fn table(columns: usize, statement: usize) -> Table {
        let mut heads = vec![Column::new("s", "s", Align::Wrap)];
        heads.extend((0..columns).map(|_| Column::new("c", "01234567", Align::Right)));
        let mut table = Table::new("t", "", heads);
        let mut cells = vec![Cell::text("x ".repeat(statement / 2))];
        cells.resize(columns + 1, Cell::Empty);
        table.push(cells);
        table
    }

    #[test]
    fn type_shrinks_with_the_columns() {
        let size = |columns| Plan::new(&table(columns, 200)).size.command;
        let small = "\\scriptsize\\setlength{\\tabcolsep}{3pt}";
        assert_eq!([4, 5, 6].map(size), ["", "\\small", small]);
        assert_eq!(size(40), small);
    }

    #[test]
    fn statements_take_the_room_that_is_left() {
        let plan = Plan::new(&table(1, 200));
        assert!(plan.columns(&table(1, 200)).contains("p{0.85\\linewidth}"));
        assert_eq!(plan.lines(&table(1, 200)), 4.0);
        assert!(Plan::new(&table(1, 20)).columns(&table(1, 20)).contains("p{0.26\\linewidth}"));
    }
}
