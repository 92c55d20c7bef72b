//! A traced trial is the trial: same records, same estimates, same choices, to the last bit.

use study::cell::{Cell, Estimator as Route, Ground, PolicyConstants, Training};
use study::prior::{Files, PriorSpec};
use theory::Delta;
use theory::measurement::Deviation;

use super::*;
use crate::prior::{MemoryLimit, Prior};
use crate::simd::Cpu;

const HORIZON: u32 = 20;
const STEPS: [u32; HORIZON as usize] =
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20];

/// By weights, by the root, with a white part, and without a factor.
fn priors() -> Vec<Prior> {
    let kernels = [
        r#"{"kind": "squared-exponential", "lengthscale": 0.3}"#,
        r#"{"kind": "matern12", "lengthscale": 0.2}"#,
        r#"{"kind": "sum", "terms": [{"kind": "matern52", "lengthscale": 0.3}, {"kind": "white", "variance": 0.2}]}"#,
        r#"{"kind": "white"}"#,
    ];
    let build = |kernel: &str| {
        let text = format!(
            r#"{{"setting": "finite", "domain": {{"kind": "grid", "points": 30, "dimension": 1}},
                "kernel": {kernel}, "mean": {{"kind": "sine", "amplitude": 0.5, "frequency": 1.0}},
                "noise_variance": 0.04}}"#
        );
        let spec: PriorSpec = serde_json::from_str(&text).unwrap();
        let limit = MemoryLimit { bytes: 1 << 26, state_per_point: 0 };
        Prior::build(&spec, &Files::default(), limit).unwrap()
    };
    kernels.into_iter().map(build).collect()
}

fn policies() -> Vec<Policy> {
    let training = |n| Training { n, estimator: Route::Wishart };
    let delta = Delta::new(0.1).unwrap();
    let dense = Training { n: 60, estimator: Route::Dense };
    vec![
        Policy::PemUcb { training: training(60), delta, constants: PolicyConstants::Printed },
        Policy::PemPi { training: training(25), gap: 0.1 },
        Policy::PemPi { training: dense, gap: 0.1 },
        Policy::Fixed(training(40)),
        Policy::KnownUcb { delta },
        Policy::KnownPi { gap: 0.0 },
        Policy::Random,
    ]
}

/// Checks every step of a trace against the records.
fn follow(prior: &Prior, mut trace: Trace<'_>) {
    let noise = prior.noise_variance;
    for t in 1..=HORIZON {
        let record = trace.records[t as usize - 1].outcome.unwrap();
        if let (Some(rule), Some(estimator)) = (trace.rule(t), &mut trace.estimator) {
            assert_eq!(
                estimator.choose(&rule),
                [record.x.unwrap() as usize],
                "the choice of x_{t}"
            );
        }
        assert_eq!(
            (trace.x_star(), trace.f()[trace.x_star()]),
            (record.x_star.unwrap() as usize, record.f_star)
        );
        let x_star = trace.x_star();
        let (star, star_estimate) = (trace.truth(x_star), trace.estimate(x_star));
        let step = trace.advance().unwrap();
        assert_eq!((step.x, step.y, step.f), (record.x.unwrap() as usize, record.y, record.f));
        assert_eq!((step.zeta, step.target), (record.zeta, record.target));
        if record.at_tau.tau == t {
            let tau = record.at_tau;
            assert_eq!((tau.mean_tau, tau.variance_tau), (step.truth.mean, step.truth.variance));
            assert_eq!((tau.mean_star, tau.variance_star), (star.mean, star.variance));
            let told =
                tau.estimated.map(|e| [e.mean_tau, e.variance_tau, e.mean_star, e.variance_star]);
            let traced = step.estimate.zip(star_estimate);
            let traced = traced.map(|(x, star)| [x.mean, x.variance, star.mean, star.variance]);
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * prior.c;
            match (told, traced, trace.trials.cell.policy.training()) {
                (told, traced, Some(_)) => assert_eq!(told, traced),
                // The record of a known prior has the truth itself, not its running sums.
                (Some(told), Some(traced), None) => {
                    assert!(told.into_iter().zip(traced).all(|(a, b)| close(a, b)));
                }
                (told, traced, None) => assert_eq!((told, traced), (None, None)),
            }
        }
        if let (Some(next), Some(after)) = (record.next, trace.records.get(t as usize)) {
            let x = after.outcome.unwrap().x.unwrap() as usize;
            let (truth, estimate) = (trace.truth(x), trace.estimate(x).unwrap());
            let scale = truth.variance + noise;
            let shift = estimate.mean - truth.mean;
            assert_eq!(Deviation::new(shift, estimate.variance, scale), next, "after step {t}");
        }
        let interpolated = trace.estimate(step.x).filter(|_| record.probe.is_some());
        assert!(interpolated.is_none_or(|e| (e.mean, e.variance) == (step.y, 0.0)));
    }
    assert_eq!(trace.advance(), None);
}

#[test]
fn a_trace_is_the_trial_to_the_last_bit() {
    for prior in &priors() {
        for policy in policies() {
            let cell = Cell {
                shape: [3; 32],
                noise_variance: prior.noise_variance,
                ground: Ground::Finite,
                policy,
            };
            let trials = |steps| Trials::new(prior, cell, 11, steps, Cpu::detect()).unwrap();
            let (every, some) = (trials(&STEPS), trials(&[5, 20]));
            let mut usual = Vec::new();
            some.run(0..8, &mut |record| usual.push(record));
            for replicate in [0, 5] {
                let trace = every.trace(replicate);
                let of = |records: &[Record]| -> Vec<Record> {
                    let wanted = |r: &&Record| r.replicate == replicate && [5, 20].contains(&r.t);
                    records.iter().filter(wanted).copied().collect()
                };
                assert_eq!(of(trace.records()), of(&usual), "{policy:?}");
                follow(prior, trace);
            }
        }
    }
}

#[test]
fn chosen_replicates_give_the_records_of_a_range() {
    let prior = &priors()[0];
    let cell = Cell {
        shape: [3; 32],
        noise_variance: 0.04,
        ground: Ground::Finite,
        policy: policies()[0],
    };
    let trials = Trials::new(prior, cell, 11, &[3, 9], Cpu::detect()).unwrap();
    let (mut all, mut some) = (Vec::new(), Vec::new());
    trials.run(0..40, &mut |record| all.push(record));
    let chosen = [0, 3, 4, 11, 12, 13, 20, 27, 31, 39];
    trials.run(chosen, &mut |record| some.push(record));
    all.retain(|record| chosen.contains(&record.replicate));
    assert_eq!(all, some);
}
