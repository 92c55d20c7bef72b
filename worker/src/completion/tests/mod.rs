//! Recovery, edge cases and invariances of whole completions.

mod optimality;
mod reference;

use super::hash::uniform;
use super::*;
use proptest::prelude::*;

/// A matrix and which of its entries are there.
#[derive(Clone, Debug)]
struct Example {
    rows: usize,
    columns: usize,
    values: Vec<f64>,
    observed: Vec<bool>,
}

impl Example {
    /// Factors of this rank with entries of mean 0 and variance 1, plus noise; each entry is missing
    /// with this probability.
    fn new(
        seed: u64,
        (rows, columns): (usize, usize),
        rank: usize,
        noise: f64,
        missing: f64,
    ) -> Self {
        // A sum of twelve uniforms is close enough to a normal.
        let normal = |part: u64, at: usize| {
            (0..12).map(|k| uniform(seed * 8 + part, (at * 12 + k) as u64)).sum::<f64>() - 6.0
        };
        let value = |at: usize| {
            let (i, j) = (at / columns, at % columns);
            let of_rank = |k| normal(0, i * rank + k) * normal(1, j * rank + k);
            (0..rank).map(of_rank).sum::<f64>() + noise * normal(2, at)
        };
        let observed = |at: usize| uniform(seed * 8 + 3, at as u64) >= missing;
        Self {
            rows,
            columns,
            values: (0..rows * columns).map(value).collect(),
            observed: (0..rows * columns).map(observed).collect(),
        }
    }

    fn data(&self) -> Incomplete<'_> {
        let Self { rows, columns, ref values, ref observed } = *self;
        Incomplete { rows, columns, values, observed }
    }

    fn complete(&self, options: &Options) -> Result<Completed, Error> {
        complete(&self.data(), options, Cpu::detect())
    }

    fn count(&self) -> usize {
        self.observed.iter().filter(|seen| **seen).count()
    }

    /// |found - values| / |values| over the missing entries.
    fn error(&self, found: &[f64]) -> f64 {
        let missing = (0..found.len()).filter(|&at| !self.observed[at]);
        let (gap, size) = missing.fold((0.0, 0.0), |(gap, size), at| {
            let (a, b) = (found[at], self.values[at]);
            (gap + (a - b) * (a - b), size + b * b)
        });
        f64::sqrt(gap / size)
    }
}

/// Without noise, factors with independent entries are incoherent, and Candes and Recht's theorem
/// recovers them exactly from some multiple of r N^{6/5} log N entries; here there are more than
/// r N^{6/5} log N and than r (N + M) log(N + M).
#[test]
fn low_rank_is_recovered_from_two_fifths_of_the_entries() {
    for (rows, columns, rank) in [(200, 100, 2), (500, 200, 3), (100, 200, 2)] {
        let example = Example::new(1, (rows, columns), rank, 0.0, 0.6);
        let (r, n, both) = (rank as f64, rows.max(columns) as f64, (rows + columns) as f64);
        let needed = [r * libm::pow(n, 1.2) * libm::log(n), r * both * libm::log(both)];
        assert!(needed.iter().all(|needed| example.count() as f64 > *needed), "{needed:?}");
        let done = example.complete(&Options::held_out(1)).unwrap();
        let error = example.error(&done.values);
        assert!(error < 0.01, "{rows} x {columns}: {error}");
        // The means' deviation from those of all entries adds one.
        assert!((rank..=rank + 1).contains(&done.rank), "{}", done.rank);
    }
}

/// With noise of standard deviation 0.5 on entries of variance 3, the chosen lambda does better than
/// the means, than interpolation, and nearly as well as any other on the path.
#[test]
fn the_choice_of_lambda_is_close_to_the_best() {
    let noisy = Example::new(2, (120, 80), 3, 0.5, 0.5);
    let clean = Example { values: Example::new(2, (120, 80), 3, 0.0, 0.5).values, ..noisy.clone() };
    let error = |options: &Options| clean.error(&noisy.complete(options).unwrap().values);
    let options = Options::held_out(3);
    let chosen = noisy.complete(&options).unwrap();
    let at =
        |share: f64| error(&Options { lambda: Lambda::Given(chosen.lambda * share), ..options });
    let others = [0.25, 0.4, 0.6, 0.8, 1.0, 1.25, 1.6, 2.5].map(at);
    let best = others.into_iter().min_by(f64::total_cmp).unwrap();
    assert!(error(&options) < 1.05 * best, "{} {best}", error(&options));
    assert!(error(&options) < 0.8 * at(20.0) && error(&options) < 0.9 * at(0.05));
    let found = chosen.held_out_error.unwrap();
    assert!((0.5..0.9).contains(&found), "{found}");
}

#[test]
fn observed_entries_stay_and_missing_ones_are_not_read() {
    let mut example = Example::new(3, (30, 20), 2, 0.1, 0.4);
    let done = example.complete(&Options::held_out(1)).unwrap();
    for (at, seen) in example.observed.iter().enumerate() {
        assert_eq!(*seen, done.values[at] == example.values[at]);
    }
    let missing: Vec<usize> = (0..600).filter(|&at| !example.observed[at]).collect();
    for (at, junk) in missing.into_iter().zip([f64::NAN, f64::INFINITY, 1e300].iter().cycle()) {
        example.values[at] = *junk;
    }
    assert_eq!(example.complete(&Options::held_out(1)).unwrap(), done);
    // A seed only decides which entries are held out.
    let given = |seed| Options { lambda: Lambda::Given(1.0), ..Options::held_out(seed) };
    assert_eq!(example.complete(&given(1)), example.complete(&given(2)));
}

#[test]
fn every_cpu_gives_the_same_bits() {
    for shape in [(40, 33), (20, 50)] {
        let example = Example::new(4, shape, 3, 0.2, 0.5);
        let run = |cpu| complete(&example.data(), &Options::held_out(9), cpu).unwrap();
        let (vector, plain) = (run(Cpu::detect()), run(Cpu::plain()));
        let bits = |done: &Completed| done.values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&vector), bits(&plain));
        assert_eq!(vector, plain);
    }
}

/// Pinned, so that a change of numerics is noticed and a CPU that differs too.
#[test]
fn bits_are_pinned() {
    let example = Example::new(5, (30, 20), 2, 0.1, 0.5);
    let done = example.complete(&Options::held_out(1)).unwrap();
    let digest = done.values.iter().fold(0, |digest, value| hash::word(digest, value.to_bits()));
    assert_eq!((digest, done.rank, done.iterations), (2_301_031_559_241_307_568, 14, 925));
}

#[test]
fn nothing_missing_nothing_done() {
    let example = Example::new(6, (12, 7), 2, 1.0, 0.0);
    let done = example.complete(&Options::held_out(1)).unwrap();
    assert_eq!(done.values, example.values);
    assert_eq!((done.rank, done.lambda, done.iterations, done.held_out_error), (0, 0.0, 0, None));
}

#[test]
fn rows_and_columns_without_entries_get_means() {
    let mut example = Example::new(7, (25, 15), 2, 0.1, 0.3);
    for at in 0..example.values.len() {
        if at / 15 == 4 || at % 15 == 9 {
            example.observed[at] = false;
        }
    }
    let done = example.complete(&Options::held_out(1)).unwrap();
    assert_eq!((done.empty_rows, done.empty_columns), (1, 1));
    let mean = |of: &dyn Fn(usize) -> bool| {
        let seen = (0..example.values.len()).filter(|&at| example.observed[at] && of(at));
        let (sum, count) = seen.fold((0.0, 0.0), |(s, n), at| (s + example.values[at], n + 1.0));
        sum / count
    };
    for at in (0..example.values.len()).filter(|at| at / 15 == 4 || at % 15 == 9) {
        let column = at % 15;
        let expected = if column == 9 { mean(&|_| true) } else { mean(&|at| at % 15 == column) };
        assert!((done.values[at] - expected).abs() < 1e-12, "{at}");
    }
}

#[test]
fn constant_columns_are_filled_with_their_constant() {
    let constants = [0.1, -7.3, 1e9];
    let mut example = Example::new(8, (40, 3), 1, 0.0, 0.5);
    for (at, value) in example.values.iter_mut().enumerate() {
        *value = constants[at % 3];
    }
    let done = example.complete(&Options::held_out(1)).unwrap();
    assert_eq!(done.values, example.values);
    assert_eq!((done.rank, done.lambda), (0, 0.0));
}

#[test]
fn the_smallest_matrices_are_completed() {
    for (rows, columns) in [(1, 2), (2, 1), (1, 9), (2, 2), (3, 2)] {
        for seed in 0..20 {
            let example = Example::new(seed, (rows, columns), 1, 1.0, 0.5);
            match example.complete(&Options::held_out(seed)) {
                Ok(done) => assert!(done.values.iter().all(|value| value.is_finite())),
                Err(error) => assert_eq!((error, example.count()), (Error::NothingObserved, 0)),
            }
        }
    }
}

#[test]
fn what_cannot_be_completed_is_refused() {
    let example = Example::new(9, (6, 4), 1, 0.1, 0.3);
    let options = Options::held_out(1);
    let complete = |example: &Example| example.complete(&options);
    let short = Example { values: vec![0.0; 23], ..example.clone() };
    let shape = Error::Shape { rows: 6, columns: 4, values: 23, observed: 24 };
    assert_eq!(complete(&short), Err(shape));
    let blind = Example { observed: vec![false; 24], ..example.clone() };
    assert_eq!(complete(&blind), Err(Error::NothingObserved));
    let empty = Example { rows: 0, columns: 0, values: vec![], observed: vec![] };
    assert_eq!(complete(&empty), Err(Error::NothingObserved));
    let at = example.observed.iter().rposition(|seen| *seen).unwrap();
    let mut infinite = example.clone();
    infinite.values[at] = f64::NEG_INFINITY;
    assert_eq!(complete(&infinite), Err(Error::NotFinite { row: at / 4, column: at % 4 }));
    for factor in [1e-200, 1e200, 1e307] {
        let values = example.values.iter().map(|value| value * factor).collect();
        assert_eq!(complete(&Example { values, ..example.clone() }), Err(Error::Magnitude));
    }
}

#[test]
fn options_out_of_range_are_named() {
    let good = Options::held_out(1);
    let path = |count, smallest| Options { path: Path { count, smallest }, ..good };
    let share = |share| Options { lambda: Lambda::HeldOut(HeldOut { seed: 1, share }), ..good };
    let cases = [
        ("lambda", Options { lambda: Lambda::Given(0.0), ..good }),
        ("lambda", Options { lambda: Lambda::Given(f64::NAN), ..good }),
        ("lambda", Options { lambda: Lambda::Given(f64::INFINITY), ..good }),
        ("share", share(0.0)),
        ("share", share(0.6)),
        ("count", path(1, 0.1)),
        ("smallest", path(10, 1.0)),
        ("smallest", path(10, f64::NAN)),
        ("tolerance", Options { tolerance: 0.0, ..good }),
        ("iterations", Options { iterations: 0, ..good }),
    ];
    let example = Example::new(10, (6, 4), 1, 0.1, 0.3);
    for (name, options) in cases {
        let found = example.complete(&options).unwrap_err();
        assert!(matches!(found, Error::Invalid { option, .. } if option == name), "{found}");
    }
    let hurried = Options { iterations: 1, ..good };
    assert!(matches!(example.complete(&hurried), Err(Error::NoConvergence { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_constant_added_to_a_column_shifts_it(
        seed in 0_u64..1000,
        shape in (2_usize..25, 2_usize..25),
        constant in -100.0_f64..100.0,
    ) {
        let example = Example::new(seed, shape, 2, 0.2, 0.4);
        prop_assume!(example.count() > 0);
        let column = seed as usize % shape.1;
        // A column without entries takes the mean of all, which shifts by less.
        prop_assume!((0..shape.0).any(|i| example.observed[i * shape.1 + column]));
        let mut shifted = example.clone();
        shifted.values.iter_mut().skip(column).step_by(shape.1).for_each(|v| *v += constant);
        let options = Options { lambda: Lambda::Given(0.5), tolerance: 1e-9, ..Options::held_out(1) };
        let (before, after) = (example.complete(&options).unwrap(), shifted.complete(&options).unwrap());
        let seen = |j: usize| (0..shape.0).any(|i| example.observed[i * shape.1 + j]);
        for (at, (a, b)) in before.values.iter().zip(&after.values).enumerate() {
            let j = at % shape.1;
            let shift = if j == column { constant } else { 0.0 };
            prop_assert!(!seen(j) || (b - a - shift).abs() < 1e-5, "{} {} {}", a, b, shift);
        }
    }
}
