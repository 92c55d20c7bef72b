//! Fixed trials whose records must have the same bits everywhere.
//!
//! A worker proves itself by running them: a differing digest means that its numbers could differ from
//! another worker's, whatever the reason (CPU, compiler, a changed library), and it is refused.

use study::cell::{Cell, Estimator, Policy, PolicyConstants, Training};
use study::prior::{Files, PriorSpec};
use study::{Digest, Record};
use theory::Delta;

use crate::prior::{MemoryLimit, Prior};
use crate::simd::Cpu;
use crate::trial::Trials;

/// The digest that every correct worker of this version computes.
pub const DIGEST: &str = "5e6367d1d1c0b3eaefa2610ac91c385d89c7f9391ae05c52b183554443d882b4";

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

/// The digest of the fixed trials, as this machine computes it.
pub fn digest(cpu: Cpu) -> String {
    let mut digest = Digest::new();
    for prior in &priors() {
        for policy in policies() {
            for record in records(prior, policy, cpu) {
                record.feed(&mut digest);
            }
        }
    }
    digest.hex()
}

fn priors() -> Vec<Prior> {
    let limit = MemoryLimit { bytes: 1 << 26, state_per_point: 0 };
    let build = |text: &str| {
        let spec: PriorSpec =
            serde_json::from_str(text).expect("the golden priors are well formed");
        Prior::build(&spec, &Files::default(), limit).expect("the golden priors are valid")
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
    let cell = Cell { shape: [7; 32], noise_variance: prior.noise_variance, policy };
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
