//! Subscripts and superscripts as they are typed: `x_t`, `ι_{τ−1}`, `10^{-5}`.
//!
//! A name such as `n_rows` or `lemma1_step` has none: a base is one letter, and what is lowered is
//! one letter, a number, or in braces.

use super::symbols;
use std::ops::Range;

/// What the `_` or `^` at `at` lowers or raises, without its braces, and where the text goes on.
pub(super) fn operand(chars: &[char], at: usize) -> Option<(Range<usize>, usize)> {
    let start = at + 1;
    let first = *chars.get(start)?;
    if first == '{' {
        let close = matching(chars, start);
        return (close < chars.len() && close > start + 1).then_some((start + 1..close, close + 1));
    }
    let count = |from: usize, keep: fn(char) -> bool| {
        chars[from..].iter().take_while(|c| keep(**c)).count()
    };
    let end = if first.is_ascii_digit() {
        start + count(start, |c| c.is_ascii_digit())
    } else if first == '*' || is_letter(first) {
        start + 1 + count(start + 1, |c| symbols::accent(c).is_some() || symbols::primes(c) > 0)
    } else {
        return None;
    };
    let goes_on = chars.get(end).is_some_and(|c| is_letter(*c) || c.is_ascii_digit());
    (!goes_on).then_some((start..end, end))
}

/// Whether the `_` or `^` at `at` has something to stand at, and something to lower or raise.
pub(super) fn is_script(chars: &[char], at: usize) -> bool {
    matches!(chars[at], '_' | '^') && has_base(chars, at) && operand(chars, at).is_some()
}

fn has_base(chars: &[char], at: usize) -> bool {
    let decoration = |c: char| symbols::accent(c).is_some() || symbols::primes(c) > 0;
    let Some(base) = chars[..at].iter().rposition(|c| !decoration(*c)) else { return false };
    match chars[base] {
        ')' | ']' | '}' => true,
        c if c.is_ascii_digit() => chars[at] == '^',
        c if symbols::math(c).is_some() => true,
        c => {
            // 2b is a number and a variable; lemma1b is a name.
            let before = chars[..base].iter().rev().find(|c| !c.is_ascii_digit());
            is_letter(c) && !before.is_some_and(|c| c.is_ascii_alphabetic() || *c == '_')
        }
    }
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(symbols::math(c), Some((_, symbols::Kind::Atom)))
}

/// Where the bracket opened at `open` closes; the end of the text if it does not.
pub(super) fn matching(chars: &[char], open: usize) -> usize {
    let opening = chars[open];
    let closing = if opening == '{' { '}' } else { ')' };
    let mut depth = 0;
    for (at, c) in chars.iter().enumerate().skip(open) {
        if *c == opening {
            depth += 1;
        } else if *c == closing {
            depth -= 1;
            if depth == 0 {
                return at;
            }
        }
    }
    chars.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_have_scripts_and_names_do_not() {
        let found = |text: &str| -> Vec<String> {
            let chars: Vec<char> = text.chars().collect();
            let scripts = (0..chars.len()).filter(|at| is_script(&chars, *at));
            scripts.map(|at| chars[operand(&chars, at).unwrap().0].iter().collect()).collect()
        };
        assert_eq!(found("k_t(x) + ι_{τ−1} − y_τ′, x_12, 2b_t"), ["t", "τ−1", "τ′", "12", "t"]);
        assert_eq!(found("μ̂_t, 10^{-5}, (1+x)^2, x_*"), ["t", "-5", "2", "*"]);
        assert_eq!(found("n_rows lemma1b_t lemma1_step _x x_ x_{} x_{a 1_000 a^"), [""; 0]);
    }
}
