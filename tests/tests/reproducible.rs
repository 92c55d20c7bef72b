//! A trial is a pure function of (study seed, cell, replicate): its bits depend neither on the group
//! that it ran in, nor on the CPU, nor on what is measured later, and cells share what they should.

use std::collections::BTreeMap;
use std::ops::Range;

use study::Record;
use study::cell::{Estimator, Policy, PolicyConstants, Training};
use tests::cells::{bits, cell, delta, run, ucb, wishart};
use tests::priors::{explicit, kernels, on_grid, try_build};
use theory::Measurement;
use worker::Cpu;
use worker::prior::Prior;
use worker::trial::Trials;

const SEED: u64 = 2018;

/// Replicates 0..21 in shards of several kinds.
const PARTITIONS: [&[Range<u64>]; 2] = [&[0..8, 8..21], &[20..21, 13..20, 0..3, 3..13]];

/// Priors of every shape that the kernels treat apart, with policies that use them.
fn settings() -> Vec<(&'static str, Prior, Vec<Policy>)> {
    let pi = |n| Policy::PemPi { training: wishart(n), gap: 0.1 };
    let all = |n| {
        vec![
            Policy::Fixed(wishart(n)),
            ucb(wishart(n), 0.1),
            pi(n),
            Policy::KnownUcb { delta: delta(0.1) },
            Policy::KnownPi { gap: 0.0 },
            Policy::Random,
        ]
    };
    let rows: Vec<Vec<f64>> = (0..41)
        .map(|i| if i % 4 == 0 { vec![0.0; 2] } else { vec![1.0, f64::from(i) / 9.0] })
        .collect();
    let sobol = r#"{"kind": "sobol", "points": 67, "dimension": 2}"#;
    let sine = r#"{"kind": "sine", "amplitude": 2.0, "frequency": 1.5}"#;
    vec![
        ("smooth", on_grid(50, kernels::SMOOTH, 0.01), all(100)),
        (
            "mixed",
            try_build(sobol, kernels::MIXED, sine, 0.1).expect("a valid prior"),
            all(1_000_000),
        ),
        ("rough, few functions", on_grid(45, kernels::ROUGH, 0.1), vec![pi(42)]),
        ("outside runs out", on_grid(45, kernels::MATERN, 0.1), vec![pi(43)]),
        ("white", on_grid(43, kernels::WHITE, 0.1), all(70)),
        ("zero rows", explicit(&rows, 0.5, 0.1), all(60)),
        ("rough, no noise", on_grid(45, kernels::ROUGH, 0.0), all(60)),
        ("smooth, no noise", on_grid(50, kernels::SMOOTH, 0.0), all(60)),
    ]
}

type Bits = BTreeMap<(u64, u32), [u8; 32]>;

fn collect(
    prior: &Prior,
    policy: Policy,
    checkpoints: &[u32],
    cpu: Cpu,
    run: impl Fn(&Trials, &mut dyn FnMut(Record)),
) -> Bits {
    let trials = Trials::new(prior, cell(prior, policy), SEED, checkpoints, cpu);
    let trials = trials.expect("a valid cell");
    let mut all = Bits::new();
    run(&trials, &mut |record| {
        let earlier = all.insert((record.replicate, record.t), bits(&record));
        assert!(earlier.is_none(), "a record comes once");
    });
    all
}

#[test]
fn a_trial_does_not_depend_on_its_group_or_the_cpu() {
    for (name, prior, policies) in settings() {
        for policy in policies {
            let checkpoints = [1, 2, 17, 33, 40];
            let ranges = |parts: &'static [Range<u64>]| {
                move |trials: &Trials, mut sink: &mut dyn FnMut(Record)| {
                    for part in parts {
                        trials.run(part.clone(), &mut sink);
                    }
                }
            };
            let alone = collect(&prior, policy, &checkpoints, Cpu::plain(), |trials, mut sink| {
                trials.run_alone(0..21, &mut sink);
            });
            assert_eq!(alone.len(), 21 * checkpoints.len());
            for cpu in [Cpu::plain(), Cpu::detect()] {
                for parts in PARTITIONS {
                    let other = collect(&prior, policy, &checkpoints, cpu, ranges(parts));
                    assert_eq!(alone, other, "{name}, {policy:?}, {cpu:?}, {parts:?}");
                }
            }
        }
    }
}

#[test]
fn what_is_measured_does_not_change_a_trial() {
    let horizon = 40;
    let every: Vec<u32> = (1..=horizon).collect();
    for (name, prior, policies) in settings() {
        for policy in policies {
            let run = |checkpoints: &[u32]| {
                collect(&prior, policy, checkpoints, Cpu::detect(), |trials, mut sink| {
                    trials.run(0..12, &mut sink);
                })
            };
            let all = run(&every);
            for checkpoints in [&[1][..], &[7], &[16], &[17], &[5, 32, 33], &[horizon]] {
                for (at, bits) in run(checkpoints) {
                    assert_eq!(all[&at], bits, "{name}, {policy:?}: {at:?} of {checkpoints:?}");
                }
            }
        }
    }
}

/// Trials that fail in different ways, without noise and with no more functions than needed, still
/// fail alike whatever was measured before. In some of these a probe is below the accuracy floor
/// first and a pivot zero later.
#[test]
fn what_is_measured_does_not_change_how_a_trial_fails() {
    let prior = on_grid(50, kernels::SMOOTH, 0.0);
    let policy = Policy::Fixed(wishart(9));
    let every = run(&prior, policy, 1, &[1, 2, 3, 4, 5, 6, 7], 100_000);
    let last = run(&prior, policy, 1, &[7], 100_000);
    let failed = |name| last.iter().filter(|record| record.status() == name).count();
    assert!(failed("zero-pivot") > 0 && failed("accuracy-floor") > 0);
    for (a, b) in every.iter().filter(|record| record.t == 7).zip(&last) {
        assert_eq!(bits(a), bits(b), "{:?} and {:?}", a.outcome, b.outcome);
    }
}

/// The first step of every replicate.
fn first_steps(prior: &Prior, policy: Policy) -> Vec<Measurement> {
    let records = run(prior, policy, SEED, &[1], 200);
    records.iter().map(|record| record.outcome.expect("no failure at t = 1")).collect()
}

/// The same f and noise serve every N, delta, acquisition, method and noise variance.
#[test]
fn cells_share_functions_and_noise() {
    let prior = on_grid(30, kernels::MIXED, 0.1);
    let noisier = Prior { noise_variance: 0.4, ..prior.clone() };
    let training = |n, estimator| Training { n, estimator };
    let mut coincide = 0;
    let base = first_steps(&prior, ucb(wishart(50), 0.1));
    let corrected = PolicyConstants::Corrected;
    let others = [
        (&prior, ucb(wishart(51), 0.1)),
        (&prior, ucb(wishart(50), 0.5)),
        (&prior, Policy::PemUcb { training: wishart(50), delta: delta(0.1), constants: corrected }),
        (&prior, ucb(training(50, Estimator::Dense), 0.1)),
        (&prior, ucb(training(50, Estimator::Simulated), 0.1)),
        (&prior, Policy::PemPi { training: wishart(50), gap: 0.0 }),
        (&prior, Policy::Fixed(wishart(50))),
        (&prior, Policy::KnownUcb { delta: delta(0.1) }),
        (&prior, Policy::KnownPi { gap: 0.2 }),
        (&prior, Policy::Random),
        (&noisier, Policy::Random),
    ];
    for (prior, policy) in others {
        for (a, b) in base.iter().zip(first_steps(prior, policy)) {
            let function = |m: &Measurement| (m.f_star.to_bits(), m.x_star, m.f_range.to_bits());
            assert_eq!(function(a), function(&b), "{policy:?}");
            if a.x == b.x {
                assert_eq!(a.f.to_bits(), b.f.to_bits(), "{policy:?}");
            }
            if a.x == b.x && prior.noise_variance == 0.1 {
                assert_eq!(a.y.to_bits(), b.y.to_bits(), "{policy:?}");
                coincide += 1;
            }
            let deviation = |m: &Measurement, variance: f64| (m.y - m.f) / variance.sqrt();
            let difference = deviation(a, 0.1) - deviation(&b, prior.noise_variance);
            assert!(difference.abs() < 1e-12, "{policy:?}: the noise is another");
        }
    }
    assert!(coincide > 400, "{coincide} first points coincide");
}

/// The same estimators serve every delta, acquisition and design, and another N has its own.
#[test]
fn cells_share_estimators() {
    let prior = on_grid(30, kernels::MIXED, 0.1);
    let at_star = |policy| -> Vec<(u64, u64)> {
        let steps = first_steps(&prior, policy);
        let estimated = steps.iter().map(|m| m.at_tau.estimated.unwrap());
        estimated.map(|e| (e.mean_star.to_bits(), e.variance_star.to_bits())).collect()
    };
    let base = at_star(ucb(wishart(50), 0.1));
    for same in [
        ucb(wishart(50), 0.5),
        Policy::PemPi { training: wishart(50), gap: 0.0 },
        Policy::Fixed(wishart(50)),
    ] {
        assert_eq!(base, at_star(same), "{same:?}");
    }
    let other = at_star(ucb(wishart(51), 0.1));
    assert!(base.iter().zip(&other).all(|(a, b)| a != b));
}

/// Replicates and seeds are different trials.
#[test]
fn replicates_and_seeds_differ() {
    let prior = on_grid(20, kernels::SMOOTH, 0.1);
    let mut tops: Vec<u64> = Vec::new();
    for seed in 0..5 {
        let records = run(&prior, Policy::Random, seed, &[1], 200);
        tops.extend(records.iter().map(|record| record.outcome.unwrap().f_star.to_bits()));
    }
    tops.sort_unstable();
    tops.dedup();
    assert_eq!(tops.len(), 1000);
}
