//! A scene as a standalone SVG that may also be inlined in a page with others: it refers to
//! nothing outside itself, and the only ids in it start with the figure's.

use super::fonts;
use super::label::{self, Level, Piece};
use super::scene::{Anchor, Colour, Fill, Place, Scene, Shape, Stroke, Text};

const FONTS: &str = "Helvetica, Arial, sans-serif";

/// The document: `title` and `description` are what is read to people who do not see it.
pub(super) fn render(scene: &Scene, id: &str, title: &str, description: &str) -> String {
    let id: String =
        id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' }).collect();
    let (width, height) = (number(scene.width), number(scene.height));
    // Without xml:space, some readers drop the space where a script ends.
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" \
         aria-labelledby=\"fig-{id}-title fig-{id}-desc\" width=\"{width}pt\" \
         height=\"{height}pt\" viewBox=\"0 0 {width} {height}\" font-family=\"{FONTS}\" \
         xml:space=\"preserve\">\n\
         <title id=\"fig-{id}-title\">{}</title>\n<desc id=\"fig-{id}-desc\">{}</desc>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n",
        escaped(title),
        escaped(description),
    );
    for drawn in &scene.shapes {
        out.push_str(&shape(drawn));
        out.push('\n');
    }
    out.push_str("</svg>\n");
    out
}

fn shape(shape: &Shape) -> String {
    match shape {
        Shape::Path { points, closed, fill, stroke } => {
            let name = if *closed { "polygon" } else { "polyline" };
            let paint = painted(*fill, stroke.as_ref());
            format!("<{name} points=\"{}\"{paint}/>", places(points))
        }
        Shape::Circle { centre, radius, fill, stroke } => {
            let (x, y, radius) = (number(centre.0), number(centre.1), number(*radius));
            let paint = painted(*fill, stroke.as_ref());
            format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"{paint}/>")
        }
        Shape::Text(drawn) => text(drawn),
    }
}

fn places(points: &[Place]) -> String {
    let pairs: Vec<_> =
        points.iter().map(|&(x, y)| format!("{},{}", number(x), number(y))).collect();
    pairs.join(" ")
}

fn painted(fill: Option<Fill>, stroke: Option<&Stroke>) -> String {
    let fill = match fill {
        Some(Fill { colour, opacity: 100 }) => format!(" fill=\"{}\"", hex(colour)),
        Some(Fill { colour, opacity }) => {
            let opacity = number(f64::from(opacity) / 100.0);
            format!(" fill=\"{}\" fill-opacity=\"{opacity}\"", hex(colour))
        }
        None => " fill=\"none\"".to_owned(),
    };
    fill + &stroke.map_or_else(String::new, stroked)
}

fn stroked(Stroke { colour, width, dash }: &Stroke) -> String {
    let (colour, width) = (hex(*colour), number(*width));
    let line = format!(" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-linejoin=\"round\"");
    if dash.is_empty() {
        return line;
    }
    let lengths: Vec<_> = dash.iter().map(|&length| number(length)).collect();
    format!("{line} stroke-dasharray=\"{}\"", lengths.join(" "))
}

fn text(text: &Text) -> String {
    let (x, y) = (number(text.at.0), number(text.at.1));
    let (size, colour) = (number(text.size), hex(text.colour));
    let anchor = match text.anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    let weight = if text.bold { " font-weight=\"bold\"" } else { "" };
    let turn = if text.turn == 0.0 {
        String::new()
    } else {
        format!(" transform=\"rotate({} {x} {y})\"", number(-text.turn))
    };
    let pieces = pieces(&text.label, text.size);
    // As wide as it was measured, where the viewer has none of the fonts that it was measured in.
    let width = fonts::width(&text.label, text.size, text.bold);
    let width = if width > 0.0 {
        format!(" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"", number(width))
    } else {
        String::new()
    };
    format!(
        "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\"{width}{anchor}{weight}{turn} fill=\"{colour}\">\
         {pieces}</text>"
    )
}

/// The letters of a label; each change of level moves the baseline by the difference.
fn pieces(label: &str, size: f64) -> String {
    let mut level = Level::Base;
    let piece = |piece: Piece| {
        let down = number((level.rise() - piece.level.rise()) * size);
        let letters = escaped(&piece.text);
        if level == piece.level {
            return letters;
        }
        level = piece.level;
        let size = number(size * level.scale());
        format!("<tspan dy=\"{down}\" font-size=\"{size}\">{letters}</tspan>")
    };
    label::parse(label).into_iter().map(piece).collect()
}

/// At most two decimals, and none that say nothing.
fn number(value: f64) -> String {
    let digits = format!("{value:.2}");
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    if digits == "-0" { "0".to_owned() } else { digits.to_owned() }
}

fn hex(Colour(red, green, blue): Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            // XML has no way to write these.
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let pairs = [(1.0, "1"), (-0.001, "0"), (12.345, "12.35"), (100.0, "100"), (0.5, "0.5")];
        for (value, shown) in pairs {
            assert_eq!(number(value), shown);
        }
    }

    #[test]
    fn scripts_return_to_the_baseline() {
        let shown = text(&Text::new((1.0, 2.0), "r_T & x", 10.0));
        assert_eq!(
            shown,
            "<text x=\"1\" y=\"2\" font-size=\"10\" textLength=\"24.96\" \
             lengthAdjust=\"spacingAndGlyphs\" fill=\"#222222\">r<tspan dy=\"2\" \
             font-size=\"7.2\">T</tspan><tspan dy=\"-2\" font-size=\"10\"> &amp; x</tspan></text>"
        );
    }
}
