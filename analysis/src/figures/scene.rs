//! What a figure is made of once it is laid out: paths, circles and text, in points, y downwards.
//!
//! The charts draw into a scene; `svg` and `pdf` print it. Neither knows what a chart is, so both
//! formats show the same picture.

/// A place: x to the right, y downwards, in points.
pub(super) type Place = (f64, f64);

/// An sRGB colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Colour(pub(super) u8, pub(super) u8, pub(super) u8);

pub(super) const BLACK: Colour = Colour(0, 0, 0);
pub(super) const WHITE: Colour = Colour(255, 255, 255);
/// Text, axes and whatever is neither data nor grid.
pub(super) const INK: Colour = Colour(34, 34, 34);
/// Remarks, such as "no data".
pub(super) const GREY: Colour = Colour(110, 110, 110);
/// Grid lines.
pub(super) const FAINT: Colour = Colour(224, 224, 224);

/// A colour and how much of what is below it shows through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fill {
    pub(super) colour: Colour,
    /// In per cent: a whole number, so that equal opacities are found by comparing.
    pub(super) opacity: u8,
}

impl Fill {
    pub(super) fn solid(colour: Colour) -> Self {
        Self { colour, opacity: 100 }
    }
}

/// How a line is drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stroke {
    pub(super) colour: Colour,
    pub(super) width: f64,
    /// Lengths of dashes and gaps; empty is solid.
    pub(super) dash: &'static [f64],
}

impl Stroke {
    pub(super) fn solid(colour: Colour, width: f64) -> Self {
        Self { colour, width, dash: &[] }
    }
}

/// Which part of a text lies at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// One line of text in the markup of `label`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Text {
    /// Where the baseline starts, has its middle or ends.
    pub(super) at: Place,
    pub(super) label: String,
    pub(super) size: f64,
    pub(super) anchor: Anchor,
    /// In degrees, counterclockwise.
    pub(super) turn: f64,
    pub(super) bold: bool,
    pub(super) colour: Colour,
}

impl Text {
    pub(super) fn new(at: Place, label: impl Into<String>, size: f64) -> Self {
        let label = label.into();
        Self { at, label, size, anchor: Anchor::Start, turn: 0.0, bold: false, colour: INK }
    }

    pub(super) fn anchored(mut self, anchor: Anchor) -> Self {
        self.anchor = anchor;
        self
    }

    pub(super) fn turned(mut self, degrees: f64) -> Self {
        self.turn = degrees;
        self
    }

    pub(super) fn bold(mut self) -> Self {
        self.bold = true;
        self
    }

    pub(super) fn coloured(mut self, colour: Colour) -> Self {
        self.colour = colour;
        self
    }
}

/// One thing that is drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    /// A polyline, or a polygon where it is closed.
    Path {
        points: Vec<Place>,
        closed: bool,
        fill: Option<Fill>,
        stroke: Option<Stroke>,
    },
    Circle {
        centre: Place,
        radius: f64,
        fill: Option<Fill>,
        stroke: Option<Stroke>,
    },
    Text(Text),
}

impl Shape {
    pub(super) fn line(from: Place, to: Place, stroke: Stroke) -> Self {
        Self::polyline(vec![from, to], stroke)
    }

    pub(super) fn polyline(points: Vec<Place>, stroke: Stroke) -> Self {
        Self::Path { points, closed: false, fill: None, stroke: Some(stroke) }
    }

    pub(super) fn polygon(points: Vec<Place>, fill: Option<Fill>, stroke: Option<Stroke>) -> Self {
        Self::Path { points, closed: true, fill, stroke }
    }

    /// The same shape elsewhere.
    pub(super) fn moved(mut self, dx: f64, dy: f64) -> Self {
        let shift = |at: &mut Place| *at = (at.0 + dx, at.1 + dy);
        match &mut self {
            Self::Path { points, .. } => points.iter_mut().for_each(shift),
            Self::Circle { centre, .. } => shift(centre),
            Self::Text(text) => shift(&mut text.at),
        }
        self
    }
}

/// A rectangle with its sides along the axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Area {
    pub(super) fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    pub(super) fn centre(&self) -> Place {
        (self.left + self.width / 2.0, self.top + self.height / 2.0)
    }

    pub(super) fn holds(&self, (x, y): Place) -> bool {
        // Rounding may put what lies on a border a hair outside.
        const SLACK: f64 = 1e-6;
        x >= self.left - SLACK
            && x <= self.right() + SLACK
            && y >= self.top - SLACK
            && y <= self.bottom() + SLACK
    }

    pub(super) fn shape(&self, fill: Option<Fill>, stroke: Option<Stroke>) -> Shape {
        let (right, bottom) = (self.right(), self.bottom());
        let corners =
            vec![(self.left, self.top), (right, self.top), (right, bottom), (self.left, bottom)];
        Shape::polygon(corners, fill, stroke)
    }
}

/// Everything that is drawn, in drawing order, and the size of the page.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Scene {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) shapes: Vec<Shape>,
}

impl Scene {
    pub(super) fn add(&mut self, shape: Shape) {
        self.shapes.push(shape);
    }

    pub(super) fn text(&mut self, text: Text) {
        self.shapes.push(Shape::Text(text));
    }

    pub(super) fn extend(&mut self, shapes: impl IntoIterator<Item = Shape>) {
        self.shapes.extend(shapes);
    }
}
