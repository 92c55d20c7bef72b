//! Cells that differ in N alone belong together.

use std::cmp::Ordering;

/// A cell's label without its N, and that N.
pub(super) fn group(label: &str) -> (String, Option<u64>) {
    let mut n = None;
    let parts = label.split(", ").filter(|part| match part.strip_prefix("N = ") {
        Some(value) if n.is_none() => {
            n = value.parse().ok();
            n.is_none()
        }
        _ => true,
    });
    let group = parts.collect::<Vec<_>>().join(", ");
    (group, n)
}

/// Compares text with its numbers as numbers: `N = 200` stands before `N = 1000`.
pub(super) fn by_numbers(one: &str, other: &str) -> Ordering {
    pieces(one).cmp(pieces(other))
}

/// Digits and what stands between them; numbers sort by length, then by digits.
fn pieces(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.bytes().next()?;
        let digit = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != digit).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        rest = after;
        let piece = if digit { piece.trim_start_matches('0') } else { piece };
        Some((if digit { piece.len() } else { 0 }, piece))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_a_label_without_n() {
        assert_eq!(group("fixed design, N = 100"), ("fixed design".into(), Some(100)));
        assert_eq!(group("random"), ("random".into(), None));
        let (group, n) = group("pem-bo ucb, N = 60, delta = 0.1, prior.noise_variance = 0.5");
        assert_eq!(
            (group.as_str(), n),
            ("pem-bo ucb, delta = 0.1, prior.noise_variance = 0.5", Some(60))
        );
    }

    #[test]
    fn numbers_sort_as_numbers() {
        let mut labels = ["a, N = 1000", "a, N = 200", "b", "a, N = 90", "a"];
        labels.sort_by(|one, other| by_numbers(one, other));
        assert_eq!(labels, ["a", "a, N = 90", "a, N = 200", "a, N = 1000", "b"]);
    }
}
