//! What holds in every single trial, in random settings: nothing recorded is NaN or infinite, the
//! incremental posterior is the textbook's, and the paper's own inequalities hold.
//!
//! Deterministic: settings come from a fixed seed, and one violation is a bug.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use study::cell::{Policy, PolicyConstants};
use study::record::{COLUMNS, Value};
use study::{Failure, Record};
use tests::cells::{delta, run, wishart};
use tests::gaussian::Conditioned;
use tests::priors::{explicit, kernels, on_grid, try_build};
use theory::claims::{self, Test};
use theory::measurement::AtTau;
use theory::{Measurement, theorem2};
use worker::prior::{ACCURACY_FLOOR, Prior};
use worker::random::{Key, Purpose, Stream};

const SETTINGS: u64 = 6000;
const REPLICATES: u64 = 9;

/// A random setting. The horizon is part of it; every step is a checkpoint.
struct Setting {
    prior: Prior,
    policy: Policy,
    horizon: u32,
    name: String,
}

fn pick<T: Copy>(dice: &mut Stream, from: &[T]) -> T {
    from[dice.below(from.len())]
}

fn random_prior(dice: &mut Stream) -> (Prior, String) {
    let kernel = pick(
        dice,
        &[
            kernels::SMOOTH,
            kernels::WIGGLY,
            kernels::ROUGH,
            kernels::MATERN,
            kernels::WHITE,
            kernels::LINEAR,
            kernels::SLOPE,
            kernels::MIXED,
            kernels::PERIODIC,
        ],
    );
    let noise = pick(dice, &[0.0, 0.0, 1e-6, 1e-3, 0.1, 4.0]);
    if dice.below(8) == 0 {
        let rank = dice.below(5);
        let mut row = || {
            let mut row = vec![0.0; rank];
            if dice.below(3) > 0 {
                dice.normals(&mut row);
            }
            row
        };
        let rows: Vec<Vec<f64>> = (0..18).map(|_| row()).collect();
        return (explicit(&rows, 0.2, noise), format!("factor of rank {rank}, noise {noise}"));
    }
    let dimension = 1 + dice.below(3);
    let most = pick(dice, &[16, 16, 16, 40]);
    let points = 1 + dice.below(most);
    let domain = format!(
        r#"{{"kind": "{}", "points": {points}, "dimension": {dimension}}}"#,
        pick(dice, &["uniform", "sobol"])
    );
    let mean = pick(
        dice,
        &[r#"{"kind": "zero"}"#, r#"{"kind": "sine", "amplitude": 1.0, "frequency": 2.0}"#],
    );
    let name = format!("{kernel} on {domain}, mean {mean}, noise {noise}");
    match try_build(&domain, kernel, mean, noise) {
        Ok(prior) => (prior, name),
        // A slope on the origin alone has no variance.
        Err(_) => (on_grid(points, kernels::WHITE, noise), format!("white, {points} points")),
    }
}

fn random_setting(dice: &mut Stream) -> Setting {
    let (prior, name) = random_prior(dice);
    let longest = prior.size();
    let horizon = if dice.below(3) == 0 { longest } else { 1 + dice.below(longest) } as u32;
    let gap = pick(dice, &[0.0, 0.5]);
    let level = delta(pick(dice, &[0.05, 0.1, 0.5, 0.9]));
    let beyond = pick(dice, &[0, 1, 5, 30, 1000]);
    let training = wishart(u64::from(horizon) + 2 + beyond);
    let constants = pick(dice, &[PolicyConstants::Printed, PolicyConstants::Corrected]);
    // The least N at which zeta_T exists, and a little more.
    let enough = wishart(theorem2::least_n(horizon, level) + beyond);
    let policy = match dice.below(6) {
        0 => Policy::Fixed(training),
        1 => Policy::PemUcb { training: enough, delta: level, constants },
        2 => Policy::PemPi { training, gap },
        3 => Policy::KnownUcb { delta: level },
        4 => Policy::KnownPi { gap },
        _ => Policy::Random,
    };
    let name = format!("{name}, {policy:?}, T = {horizon}");
    Setting { prior, policy, horizon, name }
}

/// |a - b| is within `tolerance` of the larger of the two and of `scale`.
fn close(a: f64, b: f64, scale: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * (scale + a.abs() + b.abs())
}

#[derive(Default)]
struct Counts {
    checked: u64,
    compared: u64,
    /// Records in which the information-gain identity was evaluated, and its worst relative difference.
    identities: u64,
    difference: f64,
    status: BTreeMap<&'static str, u64>,
}

#[test]
fn every_trial_keeps_the_invariants() {
    let mut dice = Stream::new(Key::new(77, &[0; 32], 0, Purpose::Design));
    let mut counts = Counts::default();
    for _ in 0..SETTINGS {
        let setting = random_setting(&mut dice);
        let checkpoints: Vec<u32> = (1..=setting.horizon).collect();
        let records = run(&setting.prior, setting.policy, 4, &checkpoints, REPLICATES);
        assert_eq!(records.len() as u64, REPLICATES * u64::from(setting.horizon));
        // Within a group, records come step by step, lane by lane.
        let mut trials: BTreeMap<u64, Vec<&Record>> = BTreeMap::new();
        records.iter().for_each(|record| trials.entry(record.replicate).or_default().push(record));
        for trial in trials.values() {
            check_trial(&setting, trial, &mut counts);
        }
    }
    println!(
        "{SETTINGS} settings, {} records, {} posteriors compared, {} identities to {:.1e}, {:?}",
        counts.checked, counts.compared, counts.identities, counts.difference, counts.status
    );
    // A third of the settings has no noise, and smooth kernels then run into the floor.
    let failed = counts.checked - counts.status["ok"];
    assert!(failed * 4 < counts.checked, "{:?}", counts.status);
    assert!(counts.compared * 2 > counts.checked);
    // One replicate of nine, in the two thirds of the settings that have noise.
    assert!(counts.identities * 20 > counts.checked);
}

/// The information-gain identity is hardest where the noise is least, and where many points say the
/// same.
#[test]
fn the_information_identity_holds_at_the_accuracy_floor() {
    let slope = |rank: usize| -> Vec<Vec<f64>> {
        let entry = |i: usize, k: usize| ((7 * i + 13 * k) % 31) as f64 / 31.0 + 0.01;
        (0..250).map(|i| (0..rank).map(|k| entry(i, k)).collect()).collect()
    };
    let least = 1.01 * ACCURACY_FLOOR;
    let priors = [
        explicit(&slope(1), 0.0, 1.1 * least),
        explicit(&slope(2), 0.0, 2.2 * least),
        explicit(&slope(5), 0.0, 5.5 * least),
        on_grid(250, kernels::SMOOTH, least),
        on_grid(250, kernels::WIGGLY, 2.5 * least),
        on_grid(250, kernels::MATERN, least),
        on_grid(250, kernels::MIXED, 1e-20),
        on_grid(250, kernels::SMOOTH, 1e20),
    ];
    let checkpoints: Vec<u32> = (1..=250).collect();
    let mut counts = Counts::default();
    for prior in priors {
        for record in run(&prior, Policy::Random, 3, &checkpoints, 1) {
            check_identity("the accuracy floor", &record, &prior, &mut counts);
        }
    }
    println!("{} identities to {:.1e}", counts.identities, counts.difference);
    assert_eq!(counts.identities, 8 * 250);
}

fn check_trial(setting: &Setting, trial: &[&Record], counts: &mut Counts) {
    let mut seen: Vec<Measurement> = Vec::new();
    let mut failed: Option<Failure> = None;
    for (record, t) in trial.iter().zip(1..) {
        assert_eq!(record.t, t, "{}", setting.name);
        counts.checked += 1;
        *counts.status.entry(record.status()).or_default() += 1;
        match record.outcome {
            Err(failure) => {
                check_failure(setting, t, failure);
                failed.get_or_insert(failure);
            }
            Ok(m) => {
                assert!(failed.is_none(), "{}: ok after {failed:?}", setting.name);
                check_finite(setting, &m);
                check_alone(setting, &m);
                check_identity(&setting.name, record, &setting.prior, counts);
                if let Some(before) = seen.last() {
                    check_monotone(setting, before, &m);
                }
                assert!(seen.iter().all(|before| before.x != m.x), "{}: repeats", setting.name);
                seen.push(m);
                check_history(setting, &seen);
                check_posterior(setting, &seen, counts);
            }
        }
    }
}

/// Only trials without noise fail, and never by a panic.
fn check_failure(setting: &Setting, t: u32, failure: Failure) {
    let name = &setting.name;
    match failure {
        Failure::ZeroPivot { step } | Failure::AccuracyFloor { step } => {
            assert!((1..=t).contains(&step), "{name}: {failure:?} at t = {t}");
        }
        other => panic!("{name}: {other:?}"),
    }
    assert!(setting.prior.total_noise() == 0.0, "{name}: {failure:?} at t = {t}");
}

fn check_finite(setting: &Setting, m: &Measurement) {
    for column in COLUMNS {
        if let Value::Float(value) = (column.value)(m) {
            assert!(value.is_finite(), "{}: {} = {value} at {}", setting.name, column.name, m.t);
        }
    }
}

/// What one record says of itself.
fn check_alone(setting: &Setting, m: &Measurement) {
    let Setting { prior, policy, name, .. } = setting;
    let tau = &m.at_tau;
    assert!(
        (m.x.unwrap() as usize) < prior.size() && (m.x_star.unwrap() as usize) < prior.size(),
        "{name}"
    );
    assert!((1..=m.t).contains(&tau.tau), "{name}");
    assert!(0.0 <= m.best_sample_regret && m.best_sample_regret <= m.simple_regret, "{name}");
    assert!(m.simple_regret <= m.f_range, "{name}");
    assert_eq!(m.star_seen, m.best_sample_regret == 0.0, "{name}: f has no ties");
    assert_eq!(m.star.is_some(), policy.training().is_some() && !m.star_seen, "{name}");
    assert_eq!(tau.estimated.is_some(), !matches!(policy, Policy::Random), "{name}");
    assert_eq!(m.zeta.is_some(), policy.delta().is_some(), "{name}");
    assert_eq!(m.target, policy.gap().map(|gap| m.f_star + gap), "{name}");
    assert_eq!(m.information.is_some(), prior.noise_variance > 0.0, "{name}");
    let left = prior.size() > m.t as usize;
    assert_eq!(
        m.probe.is_some(),
        policy.training().is_some() && left,
        "{name}: probe, t = {}",
        m.t
    );
    for deviation in [m.probe, m.star, m.next].into_iter().flatten() {
        assert!(deviation.error >= 0.0 && deviation.ratio >= 0.0, "{name}");
    }
    check_choice(setting, m, tau);
    check_cap(setting, m);
}

/// 1/2 log det(I + k(x_t)/sigma^2) = I_t, in the replicates that have it.
fn check_identity(name: &str, record: &Record, prior: &Prior, counts: &mut Counts) {
    let Ok(m) = record.outcome else { return };
    let expected = prior.noise_variance > 0.0 && record.replicate.is_multiple_of(16);
    assert_eq!(m.information_determinant.is_some(), expected, "{name}");
    let Some((sum, determinant)) = m.information.zip(m.information_determinant) else { return };
    let claim = claims::find("invariant.information-identity").expect("a claim");
    let Test::Invariant { allowance, .. } = claim.test else { panic!("an invariant") };
    let difference = (sum - determinant).abs();
    let small = difference <= allowance * determinant;
    assert!(small, "{name}: {sum} and {determinant} at t = {}", m.t);
    counts.identities += 1;
    if difference > counts.difference * determinant {
        counts.difference = difference / determinant;
    }
}

/// The acquisition at x* is at most that at x_tau, while x* could still be chosen.
fn check_choice(setting: &Setting, m: &Measurement, tau: &AtTau) {
    let (Some(estimated), false) = (tau.estimated, tau.star_seen) else { return };
    let value = |mean: f64, variance: f64| match (tau.zeta, m.target) {
        (Some(zeta), _) => Some(mean + zeta * variance.sqrt()),
        (_, Some(target)) => Some((mean - target) / variance.sqrt()),
        _ => None,
    };
    let at_star = value(estimated.mean_star, estimated.variance_star);
    let at_tau = value(estimated.mean_tau, estimated.variance_tau);
    if let (Some(at_star), Some(at_tau)) = (at_star, at_tau) {
        let slack = 1e-12 * (at_star.abs() + at_tau.abs());
        assert!(at_star <= at_tau + slack, "{}: {at_star} over {at_tau}", setting.name);
    }
}

/// k_{tau-1}(x_tau) <= 2 c I_t/(t log(1 + c/sigma^2)), and the elementary inequality
/// sqrt(k) < sqrt(k + sigma^2) - sigma^2/(2 sqrt(c + sigma^2)) for k <= c.
fn check_cap(setting: &Setting, m: &Measurement) {
    let (c, noise) = (setting.prior.c, setting.prior.noise_variance);
    let Some(information) = m.information else { return };
    let rate = 2.0 * c / (f64::from(m.t) * libm::log1p(c / noise));
    let cap = rate * information;
    let name = &setting.name;
    assert!(m.at_tau.variance_tau <= cap * (1.0 + 1e-9), "{name}: {m:?} against {cap}");
    for k in [m.at_tau.variance_tau, m.at_tau.variance_star] {
        assert!(k <= c * (1.0 + 1e-12), "{name}: k = {k}");
        let right = (k + noise).sqrt() - noise / (2.0 * (c + noise).sqrt());
        assert!(k.sqrt() < right + 1e-15 * c.sqrt(), "{name}: k = {k}");
    }
}

/// What may only grow or only fall from one step to the next.
fn check_monotone(setting: &Setting, before: &Measurement, m: &Measurement) {
    let name = &setting.name;
    assert!(m.best_sample_regret <= before.best_sample_regret, "{name}");
    assert!(m.cumulative_regret >= before.cumulative_regret, "{name}");
    assert!(m.k_xy >= before.k_xy && m.y_max >= before.y_max && m.f_max >= before.f_max, "{name}");
    assert!(m.at_tau.variance_tau <= before.at_tau.variance_tau, "{name}");
    let smaller = m.at_tau.variance_tau < before.at_tau.variance_tau;
    let tau = if smaller { m.t } else { before.at_tau.tau };
    assert_eq!(m.at_tau.tau, tau, "{name}: the first on ties");
    assert!(m.star_seen || !before.star_seen, "{name}");
    assert_eq!(
        (m.f_star, m.x_star, m.f_range),
        (before.f_star, before.x_star, before.f_range),
        "{name}"
    );
}

/// What a record says of the steps before it.
fn check_history(setting: &Setting, seen: &[Measurement]) {
    let name = &setting.name;
    let m = seen.last().expect("the record itself");
    let star = |m: &Measurement| m.x == m.x_star;
    assert_eq!(m.star_seen, seen.iter().any(star), "{name}: star_seen");
    let before_tau = &seen[..m.at_tau.tau as usize - 1];
    assert_eq!(m.at_tau.star_seen, before_tau.iter().any(star), "{name}: star_seen_tau");
    let mut by_y = &seen[0];
    let mut by_f = &seen[0];
    for other in seen {
        if other.y > by_y.y {
            by_y = other;
        }
        if other.f > by_f.f {
            by_f = other;
        }
    }
    assert_eq!((m.y_max, m.f_at_y_max), (by_y.y, by_y.f), "{name}");
    assert_eq!((m.f_max, m.y_at_f_max), (by_f.f, by_f.y), "{name}");
    assert_eq!(m.f_star - m.f_max, m.best_sample_regret, "{name}");
    assert_eq!(m.f_star - m.f_at_y_max, m.simple_regret, "{name}");
    let regret: f64 = seen.iter().map(|m| m.f_star - m.f).sum();
    assert!(close(regret, m.cumulative_regret, 0.0, 1e-12), "{name}");
    let at_tau = &seen[m.at_tau.tau as usize - 1];
    assert_eq!((m.at_tau.f_tau, m.at_tau.zeta), (at_tau.f, at_tau.zeta), "{name}");
    if setting.prior.noise_variance == 0.0 {
        assert_eq!(m.y, m.f, "{name}: no noise");
    }
}

/// I_t, K, the posterior at tau (also at an observed x*), tau itself and the error at the point just
/// observed, against dense factorisations.
fn check_posterior(setting: &Setting, seen: &[Measurement], counts: &mut Counts) {
    let Setting { prior, name, .. } = setting;
    let m = seen.last().expect("the record itself");
    let points: Vec<usize> = seen.iter().map(|m| m.x.unwrap() as usize).collect();
    let y: Vec<f64> = seen.iter().map(|m| m.y).collect();
    let Some(now) = Conditioned::new(prior, &points, &y) else { return };
    // Both computations lose digits like the condition number; without noise they may lose nearly all.
    let loss = (prior.c + prior.noise_variance) * now.inverse_trace();
    if loss > 1e9 {
        return;
    }
    counts.compared += 1;
    let tolerance = 1e-14 * (100.0 + loss);
    let agree = |what: &str, a: f64, b: f64, scale: f64| {
        assert!(close(a, b, scale, tolerance), "{name}: {what} at t = {}: {a} and {b}", m.t);
    };
    agree("K", m.k_xy, now.quadratic_form(), 0.0);
    if let Some(information) = m.information {
        agree("I", information, now.information(), 1e-3);
    }
    let tau = &m.at_tau;
    let before = tau.tau as usize - 1;
    let then =
        Conditioned::new(prior, &points[..before], &y[..before]).expect("a part of the whole");
    let spread = prior.c.sqrt();
    for (what, point, mean, variance) in [
        ("x*", m.x_star.unwrap(), tau.mean_star, tau.variance_star),
        ("x_tau", seen[before].x.unwrap(), tau.mean_tau, tau.variance_tau),
    ] {
        let (dense_mean, dense_variance) = then.at(point as usize);
        agree(&format!("mu at {what}"), mean, dense_mean, spread);
        agree(&format!("k at {what}"), variance, dense_variance, prior.c);
    }
    let (mean, variance) = now.at(m.x.unwrap() as usize);
    if let Some(observed) = m.observed {
        let scale = variance + prior.noise_variance;
        let deviation = (observed.error * scale).sqrt();
        agree("error at x_t", deviation, (m.y - mean).abs(), spread);
        assert_eq!(observed.ratio, 0.0, "{name}");
    }
    // tau is where k_{s-1}(x_s) is smallest: that of the last step is not below it.
    let last = points.len() - 1;
    let previous = Conditioned::new(prior, &points[..last], &y[..last]).expect("a part");
    let (_, variance) = previous.at(points[last]);
    assert!(tau.variance_tau <= variance + tolerance * prior.c, "{name}: tau");
}
