//! Batches and tallies: what is decoded is what was encoded.

use study::tally::{RowCounts, Tally};
use study::{Batch, Digest};
use tests::cells::{run, ucb, wishart};
use tests::priors::{kernels, on_grid};

use crate::harness::{Inputs, fuzz};

/// Batches of real trials: whole ones, and one of no rows.
pub(crate) fn batches() -> Vec<Vec<u8>> {
    let prior = on_grid(12, kernels::SMOOTH, 0.05);
    let records = run(&prior, ucb(wishart(40), 0.5), 7, &[2, 5], 8);
    let cell = records[0].cell;
    let of = |range: std::ops::Range<usize>| {
        let mut batch = Batch::new(cell);
        records[range].iter().for_each(|record| batch.push(record));
        batch.encode()
    };
    vec![of(0..2), of(0..16), of(0..0)]
}

pub(crate) fn tallies() -> Vec<Vec<u8>> {
    let row = RowCounts { trials: 300, refuting: 2, confirming: 128, failures: 1 };
    let large = RowCounts { trials: 1 << 53, refuting: 0, confirming: 1 << 40, failures: 9 };
    [vec![], vec![row], vec![row, large, RowCounts::default()]]
        .map(|rows| Tally(rows).encode())
        .to_vec()
}

const TOKENS: [&[u8]; 6] = [
    &[0xff; 8],
    &[0; 8],
    &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
    &[0, 0, 0, 0, 0, 0, 0xf0, 0x7f],
    &[0, 0, 0, 0, 0, 0, 0xf8, 0x7f],
    &[0, 0x20, 0, 0],
];

#[test]
fn batch() {
    fuzz(Inputs { name: "batch", valid: batches(), tokens: &TOKENS }, |input| match Batch::decode(
        input,
    ) {
        Ok(batch) => {
            assert_eq!(Batch::decode(&batch.encode()).as_ref(), Ok(&batch));
            let mut digest = Digest::new();
            batch.feed(&mut digest);
            format!("{} rows, {} failed", batch.len().min(20), batch.failures().min(20))
        }
        Err(error) => error.to_string(),
    });
}

#[test]
fn tally() {
    fuzz(Inputs { name: "tally", valid: tallies(), tokens: &TOKENS }, |input| match Tally::decode(
        input,
    ) {
        Ok(tally) => {
            assert_eq!(tally.encode(), input, "there is one encoding");
            format!("{} rows", "x".repeat(tally.0.len().min(20)))
        }
        Err(error) => error.to_string(),
    });
}
