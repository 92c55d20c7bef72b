//! The three routes to the estimators have one law, under adaptive choices too.
//!
//! Each route runs the same cell under a seed of its own, so that samples are independent, and every
//! column that depends on the estimators is compared by Kolmogorov and Smirnov's two-sample test at
//! every checkpoint. Each test has a false-alarm rate of 1e-7 (Bonferroni over its p-values), the file
//! one of 2e-6.

use study::Record;
use study::cell::{Estimator, Policy, Training};
use tests::cells::{column, run, ucb};
use tests::priors::{explicit, kernels, on_grid, try_build};
use tests::statistics::{Alarm, two_sample};
use worker::prior::Prior;

const RATE: f64 = 1e-7;
const REPLICATES: u64 = 5000;

/// Columns whose law the estimators decide, directly or through the points that they choose.
const WATCHED: [&str; 27] = [
    "x",
    "y",
    "best_sample_regret",
    "simple_regret",
    "cumulative_regret",
    "error_probe",
    "ratio_probe",
    "error_star",
    "ratio_star",
    "error_next",
    "ratio_next",
    "error_observed",
    "k_xy",
    "star_seen",
    "tau",
    "mu_star_tau",
    "mu_hat_star_tau",
    "k_star_tau",
    "k_hat_star_tau",
    "mu_tau",
    "mu_hat_tau",
    "k_tau",
    "k_hat_tau",
    "f_tau",
    "y_max",
    "y_at_f_max",
    "information",
];

/// A policy for training data that are still to be named.
type Rule = fn(Training) -> Policy;

const UCB: Rule = |training| ucb(training, 0.5);
/// zeta_t exists for smaller N.
const EAGER_UCB: Rule = |training| ucb(training, 0.9);
const PI: Rule = |training| Policy::PemPi { training, gap: 0.0 };
const PI_WITH_GAP: Rule = |training| Policy::PemPi { training, gap: 0.3 };

struct Setting<'a> {
    prior: &'a Prior,
    rule: Rule,
    n: u64,
    checkpoints: &'a [u32],
    replicates: u64,
}

impl Setting<'_> {
    fn run(&self, estimator: Estimator, seed: u64) -> Vec<Record> {
        let policy = (self.rule)(Training { n: self.n, estimator });
        run(self.prior, policy, seed, self.checkpoints, self.replicates)
    }

    /// Compares two samples of records column by column; failed trials are a column too.
    fn compare(&self, alarm: &mut Alarm, what: &str, a: &[Record], b: &[Record]) {
        for &t in self.checkpoints {
            for name in WATCHED {
                let (a, b) = (column(a, t, name), column(b, t, name));
                assert_eq!(a.is_empty(), b.is_empty(), "{what}: {name} at t = {t}");
                // A column that stays in a handful of trials says nothing.
                if a.len().min(b.len()) >= 100 {
                    alarm.check(two_sample(a, b), || format!("{what}: {name} at t = {t}"));
                }
            }
            let failed = |records: &[Record]| {
                let at_t = records.iter().filter(|record| record.t == t);
                at_t.map(|record| f64::from(u8::from(record.outcome.is_err()))).collect()
            };
            alarm.check(two_sample(failed(a), failed(b)), || format!("{what}: failures, t = {t}"));
        }
    }

    fn agree(&self, alarm: &mut Alarm, what: &str) {
        let lazy = self.run(Estimator::Wishart, 1);
        let dense = self.run(Estimator::Dense, 2);
        let simulated = self.run(Estimator::Simulated, 3);
        let failures = lazy.iter().filter(|record| record.outcome.is_err()).count();
        assert!(failures * 100 < lazy.len(), "{what}: {failures} of {} failed", lazy.len());
        self.compare(alarm, &format!("{what}, wishart and simulated"), &lazy, &simulated);
        self.compare(alarm, &format!("{what}, wishart and dense"), &lazy, &dense);
        self.compare(alarm, &format!("{what}, dense and simulated"), &dense, &simulated);
    }
}

/// Runs (rule, N, checkpoints) settings on one prior.
fn agree(title: &str, prior: &Prior, settings: &[(&str, Rule, u64, &[u32])]) {
    let mut alarm = Alarm::default();
    for &(name, rule, n, checkpoints) in settings {
        Setting { prior, rule, n, checkpoints, replicates: REPLICATES }.agree(&mut alarm, name);
    }
    alarm.judge(title, RATE);
}

#[test]
fn low_rank() {
    let prior = on_grid(16, kernels::SMOOTH, 0.05);
    assert!(prior.rank() < 12);
    agree("low rank", &prior, &[("UCB", UCB, 40, &[1, 3, 8]), ("PI", PI, 40, &[1, 3, 8])]);
}

#[test]
fn white_part_and_sloping_mean_in_two_dimensions() {
    let domain = r#"{"kind": "grid", "points": 16, "dimension": 2}"#;
    let mean = r#"{"kind": "linear", "weights": [1.0, -0.5], "intercept": 0.3}"#;
    let prior = try_build(domain, kernels::MIXED, mean, 0.1).unwrap();
    let settings: [(_, Rule, _, &[u32]); 2] =
        [("UCB", UCB, 30, &[1, 4, 7]), ("PI", PI_WITH_GAP, 30, &[1, 4, 7])];
    agree("white part", &prior, &settings);
}

#[test]
fn fewer_functions_than_columns() {
    let prior = on_grid(16, kernels::ROUGH, 0.05);
    assert_eq!(prior.rank(), 16);
    let settings: [(_, Rule, _, &[u32]); 2] =
        [("UCB", EAGER_UCB, 14, &[1, 3, 5]), ("PI", PI, 10, &[1, 4, 7])];
    agree("N - 1 < r", &prior, &settings);
}

#[test]
fn dimensions_outside_the_factor_run_out() {
    let prior = on_grid(16, kernels::SMOOTH, 0.05);
    let n = prior.rank() as u64 + 4;
    // n = r + 3 dimensions, so that nothing is left outside after three observations.
    let ucb_end = (n - 9) as u32;
    assert!(ucb_end > 3);
    let settings: [(_, Rule, _, &[u32]); 2] =
        [("UCB", EAGER_UCB, n, &[2, 4, ucb_end]), ("PI", PI, n, &[3, 5, 9])];
    agree("outside runs out", &prior, &settings);
}

#[test]
fn two_functions_more_than_evaluations() {
    let prior = on_grid(12, kernels::MATERN, 0.1);
    let settings: [(_, Rule, _, &[u32]); 3] = [
        ("PI, N = 8", PI, 8, &[2, 5, 6]),
        ("PI, N = 14, T = M", PI_WITH_GAP, 14, &[6, 11, 12]),
        ("PI, N = 4", PI, 4, &[1, 2]),
    ];
    agree("N = T + 2", &prior, &settings);
}

/// As much noise as signal, few dimensions and many replicates: what is revealed of the chosen row,
/// in the frame's one or two axes and outside them, matters most.
#[test]
fn as_much_noise_as_signal() {
    let one = [vec![1.0], vec![1.0], vec![1.2], vec![-0.8], vec![1.0]];
    let two = [vec![1.0, 0.0], vec![0.7, 0.7], vec![0.0, 1.2], vec![-0.8, 0.5], vec![0.6, -1.0]];
    let (one, two) = (explicit(&one, 0.0, 1.0), explicit(&two, 0.3, 0.3));
    let mut alarm = Alarm::default();
    for (prior, n, checkpoints) in
        [(&one, 4, &[1, 2][..]), (&one, 7, &[1, 2, 4]), (&two, 4, &[1, 2]), (&two, 6, &[1, 2, 4])]
    {
        let setting = Setting { prior, rule: PI_WITH_GAP, n, checkpoints, replicates: 50_000 };
        setting.agree(&mut alarm, &format!("PI, N = {n}, r = {}", prior.rank()));
    }
    alarm.judge("as much noise as signal", RATE);
}

#[test]
fn no_noise_but_a_white_part() {
    let prior = on_grid(16, kernels::MIXED, 0.0);
    let settings: [(_, Rule, _, &[u32]); 2] =
        [("UCB", UCB, 30, &[1, 4, 9]), ("PI", PI_WITH_GAP, 16, &[1, 4, 9])];
    agree("sigma = 0, w > 0", &prior, &settings);
}

#[test]
fn no_noise_at_all() {
    let prior = on_grid(16, kernels::ROUGH, 0.0);
    let settings: [(_, Rule, _, &[u32]); 3] = [
        ("UCB", UCB, 30, &[1, 4, 9]),
        ("PI", PI_WITH_GAP, 30, &[1, 4, 9]),
        ("PI, N - 1 < r", PI_WITH_GAP, 12, &[1, 5, 10]),
    ];
    agree("sigma = 0, w = 0", &prior, &settings);
}

#[test]
fn white_prior() {
    let prior = on_grid(20, kernels::WHITE, 0.2);
    assert_eq!(prior.rank(), 0);
    let settings: [(_, Rule, _, &[u32]); 3] = [
        ("UCB", UCB, 30, &[1, 4, 18]),
        ("PI", PI, 30, &[1, 4, 18]),
        ("PI, N = T + 2", PI, 20, &[3, 15, 18]),
    ];
    agree("white", &prior, &settings);
}

#[test]
fn as_many_columns_as_points() {
    let prior = on_grid(12, kernels::ROUGH, 0.02);
    assert_eq!(prior.rank(), 12);
    agree("r = M", &prior, &[("UCB", UCB, 40, &[1, 6, 12]), ("PI", PI, 40, &[1, 6, 12])]);
}

/// Every third point has no part in the factor.
fn rows_with_gaps(points: usize) -> Vec<Vec<f64>> {
    let entry = |i: usize, k: usize| libm::sin(1.0 + (3 * i * (k + 1)) as f64 / 7.0);
    let row =
        |i: usize| (0..4).map(|k| if i.is_multiple_of(3) { 0.0 } else { entry(i, k) }).collect();
    (0..points).map(row).collect()
}

#[test]
fn points_without_a_part_in_the_factor() {
    let prior = explicit(&rows_with_gaps(22), 0.6, 0.2);
    let settings: [(_, Rule, _, &[u32]); 4] = [
        ("UCB, many dimensions in the second block", UCB, 60, &[1, 8, 20]),
        ("PI, as many as a block", PI_WITH_GAP, 34, &[1, 8, 20]),
        ("PI, few", PI_WITH_GAP, 23, &[5, 17, 21]),
        ("PI, less than one block", PI_WITH_GAP, 9, &[1, 4, 7]),
    ];
    agree("zero rows", &prior, &settings);
}

#[test]
fn beyond_two_blocks() {
    let prior = on_grid(40, kernels::MATERN, 0.1);
    let settings: [(_, Rule, _, &[u32]); 3] = [
        ("UCB", UCB, 60, &[16, 17, 34]),
        ("PI", PI, 60, &[17, 33, 34]),
        ("PI, N = T + 2", PI, 38, &[17, 33, 36]),
    ];
    agree("T > 32", &prior, &settings);
}

/// A route to another law must be seen: one training function too many where few are left, and a
/// quarter too many where there are many.
#[test]
fn another_law_is_detected() {
    let prior = on_grid(12, kernels::MATERN, 0.1);
    for (n, other, checkpoints) in [(8, 9, [2, 5, 6]), (40, 50, [4, 8, 10])] {
        let (prior, checkpoints, replicates) = (&prior, &checkpoints, REPLICATES);
        let setting = |n| Setting { prior, rule: PI, n, checkpoints, replicates };
        let lazy = setting(n).run(Estimator::Wishart, 1);
        let simulated = setting(other).run(Estimator::Simulated, 3);
        let mut alarm = Alarm::default();
        setting(n).compare(&mut alarm, "other N", &lazy, &simulated);
        println!("N = {n} against {other}: corrected p = {:e}", alarm.corrected());
        assert!(alarm.corrected() < RATE, "N = {n} against {other} is not detected");
    }
}
