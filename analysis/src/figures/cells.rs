//! The layout of a heat map: names left of and below the cells, the colour bar at the right.

use super::colour_bar::ColourBar;
use super::colours;
use super::frame::{self, LABEL_LINE};
use super::hatch::hatched;
use super::heat::{Cell, HeatMap, Mark};
use super::legend::{Entry, KEY_WIDTH, Legend};
use super::scene::{
    Anchor, Area, Colour, Fill, GREY, INK, Place, Scene, Shape, Stroke, Text, WHITE,
};
use super::{WIDTH, fonts, label, larger, smaller, ticks};

const NAME_SIZE: f64 = 9.0;
const NAME_LINE: f64 = 11.0;
const NUMBER_SIZE: f64 = 9.0;
/// The room of a mark beside a number.
const MARK: f64 = 11.0;
/// The most room names of rows may take before they are broken.
const NAMES: f64 = 170.0;
const TOP: f64 = 6.0;

/// Draws the map.
pub(super) fn draw(map: &HeatMap) -> Scene {
    let mut scene = Scene { width: WIDTH, ..Scene::default() };
    if map.rows.names.is_empty() || map.columns.names.is_empty() {
        frame::no_data(&mut scene, &Area { left: 2.0, top: 2.0, width: 476.0, height: 96.0 });
        scene.height = 100.0;
        return scene;
    }
    let layout = Layout::new(map);
    scene.width = layout.width;
    layout.cells(&mut scene);
    layout.row_names(&mut scene);
    let bottom = layout.column_names(&mut scene);
    if let Some(bar) = &layout.bar {
        bar.draw(&mut scene, &layout.area);
    }
    let legend = Legend::new(mark_entries(map), scene.width);
    let height = legend.height;
    let top = if height > 0.0 { bottom + 8.0 } else { bottom };
    legend.draw(&mut scene, 0.0, top);
    scene.height = larger(top + height + 5.0, layout.area.bottom() + 8.0);
    scene
}

struct Layout<'a> {
    map: &'a HeatMap,
    /// All cells together.
    area: Area,
    /// Of one cell.
    cell: (f64, f64),
    row_names: Vec<Vec<String>>,
    row_label: Vec<String>,
    /// Whether names of columns are too wide to be level.
    slanted: bool,
    /// The colour scale, unless all values are missing.
    bar: Option<ColourBar>,
    /// Of the whole figure.
    width: f64,
}

impl<'a> Layout<'a> {
    fn new(map: &'a HeatMap) -> Self {
        let row_names: Vec<Vec<String>> =
            map.rows.names.iter().map(|name| label::wrap(name, NAMES, NAME_SIZE, false)).collect();
        let height = cell_height(&row_names);
        let total = height * row_names.len() as f64;
        let row_label = frame::label_lines(&map.rows.label, total);
        let names = fonts::widest(row_names.iter().flatten().map(String::as_str), NAME_SIZE);
        let mut left = names + 12.0 + LABEL_LINE * row_label.len() as f64;
        let bar = ColourBar::new(map, total);
        let right = bar.as_ref().map_or(4.0, |bar| bar.width);
        let count = map.columns.names.len() as f64;
        let width = larger(smaller((WIDTH - left - right) / count, 84.0), number_room(map));
        let column = fonts::widest(map.columns.names.iter().map(String::as_str), NAME_SIZE);
        let slanted = column > width - 4.0;
        if slanted {
            // The first name reaches below the names of the rows.
            left = larger(left, column * 0.77 - width / 2.0);
        }
        let area = Area { left, top: TOP, width: width * count, height: total };
        let (cell, width) = ((width, height), area.right() + right);
        Self { map, area, cell, row_names, row_label, slanted, bar, width }
    }

    fn cells(&self, scene: &mut Scene) {
        let (width, height) = self.cell;
        for row in 0..self.map.rows.names.len() {
            for column in 0..self.map.columns.names.len() {
                let left = self.area.left + width * column as f64;
                let top = self.area.top + height * row as f64;
                let area = Area { left, top, width, height };
                self.draw_cell(scene, &area, self.map.cell(row, column));
            }
        }
    }

    fn draw_cell(&self, scene: &mut Scene, area: &Area, cell: Cell) {
        let edge = || Some(Stroke::solid(WHITE, 1.2));
        let (x, y) = area.centre();
        let baseline = y + NUMBER_SIZE * 0.35;
        let (Some(value), Some(bar)) = (cell.value, &self.bar) else {
            scene.add(area.shape(Some(Fill::solid(Colour(236, 236, 236))), None));
            scene.extend(hatched(area, 5.0, &Stroke::solid(Colour(200, 200, 200), 0.6)));
            scene.add(area.shape(None, edge()));
            let text = Text::new((x, baseline), "–", NUMBER_SIZE).coloured(GREY);
            scene.text(text.anchored(Anchor::Middle));
            return;
        };
        let fill = bar.palette.of(value);
        let ink = colours::readable_on(fill);
        scene.add(area.shape(Some(Fill::solid(fill)), edge()));
        let printed = printed(value, self.map.decimals);
        let shift = if has_marks(self.map) { MARK / 2.0 } else { 0.0 };
        if let Some(mark) = cell.mark {
            let beside = x - shift + fonts::width(&printed, NUMBER_SIZE, false) / 2.0 + 7.0;
            scene.add(mark_shape(mark, (beside, y), ink));
        }
        let text = Text::new((x - shift, baseline), printed, NUMBER_SIZE).coloured(ink);
        scene.text(text.anchored(Anchor::Middle));
    }

    fn row_names(&self, scene: &mut Scene) {
        for (row, lines) in self.row_names.iter().enumerate() {
            let middle = self.area.top + self.cell.1 * (row as f64 + 0.5);
            let first = middle - NAME_LINE * (lines.len() as f64 - 1.0) / 2.0;
            for (i, line) in lines.iter().enumerate() {
                let baseline = first + NAME_LINE * i as f64 + NAME_SIZE * 0.35;
                let text = Text::new((self.area.left - 6.0, baseline), line, NAME_SIZE);
                scene.text(text.anchored(Anchor::End));
            }
        }
        frame::label_beside(scene, &self.row_label, 0.0, self.area.centre().1);
    }

    /// Writes the names below the cells and says where they end.
    fn column_names(&self, scene: &mut Scene) -> f64 {
        let names = &self.map.columns.names;
        let bottom = self.area.bottom();
        for (column, name) in names.iter().enumerate() {
            let x = self.area.left + self.cell.0 * (column as f64 + 0.5);
            scene.text(if self.slanted {
                let text = Text::new((x + 4.0, bottom + 9.0), name, NAME_SIZE);
                text.anchored(Anchor::End).turned(40.0)
            } else {
                Text::new((x, bottom + 12.0), name, NAME_SIZE).anchored(Anchor::Middle)
            });
        }
        let widest = fonts::widest(names.iter().map(String::as_str), NAME_SIZE);
        let end = bottom + if self.slanted { widest * 0.65 + 14.0 } else { 16.0 };
        if self.map.columns.label.is_empty() {
            return end;
        }
        let lines = frame::label_lines(&self.map.columns.label, self.area.width);
        frame::label_below(scene, &lines, self.area.centre().0, end);
        end + LABEL_LINE * lines.len() as f64
    }
}

/// The height of every cell: enough for the names, and for labels beside a few rows.
fn cell_height(names: &[Vec<String>]) -> f64 {
    let lines = names.iter().map(Vec::len).max().unwrap_or(1) as f64;
    larger(larger(26.0, NAME_LINE * lines + 5.0), 72.0 / names.len() as f64)
}

/// The width that the widest number needs, with its mark.
fn number_room(map: &HeatMap) -> f64 {
    let cells = map.cells.iter().flatten();
    let values = cells.filter_map(|cell| cell.value).filter(|value| value.is_finite());
    let texts: Vec<String> = values.map(|value| printed(value, map.decimals)).collect();
    let number = fonts::widest(texts.iter().map(String::as_str), NUMBER_SIZE);
    number + 8.0 + if has_marks(map) { MARK } else { 0.0 }
}

fn printed(value: f64, decimals: usize) -> String {
    ticks::minus(&format!("{value:.decimals$}"))
}

fn has_marks(map: &HeatMap) -> bool {
    map.cells.iter().flatten().any(|cell| cell.mark.is_some())
}

/// A tick or a cross of a size with the numbers.
fn mark_shape(mark: Mark, (x, y): Place, colour: Colour) -> Shape {
    let points: &[Place] = match mark {
        Mark::Confirmed => &[(-3.0, 0.2), (-1.0, 2.6), (3.0, -3.0)],
        Mark::Refuted => &[(-2.5, -2.5), (2.5, 2.5), (0.0, 0.0), (-2.5, 2.5), (2.5, -2.5)],
    };
    let points = points.iter().map(|&(dx, dy)| (x + dx, y + dy)).collect();
    Shape::polyline(points, Stroke::solid(colour, 1.4))
}

fn mark_entries(map: &HeatMap) -> Vec<Entry> {
    let used = |mark| map.cells.iter().flatten().any(|cell| cell.mark == Some(mark));
    [Mark::Confirmed, Mark::Refuted]
        .into_iter()
        .filter(|&mark| used(mark))
        .map(|mark| Entry {
            label: mark.word().to_owned(),
            key: vec![mark_shape(mark, (KEY_WIDTH - 5.0, 0.0), INK)],
        })
        .collect()
}
