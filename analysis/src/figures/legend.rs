//! The legend below a plot: in one row if it fits, otherwise in columns of equal width.

use super::scene::{Scene, Shape, Text};
use super::{fonts, label, larger};

const SIZE: f64 = 9.0;
const LINE: f64 = 12.0;
const GAP: f64 = 16.0;
/// The space of a key and its distance to the name.
const KEY: f64 = 24.0;
const BESIDE: f64 = 5.0;

/// The width of the keys.
pub(super) const KEY_WIDTH: f64 = KEY;

/// One name and what stands for it, drawn around (`KEY_WIDTH` / 2, 0).
pub(super) struct Entry {
    pub(super) label: String,
    pub(super) key: Vec<Shape>,
}

/// Entries with their places.
pub(super) struct Legend {
    placed: Vec<Placed>,
    pub(super) height: f64,
}

struct Placed {
    x: f64,
    y: f64,
    lines: Vec<String>,
    key: Vec<Shape>,
}

impl Legend {
    /// Lays entries out in a width.
    pub(super) fn new(entries: Vec<Entry>, width: f64) -> Self {
        let room = width - KEY - BESIDE;
        let wrapped: Vec<_> = entries
            .into_iter()
            .map(|entry| (label::wrap(&entry.label, room, SIZE, false), entry.key))
            .collect();
        let widths: Vec<f64> = wrapped
            .iter()
            .map(|(lines, _)| KEY + BESIDE + fonts::widest(lines.iter().map(String::as_str), SIZE))
            .collect();
        let together = widths.iter().sum::<f64>() + GAP * widths.len().saturating_sub(1) as f64;
        let (starts, columns) = if together <= width {
            (row(&widths, (width - together) / 2.0), wrapped.len())
        } else {
            let widest = widths.iter().copied().fold(0.0, larger);
            let columns = (((width + GAP) / (widest + GAP)) as usize).max(1);
            let rows = wrapped.len().div_ceil(columns);
            // No more columns than the rows need.
            let columns = wrapped.len().div_ceil(rows.max(1));
            let left = (width - widest * columns as f64 - GAP * (columns as f64 - 1.0)) / 2.0;
            (row(&vec![widest; columns], left), columns)
        };
        Self::placed(wrapped, &starts, columns.max(1))
    }

    fn placed(wrapped: Vec<(Vec<String>, Vec<Shape>)>, starts: &[f64], columns: usize) -> Self {
        let (mut placed, mut height): (Vec<Placed>, f64) = (vec![], 0.0);
        let mut tallest = 1;
        for (i, (lines, key)) in wrapped.into_iter().enumerate() {
            let column = i % columns;
            if column == 0 && i > 0 {
                height += LINE * tallest as f64 + 2.0;
                tallest = 1;
            }
            tallest = tallest.max(lines.len());
            placed.push(Placed { x: starts[column], y: height, lines, key });
        }
        if !placed.is_empty() {
            height += LINE * tallest as f64;
        }
        Self { placed, height }
    }

    /// Draws the legend with its upper left corner at a place.
    pub(super) fn draw(self, scene: &mut Scene, left: f64, top: f64) {
        for Placed { x, y, lines, key } in self.placed {
            let middle = top + y + LINE / 2.0;
            scene.extend(key.into_iter().map(|shape| shape.moved(left + x, middle)));
            for (i, line) in lines.into_iter().enumerate() {
                let baseline = middle + SIZE * 0.34 + LINE * i as f64;
                scene.text(Text::new((left + x + KEY + BESIDE, baseline), line, SIZE));
            }
        }
    }
}

fn row(widths: &[f64], left: f64) -> Vec<f64> {
    widths
        .iter()
        .scan(left, |next, width| {
            let start = *next;
            *next += width + GAP;
            Some(start)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn legend(names: &[&str], width: f64) -> Legend {
        let entry = |name: &&str| Entry { label: (*name).to_owned(), key: vec![] };
        Legend::new(names.iter().map(entry).collect(), width)
    }

    #[test]
    fn a_short_legend_is_one_centred_row() {
        let legend = legend(&["a", "b"], 400.0);
        assert_eq!(legend.height, LINE);
        let (first, last) = (&legend.placed[0], &legend.placed[1]);
        let end = last.x + KEY + BESIDE + fonts::width("b", SIZE, false);
        assert!((first.x - (400.0 - end)).abs() < 1e-9);
    }

    #[test]
    fn a_long_legend_wraps_inside_its_width() {
        let names = ["theorem2.ucb/step.variance-star"; 7];
        let legend = legend(&names, 480.0);
        assert!(legend.height > 2.0 * LINE);
        let wide = KEY + BESIDE + fonts::width(names[0], SIZE, false);
        assert!(legend.placed.iter().all(|at| at.x >= 0.0 && at.x + wide <= 480.0));
    }

    #[test]
    fn a_name_wider_than_the_figure_is_broken() {
        let legend = legend(&["one two three four five six seven eight nine ten"], 120.0);
        assert!(legend.placed[0].lines.len() > 1);
        assert_eq!(legend.height, LINE * legend.placed[0].lines.len() as f64);
    }

    #[test]
    fn nothing_takes_no_room() {
        assert_eq!(legend(&[], 100.0).height, 0.0);
    }
}
