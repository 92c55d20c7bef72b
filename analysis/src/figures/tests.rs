//! What holds for every figure: well-formed, self-contained, finite, and the same every time.

use super::scene::{Anchor, Area, Place, Shape, Text};
use super::{Axis, Chart, Figure, Lines, Look, Panel, Point, Series, fonts, samples, stress};

fn figures() -> Vec<Figure> {
    samples::all().into_iter().chain(stress::all()).collect()
}

/// Checks that tags are balanced and text is escaped, and returns the names of all elements.
fn elements(xml: &str) -> Vec<String> {
    let (mut open, mut seen): (Vec<&str>, Vec<String>) = (vec![], vec![]);
    let mut rest = xml;
    while let Some(start) = rest.find('<') {
        let text = &rest[..start];
        assert!(!text.contains('>'), "unescaped: {text}");
        for entity in text.split('&').skip(1) {
            let name = entity.split(';').next().unwrap();
            assert!(["amp", "lt", "gt", "quot"].contains(&name), "entity: {entity}");
        }
        let end = start + rest[start..].find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        assert!(!tag.contains('<') && tag.matches('"').count().is_multiple_of(2), "tag: {tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "closes what is open");
        } else {
            let name = tag.split([' ', '/']).next().unwrap();
            seen.push(name.to_owned());
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty() && rest.trim().is_empty());
    seen
}

#[test]
fn svgs_are_well_formed_and_described() {
    for figure in figures() {
        let svg = figure.svg();
        let seen = elements(&svg);
        assert_eq!(seen[..3], ["svg", "title", "desc"], "{}", figure.id);
        assert!(svg.contains("role=\"img\""));
        assert!(svg.contains("&quot;sample&quot;"));
    }
}

#[test]
fn svgs_refer_to_nothing_outside() {
    for figure in figures() {
        let svg = figure.svg();
        assert_eq!(svg.matches("http").count(), 1, "only the namespace");
        for forbidden in ["href", "url(", "<style", "<script", "@import"] {
            assert!(!svg.contains(forbidden), "{forbidden}");
        }
        let prefix = format!("id=\"fig-{}-", figure.id.replace(' ', "-"));
        assert_eq!(svg.matches(" id=").count(), svg.matches(&prefix).count());
    }
}

#[test]
fn nothing_printed_is_not_finite() {
    for figure in figures() {
        let svg = figure.svg().replace("interval", "");
        let pdf = String::from_utf8_lossy(&figure.pdf()).into_owned();
        let csv = figure.csv();
        for word in ["NaN", "nan", "inf,", "inf ", "\"inf", "-inf"] {
            assert!(!svg.contains(word), "{word} in the SVG of {}", figure.id);
            assert!(!csv.contains(word), "{word} in the CSV of {}", figure.id);
            assert!(!pdf.contains(word), "{word} in the PDF of {}", figure.id);
        }
    }
}

#[test]
fn the_same_figure_gives_the_same_bytes() {
    for figure in figures() {
        let again = figure.clone();
        assert_eq!(figure.svg(), again.svg());
        assert_eq!(figure.pdf(), again.pdf());
        assert_eq!(figure.csv(), again.csv());
    }
}

/// The corners of a line of text: left, top, right, bottom. Slanted text is left out.
fn bounds(text: &Text) -> Option<[f64; 4]> {
    let width = fonts::width(&text.label, text.size, text.bold);
    let before = match text.anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => width / 2.0,
        Anchor::End => width,
    };
    let ((x, y), after) = (text.at, width - before);
    let (above, below) = (text.size * 0.72, text.size * 0.2);
    match text.turn {
        0.0 => Some([x - before, y - above, x + after, y + below]),
        90.0 => Some([x - above, y - after, x + below, y + before]),
        _ => None,
    }
}

fn places(shape: &Shape) -> Vec<Place> {
    match shape {
        Shape::Path { points, .. } => points.clone(),
        Shape::Circle { centre: (x, y), radius, .. } => {
            vec![(x - radius, y - radius), (x + radius, y + radius)]
        }
        Shape::Text(text) => match bounds(text) {
            Some([left, top, right, bottom]) => vec![(left, top), (right, bottom)],
            None => vec![text.at],
        },
    }
}

#[test]
fn everything_lies_on_the_page() {
    for figure in figures() {
        let scene = figure.scene();
        let page = Area { left: 0.0, top: 0.0, width: scene.width, height: scene.height };
        for shape in &scene.shapes {
            assert!(places(shape).iter().all(|&at| page.holds(at)), "{}: {shape:?}", figure.id);
        }
    }
}

#[test]
fn no_text_covers_another() {
    for figure in figures() {
        let shapes = figure.scene().shapes;
        let texts = shapes.iter().filter_map(|shape| match shape {
            Shape::Text(text) => bounds(text).map(|bounds| (bounds, text)),
            _ => None,
        });
        let texts: Vec<_> = texts.collect();
        for (i, (a, one)) in texts.iter().enumerate() {
            for (b, other) in &texts[i + 1..] {
                let apart = a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1];
                assert!(apart, "{}: {} and {}", figure.id, one.label, other.label);
            }
        }
    }
}

#[test]
fn pdfs_are_complete_files() {
    for figure in figures() {
        let pdf = figure.pdf();
        assert!(pdf.starts_with(b"%PDF-") && pdf.trim_ascii_end().ends_with(b"%%EOF"));
    }
}

#[test]
fn empty_figures_say_so() {
    let lines = Lines { panels: vec![], columns: 0, shared: true };
    let nothing = Figure {
        id: String::new(),
        title: String::new(),
        caption: String::new(),
        chart: Chart::Lines(lines),
    };
    elements(&nothing.svg());
    assert_eq!(nothing.csv(), "panel,series,x,y,low,high\n");
    let said = |figure: &Figure| figure.svg().matches("no data").count();
    let counts: Vec<usize> =
        samples::all().iter().filter(|f| f.title.starts_with("No")).map(said).collect();
    assert_eq!(counts, [2, 0, 1]);
}

fn csv(id: &str) -> Vec<String> {
    let figure = samples::all().into_iter().find(|figure| figure.id == id).unwrap();
    figure.csv().lines().map(str::to_owned).collect()
}

#[test]
fn tables_hold_what_is_drawn() {
    let coverage = csv("coverage");
    assert_eq!(coverage.len(), 1 + 3 * (3 * 4 + 1));
    assert_eq!(coverage[1], "N = 100,plug-in mean,1,0.99,0.978,0.996");
    assert!(coverage.contains(&"N = 500,required 0.95,,0.95,,".to_owned()));
    assert_eq!(csv("empty").len(), 3, "points that are not finite are left out");
    let map = csv("map");
    assert_eq!((map.len(), map[4].as_str()), (17, "100,50,,"));
    assert!(map[1].ends_with(",confirmed"));
    let audit = csv("audit");
    assert_eq!(audit[2], "Lemma 1,lemma1.mean,0,0,0.00003,0.05,confirmed");
    assert!(audit.iter().any(|row| row.starts_with("Theorem 4,\"theorem4.pi/step.f-tau and")));
    assert_eq!(audit.last().unwrap(), "Theorem 4,theorem4.pi,,,,0.05,undecided");
}

#[test]
fn intervals_are_set_apart_but_not_from_a_curve() {
    let series = |name: &str, look| {
        let points = [1.0, 10.0, 100.0].map(|x| match look {
            Look::Line => Point::new(x, 0.5),
            _ => Point::with_interval(x, 0.5, 0.4, 0.6),
        });
        Series { name: name.to_owned(), look, points: points.to_vec() }
    };
    // Where the markers of the first series are.
    let places = |series: &[Series]| -> Vec<String> {
        let (x, y) = (Axis::log("t"), Axis::linear("coverage"));
        let panel =
            Panel { title: String::new(), x, y, series: series.to_vec(), references: vec![] };
        let lines = Lines { panels: vec![panel], columns: 1, shared: true };
        let [id, title, caption] = ["apart", "Apart", "sample"].map(str::to_owned);
        let svg = Figure { id, title, caption, chart: Chart::Lines(lines) }.svg();
        let markers = svg.split("<circle cx=\"").skip(1);
        markers.take(3).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
    };
    let [a, b] = ["a", "b"].map(|name| series(name, Look::Markers));
    let there = places(std::slice::from_ref(&a));
    assert_eq!(there.len(), 3);
    assert_ne!(places(&[a.clone(), b.clone()]), there);
    assert_eq!(places(&[a, b, series("exact", Look::Line)]), there);
}
