//! The nearest neighbours of every point of a set.

/// For every point the `near` nearest others, nearest first, the lower index first among equals;
/// coordinates are compared in units of the scales.
///
/// Points are sorted along the first axis, and each is compared with those ahead and behind until
/// that axis alone parts them by more than the farthest neighbour so far.
pub(super) fn neighbours(points: &[f64], scales: &[f64], near: usize) -> Vec<u32> {
    let d = scales.len();
    let scaled: Vec<f64> = points.iter().enumerate().map(|(at, x)| x / scales[at % d]).collect();
    let count = scaled.len() / d;
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| scaled[a * d].total_cmp(&scaled[b * d]).then(a.cmp(&b)));
    let mut out = vec![0; count * near];
    let mut nearest = Nearest { near, found: Vec::with_capacity(near + 1) };
    for (place, &i) in order.iter().enumerate() {
        nearest.found.clear();
        let point = &scaled[i * d..(i + 1) * d];
        let mut offer = |n: usize| nearest.offer(point, &scaled[n * d..(n + 1) * d], n);
        let (behind, ahead) = (&order[..place], &order[place + 1..]);
        let _farther = behind.iter().rev().try_for_each(|&n| offer(n));
        let _farther = ahead.iter().try_for_each(|&n| offer(n));
        for (slot, &(_, n)) in out[i * near..(i + 1) * near].iter_mut().zip(&nearest.found) {
            *slot = n as u32;
        }
    }
    out
}

/// The nearest points so far, with their squared distances.
struct Nearest {
    near: usize,
    found: Vec<(f64, usize)>,
}

impl Nearest {
    /// `None` where no point farther along the first axis can be among the nearest.
    #[inline(always)]
    fn offer(&mut self, a: &[f64], b: &[f64], n: usize) -> Option<()> {
        let full = self.found.len() == self.near;
        let farthest = if full { self.found.last()?.0 } else { f64::INFINITY };
        if (a[0] - b[0]) * (a[0] - b[0]) > farthest {
            return None;
        }
        let square = a.iter().zip(b).fold(0.0, |sum, (a, b)| sum + (a - b) * (a - b));
        if square > farthest {
            return Some(());
        }
        let at = self.found.partition_point(|&other| other < (square, n));
        self.found.insert(at, (square, n));
        self.found.truncate(self.near);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::normals;
    use super::*;

    #[test]
    fn as_by_comparing_all_pairs() {
        for (d, count, near) in [(1, 20, 4), (2, 100, 8), (3, 150, 16), (2, 5, 4), (2, 1, 0)] {
            // Rounded, so that many distances are equal.
            let points: Vec<f64> =
                normals(count * d, 0).iter().map(|x| (x * 4.0).round() / 4.0).collect();
            let scales = &[0.5, 1.0, 2.0][..d];
            let found = neighbours(&points, scales, near);
            for i in 0..count {
                let mut all: Vec<(f64, usize)> = (0..count)
                    .filter(|&n| n != i)
                    .map(|n| {
                        let part = |j: usize| (points[i * d + j] - points[n * d + j]) / scales[j];
                        ((0..d).map(|j| part(j) * part(j)).sum(), n)
                    })
                    .collect();
                all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                let expected: Vec<u32> = all[..near].iter().map(|&(_, n)| n as u32).collect();
                assert_eq!(&found[i * near..(i + 1) * near], expected);
            }
        }
    }
}
