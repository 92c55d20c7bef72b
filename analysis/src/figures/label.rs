//! The markup of labels: `r_T` and `r_{T+1}` lower, `x^2` and `10^{-3}` raise, `\_` is a plain
//! underscore.
//!
//! Also where a label may be broken when it is too wide for its place.

use super::fonts;

/// Where a piece of a label stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Base,
    Sub,
    Super,
}

impl Level {
    /// The size of its letters in parts of the label's size.
    pub(super) fn scale(self) -> f64 {
        if self == Self::Base { 1.0 } else { 0.72 }
    }

    /// How far its baseline lies above the label's, in parts of the label's size.
    pub(super) fn rise(self) -> f64 {
        match self {
            Self::Base => 0.0,
            Self::Sub => -0.2,
            Self::Super => 0.36,
        }
    }
}

/// Letters of one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) level: Level,
}

/// The pieces of a label.
pub(super) fn parse(label: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = vec![];
    let mut add = |text: &str, level| match pieces.last_mut() {
        Some(last) if last.level == level => last.text.push_str(text),
        _ => pieces.push(Piece { text: text.to_owned(), level }),
    };
    let mut rest = label;
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        let level = match first {
            '_' => Level::Sub,
            '^' => Level::Super,
            _ => Level::Base,
        };
        let script = if level == Level::Base { None } else { script(after) };
        let escaped = (first == '\\').then(|| after.chars().next()).flatten();
        rest = if let Some((text, after)) = script {
            add(text, level);
            after
        } else if let Some(escaped) = escaped {
            add(&after[..escaped.len_utf8()], Level::Base);
            &after[escaped.len_utf8()..]
        } else {
            add(&rest[..first.len_utf8()], Level::Base);
            after
        };
    }
    pieces
}

/// What `_` or `^` applies to, and what follows: a braced group, or one letter or digit.
fn script(after: &str) -> Option<(&str, &str)> {
    if let Some(group) = after.strip_prefix('{') {
        return group.split_once('}');
    }
    let first = after.chars().next().filter(|c| c.is_alphanumeric() || matches!(c, '*' | '∗'))?;
    let accent = after[first.len_utf8()..].chars().next().filter(|&c| c == fonts::HAT);
    let end = first.len_utf8() + accent.map_or(0, char::len_utf8);
    Some(after.split_at(end))
}

/// A label that shows `text` exactly, whatever characters are in it.
pub fn verbatim(text: &str) -> String {
    text.chars().fold(String::new(), |mut label, c| {
        if matches!(c, '_' | '^' | '\\') {
            label.push('\\');
        }
        label.push(c);
        label
    })
}

/// A label with its escapes taken away, for tables.
pub(super) fn unescaped(label: &str) -> String {
    let mut text = String::new();
    let mut chars = label.chars();
    while let Some(c) = chars.next() {
        text.push(if c == '\\' { chars.next().unwrap_or(c) } else { c });
    }
    text
}

/// Breaks a label into lines no wider than `width`, where it has places to break.
pub(super) fn wrap(label: &str, width: f64, size: f64, bold: bool) -> Vec<String> {
    let mut lines: Vec<String> = vec![];
    for word in words(label) {
        let longer = lines.last().map(|line| format!("{line}{word}"));
        match longer.filter(|longer| fonts::width(longer.trim_end(), size, bold) <= width) {
            Some(longer) => *lines.last_mut().expect("it was just read") = longer,
            None => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

/// The unbreakable parts: they end after a space, a slash, a hyphen or the point of a dotted name;
/// never inside braces.
fn words(label: &str) -> Vec<&str> {
    let mut cuts = vec![0];
    let mut depth = 0_usize;
    let mut chars = label.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|&(_, next)| next);
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ' ' | '/' | '-' if depth == 0 && next.is_some_and(|c| c != ' ') => cuts.push(at + 1),
            '.' if depth == 0 && next.is_some_and(char::is_alphabetic) => cuts.push(at + 1),
            _ => {}
        }
    }
    cuts.push(label.len());
    cuts.windows(2).map(|cut| &label[cut[0]..cut[1]]).filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(label: &str) -> Vec<(String, Level)> {
        parse(label).into_iter().map(|piece| (piece.text, piece.level)).collect()
    }

    #[test]
    fn markup_is_read() {
        let piece = |text: &str, level| (text.to_owned(), level);
        assert_eq!(shown("r_T"), [piece("r", Level::Base), piece("T", Level::Sub)]);
        assert_eq!(
            shown("10^{−3} x"),
            [piece("10", Level::Base), piece("−3", Level::Super), piece(" x", Level::Base)]
        );
        assert_eq!(shown("μ\u{302}_t")[1], piece("t", Level::Sub));
        assert_eq!(shown("a_ b^"), [piece("a_ b^", Level::Base)]);
        assert_eq!(shown("a_{b"), [piece("a_{b", Level::Base)]);
        assert_eq!(shown(""), []);
    }

    #[test]
    fn verbatim_survives_the_markup() {
        for text in ["x_next", "a^2", "\\", "plain", "_{}"] {
            let label = verbatim(text);
            let back: String = parse(&label).into_iter().map(|piece| piece.text).collect();
            assert_eq!(back, text);
            assert_eq!(unescaped(&label), text);
        }
    }

    #[test]
    fn wrapping_keeps_every_letter_and_the_width() {
        let label = "theorem2.ucb/step.variance-star at 0.95 of r_{T, N}";
        for width in [20.0, 60.0, 100.0, 400.0] {
            let lines = wrap(label, width, 9.0, false);
            let squeeze = |text: String| text.replace(' ', "");
            assert_eq!(squeeze(lines.concat()), squeeze(label.to_owned()));
            assert!(
                lines.iter().all(|line| {
                    fonts::width(line, 9.0, false) <= width || words(line).len() == 1
                })
            );
        }
        assert!(wrap("", 10.0, 9.0, false).is_empty());
        assert!(words("0.95").len() == 1, "numbers stay whole");
    }
}
