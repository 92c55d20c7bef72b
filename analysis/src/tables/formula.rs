//! Plain Unicode into LaTeX, formulas included.
//!
//! Text with maths in it, such as "(μ̂_t(x) − μ_t(x))² < a_t (k_t(x) + σ²)", is cut into pieces; what
//! stands together as maths goes between one pair of dollars. In such text a letter by itself is a
//! variable. Text without maths is only escaped.

use super::pieces::{Class, Piece, append, escaped, function, is_wordy, math_mode, text_mode};
use super::script;
use super::symbols::{self, Kind};
use std::fmt::Write as _;

/// LaTeX for text mode.
pub(super) fn latex(plain: &str) -> String {
    let chars: Vec<char> = plain.chars().collect();
    let special = |c: char| {
        c == '√'
            || symbols::math(c).is_some()
            || symbols::accent(c).is_some()
            || symbols::lowered(c).is_some()
            || symbols::raised(c).is_some()
            || symbols::primes(c) > 0
    };
    let formula = (0..chars.len()).any(|at| special(chars[at]) || script::is_script(&chars, at));
    text_mode(&Parser { chars: &chars, at: 0, formula }.pieces())
}

struct Parser<'a> {
    chars: &'a [char],
    at: usize,
    formula: bool,
}

impl Parser<'_> {
    fn pieces(mut self) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        while let Some(c) = self.peek(0) {
            let after_math = pieces.last().is_some_and(|piece| piece.class == Class::Math);
            pieces.push(self.piece(c, after_math));
        }
        pieces
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn piece(&mut self, c: char, after_math: bool) -> Piece {
        if is_wordy(c) && !c.is_ascii_digit() {
            return self.word();
        }
        if c.is_ascii_digit() {
            return self.number();
        }
        if c == '√' {
            return self.root();
        }
        if c.is_whitespace() || c.is_control() {
            while self.peek(0).is_some_and(|c| c.is_whitespace() || c.is_control()) {
                self.at += 1;
            }
            return Piece { class: Class::Space, latex: " ".to_owned() };
        }
        if let Some((latex, kind)) = symbols::math(c) {
            self.at += 1;
            return match kind {
                Kind::Operator => Piece { class: Class::Operator, latex: latex.to_owned() },
                Kind::Atom if c == 'Σ' && self.peek(0) == Some('_') => {
                    self.scripted(r"\sum", Class::Math)
                }
                Kind::Atom => self.scripted(latex, Class::Math),
            };
        }
        if symbols::raised(c).or(symbols::lowered(c)).is_some() || symbols::primes(c) > 0 {
            return self.scripted("{}", Class::Math);
        }
        self.at += 1;
        self.mark(c, after_math)
    }

    /// Punctuation and brackets.
    fn mark(&mut self, c: char, after_math: bool) -> Piece {
        let ends = self.peek(0).is_none_or(char::is_whitespace);
        let spaced = ends && self.at >= 2 && self.chars[self.at - 2].is_whitespace();
        let letter = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphabetic());
        let starts_word = letter(self.peek(0)) && letter(self.peek(1));
        let opens = self.at < 2 || " \t\n([".contains(self.chars[self.at - 2]);
        let class = match c {
            '"' if opens => return Piece { class: Class::Text, latex: "``".to_owned() },
            '|' if spaced => return Piece { class: Class::Operator, latex: r"\mid".to_owned() },
            ')' | ']' => return self.scripted(&c.to_string(), Class::Neutral),
            '(' | '[' => Class::Open,
            ',' | ';' | ':' | '.' | '!' | '?' if ends => Class::Break,
            ',' | ';' | ':' | '.' | '!' | '?' | '/' | '*' | '{' | '}' | '_' | '&' | '%' | '$'
            | '#' => Class::Neutral,
            '+' | '=' => Class::Sign,
            '-' if spaced || (after_math && !starts_word) => Class::Sign,
            '<' | '>' => Class::Operator,
            '|' | '\\' => Class::Math,
            _ => Class::Text,
        };
        Piece { class, latex: escaped(c) }
    }

    fn word(&mut self) -> Piece {
        let start = self.at;
        self.at += 1;
        // An accent belongs to one letter, which is then a variable.
        let accented = |parser: &Self| parser.peek(1).is_some_and(|c| symbols::accent(c).is_some());
        if self.peek(0).is_none_or(|c| symbols::accent(c).is_none()) {
            while self.peek(0).is_some_and(is_wordy) && !accented(self) {
                self.at += 1;
            }
        }
        let word: String = self.chars[start..self.at].iter().collect();
        if self.formula && self.at == start + 1 && self.is_variable(start) {
            return self.scripted(&word, Class::Math);
        }
        match function(&word) {
            Some(latex) if self.formula => self.scripted(latex, Class::Math),
            _ => Piece { class: Class::Text, latex: word.chars().map(escaped).collect() },
        }
    }

    /// Whether the letter at `start` is more than an article, an initial or a part of a name.
    fn is_variable(&self, start: usize) -> bool {
        let at = |index: Option<usize>| index.and_then(|index| self.chars.get(index)).copied();
        let before = |back: usize| at(start.checked_sub(back));
        let after = |ahead: usize| at(start.checked_add(ahead));
        let letter = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphabetic());
        if !letter(before(0)) {
            return false;
        }
        if after(1).is_some_and(|c| symbols::accent(c).is_some()) {
            return true;
        }
        if matches!(self.chars[start], 'a' | 'A' | 'I') && after(1) == Some(' ') {
            return !(letter(after(2)) && letter(after(3)));
        }
        let tail = match before(1) {
            Some('\'' | '’' | '_') => true,
            Some('.') => before(2).is_some_and(char::is_alphanumeric),
            Some('-') => letter(before(2)) && letter(before(3)),
            _ => false,
        };
        let head = match after(1) {
            Some('\'' | '’') => true,
            Some('_') => !script::is_script(self.chars, start + 1),
            Some('.') => letter(after(2)),
            Some('-') => letter(after(2)) && letter(after(3)),
            _ => false,
        };
        !tail && !head
    }

    fn number(&mut self) -> Piece {
        let start = self.at;
        let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        while digit(self.peek(0)) || (self.peek(0) == Some('.') && digit(self.peek(1))) {
            self.at += 1;
        }
        let number: String = self.chars[start..self.at].iter().collect();
        if self.peek(0) == Some('_') {
            return Piece { class: Class::Neutral, latex: number };
        }
        self.scripted(&number, Class::Neutral)
    }

    /// √(…), or √ of the next thing with what it is applied to.
    fn root(&mut self) -> Piece {
        self.at += 1;
        let latex = match self.peek(0) {
            None | Some(' ') => r"\surd".to_owned(),
            Some('(') => format!(r"\sqrt{{{}}}", self.bracketed()),
            Some(c) => {
                let operand = self.piece(c, false);
                let mut inside = math_mode(&[operand]);
                if c.is_alphabetic() && self.peek(0) == Some('(') {
                    _ = write!(inside, "({})", self.bracketed());
                }
                format!(r"\sqrt{{{inside}}}")
            }
        };
        Piece { class: Class::Math, latex }
    }

    /// What stands between the bracket here and the one that closes it.
    fn bracketed(&mut self) -> String {
        let close = script::matching(self.chars, self.at);
        let inside = self.nested(self.at + 1, close);
        self.at = self.chars.len().min(close + 1);
        inside
    }

    fn nested(&self, start: usize, end: usize) -> String {
        math_mode(&Parser { chars: &self.chars[start..end], at: 0, formula: true }.pieces())
    }

    /// `base` with the accents and scripts that follow. All subscripts become one, all superscripts
    /// another: TeX refuses two.
    fn scripted(&mut self, base: &str, bare: Class) -> Piece {
        let (mut base, mut sub, mut sup) = (base.to_owned(), String::new(), String::new());
        let start = self.at;
        while let Some(c) = self.peek(0) {
            if let Some(accent) = symbols::accent(c) {
                base = format!("{accent}{{{base}}}");
            } else if let Some(digit) = symbols::lowered(c) {
                sub.push(digit);
            } else if let Some(digit) = symbols::raised(c) {
                append(&mut sup, &digit.to_string());
            } else if symbols::primes(c) > 0 {
                sup += &r"\prime".repeat(symbols::primes(c));
            } else if c == '*' && bare == Class::Math && !self.peek(1).is_some_and(is_wordy) {
                append(&mut sup, "*");
            } else if let ('_' | '^', Some((range, end))) =
                (c, script::operand(self.chars, self.at))
            {
                let inside = self.nested(range.start, range.end);
                append(if c == '_' { &mut sub } else { &mut sup }, &inside);
                self.at = end - 1;
            } else {
                break;
            }
            self.at += 1;
        }
        let class = if self.at == start { bare } else { Class::Math };
        for (mark, script) in [('_', sub), ('^', sup)] {
            if !script.is_empty() {
                _ = write!(base, "{mark}{{{script}}}");
            }
        }
        Piece { class, latex: base }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specials_are_escaped() {
        let expected =
            r"\textasciitilde{}\textasciicircum{}$\&\%\$\#\_\{\}\backslash<>|$ ``q'' -{}-rows";
        assert_eq!(latex("~^&%$#_{}\\<>| \"q\" --rows"), expected);
        assert_eq!(latex("lemma1_step.K and n_rows, a.b"), r"lemma1\_step.K and n\_rows, a.b");
        assert_eq!(latex("two\nlines\tand é – “x”"), "two lines and é – “x”");
        assert_eq!(latex("box ━ and 日"), "box U+2501 and U+65E5");
    }

    #[test]
    fn formulas_become_maths() {
        for (plain, expected) in [
            (
                "(μ̂_t(x) − μ_t(x))² < a_t (k_t(x) + σ²)",
                r"$(\hat{\mu}_{t}(x) - \mu_{t}(x))^{2} < a_{t} (k_{t}(x) + \sigma^{2})$",
            ),
            (
                "f(x_τ) ≥ μ_{τ−1}(x_τ) − ζ′ √k_{τ−1}(x_τ)",
                r"$f(x_{\tau}) \geq \mu_{\tau-1}(x_{\tau}) - \zeta^{\prime} \sqrt{k_{\tau-1}(x_{\tau})}$",
            ),
            (
                "R_T ≤ the bound of Theorem 2 + 2√(2 log(1/δ)) σ",
                r"$R_{T} \leq$ the bound of Theorem $2 + 2\sqrt{2 \log(1/\delta)} \sigma$",
            ),
            (
                "N ≥ 4 log(6/δ) + T + 2, c ≥ max k, σ > 0, PI with a target ≥ max f",
                r"$N \geq 4 \log(6/\delta) + T + 2$, $c \geq \max k$, $\sigma > 0$, PI with a target $\geq \max f$",
            ),
            (
                "½ Σ_t log(1 + σ⁻²k_{t−1}(x_t)) where x* ∉ D_t",
                r"$\tfrac{1}{2} \sum_{t} \log(1 + \sigma^{-2}k_{t-1}(x_{t}))$ where $x^{*} \notin D_{t}$",
            ),
            ("y_τ′ at x₁₂ and x²′", r"$y_{\tau^{\prime}}$ at $x_{12}$ and $x^{2\prime}$"),
            ("10⁻⁵, √ and √(open", r"$10^{-5}$, $\surd$ and $\sqrt{\text{open}}$"),
            (
                "Lemma 1's δ, e.g. the t-test of T-1",
                r"Lemma 1's $\delta$, e.g. the t-test of $T-1$",
            ),
            ("0 ≤ ρ_T (its upper end)", r"$0 \leq \rho_{T}$ (its upper end)"),
            ("x̂-axis, à δ", r"$\hat{x}$-axis, à $\delta$"),
            ("P(x | δ), |x|", r"$P(x \mid \delta)$, $|x|$"),
            ("δ = 0.1, N", r"$\delta = 0.1$, $N$"),
        ] {
            assert_eq!(latex(plain), expected);
        }
    }
}
