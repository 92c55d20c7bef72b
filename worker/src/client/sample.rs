//! The random hundredth of trials whose records a summary keeps.

use study::{CellId, Digest, StudyId};

/// One in so many.
const ONE_IN: u64 = 100;

/// Whether a trial is among them: a hash of its address, so that every worker chooses the same ones
/// whatever the shards.
///
/// # Panics
/// Never: a digest has 32 bytes.
pub fn is_sampled(study: StudyId, cell: CellId, replicate: u64) -> bool {
    let mut digest = Digest::new();
    let hash = digest.tag("summary").bytes(&study.0).u64(cell.0).u64(replicate).finish();
    let (first, _) = hash.split_first_chunk().expect("a digest has 32 bytes");
    u64::from_le_bytes(*first).is_multiple_of(ONE_IN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_a_hundredth_is_chosen_and_another_in_every_cell() {
        let chosen = |cell| {
            let all = 0..100_000_u64;
            all.filter(|&r| is_sampled(StudyId([1; 32]), CellId(cell), r)).collect::<Vec<_>>()
        };
        let (a, b) = (chosen(1), chosen(2));
        // Five standard deviations of a binomial count.
        for count in [a.len(), b.len()] {
            assert!(count.abs_diff(1000) < 160, "{count}");
        }
        assert_ne!(a, b);
        assert_eq!(&a[..3], chosen(1).get(..3).unwrap());
    }
}
