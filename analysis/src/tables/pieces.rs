//! Pieces of a line, and how they are put together: in text with dollars where maths stands, or
//! all in maths.

use std::borrow::Cow;

/// How a piece goes with its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Prose: ends a formula.
    Text,
    /// A comma or the like before a space: ends a formula.
    Break,
    /// White space.
    Space,
    /// An opening bracket: reads the same in text and in maths.
    Open,
    /// Anything else that reads the same in both.
    Neutral,
    /// A sign that reads the same in both, and binds its neighbours.
    Sign,
    /// A sign that makes a formula.
    Operator,
    /// A thing that makes a formula.
    Math,
}

#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) class: Class,
    pub(super) latex: String,
}

/// The pieces as text, each stretch of maths between dollars.
pub(super) fn text_mode(pieces: &[Piece]) -> String {
    let mut out = String::new();
    let mut run: Vec<&Piece> = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        let separates = match piece.class {
            Class::Text | Class::Break => true,
            Class::Space => {
                let class = |at: usize| pieces.get(at).map(|piece| piece.class);
                // A remark in brackets, not a factor.
                let remark =
                    class(at + 1) == Some(Class::Open) && class(at + 2) == Some(Class::Text);
                remark || !joins(at.checked_sub(1).and_then(class), class(at + 1))
            }
            _ => false,
        };
        if separates {
            flush(&mut run, &mut out);
            // Two hyphens would become a dash.
            let guard = if piece.latex == "-" && out.ends_with('-') { "{}" } else { "" };
            out += guard;
            out += &piece.latex;
        } else {
            run.push(piece);
        }
    }
    flush(&mut run, &mut out);
    out
}

/// Whether the space between two pieces may be left to maths, which ignores it.
fn joins(before: Option<Class>, after: Option<Class>) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return false };
    let prose = |class| matches!(class, Class::Text | Class::Break);
    let binds = |class| matches!(class, Class::Sign | Class::Operator);
    if prose(before) || prose(after) {
        return false;
    }
    binds(before)
        || binds(after)
        || matches!((before, after), (Class::Math | Class::Neutral, Class::Math))
        || (before, after) == (Class::Math, Class::Open)
}

fn flush(run: &mut Vec<&Piece>, out: &mut String) {
    let maths = run.iter().any(|piece| matches!(piece.class, Class::Math | Class::Operator));
    let mut latex = String::new();
    for piece in run.drain(..) {
        append(&mut latex, &piece.latex);
    }
    let dollar = if maths { "$" } else { "" };
    out.extend([dollar, &latex, dollar]);
}

/// The pieces inside maths.
pub(super) fn math_mode(pieces: &[Piece]) -> String {
    let text = |at: Option<usize>| {
        at.and_then(|at| pieces.get(at)).is_some_and(|piece| piece.class == Class::Text)
    };
    let mut out = String::new();
    for (at, piece) in pieces.iter().enumerate() {
        let latex = match piece.class {
            Class::Text => Cow::Owned(format!(r"\text{{{}}}", piece.latex)),
            Class::Space if text(at.checked_sub(1)) || text(Some(at + 1)) => Cow::Borrowed(r"\ "),
            _ => Cow::Borrowed(piece.latex.as_str()),
        };
        append(&mut out, &latex);
    }
    out
}

/// Adds `latex`, apart from a command before it that would swallow its first letter.
pub(super) fn append(out: &mut String, latex: &str) {
    let command = out.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let open = command.len() < out.len() && command.ends_with('\\') && !command.ends_with("\\\\");
    if open && latex.starts_with(|c: char| c.is_ascii_alphabetic()) {
        out.push(' ');
    }
    *out += latex;
}

/// Whether a character is part of a word, or of a name.
pub(super) fn is_wordy(c: char) -> bool {
    c.is_ascii_alphanumeric() || (c.is_alphabetic() && ('À'..='ž').contains(&c))
}

/// The functions that are set upright.
pub(super) fn function(word: &str) -> Option<&'static str> {
    Some(match word {
        "log" => r"\log",
        "exp" => r"\exp",
        "max" => r"\max",
        "min" => r"\min",
        "sup" => r"\sup",
        "det" => r"\det",
        "argmax" => r"\operatorname{arg\,max}",
        "argmin" => r"\operatorname{arg\,min}",
        _ => return None,
    })
}

/// A character that is not maths; its code point where pdfLaTeX has no letter for it.
pub(super) fn escaped(c: char) -> String {
    match c {
        '&' | '%' | '$' | '#' | '_' | '{' | '}' => format!("\\{c}"),
        '\\' => r"\backslash".to_owned(),
        '~' => r"\textasciitilde{}".to_owned(),
        '^' => r"\textasciicircum{}".to_owned(),
        '`' => r"\textasciigrave{}".to_owned(),
        '"' => "''".to_owned(),
        '…' => r"\dots{}".to_owned(),
        _ if c.is_ascii() || "–—‘’“”§©®".contains(c) => c.to_string(),
        _ if is_wordy(c) && !"ÐðÞþĄąĐđĘęĦħĮįĸĿŀŉŊŋŦŧŲųſ".contains(c) => {
            c.to_string()
        }
        _ => format!("U+{:04X}", c as u32),
    }
}

#[cfg(test)]
mod tests {
    use crate::tables::{formula::latex, specimen};

    #[test]
    fn any_text_is_balanced() {
        for text in specimen::noise(20000) {
            let latex = latex(&text).replace(r"\{", "").replace(r"\}", "").replace(r"\$", "");
            let mut depth = 0_i32;
            for c in latex.chars() {
                depth += i32::from(c == '{') - i32::from(c == '}');
                assert!(depth >= 0, "{text}: {latex}");
            }
            assert_eq!((depth, latex.matches('$').count() % 2), (0, 0), "{text}: {latex}");
        }
    }
}
