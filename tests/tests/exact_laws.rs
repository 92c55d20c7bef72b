//! Lemma 1's statistics on fixed designs follow their exact laws (docs/mathematics.md, section 2), whatever the
//! kernel, the noise and the domain are, and its coverage is what those laws say: enough where the
//! printed lemma holds, too little where it fails.
//!
//! Each test has a false-alarm rate of 1e-7 (Bonferroni over its p-values).

use study::Record;
use study::cell::Policy;
use tests::cells::{column, delta, measured, run, wishart};
use tests::priors::{explicit, kernels, on_grid, try_build};
use tests::statistics::{Alarm, binomial, one_sample};
use theory::laws::{ErrorLaw, RatioLaw};
use theory::special::{chi2_cdf, normal_sf};
use theory::{Form, Measurement, lemma1};
use worker::prior::{ACCURACY_FLOOR, Error, Prior};

const RATE: f64 = 1e-7;

fn fixed(prior: &Prior, n: u64, seed: u64, checkpoints: &[u32], replicates: u64) -> Vec<Record> {
    run(prior, Policy::Fixed(wishart(n)), seed, checkpoints, replicates)
}

/// Ranks 0.. of a sample without ties.
fn ranks(sample: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..sample.len()).collect();
    order.sort_unstable_by(|&a, &b| sample[a].total_cmp(&sample[b]));
    let mut ranks = vec![0.0; sample.len()];
    order.into_iter().enumerate().for_each(|(rank, i)| ranks[i] = rank as f64);
    ranks
}

/// The p-value of Spearman's rank correlation of two columns (normal approximation).
fn independence(a: &[f64], b: &[f64]) -> f64 {
    let size = a.len() as f64;
    let squares: f64 = ranks(a).iter().zip(ranks(b)).map(|(a, b)| (a - b) * (a - b)).sum();
    let correlation = 1.0 - 6.0 * squares / (size * (size * size - 1.0));
    2.0 * normal_sf((correlation * (size - 1.0).sqrt()).abs())
}

/// Error, ratio, their independence and K, at every checkpoint, at the probe and at the next point.
fn check_laws(alarm: &mut Alarm, what: &str, records: &[Record], n: u64, checkpoints: &[u32]) {
    for &t in checkpoints {
        let error_law = ErrorLaw::new(n, t).expect("t < N");
        let ratio_law = RatioLaw::new(n, t).expect("t + 2 <= N");
        for at in ["probe", "next"] {
            let error = column(records, t, &format!("error_{at}"));
            let ratio = column(records, t, &format!("ratio_{at}"));
            if error.is_empty() {
                continue;
            }
            let what = |law: &str| format!("{what}: {law} at the {at}, N = {n}, t = {t}");
            alarm.check(independence(&error, &ratio), || what("independence"));
            alarm.check(one_sample(error, |a| error_law.cdf(a)), || what("error"));
            alarm.check(one_sample(ratio, |r| ratio_law.cdf(r)), || what("ratio"));
        }
        let k = column(records, t, "k_xy");
        let p = one_sample(k, |k| chi2_cdf(t.into(), k));
        alarm.check(p, || format!("{what}: K, N = {n}, t = {t}"));
    }
}

#[test]
fn error_and_ratio_follow_their_laws() {
    let uniform = r#"{"kind": "uniform", "points": 70, "dimension": 3}"#;
    let sobol = r#"{"kind": "sobol", "points": 64, "dimension": 2}"#;
    let sine = r#"{"kind": "sine", "amplitude": 2.0, "frequency": 1.5}"#;
    let zero = r#"{"kind": "zero"}"#;
    let rows: Vec<Vec<f64>> =
        (0..25).map(|i| vec![f64::from(i % 3), f64::from(i % 4) - 1.5]).collect();
    let cases: [(&str, Prior, u64, &[u32]); 12] = [
        ("smooth", on_grid(200, kernels::SMOOTH, 0.01), 50, &[1, 10, 30]),
        ("wiggly", on_grid(300, kernels::WIGGLY, 1e-4), 500, &[1, 20, 50]),
        ("rough", on_grid(60, kernels::ROUGH, 0.1), 40, &[3, 17, 38]),
        ("rough without noise", on_grid(40, kernels::ROUGH, 0.0), 60, &[1, 16, 39]),
        ("Matern", try_build(sobol, kernels::MATERN, sine, 0.5).unwrap(), 1_000_000, &[2, 40]),
        ("mixed", try_build(uniform, kernels::MIXED, sine, 0.05).unwrap(), 100, &[5, 33, 64]),
        ("mixed without noise", on_grid(50, kernels::MIXED, 0.0), 30, &[5, 15, 28]),
        ("white", on_grid(50, kernels::WHITE, 2.0), 30, &[1, 15, 28]),
        ("periodic", on_grid(80, kernels::PERIODIC, 0.02), 25, &[2, 20]),
        ("linear", try_build(uniform, kernels::LINEAR, zero, 0.3).unwrap(), 20, &[1, 9, 18]),
        ("slope", on_grid(9, kernels::SLOPE, 0.01), 11, &[1, 5, 8]),
        ("some zero rows", explicit(&rows, 0.1, 0.05), 26, &[1, 12, 24]),
    ];
    let mut alarm = Alarm::default();
    for (seed, (what, prior, n, checkpoints)) in (10..).zip(&cases) {
        let records = fixed(prior, *n, seed, checkpoints, 6000);
        assert!(records.iter().all(|record| record.outcome.is_ok()), "{what}: a trial failed");
        check_laws(&mut alarm, what, &records, *n, checkpoints);
    }
    alarm.judge("exact laws", RATE);
}

/// Four training functions fewer or five more are seen at N = 40, t = 30, and so is a weak dependence.
#[test]
fn other_laws_are_detected() {
    let prior = on_grid(60, kernels::ROUGH, 0.1);
    let records = fixed(&prior, 40, 3, &[30], 10_000);
    let (error, ratio) = (column(&records, 30, "error_probe"), column(&records, 30, "ratio_probe"));
    for n in [36, 45] {
        let law = RatioLaw::new(n, 30).unwrap();
        assert!(one_sample(ratio.clone(), |r| law.cdf(r)) < 1e-12, "ratio at N = {n}");
        let law = ErrorLaw::new(n, 30).unwrap();
        assert!(one_sample(error.clone(), |a| law.cdf(a)) < 1e-12, "error at N = {n}");
    }
    let tainted: Vec<f64> = error.iter().zip(&ratio).map(|(e, r)| e * (1.0 + 0.4 * r)).collect();
    assert!(independence(&tainted, &ratio) < 1e-12);
}

/// Given D_t the error follows a non-central law through K: its probability integral is uniform.
#[test]
fn the_error_given_the_data_follows_its_law() {
    let mut alarm = Alarm::default();
    for (kernel, n, t) in
        [(kernels::WIGGLY, 200, 50), (kernels::MIXED, 20, 5), (kernels::ROUGH, 40, 33)]
    {
        let records = fixed(&on_grid(60, kernel, 0.05), n, 5, &[t], 4000);
        let integral =
            |m: &Measurement| ErrorLaw::given(n, t, m.k_xy).unwrap().cdf(m.probe.unwrap().error);
        let sample = measured(&records, t).map(integral).collect();
        alarm.check(one_sample(sample, |u| u), || format!("N = {n}, t = {t}"));
    }
    alarm.judge("error given the data", RATE);
}

/// Var[mu_hat_t | D_t] = (N-2+N K)/(N (N-t-2)) (k_t + sigma^2): the mean of error over the formula
/// is one. The printed formula, without the factor N, misses by far.
#[test]
fn the_variance_formula_needs_its_factor() {
    let mut alarm = Alarm::default();
    for (n, t) in [(200_u64, 50_u32), (100, 5), (1000, 20)] {
        let records = fixed(&on_grid(60, kernels::WIGGLY, 0.02), n, 6, &[t], 30_000);
        let z_and_mean = |form| {
            let share = |m: &Measurement| {
                m.probe.unwrap().error / lemma1::variance_formula(n, t, m.k_xy, form).unwrap()
            };
            let shares: Vec<f64> = measured(&records, t).map(share).collect();
            let size = shares.len() as f64;
            let mean = shares.iter().sum::<f64>() / size;
            let variance = shares.iter().map(|s| (s - mean) * (s - mean)).sum::<f64>() / size;
            ((mean - 1.0) / (variance / size).sqrt(), mean)
        };
        let (z, right) = z_and_mean(Form::Corrected);
        alarm.check(2.0 * normal_sf(z.abs()), || format!("N = {n}, t = {t}"));
        let (z, printed) = z_and_mean(Form::Printed);
        println!("N = {n}, t = {t}: error over variance {right:.4}, over the printed {printed:.2}");
        assert!(z > 20.0 && printed > 3.0, "N = {n}, t = {t}: {printed}");
    }
    alarm.judge("variance formula", RATE);
}

/// What the printed lemma covers, against its exact coverage and what it claims.
#[test]
fn coverage_is_exact_where_the_lemma_holds_and_where_it_fails() {
    let level = delta(0.1);
    let prior = on_grid(60, kernels::SMOOTH, 0.02);
    let mut alarm = Alarm::default();
    for (n, t, mean_holds, joint_holds) in [
        (1000, 2, true, true),
        (200, 5, true, true),
        (500, 14, false, true),
        (200, 20, false, false),
        (500, 50, false, false),
    ] {
        let records = fixed(&prior, n, 8, &[t], 40_000);
        let a = lemma1::a(n, t, level, Form::Printed).unwrap();
        let (low, high) = lemma1::variance_interval(n, t, level, Form::Printed).unwrap();
        let (mut trials, mut counts) = (0, [0; 3]);
        for deviation in measured(&records, t).filter_map(|m| m.probe) {
            let mean = deviation.error < a;
            let variance = low < deviation.ratio && deviation.ratio < high;
            trials += 1;
            for (count, holds) in counts.iter_mut().zip([mean, variance, mean && variance]) {
                *count += u64::from(holds);
            }
        }
        let exact = [
            lemma1::coverage_mean(n, t, level, Form::Printed).unwrap(),
            lemma1::coverage_variance(n, t, level, Form::Printed).unwrap(),
            lemma1::coverage_joint(n, t, level, Form::Printed).unwrap(),
        ];
        println!("N = {n}, t = {t}: exact {exact:.5?}, counted {counts:?} of {trials}");
        assert_eq!((exact[0] >= 0.95, exact[2] >= 0.9), (mean_holds, joint_holds), "{n} {t}");
        assert!(exact[1] >= 0.95, "the variance half holds");
        for ((count, exact), name) in
            counts.into_iter().zip(exact).zip(["mean", "variance", "joint"])
        {
            alarm.check(binomial(count, trials, exact), || format!("{name}, N = {n}, t = {t}"));
        }
    }
    alarm.judge("coverage", RATE);
}

/// At the smallest noise that is admitted k_hat still has its law; below it nothing is built.
#[test]
fn the_laws_hold_down_to_the_accuracy_floor() {
    let domain = r#"{"kind": "grid", "points": 100, "dimension": 1}"#;
    let build = |kernel: &str, noise| try_build(domain, kernel, r#"{"kind": "zero"}"#, noise);
    let mut alarm = Alarm::default();
    for (kernel, c) in [(kernels::SMOOTH, 1.0), (kernels::WIGGLY, 2.5), (kernels::PERIODIC, 1.0)] {
        let prior = build(kernel, 1.1 * ACCURACY_FLOOR * c).unwrap();
        assert!((prior.c / c - 1.0).abs() < 1e-9);
        let records = fixed(&prior, 80, 9, &[1, 8, 30], 6000);
        assert!(records.iter().all(|record| record.outcome.is_ok()), "{kernel}: a trial failed");
        check_laws(&mut alarm, kernel, &records, 80, &[1, 8, 30]);
        let refused = build(kernel, 0.99 * ACCURACY_FLOOR * c).unwrap_err();
        assert!(matches!(refused, Error::NoiseTooSmall { .. }), "{refused}");
    }
    alarm.judge("accuracy floor", RATE);
}
