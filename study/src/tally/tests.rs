use super::*;
use proptest::prelude::*;

fn row(trials: u64, refuting: u64, confirming: u64, failures: u64) -> RowCounts {
    RowCounts { trials, refuting, confirming, failures }
}

#[test]
fn malformed_bytes_are_refused() {
    assert_eq!(Tally::decode(&[]), Err(DecodeError::Truncated));
    assert_eq!(Tally::decode(&[0]), Ok(Tally::default()));
    assert_eq!(Tally::decode(&[0, 7]), Err(DecodeError::Trailing { count: 1 }));
    assert_eq!(Tally::decode(&[1, 5, 0, 0]), Err(DecodeError::Truncated));
    assert_eq!(Tally::decode(&[1, 5, 0, 0, 0x80]), Err(DecodeError::Truncated));
    assert_eq!(Tally::decode(&[1, 5, 0x80, 0, 0, 0]), Err(DecodeError::Number { at: 3 }));
    assert_eq!(Tally::decode(&[1, 5, 6, 0, 0]), Err(DecodeError::Inconsistent { row: 0 }));
    assert_eq!(Tally::decode(&[1, 5, 0, 6, 0]), Err(DecodeError::Inconsistent { row: 0 }));
    let mut many = vec![0xff; 9];
    many.push(1);
    assert_eq!(Tally::decode(&many), Err(DecodeError::Truncated), "2^64 - 1 rows");
    many[9] = 2;
    assert_eq!(Tally::decode(&many), Err(DecodeError::Number { at: 9 }), "65 bits");
}

#[test]
fn what_comes_in_is_held_against_the_lease() {
    let tally = Tally(vec![row(7, 1, 2, 1), row(0, 0, 0, 8)]);
    assert!(tally.is_of(2, 8));
    assert!(!tally.is_of(2, 7));
    assert!(!tally.is_of(3, 8));
}

proptest! {
    #[test]
    fn tallies_survive_the_wire(
        rows in proptest::collection::vec(
            (any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>(), 0..30_u32), 0..40,
        ),
    ) {
        let rows = rows.into_iter().map(|(a, b, c, d, shift)| {
            let trials = u64::from(a) << shift;
            let part = |x: u32| u64::from(x) % (trials + 1);
            row(trials, part(b), part(c), d.into())
        });
        let tally = Tally(rows.collect());
        let bytes = tally.encode();
        prop_assert_eq!(Tally::decode(&bytes), Ok(tally.clone()));
        for end in 0..bytes.len() {
            prop_assert!(Tally::decode(&bytes[..end]).is_err());
        }
        let mut sum = Tally::zero(tally.0.len());
        sum.plus(&tally);
        sum.plus(&tally);
        prop_assert!(sum.0.iter().zip(&tally.0).all(|(s, t)| s.trials == 2 * t.trials));
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        bytes in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        if let Ok(tally) = Tally::decode(&bytes) {
            prop_assert_eq!(tally.encode(), bytes);
        }
    }
}

mod counting {
    use theory::Measurement;
    use theory::claims::{Context, Outcome};
    use theory::measurement::{AtTau, Deviation, EstimatedAtTau};

    use super::*;
    use crate::cell::{CellId, Policy};
    use crate::file::Study;
    use crate::plan::Plan;
    use crate::prior::Files;
    use crate::record::{Failure, Record};
    use crate::rows::{Row, rows};

    fn measurement(t: u32, size: f64) -> Measurement {
        let deviation = |shift| Some(Deviation::new(shift, 1.0 + size, 1.0));
        let at_tau = AtTau {
            tau: 1 + t / 2,
            mean_star: 0.5 - size,
            variance_star: 0.5,
            mean_tau: 0.1,
            variance_tau: 0.25,
            f_tau: -size,
            zeta: None,
            estimated: Some(EstimatedAtTau {
                mean_star: 0.4,
                variance_star: 0.45,
                mean_tau: 0.1 + size,
                variance_tau: 0.2,
            }),
            compact: None,
            star_seen: false,
        };
        Measurement {
            t,
            x: Some(3),
            y: 0.2,
            f: 0.1,
            f_star: 2.0,
            x_star: Some(4),
            prior_known: true,
            expected: None,
            f_range: 9.0,
            zeta: None,
            target: Some(2.0),
            best_sample_regret: 3.0 * size,
            simple_regret: 3.2 * size,
            cumulative_regret: size,
            probe: deviation(0.3 * size),
            star: (size < 1.0).then_some(()).and(deviation(0.1)),
            next: deviation(size),
            observed: deviation(0.0),
            k_xy: 10.0 * size,
            star_seen: size >= 1.0,
            at_tau,
            y_max: 1.0,
            f_at_y_max: 0.9,
            f_max: 1.1,
            y_at_f_max: 1.0 - size,
            information: Some(1.0),
            information_determinant: None,
        }
    }

    fn bracket(t: u32) -> (f64, f64) {
        let lower = f64::from(t) * 0.1;
        (lower, 20.0 * lower)
    }

    fn plan() -> Plan {
        let text = r#"
            study = { name = "count", seed = 1, replicates = 9 }
            [prior]
            domain = { kind = "grid", points = 80, dimension = 1 }
            kernel = { kind = "matern52", lengthscale = 0.1 }
            noise_variance = 0.01
            [grid]
            N = 200
            T = [5, 20]
            delta = [0.1, 0.5]
            acquisition = "pi"
        "#;
        Plan::new(Study::parse("s.toml", text).unwrap(), &Files::default()).unwrap()
    }

    fn records() -> Vec<Record> {
        let mut records = Vec::new();
        for replicate in 0..60 {
            for t in [5, 20, 21] {
                let size = replicate as f64 / 20.0;
                let failed = replicate % 10 == 9 && t == 20;
                let outcome =
                    if failed { Err(Failure::Panicked) } else { Ok(measurement(t, size)) };
                records.push(Record { cell: CellId(1), replicate, t, outcome });
            }
        }
        records
    }

    /// One row the plain way, with constants of its own.
    fn plainly(row: &Row, context: impl Fn(f64) -> Context, records: &[Record]) -> RowCounts {
        let (lower, upper) = bracket(row.t);
        let (high, low) = (context(upper), context(lower));
        let mut counts = RowCounts::default();
        for record in records.iter().filter(|record| record.t == row.t) {
            let Ok(measurement) = &record.outcome else {
                counts.failures += 1;
                continue;
            };
            let outcome = |context| row.claim.evaluate(context, measurement);
            if outcome(&high) != Outcome::NotApplicable {
                counts.trials += 1;
                counts.refuting += u64::from(outcome(&high) == Outcome::Violated);
                counts.confirming += u64::from(outcome(&low) == Outcome::Violated);
            }
        }
        counts
    }

    #[test]
    fn a_counter_agrees_with_counting_plainly() {
        let plan = plan();
        let cell = &plan.cells[0];
        assert!(matches!(cell.cell.policy, Policy::PemPi { .. }));
        let rows = rows(&plan.study, &cell.cell);
        let counter = Counter::new(&rows, &cell.cell, 1.0, |t| Some(bracket(t)));
        let records = records();
        let mut tally = counter.start();
        records.iter().for_each(|record| counter.observe(record, &mut tally));
        for (row, counts) in rows.iter().zip(&tally.0) {
            let context = |rho| row.context(&cell.cell, 1.0, Some(rho));
            assert_eq!(*counts, plainly(row, context, &records), "{row:?}");
            assert_eq!(counts.failures, if row.t == 20 { 6 } else { 0 });
        }
        assert!(tally.is_of(rows.len(), 60));
        let told =
            |tally: &Tally| tally.0.iter().filter(|row| row.refuting != row.confirming).count();
        assert!(told(&tally) > 0, "the bracket matters somewhere");
        let fewer = rows.iter().zip(&tally.0).any(|(row, counts)| {
            row.at == Some(theory::claims::At::Star) && counts.trials < 54 && counts.trials > 0
        });
        assert!(fewer, "trials in which x* was seen say nothing of it");

        let mut parts = counter.start();
        for half in records.chunks(70) {
            let mut part = counter.start();
            half.iter().for_each(|record| counter.observe(record, &mut part));
            parts.plus(&part);
        }
        assert_eq!(parts, tally);
    }
}
