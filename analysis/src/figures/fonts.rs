//! The three of the fourteen standard PDF fonts that labels use: how wide each character is, and
//! which byte shows it.
//!
//! Helvetica and Helvetica-Bold in WinAnsi encoding, and Symbol, in its own encoding, for Greek
//! and mathematical signs. Widths are those of Adobe's font metrics (AFM), in thousandths of the
//! size.

use super::label::{self, Piece};

/// The combining circumflex: a hat above the letter before it.
pub(super) const HAT: char = '\u{302}';
/// The byte and the width of the free-standing circumflex in both Helveticas.
pub(super) const CIRCUMFLEX: Glyph = Glyph { face: Face::Text, code: 0x88, width: 333 };

/// A font.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Face {
    /// Helvetica, or Helvetica-Bold for a bold label.
    Text,
    Symbol,
}

/// One character of a font.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Glyph {
    pub(super) face: Face,
    pub(super) code: u8,
    pub(super) width: u16,
}

/// Helvetica, 0x20 to 0x7E.
#[rustfmt::skip]
const REGULAR: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
    556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
    1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
    667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
    333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
    556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];
/// Helvetica-Bold, 0x20 to 0x7E.
#[rustfmt::skip]
const BOLD: [u16; 95] = [
    278, 333, 474, 556, 556, 889, 722, 238, 333, 333, 389, 584, 278, 333, 278, 278,
    556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 333, 333, 584, 584, 584, 611,
    975, 722, 722, 722, 722, 667, 611, 778, 722, 278, 556, 722, 611, 833, 722, 778,
    667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 333, 278, 333, 584, 556,
    333, 556, 611, 556, 611, 556, 333, 611, 611, 278, 278, 556, 278, 889, 611, 611,
    611, 611, 389, 556, 333, 611, 556, 778, 556, 556, 500, 389, 280, 389, 584,
];
/// Helvetica, 0xA0 to 0xFF.
#[rustfmt::skip]
const REGULAR_LATIN: [u16; 96] = [
    278, 333, 556, 556, 556, 556, 260, 556, 333, 737, 370, 556, 584, 333, 737, 333,
    400, 584, 333, 333, 333, 556, 537, 278, 333, 333, 365, 556, 834, 834, 834, 611,
    667, 667, 667, 667, 667, 667, 1000, 722, 667, 667, 667, 667, 278, 278, 278, 278,
    722, 722, 778, 778, 778, 778, 778, 584, 778, 722, 722, 722, 722, 667, 667, 611,
    556, 556, 556, 556, 556, 556, 889, 500, 556, 556, 556, 556, 278, 278, 278, 278,
    556, 556, 556, 556, 556, 556, 556, 584, 611, 556, 556, 556, 556, 500, 556, 500,
];
/// Helvetica-Bold, 0xA0 to 0xFF.
#[rustfmt::skip]
const BOLD_LATIN: [u16; 96] = [
    278, 333, 556, 556, 556, 556, 280, 556, 333, 737, 370, 556, 584, 333, 737, 333,
    400, 584, 333, 333, 333, 611, 556, 278, 333, 333, 365, 556, 834, 834, 834, 611,
    722, 722, 722, 722, 722, 722, 1000, 722, 667, 667, 667, 667, 278, 278, 278, 278,
    722, 722, 778, 778, 778, 778, 778, 584, 778, 722, 722, 722, 722, 667, 667, 611,
    556, 556, 556, 556, 556, 556, 889, 556, 556, 556, 556, 556, 278, 278, 278, 278,
    611, 611, 611, 611, 611, 611, 611, 584, 611, 611, 611, 611, 611, 556, 611, 556,
];
/// WinAnsi 0x80 to 0x9F as far as labels need it: character, byte, both widths.
const PUNCTUATION: [(char, u8, u16, u16); 11] = [
    ('…', 0x85, 1000, 1000),
    ('†', 0x86, 556, 556),
    ('‡', 0x87, 556, 556),
    ('‰', 0x89, 1000, 1000),
    ('‘', 0x91, 222, 278),
    ('’', 0x92, 222, 278),
    ('“', 0x93, 333, 500),
    ('”', 0x94, 333, 500),
    ('•', 0x95, 350, 350),
    ('–', 0x96, 556, 556),
    ('—', 0x97, 1000, 1000),
];
/// Symbol: character, byte, width.
#[rustfmt::skip]
const SYMBOL: [(char, u8, u16); 80] = [
    ('Α', 65, 722), ('Β', 66, 667), ('Χ', 67, 722), ('Δ', 68, 612), ('Ε', 69, 611), ('Φ', 70, 763),
    ('Γ', 71, 603), ('Η', 72, 722), ('Ι', 73, 333), ('ϑ', 74, 631), ('Κ', 75, 722), ('Λ', 76, 686),
    ('Μ', 77, 889), ('Ν', 78, 722), ('Ο', 79, 722), ('Π', 80, 768), ('Θ', 81, 741), ('Ρ', 82, 556),
    ('Σ', 83, 592), ('Τ', 84, 611), ('Υ', 85, 690), ('ς', 86, 439), ('Ω', 87, 768), ('Ξ', 88, 645),
    ('Ψ', 89, 795), ('Ζ', 90, 611), ('α', 97, 631), ('β', 98, 549), ('χ', 99, 549), ('δ', 100, 494),
    ('ε', 101, 439), ('φ', 102, 521), ('γ', 103, 411), ('η', 104, 603), ('ι', 105, 329),
    ('ϕ', 106, 603), ('κ', 107, 549), ('λ', 108, 549), ('μ', 109, 576), ('ν', 110, 521),
    ('ο', 111, 549), ('π', 112, 549), ('θ', 113, 521), ('ρ', 114, 549), ('σ', 115, 603),
    ('τ', 116, 439), ('υ', 117, 576), ('ϖ', 118, 713), ('ω', 119, 686), ('ξ', 120, 493),
    ('ψ', 121, 686), ('ζ', 122, 494), ('−', 45, 549), ('∗', 42, 500), ('∼', 126, 549),
    ('∀', 34, 713), ('∃', 36, 549), ('′', 162, 247), ('≤', 163, 549), ('∞', 165, 713),
    ('↔', 171, 1042), ('←', 172, 987), ('↑', 173, 603), ('→', 174, 987), ('↓', 175, 603),
    ('″', 178, 411), ('≥', 179, 549), ('∝', 181, 713), ('∂', 182, 494), ('≠', 185, 549),
    ('≡', 186, 549), ('≈', 187, 549), ('∈', 206, 713), ('∇', 209, 713), ('∏', 213, 823),
    ('√', 214, 549), ('⋅', 215, 250), ('∧', 217, 603), ('∑', 229, 713), ('∫', 242, 274),
];

/// The glyph of a character; a question mark for one that none of the fonts has.
pub(super) fn glyph(c: char, bold: bool) -> Glyph {
    let text = |code, regular, heavy| Glyph {
        face: Face::Text,
        code,
        width: if bold { heavy } else { regular },
    };
    match u32::from(c) {
        at @ 0x20..=0x7E => {
            let index = at as usize - 0x20;
            text(at as u8, REGULAR[index], BOLD[index])
        }
        at @ 0xA0..=0xFF => {
            let index = at as usize - 0xA0;
            text(at as u8, REGULAR_LATIN[index], BOLD_LATIN[index])
        }
        0x2009 | 0x202F => glyph(' ', bold),
        _ => PUNCTUATION
            .iter()
            .find(|entry| entry.0 == c)
            .map(|&(_, code, regular, heavy)| text(code, regular, heavy))
            .or_else(|| {
                let found = SYMBOL.iter().find(|entry| entry.0 == c);
                found.map(|&(_, code, width)| Glyph { face: Face::Symbol, code, width })
            })
            .unwrap_or_else(|| glyph('?', bold)),
    }
}

/// The width of a label in the markup of `label`, in points.
pub(super) fn width(text: &str, size: f64, bold: bool) -> f64 {
    label::parse(text).iter().map(|piece| piece_width(piece, size, bold)).sum()
}

fn piece_width(piece: &Piece, size: f64, bold: bool) -> f64 {
    let letters = piece.text.chars().filter(|&c| c != HAT);
    let thousandths: f64 = letters.map(|c| f64::from(glyph(c, bold).width)).sum();
    thousandths / 1000.0 * size * piece.level.scale()
}

/// The widest of several labels, in points.
pub(super) fn widest<'a>(labels: impl IntoIterator<Item = &'a str>, size: f64) -> f64 {
    labels.into_iter().map(|text| width(text, size, false)).fold(0.0, super::larger)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_the_font_metrics() {
        // From Helvetica.afm, Helvetica-Bold.afm and Symbol.afm.
        let regular = [('A', 667), ('W', 944), ('i', 222), ('0', 556), ('@', 1015), ('×', 584)];
        for (c, width) in regular {
            assert_eq!(glyph(c, false).width, width, "{c}");
        }
        let bold = [('A', 722), ('i', 278), ('m', 889), ('’', 278), ('ö', 611)];
        for (c, width) in bold {
            assert_eq!(glyph(c, true).width, width, "{c}");
        }
        let symbol = [('μ', 109, 576), ('σ', 115, 603), ('Δ', 68, 612), ('√', 214, 549)];
        for (c, code, width) in symbol {
            assert_eq!(glyph(c, false), Glyph { face: Face::Symbol, code, width }, "{c}");
        }
        assert_eq!(glyph('✓', false), glyph('?', false));
    }

    #[test]
    fn labels_add_up() {
        assert!((width("AA", 10.0, false) - 13.34).abs() < 1e-9);
        assert!((width("A_T", 10.0, false) - (6.67 + 6.11 * 0.72)).abs() < 1e-9);
        assert_eq!(width("μ\u{302}", 10.0, false), width("μ", 10.0, false));
        assert_eq!(width("", 10.0, true), 0.0);
    }
}
