//! Cutting lines and polygons off at the border of a plot.

use super::scene::{Area, Place};

/// The parts of a polyline inside the area.
pub(super) fn polyline(points: &[Place], area: &Area) -> Vec<Vec<Place>> {
    let mut parts: Vec<Vec<Place>> = vec![];
    for pair in points.windows(2) {
        let Some((from, to)) = segment(pair[0], pair[1], area) else { continue };
        match parts.last_mut() {
            Some(part) if part.last() == Some(&from) && from == pair[0] => part.push(to),
            _ => parts.push(vec![from, to]),
        }
    }
    parts
}

/// The part of a segment inside the area, by Liang and Barsky: the range of `s` in [0, 1] for
/// which `from + s (to − from)` is on the inner side of all four borders.
fn segment(from: Place, to: Place, area: &Area) -> Option<(Place, Place)> {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let borders = [
        (-dx, from.0 - area.left),
        (dx, area.right() - from.0),
        (-dy, from.1 - area.top),
        (dy, area.bottom() - from.1),
    ];
    let (mut first, mut last) = (0.0, 1.0);
    for (outwards, distance) in borders {
        if outwards == 0.0 {
            if distance < 0.0 {
                return None;
            }
            continue;
        }
        let s = distance / outwards;
        if outwards < 0.0 && s > first {
            first = s;
        }
        if outwards > 0.0 && s < last {
            last = s;
        }
    }
    let at = |s: f64| {
        if s == 0.0 {
            from
        } else if s == 1.0 {
            to
        } else {
            (from.0 + s * dx, from.1 + s * dy)
        }
    };
    (first <= last).then(|| (at(first), at(last)))
}

/// The part of a polygon inside the area, by Sutherland and Hodgman: cut at one border after the
/// other.
pub(super) fn polygon(points: &[Place], area: &Area) -> Vec<Place> {
    let (left, right, top, bottom) = (area.left, area.right(), area.top, area.bottom());
    let points = half(points, |p| p.0 - left);
    let points = half(&points, |p| right - p.0);
    let points = half(&points, |p| p.1 - top);
    half(&points, |p| bottom - p.1)
}

/// The part of a polygon where `inside` is not negative; `inside` is affine.
fn half(points: &[Place], inside: impl Fn(Place) -> f64) -> Vec<Place> {
    let mut kept = vec![];
    for (i, &to) in points.iter().enumerate() {
        let from = points[(i + points.len() - 1) % points.len()];
        let (a, b) = (inside(from), inside(to));
        if (a < 0.0) != (b < 0.0) {
            let s = a / (a - b);
            kept.push((from.0 + s * (to.0 - from.0), from.1 + s * (to.1 - from.1)));
        }
        if b >= 0.0 {
            kept.push(to);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: Area = Area { left: 0.0, top: 0.0, width: 10.0, height: 10.0 };

    #[test]
    fn a_line_that_leaves_and_returns_has_two_parts() {
        let parts =
            polyline(&[(1.0, 5.0), (5.0, 5.0), (5.0, 20.0), (8.0, 20.0), (8.0, 5.0)], &AREA);
        assert_eq!(
            parts,
            [vec![(1.0, 5.0), (5.0, 5.0), (5.0, 10.0)], vec![(8.0, 10.0), (8.0, 5.0)]]
        );
        assert!(polyline(&[(-5.0, -1.0), (15.0, -1.0)], &AREA).is_empty());
        assert!(polyline(&[(1.0, 1.0)], &AREA).is_empty());
    }

    #[test]
    fn a_polygon_is_cut_to_the_area() {
        let cut = polygon(&[(-5.0, 5.0), (5.0, -5.0), (15.0, 5.0), (5.0, 15.0)], &AREA);
        assert!(cut.iter().all(|&at| AREA.holds(at)), "{cut:?}");
        let twice_the_area: f64 = (0..cut.len())
            .map(|i| (cut[i], cut[(i + 1) % cut.len()]))
            .map(|(a, b)| a.0 * b.1 - b.0 * a.1)
            .sum();
        assert!((twice_the_area.abs() / 2.0 - 100.0).abs() < 1e-9);
        assert!(polygon(&[(20.0, 20.0), (30.0, 20.0), (30.0, 30.0)], &AREA).is_empty());
        assert!(polygon(&[], &AREA).is_empty());
    }
}
