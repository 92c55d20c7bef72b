//! Colour scales of heat maps: from light to dark blue, or from orange over white to blue around
//! a centre. Both are ColorBrewer's, which colour-blind people can read.

use super::heat::Colours;
use super::scene::{Colour, INK, WHITE};
use super::{larger, smaller};

const BLUES: [Colour; 7] = [
    Colour(247, 251, 255),
    Colour(222, 235, 247),
    Colour(198, 219, 239),
    Colour(158, 202, 225),
    Colour(107, 174, 214),
    Colour(49, 130, 189),
    Colour(8, 81, 156),
];
const ORANGE_TO_BLUE: [Colour; 9] = [
    Colour(179, 88, 6),
    Colour(224, 130, 20),
    Colour(253, 184, 99),
    Colour(254, 224, 182),
    Colour(247, 247, 247),
    Colour(209, 229, 240),
    Colour(146, 197, 222),
    Colour(67, 147, 195),
    Colour(33, 102, 172),
];

/// A colour scale for values between `low` and `high`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Palette {
    colours: Colours,
    low: f64,
    high: f64,
}

impl Palette {
    pub(super) fn new(colours: Colours, low: f64, high: f64) -> Self {
        Self { colours, low, high }
    }

    pub(super) fn of(&self, value: f64) -> Colour {
        match self.colours {
            Colours::Sequential => {
                let span = self.high - self.low;
                mixed(&BLUES, if span > 0.0 { (value - self.low) / span } else { 0.5 })
            }
            // Equal distances to the centre are equally strong on both sides.
            Colours::Diverging { centre } => {
                let reach = larger(self.high - centre, centre - self.low);
                let share = if reach > 0.0 { (value - centre) / reach } else { 0.0 };
                mixed(&ORANGE_TO_BLUE, f64::midpoint(share, 1.0))
            }
        }
    }
}

/// The colour at a share of the way through the stops.
fn mixed(stops: &[Colour], share: f64) -> Colour {
    let last = stops.len() - 1;
    let along = larger(smaller(share, 1.0), 0.0) * last as f64;
    let from = (along as usize).min(last - 1);
    let rest = along - from as f64;
    let (a, b) = (stops[from], stops[from + 1]);
    let mix = |a: u8, b: u8| {
        let mixed = f64::from(a) + rest * (f64::from(b) - f64::from(a));
        libm::round(mixed) as u8
    };
    Colour(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}

/// The colour of text that is read on a background.
pub(super) fn readable_on(Colour(red, green, blue): Colour) -> Colour {
    let luma = 0.299 * f64::from(red) + 0.587 * f64::from(green) + 0.114 * f64::from(blue);
    if luma < 135.0 { WHITE } else { INK }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_centre_is_white_and_the_sides_differ() {
        let palette = Palette::new(Colours::Diverging { centre: 0.95 }, 0.75, 1.0);
        assert_eq!(palette.of(0.95), Colour(247, 247, 247));
        assert_eq!(palette.of(0.75), ORANGE_TO_BLUE[0]);
        let (below, above) = (palette.of(0.9), palette.of(1.0));
        assert!(below.0 > below.2 && above.2 > above.0);
    }

    #[test]
    fn sequential_colours_darken() {
        let palette = Palette::new(Colours::Sequential, 0.0, 1.0);
        let reds: Vec<u8> = (0..=10).map(|i| palette.of(f64::from(i) / 10.0).0).collect();
        assert!(reds.is_sorted_by(|a, b| a >= b));
        assert_eq!(readable_on(palette.of(1.0)), WHITE);
        assert_eq!(readable_on(palette.of(0.0)), INK);
    }

    #[test]
    fn a_single_value_has_a_colour() {
        let centre = Colours::Diverging { centre: 2.0 };
        assert_eq!(Palette::new(centre, 2.0, 2.0).of(2.0), Colour(247, 247, 247));
        assert_eq!(Palette::new(Colours::Sequential, 2.0, 2.0).of(2.0), BLUES[3]);
    }
}
