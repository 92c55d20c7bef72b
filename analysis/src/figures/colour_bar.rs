//! The colour scale of a heat map and the bar that explains it, right of the cells.

use super::axis::{Axis, Range, TICK_SIZE};
use super::colours::Palette;
use super::frame::{self, LABEL_LINE};
use super::heat::{Colours, HeatMap};
use super::scene::{Area, Fill, INK, Scene, Shape, Stroke, Text};
use super::ticks::Tick;
use super::{larger, smaller};

const GAP: f64 = 14.0;
const BAR: f64 = 11.0;
const STRIPES: usize = 64;

/// A bar of a given height.
pub(super) struct ColourBar {
    pub(super) palette: Palette,
    /// Of bar, numbers and label, with the gap to the cells.
    pub(super) width: f64,
    range: Range,
    ticks: Vec<Tick>,
    label: Vec<String>,
    centre: Option<f64>,
}

impl ColourBar {
    /// The bar for the values of a map, unless all are missing.
    pub(super) fn new(map: &HeatMap, height: f64) -> Option<Self> {
        let values: Vec<f64> = (0..map.rows.names.len())
            .flat_map(|row| (0..map.columns.names.len()).map(move |column| (row, column)))
            .filter_map(|(row, column)| map.cell(row, column).value)
            .collect();
        let centre = match map.colours {
            Colours::Diverging { centre } if centre.is_finite() => Some(centre),
            _ => None,
        };
        let start = centre.unwrap_or(*values.first()?);
        let fold = |pick: fn(f64, f64) -> f64| values.iter().copied().fold(start, pick);
        let (low, high) = (fold(smaller), fold(larger));
        let range = Axis::linear("").within(low, high).range(values.iter().copied())?;
        let ticks = range.along(height, 0.0).ticks(&[]);
        let label = frame::label_lines(&map.value, height);
        let width = GAP + BAR + frame::numbers_beside(&ticks) + LABEL_LINE * label.len() as f64;
        let colours = centre.map_or(Colours::Sequential, |centre| Colours::Diverging { centre });
        let palette = Palette::new(colours, low, high);
        Some(Self { palette, width: width + 5.0, range, ticks, label, centre })
    }

    /// Draws the bar beside the cells, as high as they are.
    pub(super) fn draw(&self, scene: &mut Scene, cells: &Area) {
        let bar = Area { left: cells.right() + GAP, width: BAR, ..*cells };
        self.stripes(scene, &bar);
        scene.add(bar.shape(None, Some(Stroke::solid(INK, 0.6))));
        let ruler = self.range.along(bar.bottom(), bar.top);
        let right = bar.right();
        if let Some(y) = self.centre.map(|centre| ruler.at(centre)) {
            scene.add(Shape::line((bar.left, y), (right, y), Stroke::solid(INK, 0.9)));
        }
        for Tick { value, label } in &self.ticks {
            let Some(label) = label else { continue };
            let y = ruler.at(*value);
            scene.add(Shape::line((right, y), (right + 3.0, y), Stroke::solid(INK, 0.7)));
            scene.text(Text::new((right + 5.0, y + TICK_SIZE * 0.35), label, TICK_SIZE));
        }
        let beside = right + frame::numbers_beside(&self.ticks) + 2.0;
        frame::label_beside(scene, &self.label, beside, bar.centre().1);
    }

    fn stripes(&self, scene: &mut Scene, bar: &Area) {
        let step = bar.height / STRIPES as f64;
        for i in 0..STRIPES {
            let share = (i as f64 + 0.5) / STRIPES as f64;
            let value = self.range.low + share * (self.range.high - self.range.low);
            // Each stripe reaches under those above, so that no light shows between them.
            let height = bar.height - step * i as f64;
            let stripe = Area { height, ..*bar };
            scene.add(stripe.shape(Some(Fill::solid(self.palette.of(value))), None));
        }
    }
}
