//! What tells series apart: Okabe and Ito's colours, which colour-blind people can tell apart
//! too, and a marker and a dash pattern each, so that a figure reads in grey as well.

use super::scene::{Colour, Fill, INK, Place, Shape, Stroke, WHITE};

/// Okabe and Ito's colours without yellow, which is lost on white paper.
const COLOURS: [Colour; 7] = [
    Colour(0, 114, 178),
    Colour(213, 94, 0),
    Colour(0, 158, 115),
    Colour(204, 121, 167),
    Colour(230, 159, 0),
    Colour(86, 180, 233),
    Colour(0, 0, 0),
];
const DASHES: [&[f64]; 7] = [
    &[],
    &[6.0, 2.5],
    &[2.0, 2.0],
    &[7.0, 2.0, 2.0, 2.0],
    &[10.0, 3.0],
    &[4.0, 1.5, 1.0, 1.5, 1.0, 1.5],
    &[3.5, 2.0],
];
/// Dashes of reference lines: shorter than any of the data's.
const REFERENCES: [&[f64]; 3] = [&[3.0, 1.5], &[1.0, 1.5], &[5.0, 1.5, 1.0, 1.5]];

const LINE_WIDTH: f64 = 1.3;
const BAND_OPACITY: u8 = 22;
const RADIUS: f64 = 2.5;

/// The looks of the series with this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Style(pub(super) usize);

impl Style {
    pub(super) fn colour(self) -> Colour {
        COLOURS[self.0 % COLOURS.len()]
    }

    pub(super) fn line(self) -> Stroke {
        let dash = DASHES[self.0 % DASHES.len()];
        Stroke { colour: self.colour(), width: LINE_WIDTH, dash }
    }

    pub(super) fn whisker(self) -> Stroke {
        Stroke::solid(self.colour(), 0.9)
    }

    pub(super) fn band(self) -> Fill {
        Fill { colour: self.colour(), opacity: BAND_OPACITY }
    }

    /// The marker of the series in a relative size; hollow once all seven were used.
    pub(super) fn marker(self, (x, y): Place, size: f64) -> Shape {
        let again = self.0 / COLOURS.len() % 2 == 1;
        let fill = Some(Fill::solid(if again { WHITE } else { self.colour() }));
        let stroke = Some(Stroke::solid(self.colour(), 0.8));
        let r = RADIUS * size;
        let polygon = |corners: &[Place]| {
            let points = corners.iter().map(|&(dx, dy)| (x + dx * r, y + dy * r)).collect();
            Shape::polygon(points, fill, stroke.clone())
        };
        match self.0 % 7 {
            0 => Shape::Circle { centre: (x, y), radius: r, fill, stroke },
            1 => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            2 => polygon(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]),
            3 => polygon(&[(0.0, -1.35), (1.35, 0.0), (0.0, 1.35), (-1.35, 0.0)]),
            4 => polygon(&[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)]),
            5 => polygon(&DIAGONAL_CROSS),
            _ => polygon(&CROSS),
        }
    }
}

/// An outline with arms along the axes.
const CROSS: [Place; 12] = [
    (-0.4, -1.3),
    (0.4, -1.3),
    (0.4, -0.4),
    (1.3, -0.4),
    (1.3, 0.4),
    (0.4, 0.4),
    (0.4, 1.3),
    (-0.4, 1.3),
    (-0.4, 0.4),
    (-1.3, 0.4),
    (-1.3, -0.4),
    (-0.4, -0.4),
];
/// The same with its arms along the diagonals.
const DIAGONAL_CROSS: [Place; 12] = [
    (-1.2, -0.65),
    (-0.65, -1.2),
    (0.0, -0.55),
    (0.65, -1.2),
    (1.2, -0.65),
    (0.55, 0.0),
    (1.2, 0.65),
    (0.65, 1.2),
    (0.0, 0.55),
    (-0.65, 1.2),
    (-1.2, 0.65),
    (-0.55, 0.0),
];

/// The line of the reference with this index.
pub(super) fn reference(index: usize) -> Stroke {
    Stroke { colour: INK, width: 0.9, dash: REFERENCES[index % REFERENCES.len()] }
}

/// What stands on the floor of a log axis because it is not positive: an arrow pointing down.
pub(super) fn floored((x, y): Place, colour: Colour) -> Shape {
    let points = vec![(x - 3.0, y - 5.5), (x + 3.0, y - 5.5), (x, y - 0.5)];
    Shape::polygon(points, Some(Fill::solid(WHITE)), Some(Stroke::solid(colour, 1.0)))
}
