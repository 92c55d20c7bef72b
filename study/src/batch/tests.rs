//! Batches as they are built, encoded and damaged.

use super::*;
use proptest::prelude::*;
use theory::Measurement;
use theory::measurement::{AtTau, Deviation};

fn batch(rows: &[(u64, u32)], failed: &[usize]) -> (Batch, Vec<Record>) {
    let record = |(row, &(replicate, t)): (usize, &(u64, u32))| Record {
        cell: CellId(77),
        replicate,
        t,
        outcome: if failed.contains(&row) {
            Err(Failure::ZeroPivot { step: 3 })
        } else {
            Ok(measurement(row as f64))
        },
    };
    let records: Vec<Record> = rows.iter().enumerate().map(record).collect();
    let mut batch = Batch::new(CellId(77));
    records.iter().for_each(|record| batch.push(record));
    (batch, records)
}

fn measurement(seed: f64) -> Measurement {
    let deviation = Some(Deviation::new(seed, 1.0, 2.0));
    let at_tau = AtTau {
        tau: 1,
        mean_star: 0.5,
        variance_star: 1.0,
        mean_tau: 0.0,
        variance_tau: 0.25,
        f_tau: -0.5,
        zeta: None,
        estimated: None,
        compact: None,
        star_seen: false,
    };
    Measurement {
        t: 1,
        x: Some(3),
        y: seed * 0.1 - 1.0,
        f: 0.25,
        f_star: 2.0,
        x_star: Some(5),
        prior_known: true,
        expected: None,
        f_range: 4.0,
        zeta: (seed % 3.0 == 0.0).then_some(seed),
        target: None,
        best_sample_regret: 1.75,
        simple_regret: 1.75,
        cumulative_regret: 1.75,
        probe: deviation,
        star: deviation.filter(|_| seed > 1.0),
        next: None,
        observed: deviation,
        k_xy: 0.75,
        star_seen: seed > 1.0,
        at_tau,
        y_max: 1.0,
        f_at_y_max: 0.25,
        f_max: 0.25,
        y_at_f_max: 1.0,
        information: Some(0.125),
        information_determinant: None,
    }
}

#[test]
fn a_batch_survives_its_encoding() {
    let (batch, _) = batch(&[(0, 1), (0, 5), (1, 1), (1, 5), (9, 1)], &[3]);
    assert_eq!(Batch::decode(&batch.encode()), Ok(batch.clone()));
    assert_eq!(batch.failures(), 1);
    assert_eq!(batch.statuses().nth(3), Some("zero-pivot"));
    let mut joined = batch.slice(0..2);
    joined.append(batch.slice(2..5));
    assert_eq!(joined, batch);
    let empty = Batch::new(CellId(3));
    assert_eq!(Batch::decode(&empty.encode()), Ok(empty));
}

#[test]
fn a_batch_feeds_what_its_records_feed() {
    let (batch, records) = batch(&[(4, 1), (4, 2), (5, 1)], &[1]);
    let (mut by_row, mut by_column) = (Digest::new(), Digest::new());
    records.iter().for_each(|record| record.feed(&mut by_row));
    batch.feed(&mut by_column);
    assert_eq!(by_row.hex(), by_column.hex());
}

#[test]
fn what_could_not_have_been_measured_is_refused() {
    let (batch, _) = batch(&[(0, 1), (0, 5)], &[1]);
    let bytes = batch.encode();
    assert_eq!(Batch::decode(&bytes[..bytes.len() - 1]), Err(DecodeError::Short));
    assert_eq!(Batch::decode(&[bytes.as_slice(), &[0]].concat()), Err(DecodeError::Long(1)));
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        Batch::decode(&bytes)
    };
    assert_eq!(with(0, 9), Err(DecodeError::Version(9)));
    let second_replicate = 13 + 8;
    let t_of_second = 13 + 16 + 4;
    assert!(with(second_replicate, 1).is_ok());
    assert_eq!(with(t_of_second, 1), Err(DecodeError::Order(1)));
    let status = 13 + 16 + 8;
    assert_eq!(with(status, 6), Err(DecodeError::Value { row: 0, column: "status" }));
    assert_eq!(with(status, 1), Err(DecodeError::Value { row: 0, column: "x" }));
}

proptest! {
    #[test]
    fn no_bytes_make_decoding_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        _ = Batch::decode(&bytes);
    }

    #[test]
    fn a_damaged_batch_is_refused_or_another_batch(
        at in 0_usize..10_000, byte in any::<u8>(), cut in any::<bool>(),
    ) {
        let (batch, _) = batch(&[(0, 1), (0, 5), (1, 1)], &[2]);
        let mut bytes = batch.encode();
        let at = at % bytes.len();
        bytes[at] = byte;
        if cut {
            bytes.truncate(at);
        }
        if let Ok(other) = Batch::decode(&bytes) {
            prop_assert_eq!(Batch::decode(&other.encode()), Ok(other));
        }
    }
}
