//! Unicode that LaTeX needs maths mode for.

/// How a symbol behaves among its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Stands for something: a Greek letter, infinity.
    Atom,
    /// Stands between two things: a relation, a sign.
    Operator,
}

/// The maths of a character beyond ASCII, and how it behaves.
pub(super) fn math(c: char) -> Option<(&'static str, Kind)> {
    let find = |table: &'static [(char, &'static str)]| {
        table.iter().find(|(symbol, _)| *symbol == c).map(|(_, latex)| *latex)
    };
    find(ATOMS)
        .map(|latex| (latex, Kind::Atom))
        .or_else(|| find(OPERATORS).map(|latex| (latex, Kind::Operator)))
}

/// The accent that a combining mark puts over the letter before it.
pub(super) fn accent(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{300}' => r"\grave",
        '\u{301}' => r"\acute",
        '\u{302}' => r"\hat",
        '\u{303}' => r"\tilde",
        '\u{304}' | '\u{305}' => r"\bar",
        '\u{306}' => r"\breve",
        '\u{307}' => r"\dot",
        '\u{308}' => r"\ddot",
        '\u{30c}' => r"\check",
        '\u{20d7}' => r"\vec",
        _ => return None,
    })
}

/// What a subscript character stands for.
pub(super) fn lowered(c: char) -> Option<char> {
    pair(c, "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", "0123456789+-=()aeijklmnoprstuvx")
}

/// What a superscript character stands for.
pub(super) fn raised(c: char) -> Option<char> {
    pair(c, "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱᵀ", "0123456789+-=()niT")
}

/// Number of primes.
pub(super) fn primes(c: char) -> usize {
    match c {
        '′' => 1,
        '″' => 2,
        '‴' => 3,
        _ => 0,
    }
}

fn pair(c: char, from: &str, to: &str) -> Option<char> {
    from.chars().zip(to.chars()).find(|(shown, _)| *shown == c).map(|(_, meant)| meant)
}

/// Capitals that look Latin are set as Latin: TeX has no others.
const ATOMS: &[(char, &str)] = &[
    ('α', r"\alpha"),
    ('β', r"\beta"),
    ('γ', r"\gamma"),
    ('δ', r"\delta"),
    ('ε', r"\varepsilon"),
    ('ϵ', r"\epsilon"),
    ('ζ', r"\zeta"),
    ('η', r"\eta"),
    ('θ', r"\theta"),
    ('ϑ', r"\vartheta"),
    ('ι', r"\iota"),
    ('κ', r"\kappa"),
    ('λ', r"\lambda"),
    ('μ', r"\mu"),
    ('µ', r"\mu"),
    ('ν', r"\nu"),
    ('ξ', r"\xi"),
    ('ο', "o"),
    ('π', r"\pi"),
    ('ρ', r"\rho"),
    ('ϱ', r"\varrho"),
    ('σ', r"\sigma"),
    ('ς', r"\varsigma"),
    ('τ', r"\tau"),
    ('υ', r"\upsilon"),
    ('φ', r"\varphi"),
    ('ϕ', r"\phi"),
    ('χ', r"\chi"),
    ('ψ', r"\psi"),
    ('ω', r"\omega"),
    ('Α', r"\mathrm{A}"),
    ('Β', r"\mathrm{B}"),
    ('Γ', r"\Gamma"),
    ('Δ', r"\Delta"),
    ('Ε', r"\mathrm{E}"),
    ('Ζ', r"\mathrm{Z}"),
    ('Η', r"\mathrm{H}"),
    ('Θ', r"\Theta"),
    ('Ι', r"\mathrm{I}"),
    ('Κ', r"\mathrm{K}"),
    ('Λ', r"\Lambda"),
    ('Μ', r"\mathrm{M}"),
    ('Ν', r"\mathrm{N}"),
    ('Ξ', r"\Xi"),
    ('Ο', r"\mathrm{O}"),
    ('Π', r"\Pi"),
    ('Ρ', r"\mathrm{P}"),
    ('Σ', r"\Sigma"),
    ('Τ', r"\mathrm{T}"),
    ('Υ', r"\Upsilon"),
    ('Φ', r"\Phi"),
    ('Χ', r"\mathrm{X}"),
    ('Ψ', r"\Psi"),
    ('Ω', r"\Omega"),
    ('ℓ', r"\ell"),
    ('ℝ', r"\mathbb{R}"),
    ('ℕ', r"\mathbb{N}"),
    ('ℤ', r"\mathbb{Z}"),
    ('ℙ', r"\mathbb{P}"),
    ('𝔼', r"\mathbb{E}"),
    ('𝟙', r"\mathbf{1}"),
    ('∞', r"\infty"),
    ('∂', r"\partial"),
    ('∇', r"\nabla"),
    ('∅', r"\emptyset"),
    ('∀', r"\forall"),
    ('∃', r"\exists"),
    ('∑', r"\sum"),
    ('∏', r"\prod"),
    ('∫', r"\int"),
    ('½', r"\tfrac{1}{2}"),
    ('⅓', r"\tfrac{1}{3}"),
    ('⅔', r"\tfrac{2}{3}"),
    ('¼', r"\tfrac{1}{4}"),
    ('¾', r"\tfrac{3}{4}"),
    ('°', r"{{}^{\circ}}"),
    ('⋯', r"\cdots"),
    ('⊤', r"\top"),
    ('⊥', r"\perp"),
    ('‖', r"\|"),
    ('⌊', r"\lfloor"),
    ('⌋', r"\rfloor"),
    ('⌈', r"\lceil"),
    ('⌉', r"\rceil"),
    ('⟨', r"\langle"),
    ('⟩', r"\rangle"),
    ('✓', r"\checkmark"),
    ('✗', r"\times"),
];

const OPERATORS: &[(char, &str)] = &[
    ('−', "-"),
    ('±', r"\pm"),
    ('∓', r"\mp"),
    ('×', r"\times"),
    ('÷', r"\div"),
    ('·', r"\cdot"),
    ('⋅', r"\cdot"),
    ('∘', r"\circ"),
    ('∗', r"\ast"),
    ('⊗', r"\otimes"),
    ('⊕', r"\oplus"),
    ('≤', r"\leq"),
    ('≥', r"\geq"),
    ('⩽', r"\leqslant"),
    ('⩾', r"\geqslant"),
    ('≪', r"\ll"),
    ('≫', r"\gg"),
    ('≠', r"\neq"),
    ('≈', r"\approx"),
    ('≃', r"\simeq"),
    ('∼', r"\sim"),
    ('≡', r"\equiv"),
    ('∝', r"\propto"),
    ('≲', r"\lesssim"),
    ('≳', r"\gtrsim"),
    ('≔', r"\mathrel{:=}"),
    ('∈', r"\in"),
    ('∉', r"\notin"),
    ('⊂', r"\subset"),
    ('⊆', r"\subseteq"),
    ('∪', r"\cup"),
    ('∩', r"\cap"),
    ('∖', r"\setminus"),
    ('∧', r"\wedge"),
    ('∨', r"\vee"),
    ('¬', r"\neg"),
    ('→', r"\to"),
    ('←', r"\leftarrow"),
    ('↔', r"\leftrightarrow"),
    ('↦', r"\mapsto"),
    ('⇒', r"\Rightarrow"),
    ('⇐', r"\Leftarrow"),
    ('⇔', r"\Leftrightarrow"),
    ('↑', r"\uparrow"),
    ('↓', r"\downarrow"),
];

/// Every character of the two tables, for a document that shows them all.
#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = char> {
    ATOMS.iter().chain(OPERATORS).map(|(c, _)| *c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_is_mapped_twice() {
        let mut found: Vec<char> = all().collect();
        let count = found.len();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), count);
        assert!(found.iter().all(|c| !c.is_ascii()));
    }

    #[test]
    fn scripts_pair_up() {
        assert_eq!((lowered('₁'), raised('⁻'), raised('²')), (Some('1'), Some('-'), Some('2')));
        assert_eq!((lowered('ₓ'), raised('ᵀ'), lowered('x')), (Some('x'), Some('T'), None));
    }
}
