//! A scene as a PDF of one page, cropped to it. Vectors and standard fonts only, nothing
//! compressed, no date: the bytes depend on the scene and the title alone.

use std::collections::BTreeSet;

use pdf_writer::types::LineJoinStyle;
use pdf_writer::{Content, Finish, Name, Pdf, Rect, Ref, TextStr};

use super::pdf_text;
use super::scene::{Colour, Fill, Place, Scene, Shape, Stroke};

const FONTS: [(&[u8], &[u8]); 3] =
    [(b"F0", b"Helvetica"), (b"F1", b"Helvetica-Bold"), (b"F2", b"Symbol")];

/// The document.
pub(super) fn render(scene: &Scene, title: &str) -> Vec<u8> {
    let [catalog, pages, page, content, info] = [1, 2, 3, 4, 5].map(Ref::new);
    let fonts = [6, 7, 8].map(Ref::new);
    let opacities: Vec<u8> = opacities(scene).into_iter().collect();
    let states: Vec<Ref> = (9..).take(opacities.len()).map(Ref::new).collect();

    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(pages);
    pdf.pages(pages).kids([page]).count(1);
    let mut sheet = pdf.page(page);
    sheet.parent(pages).contents(content);
    sheet.media_box(Rect::new(0.0, 0.0, short(scene.width), short(scene.height)));
    let mut resources = sheet.resources();
    let mut named = resources.fonts();
    for ((name, _), id) in FONTS.iter().zip(fonts) {
        named.pair(Name(name), id);
    }
    named.finish();
    let mut named = resources.ext_g_states();
    for (&opacity, &id) in opacities.iter().zip(&states) {
        named.pair(Name(&state_name(opacity)), id);
    }
    named.finish();
    resources.finish();
    sheet.finish();

    write_fonts(&mut pdf, fonts);
    for (&opacity, &id) in opacities.iter().zip(&states) {
        pdf.ext_graphics(id).non_stroking_alpha(f32::from(opacity) / 100.0);
    }
    pdf.stream(content, &drawn(scene));
    pdf.document_info(info).title(TextStr(title)).producer(TextStr("regretta"));
    pdf.finish()
}

fn write_fonts(pdf: &mut Pdf, ids: [Ref; 3]) {
    for ((_, base), id) in FONTS.iter().zip(ids) {
        let mut font = pdf.type1_font(id);
        font.base_font(Name(base));
        // Symbol has an encoding of its own.
        if *base != b"Symbol" {
            font.encoding_predefined(Name(b"WinAnsiEncoding"));
        }
    }
}

fn opacities(scene: &Scene) -> BTreeSet<u8> {
    let fill = |shape: &Shape| match shape {
        Shape::Path { fill, .. } | Shape::Circle { fill, .. } => fill.map(|fill| fill.opacity),
        Shape::Text(_) => None,
    };
    scene.shapes.iter().filter_map(fill).filter(|&opacity| opacity != 100).collect()
}

fn state_name(opacity: u8) -> Vec<u8> {
    format!("G{opacity}").into_bytes()
}

fn drawn(scene: &Scene) -> Vec<u8> {
    let mut content = Content::new();
    content.set_line_join(LineJoinStyle::RoundJoin);
    for shape in &scene.shapes {
        content.save_state();
        match shape {
            Shape::Path { points, closed, fill, stroke } => {
                choose(&mut content, *fill, stroke.as_ref());
                trace(&mut content, scene.height, points, *closed);
                paint(&mut content, fill.is_some(), stroke.is_some());
            }
            Shape::Circle { centre, radius, fill, stroke } => {
                choose(&mut content, *fill, stroke.as_ref());
                trace_circle(&mut content, (centre.0, scene.height - centre.1), *radius);
                paint(&mut content, fill.is_some(), stroke.is_some());
            }
            Shape::Text(text) => pdf_text::show(&mut content, scene.height, text),
        }
        content.restore_state();
    }
    content.finish().into_vec()
}

fn trace(content: &mut Content, height: f64, points: &[Place], closed: bool) {
    for (i, &(x, y)) in points.iter().enumerate() {
        let (x, y) = (short(x), short(height - y));
        if i == 0 {
            content.move_to(x, y)
        } else {
            content.line_to(x, y)
        };
    }
    if closed {
        content.close_path();
    }
}

fn trace_circle(content: &mut Content, (x, y): Place, r: f64) {
    // The cubic that meets a quarter circle at its ends and its middle.
    let k = r * 0.552284749831;
    content.move_to(short(x + r), short(y));
    let mut arc = |[a, b, c]: [Place; 3]| {
        content.cubic_to(short(a.0), short(a.1), short(b.0), short(b.1), short(c.0), short(c.1));
    };
    arc([(x + r, y + k), (x + k, y + r), (x, y + r)]);
    arc([(x - k, y + r), (x - r, y + k), (x - r, y)]);
    arc([(x - r, y - k), (x - k, y - r), (x, y - r)]);
    arc([(x + k, y - r), (x + r, y - k), (x + r, y)]);
    content.close_path();
}

/// Sets the colours of the next path: once it is begun, only its lines may follow.
fn choose(content: &mut Content, fill: Option<Fill>, stroke: Option<&Stroke>) {
    if let Some(Fill { colour, opacity }) = fill {
        let [red, green, blue] = channels(colour);
        content.set_fill_rgb(red, green, blue);
        if opacity != 100 {
            content.set_parameters(Name(&state_name(opacity)));
        }
    }
    if let Some(Stroke { colour, width, dash }) = stroke {
        let [red, green, blue] = channels(*colour);
        content.set_stroke_rgb(red, green, blue).set_line_width(short(*width));
        if !dash.is_empty() {
            content.set_dash_pattern(dash.iter().map(|&length| short(length)), 0.0);
        }
    }
}

fn paint(content: &mut Content, fill: bool, stroke: bool) {
    match (fill, stroke) {
        (true, true) => content.fill_nonzero_and_stroke(),
        (true, false) => content.fill_nonzero(),
        (false, true) => content.stroke(),
        (false, false) => content.end_path(),
    };
}

/// Three decimals, so that numbers stay short; and no negative zero.
pub(super) fn short(value: f64) -> f32 {
    (libm::round(value * 1000.0) / 1000.0 + 0.0) as f32
}

pub(super) fn channels(Colour(red, green, blue): Colour) -> [f32; 3] {
    [red, green, blue].map(|channel| short(f64::from(channel) / 255.0))
}

#[cfg(test)]
mod tests {
    use super::super::scene::{BLACK, Text};
    use super::*;

    fn printed(label: &str) -> String {
        let text = Shape::Text(Text::new((10.0, 20.0), label, 10.0));
        let circle = Shape::Circle {
            centre: (5.0, 5.0),
            radius: 2.0,
            fill: Some(Fill { colour: BLACK, opacity: 20 }),
            stroke: None,
        };
        let scene = Scene { width: 100.0, height: 50.0, shapes: vec![text, circle] };
        String::from_utf8_lossy(&render(&scene, "title")).into_owned()
    }

    #[test]
    fn the_file_is_complete() {
        let pdf = printed("r_T");
        assert!(pdf.starts_with("%PDF-1.7") && pdf.trim_end().ends_with("%%EOF"));
        assert!(pdf.contains("/MediaBox [0 0 100 50]"));
        assert!(pdf.contains("/ca 0.2") && pdf.contains("/G20 gs"));
        assert!(pdf.contains("(regretta)") && !pdf.contains("Date"));
    }

    #[test]
    fn the_cross_reference_table_points_at_the_objects() {
        let scene = Scene { width: 100.0, height: 50.0, shapes: vec![] };
        let pdf = render(&scene, "title");
        let find = |what: &[u8]| pdf.windows(what.len()).rposition(|at| at == what).unwrap();
        let text = |from: usize| String::from_utf8_lossy(&pdf[from..]).into_owned();
        let start: usize = text(find(b"startxref")).lines().nth(1).unwrap().trim().parse().unwrap();
        let table = text(start);
        assert!(table.starts_with("xref\n0 9\n"));
        for (id, line) in table.lines().skip(2).take(9).enumerate().skip(1) {
            let offset: usize = line[..10].parse().unwrap();
            assert!(text(offset).starts_with(&format!("{id} 0 obj")), "object {id}");
        }
    }
}
