//! Which trials are computed again: a sample that follows from the dataset's digest.
//!
//! Trials are counted as they stand in the dataset, so that one with records of some trials only, or of a
//! part of the replicates, is sampled among those that it has.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use analysis::dataset::{Dataset, Reader};
use study::{Batch, CellId};

use super::refused;
use crate::exit::{BadInput, CheckFailed};

/// How many trials are wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Share {
    /// So many in a hundred.
    Percent(f64),
    /// So many.
    Count(u64),
}

impl FromStr for Share {
    type Err = BadInput;

    fn from_str(text: &str) -> Result<Self, BadInput> {
        let share = match text.strip_suffix('%') {
            Some(number) => {
                let percent = number.trim().parse().ok().filter(|p| *p > 0.0 && *p <= 100.0);
                percent.map(Self::Percent)
            }
            None => text.parse().ok().filter(|count| *count > 0).map(Self::Count),
        };
        share.ok_or_else(|| {
            BadInput(format!(
                "{text:?} is no share of trials; use a percentage above 0% and up to 100%, such as 1%, \
                 or a number of trials, such as 200"
            ))
        })
    }
}

/// The sampled records.
pub(super) struct Sample {
    /// Those of every cell that has any, in the dataset's order.
    pub(super) cells: Vec<Batch>,
}

impl Sample {
    /// Draws the sample and reads its records.
    pub(super) fn draw(dataset: &Dataset, share: Share) -> anyhow::Result<Self> {
        let ids: Vec<CellId> = dataset.cells.iter().map(|cell| cell.id).collect();
        let held = if dataset.has_all_records() {
            dataset.cells.iter().map(|cell| cell.replicates).collect()
        } else {
            read(&dataset.dir, &ids, |_, _, _| ())?
        };
        let counts = allot(&held, share);
        let chosen: Vec<BTreeSet<u64>> = (ids.iter().zip(&held).zip(counts))
            .map(|((&id, &held), count)| choose(&dataset.manifest.digest, id, held, count))
            .collect();
        let mut cells: Vec<Batch> = ids.iter().map(|&id| Batch::new(id)).collect();
        let found = read(&dataset.dir, &ids, |cell, batch, trials| {
            for (ordinal, rows) in trials {
                if chosen[cell].contains(&ordinal) {
                    cells[cell].append(batch.slice(rows));
                }
            }
        })?;
        dataset.confirm().map_err(|error| refused(&error))?;
        if let Some(cell) = (0..ids.len()).find(|&cell| found[cell] != held[cell]) {
            return Err(CheckFailed(format!(
                "the manifest says that cell {} has {} trials, and there are records of {}",
                ids[cell], held[cell], found[cell]
            ))
            .into());
        }
        cells.retain(|batch| !batch.is_empty());
        Ok(Self { cells })
    }

    /// How many trials there are.
    pub(super) fn trials(&self) -> u64 {
        self.cells.iter().map(|batch| replicates(batch).len() as u64).sum()
    }
}

/// The replicates of a batch, each once.
pub(super) fn replicates(batch: &Batch) -> Vec<u64> {
    let mut replicates = batch.replicates().to_vec();
    replicates.dedup();
    replicates
}

/// Trials of each cell: in proportion to what it has, at least one.
fn allot(held: &[u64], share: Share) -> Vec<u64> {
    let total: u128 = held.iter().map(|&trials| u128::from(trials)).sum();
    let wanted = match share {
        Share::Percent(percent) => (total as f64 * percent / 100.0).ceil() as u128,
        Share::Count(count) => u128::from(count),
    };
    let wanted = wanted.min(total);
    let mut before = 0;
    let each = held.iter().map(|&trials| {
        let upto = |sum: u128| sum.saturating_mul(wanted) / total.max(1);
        let count = upto(before + u128::from(trials)) - upto(before);
        before += u128::from(trials);
        (count as u64).max(1).min(trials)
    });
    each.collect()
}

/// `count` of `0..held`, each set as likely as any other (Floyd), by BLAKE3 of the dataset and the cell.
fn choose(digest: &str, cell: CellId, held: u64, count: u64) -> BTreeSet<u64> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"regretta verify v1").update(digest.as_bytes()).update(&cell.0.to_le_bytes());
    let mut stream = hasher.finalize_xof();
    let mut below = |bound: u64| {
        let mut bytes = [0; 8];
        stream.fill(&mut bytes);
        ((u128::from(u64::from_le_bytes(bytes)) * u128::from(bound)) >> 64) as u64
    };
    let mut chosen = BTreeSet::new();
    for last in held - count..held {
        let pick = below(last + 1);
        if !chosen.insert(pick) {
            chosen.insert(last);
        }
    }
    chosen
}

/// Reads all records; `visit` gets each batch with its cell's place and the rows of each trial, counted from
/// 0 within the cell. Returns how many trials each cell has.
fn read(
    dir: &Path,
    ids: &[CellId],
    mut visit: impl FnMut(usize, &Batch, Vec<(u64, Range<usize>)>),
) -> anyhow::Result<Vec<u64>> {
    let mut counts = vec![0; ids.len()];
    let mut last: Vec<Option<u64>> = vec![None; ids.len()];
    for batch in Reader::open(dir).map_err(|error| refused(&error))? {
        let batch = batch.map_err(|error| refused(&error))?;
        let Ok(cell) = ids.binary_search(&batch.cell()) else {
            let unknown =
                format!("there are records of cell {}, which the manifest lacks", batch.cell());
            return Err(CheckFailed(unknown).into());
        };
        let mut trials = Vec::new();
        let mut row = 0;
        for run in batch.replicates().chunk_by(|a, b| a == b) {
            if last[cell] != Some(run[0]) {
                (last[cell], counts[cell]) = (Some(run[0]), counts[cell] + 1);
            }
            trials.push((counts[cell] - 1, row..row + run.len()));
            row += run.len();
        }
        visit(cell, &batch, trials);
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percentages_or_counts() {
        assert_eq!("1%".parse::<Share>().unwrap(), Share::Percent(1.0));
        assert_eq!("0.5 %".parse::<Share>().unwrap(), Share::Percent(0.5));
        assert_eq!("200".parse::<Share>().unwrap(), Share::Count(200));
        for wrong in ["", "0", "0%", "101%", "-1", "nan%", "1.5", "all"] {
            let message = wrong.parse::<Share>().unwrap_err().to_string();
            assert!(message.contains("such as 1%"), "{message}");
        }
    }

    #[test]
    fn every_cell_has_its_part_and_at_least_one() {
        assert_eq!(allot(&[1000, 3000], Share::Percent(1.0)), [10, 30]);
        assert_eq!(allot(&[1000, 3000], Share::Count(7)), [1, 6]);
        assert_eq!(allot(&[5, 0, 7], Share::Count(1)), [1, 0, 1]);
        assert_eq!(allot(&[5, 7], Share::Percent(100.0)), [5, 7]);
        assert_eq!(allot(&[5, 7], Share::Count(u64::MAX)), [5, 7]);
        assert!(allot(&[], Share::Count(3)).is_empty());
    }

    #[test]
    fn a_choice_is_the_same_every_time_and_differs_between_cells() {
        let of = |digest, cell, count| choose(digest, CellId(cell), 1000, count);
        assert_eq!(of("ab", 1, 20), of("ab", 1, 20));
        assert_ne!(of("ab", 1, 20), of("ab", 2, 20));
        assert_ne!(of("ab", 1, 20), of("ac", 1, 20));
        assert_eq!(of("ab", 1, 20).len(), 20);
        assert_eq!(of("ab", 1, 1000), (0..1000).collect());
        assert_eq!(of("ab", 1, 0), BTreeSet::new());
    }
}
