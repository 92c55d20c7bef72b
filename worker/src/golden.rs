//! Fixed trials whose records must have the same bits everywhere.
//!
//! A worker proves itself by running them: a differing digest means that its numbers could differ from
//! another worker's, whatever the reason (CPU, compiler, a changed library), and it is refused.

use study::cell::{Cell, Estimator, Ground, Policy, PolicyConstants, Rival, RivalRule, Training};
use study::prior::{Files, PriorSpec};
use study::{Digest, Record};
use theory::Delta;

use crate::prior::{MemoryLimit, Prior};
use crate::problem::Problem;
use crate::simd::Cpu;
use crate::trial::Trials;

/// The digest that every correct worker of this version computes.
pub const DIGEST: &str = "504d9cb3095cff75cf191036df4aab94c24d3662b39966492d6acf3697569c78";

/// One prior per numerical path: a smooth one, one with a white part and two dimensions, one without
/// a factor, one without noise, whose trials fail, and one whose factor has a zero row.
const PRIORS: [&str; 5] = [
    r#"{"setting": "finite", "domain": {"kind": "grid", "points": 61, "dimension": 1},
        "kernel": {"kind": "squared-exponential", "lengthscale": 0.1},
        "mean": {"kind": "sine", "amplitude": 0.5, "frequency": 1.0}, "noise_variance": 0.01}"#,
    r#"{"setting": "finite", "domain": {"kind": "sobol", "points": 45, "dimension": 2},
        "kernel": {"kind": "sum", "terms": [
            {"kind": "matern52", "lengthscale": [0.3, 0.6]}, {"kind": "white", "variance": 0.2}]},
        "mean": {"kind": "zero"}, "noise_variance": 0.05}"#,
    r#"{"setting": "finite", "domain": {"kind": "uniform", "points": 50, "dimension": 1},
        "kernel": {"kind": "white"}, "mean": {"kind": "constant", "value": 1.0},
        "noise_variance": 0.1}"#,
    r#"{"setting": "finite", "domain": {"kind": "grid", "points": 40, "dimension": 1},
        "kernel": {"kind": "squared-exponential", "lengthscale": 0.2},
        "mean": {"kind": "linear", "weights": [2.0]}, "noise_variance": 0.0}"#,
    r#"{"setting": "finite", "domain": {"kind": "grid", "points": 43, "dimension": 1},
        "kernel": {"kind": "linear", "variance": 2.0}, "mean": {"kind": "zero"},
        "noise_variance": 0.3}"#,
];

/// The first step, and steps before, at and after the end of a block of coordinates.
const CHECKPOINTS: [u32; 4] = [1, 10, 16, 37];

/// Compact priors: features that are given, and the squared-exponential kernel, for which they are learnt.
const COMPACT: [(&str, Estimator); 2] = [
    (
        r#"{"setting": "compact", "domain": {"kind": "sobol", "points": 60, "dimension": 2},
            "kernel": {"kind": "cosine", "functions": 14, "lengthscale": 0.25},
            "mean": {"kind": "zero"}, "noise_variance": 0.5}"#,
        Estimator::Wishart,
    ),
    (
        r#"{"setting": "compact", "domain": {"kind": "uniform", "points": 60, "dimension": 1},
            "kernel": {"kind": "squared-exponential", "lengthscale": 0.2},
            "mean": {"kind": "zero"}, "noise_variance": 0.02,
            "features": {"kind": "learnt", "functions": 12}}"#,
        Estimator::Learnt { functions: 12 },
    ),
];

/// The digest of the fixed trials, as this machine computes it.
pub fn digest(cpu: Cpu) -> String {
    let mut digest = Digest::new();
    let priors = priors();
    for prior in &priors {
        for policy in policies() {
            for record in records(prior, policy, cpu) {
                record.feed(&mut digest);
            }
        }
    }
    for policy in rivals(Estimator::Simulated) {
        let problem = Problem::Finite(priors[0].clone());
        few(&problem, Ground::Finite, policy, cpu, &mut digest);
    }
    for (text, route) in COMPACT {
        let (spec, problem) = built(text);
        for policy in rivals(route) {
            few(&problem, spec.ground(), policy, cpu, &mut digest);
        }
    }
    digest.hex()
}

/// Methods that run one trial at a time, and in the compact setting the others too.
fn rivals(route: Estimator) -> Vec<Policy> {
    let delta = Delta::new(0.1).expect("0.1 is a probability");
    let constants = PolicyConstants::Printed;
    let training = Training { n: 40, estimator: route };
    let ucb = RivalRule::Ucb { delta, constants };
    let rival = |rival, rule| Policy::Rival { rival, training, rule };
    let mut policies = vec![
        rival(Rival::Plain, ucb),
        rival(Rival::TlsmBo, RivalRule::Pi { gap: 0.1 }),
        rival(Rival::Box, RivalRule::Weight(2.0)),
        rival(Rival::Niw, ucb),
    ];
    if route == Estimator::Simulated {
        let training = Training { n: 40, estimator: Estimator::Completed { missing: 300_000 } };
        policies.push(Policy::PemUcb { training, delta, constants });
    } else {
        policies.extend([
            Policy::Fixed(training),
            Policy::PemUcb { training, delta, constants },
            // Noise lifts a value above so close a target, and the same point is evaluated again.
            Policy::PemPi { training, gap: 0.01 },
            Policy::KnownUcb { delta },
            Policy::Random,
        ]);
    }
    policies
}

/// Two trials of a problem.
fn few(problem: &Problem, ground: Ground, policy: Policy, cpu: Cpu, digest: &mut Digest) {
    let noise_variance = problem.noise_variance();
    let cell = Cell { shape: [7; 32], noise_variance, ground, policy };
    let trials = problem.trials(cell, 2018, &[1, 3, 6], cpu).expect("the golden cells can run");
    trials.run(0..2, &mut |record| record.feed(digest));
}

fn built(text: &str) -> (PriorSpec, Problem) {
    let spec = specification(text);
    let problem = Problem::build(&spec, &Files::default(), LIMIT);
    (spec, problem.expect("the golden priors are valid"))
}

fn specification(text: &str) -> PriorSpec {
    serde_json::from_str(text).expect("the golden priors are well formed")
}

const LIMIT: MemoryLimit = MemoryLimit { bytes: 1 << 26, state_per_point: 0 };

fn priors() -> Vec<Prior> {
    let build = |text: &str| {
        let spec = specification(text);
        Prior::build(&spec, &Files::default(), LIMIT).expect("the golden priors are valid")
    };
    PRIORS.into_iter().map(build).collect()
}

/// All ways to choose points; N from where dimensions run out to where they never do.
fn policies() -> Vec<Policy> {
    let delta = Delta::new(0.1).expect("0.1 is a probability");
    let training = |n| Training { n, estimator: Estimator::Wishart };
    let ucb = |n, constants| Policy::PemUcb { training: training(n), delta, constants };
    vec![
        ucb(200, PolicyConstants::Printed),
        ucb(100_000, PolicyConstants::Corrected),
        Policy::PemPi { training: training(39), gap: 0.25 },
        Policy::Fixed(training(45)),
        Policy::KnownUcb { delta },
        Policy::KnownPi { gap: 0.0 },
        Policy::Random,
    ]
}

fn records(prior: &Prior, policy: Policy, cpu: Cpu) -> Vec<Record> {
    let cell = Cell {
        shape: [7; 32],
        noise_variance: prior.noise_variance,
        ground: Ground::Finite,
        policy,
    };
    let trials =
        Trials::new(prior, cell, 2018, &CHECKPOINTS, cpu).expect("the golden cells can run");
    let mut records = Vec::new();
    trials.run(0..11, &mut |record| records.push(record));
    trials.run_alone(11..13, &mut |record| records.push(record));
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_pinned() {
        assert_eq!(digest(Cpu::detect()), DIGEST);
    }

    #[test]
    fn plain_code_gives_the_same_digest() {
        assert_eq!(digest(Cpu::plain()), DIGEST);
    }
}
