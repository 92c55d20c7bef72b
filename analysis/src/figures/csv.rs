//! Tables of what a figure shows, quoted as RFC 4180 has it.

use super::label;

/// A table under way.
pub(super) struct Table(String);

impl Table {
    pub(super) fn new(header: &[&str]) -> Self {
        Self(header.join(",") + "\n")
    }

    pub(super) fn row<const A: usize, const B: usize>(
        &mut self,
        names: [String; A],
        values: [String; B],
    ) {
        let fields: Vec<String> = names.into_iter().chain(values).collect();
        self.0.push_str(&fields.join(","));
        self.0.push('\n');
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

/// A label as a field.
pub(super) fn text(of: &str) -> String {
    let plain = label::unescaped(of);
    if plain.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", plain.replace('"', "\"\""))
    } else {
        plain
    }
}

/// A number as a field: all its digits, or nothing.
pub(super) fn number(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(String::new, |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(text("plain"), "plain");
        assert_eq!(text("a, \"b\""), "\"a, \"\"b\"\"\"");
        assert_eq!(text("x\\_next"), "x_next");
    }

    #[test]
    fn numbers_keep_every_digit() {
        assert_eq!(number(Some(0.1 + 0.2)), "0.30000000000000004");
        assert_eq!(number(Some(f64::NAN)), "");
        assert_eq!(number(None), "");
    }
}
