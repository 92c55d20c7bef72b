//! `codebook.csv`: a line per column of the records.

use crate::schema::Column;
use crate::tables::csv::quoted;

/// The file's text: column, type, meaning, nullable.
pub fn text(columns: &[Column]) -> String {
    let mut text = String::from("column,type,meaning,nullable\n");
    for column in columns {
        let nullable = if column.nullable { "true" } else { "false" };
        let line = [&quoted(&column.name), column.kind.name(), &quoted(&column.meaning), nullable];
        text += &line.join(",");
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Type, columns};

    #[test]
    fn every_column_has_a_line_of_four_fields() {
        let columns = columns(&[("prior.kernel.lengthscale".into(), Type::Float)]);
        let text = text(&columns);
        assert_eq!(text.lines().count(), columns.len() + 1);
        assert!(text.starts_with("column,type,meaning,nullable\nstudy,string,"));
        assert!(text.contains("\nprior.kernel.lengthscale,f64,\"value of "));
        assert!(
            text.contains("\nerror_star,f64,\"the same error at x*, while unobserved\",true\n")
        );
    }

    #[test]
    fn quotes_are_doubled() {
        assert_eq!(quoted("a \"b\", c"), "\"a \"\"b\"\", c\"");
        assert_eq!(quoted("plain"), "plain");
    }
}
