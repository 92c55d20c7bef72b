//! Plain text tables: columns as wide as their widest entry.

use std::fmt::{self, Write};

/// Rows of cells; the first row is the head.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(ToString::to_string).collect()] }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    /// The first column is left-aligned, the others to the right.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |j: usize| {
            self.rows.iter().filter_map(|row| row.get(j)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> = (0..columns).map(|j| width(j).unwrap_or(0)).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (j, cell) in row.iter().enumerate() {
                let width = widths[j];
                if j == 0 {
                    write!(line, "{cell:<width$}")?;
                } else {
                    write!(line, "  {cell:>width$}")?;
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Ten significant digits, or a dash where there is no value.
pub(crate) fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| significant(value, 10))
}

/// `digits` significant digits without trailing zeros; scientific where that is much shorter.
pub(crate) fn significant(value: f64, digits: u8) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let scientific = format!("{value:.*e}", usize::from(digits) - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    if (-4..15).contains(&exponent) {
        let decimals = (i32::from(digits) - 1 - exponent).max(0) as usize;
        trim(&format!("{value:.decimals$}"))
    } else {
        format!("{}e{exponent}", trim(mantissa))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_significant_digits() {
        assert_eq!(significant(0.812_426_732_71, 10), "0.8124267327");
        assert_eq!(significant(1500.0, 10), "1500");
        assert_eq!(significant(1.5e-9, 10), "1.5e-9");
        assert_eq!(significant(-0.25, 10), "-0.25");
        assert_eq!(number(None), "-");
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["", "a"]);
        table.row(vec!["x".into(), "10".into()]);
        assert_eq!(table.to_string(), "    a\nx  10\n");
    }
}
