//! What the trials really say: every content, digest, tally and stop, without a scheduler.

use std::ops::Range;

use study::StudyId;
use study::plan::Replicates;
use study::tally::{RowCounts, Tally};

use crate::rng::mix;
use crate::scenario::{BUDGETS, CellPlan};

/// The records of a trial, as one number.
fn content(study: StudyId, cell: &CellPlan, replicate: u64) -> u64 {
    let place = mix(u64::from(study.0[0]) << 32 | u64::from(cell.version) << 16 | cell.id.0);
    mix(place ^ mix(replicate))
}

/// The digest of a shard; a `lie` is any other number than 0.
pub(crate) fn digest(study: StudyId, cell: &CellPlan, range: &Range<u64>, lie: u64) -> [u8; 32] {
    let sum = range.clone().fold(lie, |sum, replicate| mix(sum ^ content(study, cell, replicate)));
    let mut digest = [0; 32];
    digest[..8].copy_from_slice(&sum.to_le_bytes());
    digest[8..16].copy_from_slice(&range.start.to_le_bytes());
    digest[16..24].copy_from_slice(&range.end.to_le_bytes());
    digest
}

/// What a shard says about the rows.
pub(crate) fn tally(study: StudyId, cell: &CellPlan, range: &Range<u64>) -> Tally {
    let mut tally = Tally(vec![RowCounts::default(); BUDGETS.len()]);
    for replicate in range.clone() {
        let content = content(study, cell, replicate);
        for (index, row) in tally.0.iter_mut().enumerate() {
            if content.is_multiple_of(50) {
                row.failures += 1;
                continue;
            }
            let violated = (content >> 8) % 100 < cell.violations && index == 0;
            row.trials += 1;
            row.refuting += u64::from(violated && !(content >> 20).is_multiple_of(10));
            row.confirming += u64::from(violated);
        }
    }
    tally
}

/// How many replicates a cell runs, `lost` of which answer nothing.
pub(crate) fn replicates(study: StudyId, cell: &CellPlan, lost: &[Range<u64>]) -> u64 {
    let (Some(mut rule), Replicates::Batched { batch, max }) = (cell.rule(), cell.replicates)
    else {
        return cell.replicates.max();
    };
    let is_lost = |replicate: u64| lost.iter().any(|range| range.contains(&replicate));
    let mut sum = Tally(vec![RowCounts::default(); BUDGETS.len()]);
    for first in (0..max).step_by(batch as usize) {
        let end = max.min(first + batch);
        for replicate in first..end {
            if is_lost(replicate) {
                sum.0.iter_mut().for_each(|row| row.failures += 1);
            } else {
                sum.plus(&tally(study, cell, &(replicate..replicate + 1)));
            }
        }
        if rule.batch_ended(&sum) {
            return end;
        }
    }
    max
}
