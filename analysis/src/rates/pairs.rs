//! Series of two cells, trial by trial: cells of a study share their functions and noise.

use crate::pass::Blocks;

/// The mean of each block, `None` where no trial has a value. Blocks are single trials while there are
/// few, and then these are the trials' values.
pub(super) fn values(blocks: &Blocks) -> Vec<Option<f64>> {
    let mean = |(&sum, &count): (&f64, &u32)| (count > 0).then(|| sum / f64::from(count));
    blocks.sums.iter().zip(&blocks.counts).map(mean).collect()
}

/// Both series, block by block, where both have a value; as far as both go. Where one ends before the
/// other, its last block may be shorter and is left out.
pub(super) fn pairs(first: &Blocks, second: &Blocks) -> Vec<Option<(f64, f64)>> {
    let (one, other) = (first.sums.len(), second.sums.len());
    let shared = if one == other { one } else { one.min(other).saturating_sub(1) };
    values(first).into_iter().zip(values(second)).take(shared).map(|(a, b)| a.zip(b)).collect()
}

/// First minus second, block by block.
pub(super) fn differences(first: &Blocks, second: &Blocks) -> Vec<Option<f64>> {
    pairs(first, second).into_iter().map(|pair| pair.map(|(a, b)| a - b)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pairs_that_exist_are_compared() {
        let first = Blocks { sums: vec![3.0, 0.0, 5.0], counts: vec![1, 0, 2] };
        let second = Blocks { sums: vec![1.0, 2.0, 1.0, 9.0], counts: vec![1, 1, 2, 1] };
        assert_eq!(values(&first), [Some(3.0), None, Some(2.5)]);
        assert_eq!(differences(&first, &second), [Some(2.0), None]);
        assert_eq!(differences(&first, &first), [Some(0.0), None, Some(0.0)]);
    }
}
