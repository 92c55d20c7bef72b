//! Columns of characters: widths, padding, and breaking text into lines.

use super::model::Align;
use super::symbols;

/// Columns that a terminal needs: accents stand over the letter before them.
pub(super) fn width(text: &str) -> usize {
    text.chars().filter(|c| symbols::accent(*c).is_none()).count()
}

/// `text` in `columns`, by the column's alignment, with a shown width that may differ from its own.
pub(super) fn pad(text: &str, shown: usize, columns: usize, align: Align) -> String {
    let room = columns.saturating_sub(shown);
    let left = match align {
        Align::Left | Align::Wrap => 0,
        Align::Right => room,
        Align::Center => room / 2,
    };
    format!("{}{text}{}", " ".repeat(left), " ".repeat(room - left))
}

/// Lines of at most `columns`, broken at spaces; a longer word is cut.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && width(&line) + 1 + width(word) > columns {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
        while width(&line) > columns {
            let cut = cut(&line, columns);
            let rest = line.split_off(cut);
            lines.push(std::mem::replace(&mut line, rest));
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// Bytes of the first `columns` characters, with the accents over the last of them; at least one.
fn cut(line: &str, columns: usize) -> usize {
    let bases = line.char_indices().filter(|(_, c)| symbols::accent(*c).is_none());
    bases.map(|(at, _)| at).nth(columns.max(1)).unwrap_or(line.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accents_take_no_room() {
        assert_eq!((width("μ̂_t"), width("−0.5"), width("")), (3, 4, 0));
        assert_eq!(pad("μ̂", 1, 3, Align::Right), "  μ̂");
        assert_eq!(pad("ab", 2, 5, Align::Center), " ab  ");
    }

    #[test]
    fn text_is_broken_at_spaces_and_long_words_are_cut() {
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("a abcdefgh ij", 3), ["a", "abc", "def", "gh", "ij"]);
        assert_eq!(wrap("μ̂μ̂μ̂", 2), ["μ̂μ̂", "μ̂"]);
        assert_eq!(wrap("", 5), [""]);
    }
}
