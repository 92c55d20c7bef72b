//! CSV for other programs (RFC 4180): full precision, no rounding, no notes.
//!
//! An estimate takes the columns `key` and `key_se`, an interval `key_low` and `key_high`; titles of
//! groups become a first column `group`.

use super::cell::Cell;
use super::model::{Row, Table};

/// Which fields a column needs.
#[derive(Clone, Copy, Default)]
struct Fields {
    value: bool,
    error: bool,
    ends: bool,
}

pub(super) fn render(table: &Table) -> String {
    let fields: Vec<Fields> = (0..table.columns().len()).map(|at| needed(table, at)).collect();
    let grouped = table.is_grouped();
    let mut lines = vec![heads(table, &fields)];
    let mut group = "";
    for row in table.rows() {
        match row {
            Row::Group(title) => group = &title.plain,
            Row::Cells(cells) => {
                let mut line: Vec<String> = grouped.then(|| group.to_owned()).into_iter().collect();
                for (cell, fields) in cells.iter().zip(&fields) {
                    line.extend(values(cell, *fields));
                }
                lines.push(line);
            }
        }
    }
    let quoted = |line: &Vec<String>| line.iter().map(|value| quoted(value)).collect::<Vec<_>>();
    lines.iter().map(|line| quoted(line).join(",") + "\n").collect()
}

fn needed(table: &Table, at: usize) -> Fields {
    let mut fields = Fields::default();
    for cells in table.cells() {
        match cells[at] {
            Cell::Empty => {}
            Cell::Estimate { .. } | Cell::Judged { .. } => {
                (fields.value, fields.error) = (true, true);
            }
            Cell::Interval { .. } => fields.ends = true,
            _ => fields.value = true,
        }
    }
    // An empty column is still a column.
    fields.value |= !fields.ends;
    fields
}

fn heads(table: &Table, fields: &[Fields]) -> Vec<String> {
    let mut heads: Vec<String> =
        table.is_grouped().then(|| "group".to_owned()).into_iter().collect();
    for (column, fields) in table.columns().iter().zip(fields) {
        let key = &column.key;
        heads.extend(fields.value.then(|| key.clone()));
        heads.extend(fields.error.then(|| format!("{key}_se")));
        if fields.ends {
            heads.extend([format!("{key}_low"), format!("{key}_high")]);
        }
    }
    heads
}

fn values(cell: &Cell, fields: Fields) -> Vec<String> {
    let (mut value, mut error, mut ends) = <(String, String, [String; 2])>::default();
    match cell {
        Cell::Empty => {}
        Cell::Text(words) | Cell::Flag { words, .. } => value.clone_from(&words.plain),
        Cell::Integer(integer) => value = integer.to_string(),
        Cell::Exact(number) | Cell::Number { value: number, .. } => value = full(*number),
        Cell::Estimate { value: number, error: se }
        | Cell::Judged { value: number, error: se, .. } => {
            (value, error) = (full(*number), full(*se));
        }
        Cell::Interval { low, high, .. } => ends = [full(*low), full(*high)],
    }
    let mut values = Vec::new();
    values.extend(fields.value.then_some(value));
    values.extend(fields.error.then_some(error));
    if fields.ends {
        values.extend(ends);
    }
    values
}

/// The shortest digits that read back as the same number; nothing where there is none.
pub(super) fn full(number: f64) -> String {
    if !number.is_finite() {
        return String::new();
    }
    let plain = format!("{number}");
    // 1e-300 without an exponent would fill a line.
    if plain.len() > 24 { format!("{number:e}") } else { plain }
}

/// Quoted where RFC 4180 asks for it.
pub(crate) fn quoted(value: &str) -> String {
    if value.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", value.replace('"', "\"\""))
    } else {
        value.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{Align, Column, fixture};

    #[test]
    fn the_audit() {
        assert_eq!(
            render(&fixture::audit()),
            "group,claim,statement,n,rate,rate_se,interval_low,interval_high,verdict\n\
             Lemma 1,lemma1.mean,(μ̂_t(x) − μ_t(x))² < a_t (k_t(x) + σ²),1000,0.0123,0.00349,0.0061,0.0217,confirmed\n\
             Lemma 1,lemma1/step.K,\"k̂_t(x) < b | D_t, \"\"sic\"\"\",1000,0.686,0.0147,0.656,0.715,refuted\n\
             \"Theorem 2, *PI*\",theorem2.pi,r_T ≤ η λ_T,20000000000,0,0,0,0.0000123,undecided\n\
             \"Theorem 2, *PI*\",theorem2.pi/step_x,,,,,,,not-applicable\n"
        );
    }

    #[test]
    fn a_column_has_the_fields_that_it_needs() {
        let column = |key: &str| Column::new(key, key, Align::Right);
        let mut table = Table::new("t", "", vec![column("a"), column("b"), column("c")]);
        let interval = Cell::Interval { low: 1e-300, high: f64::INFINITY, digits: 1 };
        table.push(vec![interval, Cell::Empty, Cell::Exact(0.1)]);
        table.push(vec![Cell::Integer(-3), Cell::Empty, Cell::Estimate { value: 1.5, error: 0.5 }]);
        assert_eq!(render(&table), "a,a_low,a_high,b,c,c_se\n,1e-300,,,0.1,\n-3,,,,1.5,0.5\n");
    }

    #[test]
    fn line_breaks_are_quoted() {
        assert_eq!((quoted("a\nb"), quoted("a b")), ("\"a\nb\"".to_owned(), "a b".to_owned()));
    }
}
