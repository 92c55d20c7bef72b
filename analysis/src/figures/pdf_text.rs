//! Labels in a PDF: runs of letters of one font, raised and lowered scripts, and hats set above
//! their letters.

use pdf_writer::{Content, Name, Str};

use super::fonts::{self, CIRCUMFLEX, Face, Glyph, HAT};
use super::label;
use super::pdf::{channels, short};
use super::scene::{Anchor, Text};

/// How much higher a hat stands above a tall letter, in parts of the size.
const TALL: f64 = 0.19;

/// What is shown in one go.
#[derive(Debug, PartialEq)]
enum Run {
    Letters(Face, Vec<u8>),
    /// A hat above the glyph just shown.
    Hat {
        over: Glyph,
        tall: bool,
    },
}

/// Writes a label; `height` is that of the page, since PDF counts from its bottom.
pub(super) fn show(content: &mut Content, height: f64, text: &Text) {
    let [red, green, blue] = channels(text.colour);
    let (sin, cos) = libm::sincos(text.turn.to_radians());
    let back = match text.anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => fonts::width(&text.label, text.size, text.bold) / 2.0,
        Anchor::End => fonts::width(&text.label, text.size, text.bold),
    };
    let (x, y) = (text.at.0 - back * cos, height - text.at.1 - back * sin);
    content.set_fill_rgb(red, green, blue).begin_text();
    let matrix = [cos, sin, -sin, cos, x, y].map(short);
    content.set_text_matrix(matrix);
    for piece in label::parse(&text.label) {
        let size = text.size * piece.level.scale();
        let rise = text.size * piece.level.rise();
        content.set_rise(short(rise));
        for run in runs(&piece.text, text.bold) {
            match run {
                Run::Letters(face, bytes) => {
                    content.set_font(font(face, text.bold), short(size)).show(Str(&bytes));
                }
                Run::Hat { over, tall } => {
                    content.set_font(font(Face::Text, text.bold), short(size));
                    let lift = if tall { TALL * size } else { 0.0 };
                    content.set_rise(short(rise + lift));
                    hat(content, over);
                    content.set_rise(short(rise));
                }
            }
        }
    }
    content.end_text();
}

/// Goes back to the middle of the letter, sets the hat, and goes on where the letter ended.
fn hat(content: &mut Content, over: Glyph) {
    let (letter, hat) = (f32::from(over.width), f32::from(CIRCUMFLEX.width));
    let mut show = content.show_positioned();
    let mut items = show.items();
    items.adjust(f32::midpoint(letter, hat));
    items.show(Str(&[CIRCUMFLEX.code]));
    items.adjust((hat - letter) / 2.0);
}

fn font(face: Face, bold: bool) -> Name<'static> {
    match (face, bold) {
        (Face::Text, false) => Name(b"F0"),
        (Face::Text, true) => Name(b"F1"),
        (Face::Symbol, _) => Name(b"F2"),
    }
}

fn runs(text: &str, bold: bool) -> Vec<Run> {
    let mut runs: Vec<Run> = vec![];
    let mut before: Option<char> = None;
    for c in text.chars() {
        if c == HAT {
            if let Some(letter) = before.take() {
                runs.push(Run::Hat { over: fonts::glyph(letter, bold), tall: is_tall(letter) });
            }
            continue;
        }
        let glyph = fonts::glyph(c, bold);
        match runs.last_mut() {
            Some(Run::Letters(face, bytes)) if *face == glyph.face => bytes.push(glyph.code),
            _ => runs.push(Run::Letters(glyph.face, vec![glyph.code])),
        }
        before = Some(c);
    }
    runs
}

fn is_tall(letter: char) -> bool {
    letter.is_uppercase() || "bdfhkltβδζθλξϑ".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_change_with_the_font() {
        let letters = |face, bytes: &[u8]| Run::Letters(face, bytes.to_vec());
        let over = fonts::glyph('μ', false);
        assert_eq!(
            runs("a ≤ μ\u{302}b", false),
            [
                letters(Face::Text, b"a "),
                letters(Face::Symbol, &[163]),
                letters(Face::Text, b" "),
                letters(Face::Symbol, &[109]),
                Run::Hat { over, tall: false },
                letters(Face::Text, b"b"),
            ]
        );
        assert_eq!(runs("\u{302}", false), [], "a hat needs a letter");
    }

    #[test]
    fn anchoring_uses_the_width_of_the_label() {
        let mut content = Content::new();
        show(&mut content, 50.0, &Text::new((40.0, 20.0), "AA", 10.0).anchored(Anchor::End));
        let shown = String::from_utf8(content.finish().into_vec()).unwrap();
        assert!(shown.contains("1 0 0 1 26.66 30 Tm"), "{shown}");
    }
}
