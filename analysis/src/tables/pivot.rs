//! From long form to a table: one row per combination of some axes, one column per value of another.

use super::axis::AxisValue;
use super::cell::Cell;
use super::model::{Align, Column, Table};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A cell with its place along every axis.
#[derive(Clone, Debug)]
pub struct PivotRow {
    /// Name and value of each axis.
    pub axes: Vec<(String, AxisValue)>,
    /// What is to be shown.
    pub cell: Cell,
}

impl PivotRow {
    /// The value along an axis; an axis that is not named has none.
    fn at(&self, axis: &str) -> AxisValue {
        let found = self.axes.iter().find(|(name, _)| name == axis);
        found.map_or(AxisValue::Null, |(_, value)| value.clone())
    }
}

/// Why there is no such table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PivotError {
    /// No cell has the axis.
    UnknownAxis {
        /// What was asked for.
        axis: String,
        /// What there is.
        known: Vec<String>,
    },
    /// An axis was asked for twice.
    RepeatedAxis {
        /// The axis.
        axis: String,
    },
    /// Several cells fall on one place.
    Ambiguous {
        /// The first such place: names and values.
        place: String,
        /// Cells there.
        count: usize,
        /// Axes along which cells of one place differ; fixing or adding them would separate them.
        separating: Vec<String>,
    },
}

impl fmt::Display for PivotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownAxis { axis, known } => {
                write!(f, "no axis `{axis}`: there are {}", known.join(", "))
            }
            Self::RepeatedAxis { axis } => write!(f, "axis `{axis}` is asked for twice"),
            Self::Ambiguous { place, count, separating } if separating.is_empty() => {
                write!(f, "{count} cells at {place} do not differ along any axis")
            }
            Self::Ambiguous { place, count, separating } => {
                write!(f, "{count} cells at {place}: they differ in {}", separating.join(", "))
            }
        }
    }
}

impl std::error::Error for PivotError {}

/// Cells by row and column.
type Places<'a> = BTreeMap<Vec<AxisValue>, BTreeMap<AxisValue, Vec<&'a PivotRow>>>;

/// The table with a row per combination of values of `row_axes` that occurs, and a column per value
/// of `column_axis`. Its id and caption name the axes; the caller may know better.
pub fn pivot(rows: &[PivotRow], row_axes: &[&str], column_axis: &str) -> Result<Table, PivotError> {
    let asked: Vec<&str> = row_axes.iter().copied().chain([column_axis]).collect();
    check_axes(rows, &asked)?;
    let mut places = Places::new();
    for row in rows {
        let key = row_axes.iter().map(|axis| row.at(axis)).collect();
        places.entry(key).or_default().entry(row.at(column_axis)).or_default().push(row);
    }
    check_unique(&places, &asked)?;
    let heads: BTreeSet<&AxisValue> = places.values().flat_map(BTreeMap::keys).collect();
    let mut columns: Vec<Column> =
        row_axes.iter().enumerate().map(|(at, axis)| left_column(axis, at, &places)).collect();
    for head in &heads {
        let key = format!("{column_axis}={}", head.key());
        let label = format!("{column_axis} = {}", head.label());
        columns.push(Column::new(key, label, Align::Right));
    }
    let caption = format!("{} by {column_axis}", row_axes.join(", "));
    let mut table = Table::new(format!("by-{column_axis}"), caption, columns);
    for (key, cells) in &places {
        let there =
            |head: &&AxisValue| cells.get(*head).map_or(Cell::Empty, |rows| rows[0].cell.clone());
        table.push(key.iter().map(AxisValue::cell).chain(heads.iter().map(there)).collect());
    }
    Ok(table)
}

/// The column of an axis at the left, set as numbers if it has any.
fn left_column(axis: &str, at: usize, places: &Places) -> Column {
    let numbers = places.keys().any(|key| key[at].is_number());
    Column::new(axis, axis, if numbers { Align::Right } else { Align::Left })
}

fn check_axes(rows: &[PivotRow], asked: &[&str]) -> Result<(), PivotError> {
    let known: BTreeSet<&str> = rows.iter().flat_map(names).collect();
    for (at, axis) in asked.iter().enumerate() {
        if asked[..at].contains(axis) {
            return Err(PivotError::RepeatedAxis { axis: (*axis).to_owned() });
        }
        if !known.contains(axis) {
            let known = known.into_iter().map(str::to_owned).collect();
            return Err(PivotError::UnknownAxis { axis: (*axis).to_owned(), known });
        }
    }
    Ok(())
}

fn names(row: &PivotRow) -> impl Iterator<Item = &str> {
    row.axes.iter().map(|(name, _)| name.as_str())
}

fn check_unique(places: &Places, asked: &[&str]) -> Result<(), PivotError> {
    let mut crowded =
        places.values().flat_map(BTreeMap::values).filter(|rows| rows.len() > 1).peekable();
    let Some(first) = crowded.peek() else { return Ok(()) };
    let count = first.len();
    let value = |axis: &&str| format!("{axis} = {}", first[0].at(axis).label());
    let place = asked.iter().map(value).collect::<Vec<_>>().join(", ");
    let mut separating = BTreeSet::new();
    for rows in crowded {
        let axes: BTreeSet<&str> = rows.iter().flat_map(|row| names(row)).collect();
        let differs = |axis: &&str| rows.iter().any(|row| row.at(axis) != rows[0].at(axis));
        separating.extend(axes.into_iter().filter(differs).map(str::to_owned));
    }
    Err(PivotError::Ambiguous { place, count, separating: separating.into_iter().collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{Format, render};

    fn row(n: i64, t: i64, delta: f64, kernel: &str, value: i64) -> PivotRow {
        let axes = vec![
            ("N".to_owned(), AxisValue::Integer(n)),
            ("t".to_owned(), AxisValue::Integer(t)),
            ("delta".to_owned(), AxisValue::Float(delta)),
            ("kernel".to_owned(), AxisValue::Text(kernel.to_owned())),
        ];
        PivotRow { axes, cell: Cell::Integer(value) }
    }

    #[test]
    fn rows_and_columns_are_sorted_and_gaps_stay_empty() {
        let rows = [
            row(100, 10, 0.1, "se", 1),
            row(20, 10, 0.1, "se", 2),
            row(20, 9, 0.1, "se", 3),
            row(100, 100, 0.1, "se", 4),
        ];
        let table = pivot(&rows, &["N", "kernel"], "t").unwrap();
        assert_eq!(
            render(&table, Format::Csv),
            "N,kernel,t=9,t=10,t=100\n20,se,3,2,\n100,se,,1,4\n"
        );
        assert_eq!(table.columns()[3].head.plain, "t = 10");
        assert_eq!(
            table.columns().iter().map(|column| column.align).collect::<Vec<_>>(),
            [Align::Right, Align::Left, Align::Right, Align::Right, Align::Right]
        );
    }

    #[test]
    fn cells_on_one_place_are_named() {
        let rows = [row(20, 9, 0.1, "se", 1), row(20, 9, 0.05, "se", 2), row(20, 8, 0.1, "se", 3)];
        let error = pivot(&rows, &["N"], "t").unwrap_err();
        assert_eq!(error.to_string(), "2 cells at N = 20, t = 9: they differ in delta");
        assert!(pivot(&rows, &["N", "delta"], "t").is_ok());
        let twins = [row(20, 9, 0.1, "se", 1), row(20, 9, 0.1, "se", 1)];
        let error = pivot(&twins, &["N"], "t").unwrap_err().to_string();
        assert_eq!(error, "2 cells at N = 20, t = 9 do not differ along any axis");
    }

    #[test]
    fn axes_must_exist_and_be_different() {
        let rows = [row(20, 9, 0.1, "se", 1)];
        let error = pivot(&rows, &["n"], "t").unwrap_err().to_string();
        assert_eq!(error, "no axis `n`: there are N, delta, kernel, t");
        let error = pivot(&rows, &["t"], "t").unwrap_err().to_string();
        assert_eq!(error, "axis `t` is asked for twice");
    }

    #[test]
    fn a_cell_without_an_axis_has_no_value_there() {
        let mut rows = vec![row(20, 9, 0.1, "se", 1), row(20, 9, 0.1, "se", 2)];
        rows[1].axes.remove(0);
        let csv = render(&pivot(&rows, &["N"], "t").unwrap(), Format::Csv);
        assert_eq!(csv, "N,t=9\n20,1\n,2\n");
    }
}
