//! The layout of bars: names at the left, bars on a common axis, and the values in print at the
//! right.

use super::bar_axis::{BAR, BarAxis, budget_mark, filled, whisker};
use super::bars::{Bar, Bars, Group, Status};
use super::frame;
use super::legend::{Entry, KEY_WIDTH, Legend};
use super::scene::{Anchor, Area, GREY, Scene, Text};
use super::{WIDTH, fonts, label, larger, ticks};

const NAME_SIZE: f64 = 9.0;
const NAME_LINE: f64 = 11.0;
const HEADING_SIZE: f64 = 9.5;
const HEADING: f64 = 19.0;
const VALUE_SIZE: f64 = 8.5;
/// The most room names may take before they are broken.
const NAMES: f64 = 165.0;
/// How far names are set in below their heading.
const INDENT: f64 = 8.0;
const TOP: f64 = 18.0;
const COLUMN_GAP: f64 = 10.0;

/// Draws all groups, the axis and the legend.
pub(super) fn draw(bars: &Bars) -> Scene {
    let mut scene = Scene { width: WIDTH, ..Scene::default() };
    let lines = Lines::new(bars);
    let height = lines.height();
    let columns = Columns::new(bars);
    let left = lines.width + 8.0;
    let width = larger(WIDTH - left - columns.width() - COLUMN_GAP - 6.0, 60.0);
    let area = Area { left, top: TOP, width, height };
    let Some(scale) = BarAxis::new(bars, &area) else {
        frame::no_data(&mut scene, &Area { left: 2.0, top: 2.0, width: 476.0, height: 96.0 });
        scene.height = 100.0;
        return scene;
    };
    let end = scale.draw(&mut scene, &area, &bars.x.label);
    columns.heads(&mut scene, &area, bars);
    let mut top = area.top;
    for (group, names) in bars.groups.iter().zip(&lines.groups) {
        let heading = Text::new((0.0, top + 13.0), &group.heading, HEADING_SIZE).bold();
        scene.text(heading);
        top += HEADING;
        for (bar, names) in group.bars.iter().zip(names) {
            let height = row_height(names);
            let middle = top + height / 2.0;
            write_name(&mut scene, names, middle);
            scale.bar(&mut scene, &area, bar, middle);
            columns.values(&mut scene, &area, bar, middle);
            top += height;
        }
    }
    let legend = Legend::new(entries(bars), WIDTH);
    let height = legend.height;
    legend.draw(&mut scene, 0.0, end + 8.0);
    scene.height = end + 8.0 + height + 4.0;
    scene
}

/// The names of all bars, broken into lines.
struct Lines {
    groups: Vec<Vec<Vec<String>>>,
    width: f64,
}

impl Lines {
    fn new(bars: &Bars) -> Self {
        let wrapped = |bar: &Bar| label::wrap(&bar.label, NAMES - INDENT, NAME_SIZE, false);
        let names = |group: &Group| group.bars.iter().map(wrapped).collect();
        let groups: Vec<Vec<Vec<String>>> = bars.groups.iter().map(names).collect();
        let all = groups.iter().flatten().flatten().map(String::as_str);
        let width = fonts::widest(all, NAME_SIZE) + INDENT;
        Self { groups, width }
    }

    fn height(&self) -> f64 {
        let rows: f64 = self.groups.iter().flatten().map(|names| row_height(names)).sum();
        rows + HEADING * self.groups.len() as f64 + 4.0
    }
}

fn row_height(names: &[String]) -> f64 {
    larger(NAME_LINE * names.len() as f64 + 5.0, BAR + 7.0)
}

fn write_name(scene: &mut Scene, names: &[String], middle: f64) {
    let first = middle - NAME_LINE * (names.len() as f64 - 1.0) / 2.0;
    for (i, line) in names.iter().enumerate() {
        let baseline = first + NAME_LINE * i as f64 + NAME_SIZE * 0.35;
        scene.text(Text::new((INDENT, baseline), line, NAME_SIZE));
    }
}

/// What is printed at the right: the value, the budget and the verdict.
struct Columns {
    measured: f64,
    budget: f64,
    verdict: f64,
}

impl Columns {
    fn new(bars: &Bars) -> Self {
        let all = || bars.groups.iter().flat_map(|group| &group.bars);
        let widest = |texts: Vec<String>, head: &str| {
            let texts = texts.iter().map(String::as_str).chain([head]);
            fonts::widest(texts, VALUE_SIZE)
        };
        Self {
            measured: widest(all().map(|bar| printed(Some(bar.value))).collect(), "measured"),
            budget: widest(all().map(|bar| printed(bar.budget)).collect(), &bars.budget),
            verdict: widest(all().map(|bar| bar.status.word().to_owned()).collect(), "verdict"),
        }
    }

    fn width(&self) -> f64 {
        self.measured + self.budget + self.verdict + 2.0 * COLUMN_GAP
    }

    /// Writes one line of the table: numbers end below each other, words start so.
    fn line(&self, scene: &mut Scene, area: &Area, baseline: f64, texts: [Text; 3]) {
        let measured = area.right() + COLUMN_GAP + self.measured;
        let budget = measured + COLUMN_GAP + self.budget;
        let starts = [measured, budget, budget + COLUMN_GAP];
        let anchors = [Anchor::End, Anchor::End, Anchor::Start];
        for ((text, x), anchor) in texts.into_iter().zip(starts).zip(anchors) {
            scene.text(Text { at: (x, baseline), anchor, ..text });
        }
    }

    fn heads(&self, scene: &mut Scene, area: &Area, bars: &Bars) {
        let heads = ["measured", &bars.budget, "verdict"];
        let texts = heads.map(|head| Text::new((0.0, 0.0), head, VALUE_SIZE).coloured(GREY));
        self.line(scene, area, area.top - 6.0, texts);
    }

    fn values(&self, scene: &mut Scene, area: &Area, bar: &Bar, middle: f64) {
        let text = |shown: String| Text::new((0.0, 0.0), shown, VALUE_SIZE);
        let word = text(bar.status.word().to_owned());
        let word = if bar.status == Status::Refuted { word.bold() } else { word };
        let texts = [text(printed(Some(bar.value))), text(printed(bar.budget)), word];
        self.line(scene, area, middle + VALUE_SIZE * 0.35, texts);
    }
}

/// Three significant digits, or a dash.
fn printed(value: Option<f64>) -> String {
    let finite = value.filter(|value| value.is_finite());
    finite.map_or_else(|| "–".to_owned(), |value| ticks::significant(value, 3))
}

fn entries(bars: &Bars) -> Vec<Entry> {
    let all = || bars.groups.iter().flat_map(|group| &group.bars);
    let used = |status: &Status| all().any(|bar| bar.status == *status);
    let swatch = Area { left: 2.0, top: -BAR / 2.0, width: KEY_WIDTH - 4.0, height: BAR };
    let mut entries: Vec<Entry> = Status::ALL
        .into_iter()
        .filter(used)
        .map(|status| Entry { label: status.word().to_owned(), key: filled(&swatch, status) })
        .collect();
    if all().any(|bar| bar.interval.is_some()) {
        let key = whisker((2.0, 0.0), (KEY_WIDTH - 2.0, 0.0));
        entries.push(Entry { label: "interval".to_owned(), key });
    }
    if all().any(|bar| bar.budget.is_some()) {
        let key = vec![budget_mark((KEY_WIDTH - 6.0, 0.0))];
        entries.push(Entry { label: bars.budget.clone(), key });
    }
    entries
}
