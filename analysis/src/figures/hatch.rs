//! Diagonal hatching of a rectangle, as lines that end at its border.

use super::clip;
use super::scene::{Area, Shape, Stroke};

/// Lines rising to the right, `apart` points from each other along the lower border.
pub(super) fn hatched(area: &Area, apart: f64, stroke: &Stroke) -> Vec<Shape> {
    let count = libm::ceil((area.width + area.height) / apart) as usize;
    let lines = (1..=count).flat_map(|i| {
        // From the lower border, or its extension to the left, upwards.
        let start = area.left - area.height + apart * i as f64;
        let line = [(start, area.bottom()), (start + area.height, area.top)];
        clip::polyline(&line, area)
    });
    lines.map(|line| Shape::polyline(line, stroke.clone())).collect()
}
