//! Which name has which looks in all panels of a figure, and the legend that says so.

use super::legend::{Entry, KEY_WIDTH};
use super::lines::{Lines, Look};
use super::palette::{self, Style};
use super::scene::{GREY, Shape};

/// The names of a figure in the order in which they appear.
pub(super) struct Keys<'a> {
    series: Vec<(&'a str, Vec<Look>)>,
    references: Vec<&'a str>,
}

impl<'a> Keys<'a> {
    pub(super) fn of(lines: &'a Lines) -> Self {
        let mut keys = Self { series: vec![], references: vec![] };
        for panel in &lines.panels {
            for series in &panel.series {
                let known = keys.series.iter_mut().find(|(name, _)| *name == series.name);
                match known {
                    Some((_, looks)) if looks.contains(&series.look) => {}
                    Some((_, looks)) => looks.push(series.look),
                    None => keys.series.push((&series.name, vec![series.look])),
                }
            }
            for reference in &panel.references {
                if !keys.references.contains(&reference.label()) {
                    keys.references.push(reference.label());
                }
            }
        }
        keys
    }

    pub(super) fn style(&self, name: &str) -> Style {
        let index = self.series.iter().position(|(known, _)| *known == name);
        Style(index.expect("every series was read"))
    }

    pub(super) fn reference(&self, label: &str) -> usize {
        let index = self.references.iter().position(|known| *known == label);
        index.expect("every reference was read")
    }

    /// The legend; `floors` says whether something lies on the floor of a log axis.
    pub(super) fn entries(&self, floors: bool) -> Vec<Entry> {
        let series = self.series.iter().enumerate().map(|(i, (name, looks))| Entry {
            label: (*name).to_owned(),
            key: key(Style(i), looks),
        });
        let references = self.references.iter().enumerate().map(|(i, label)| Entry {
            label: (*label).to_owned(),
            key: vec![Shape::line((0.0, 0.0), (KEY_WIDTH, 0.0), palette::reference(i))],
        });
        let floored = Entry {
            label: "0 or less, on the floor of the log axis".to_owned(),
            key: vec![palette::floored((KEY_WIDTH / 2.0, 3.0), GREY)],
        };
        let all = series.chain(references).chain(floors.then_some(floored));
        all.filter(|entry| !entry.label.is_empty()).collect()
    }
}

fn key(style: Style, looks: &[Look]) -> Vec<Shape> {
    let mut shapes = vec![];
    if looks.contains(&Look::Band) {
        let (left, right) = (0.0, KEY_WIDTH);
        let corners = vec![(left, -4.0), (right, -4.0), (right, 4.0), (left, 4.0)];
        shapes.push(Shape::polygon(corners, Some(style.band()), None));
    }
    if looks.iter().any(|look| matches!(look, Look::Line | Look::LineAndMarkers)) {
        shapes.push(Shape::line((0.0, 0.0), (KEY_WIDTH, 0.0), style.line()));
    }
    if looks.iter().any(|look| matches!(look, Look::Markers | Look::LineAndMarkers)) {
        shapes.push(style.marker((KEY_WIDTH / 2.0, 0.0), 1.0));
    }
    shapes
}
