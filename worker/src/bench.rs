//! What a trial costs, and the floor under it: the same random numbers drawn and the same sweeps over
//! the factor, alone.
//!
//! Trials and floor take turns in one run, so that a noisy machine disturbs both alike; the median of
//! the turns is reported. The setting is adaptive GP-UCB with printed constants, delta = 0.1, noise
//! variance 0.01, and records at every checkpoint with all columns.

use std::time::{Duration, Instant};

use study::cell::{Cell, Estimator, Policy, PolicyConstants, Training};
use theory::{Delta, PANEL};

use crate::estimator::wishart;
use crate::prior::Prior;
use crate::random::{Key, Purpose, Stream};
use crate::simd::{Buffer, Cpu};
use crate::sweep::Sweep;
use crate::trial::{LANES, Trials};

/// What is timed.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// N.
    pub n: u64,
    /// T.
    pub horizon: u32,
}

/// Milliseconds per trial.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// A whole trial.
    pub trial: f64,
    /// Its random numbers and sweeps alone.
    pub floor: f64,
}

/// Times a case on one core for about `budget`.
///
/// # Panics
/// Where the case cannot run on the prior.
pub fn time(prior: &Prior, case: Case, budget: Duration) -> Timing {
    let cpu = Cpu::detect();
    let policy = Policy::PemUcb {
        training: Training { n: case.n, estimator: Estimator::Wishart },
        delta: Delta::new(0.1).expect("0.1 is a probability"),
        constants: PolicyConstants::Printed,
    };
    let cell = Cell { shape: [0; 32], noise_variance: prior.noise_variance, policy };
    let checkpoints = [case.horizon];
    let trials = Trials::new(prior, cell, 1, &checkpoints, cpu).expect("the case can run");
    let (mut whole, mut floor) = (Vec::new(), Vec::new());
    let begin = Instant::now();
    let mut first = 0;
    while begin.elapsed() < budget || whole.len() < 5 {
        let start = Instant::now();
        trials.run(first..first + LANES as u64, &mut |record| {
            std::hint::black_box(record);
        });
        whole.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        std::hint::black_box(draw_and_sweep::<LANES>(prior, case, cpu, first));
        floor.push(start.elapsed().as_secs_f64());
        first += LANES as u64;
    }
    let per_trial = |times: Vec<f64>| median(times) * 1e3 / LANES as f64;
    Timing { trial: per_trial(whole), floor: per_trial(floor) }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Draws every number that a group of trials draws, and sweeps F as often.
fn draw_and_sweep<const L: usize>(prior: &Prior, case: Case, cpu: Cpu, first: u64) -> f64 {
    let factor = &prior.factor;
    let streams = |purpose: Purpose| {
        std::array::from_fn::<Stream, L, _>(|lane| {
            Stream::new(Key::new(1, &[0; 32], first + lane as u64, purpose))
        })
    };
    let mut buffer = vec![0.0; factor.rows()];
    let (mut function, mut noise) = (streams(Purpose::Function), streams(Purpose::Noise));
    let mut drawn = wishart::Streams {
        setup: streams(Purpose::Estimator),
        axes: streams(Purpose::EstimatorAxes),
        steps: streams(Purpose::EstimatorSteps),
    };
    let mut total = wishart::draw_setup(prior, case.n, cpu, &mut drawn.setup, &mut buffer);
    let weights = Buffer::filled(0.5, factor.rank() * L);
    let mut out = Buffer::zeros(factor.panels() * PANEL * L);
    for stream in &mut function {
        stream.normals(&mut buffer[..factor.rank()]);
        total += buffer[0];
    }
    // One sweep for f, one for mu_hat, and one per evaluation.
    for t in 0..case.horizon as usize + 2 {
        cpu.run::<L, _>(Sweep::<L> { factor, weights: &weights, out: &mut out });
        total += out[t % out.len()];
    }
    for t in 0..case.horizon as usize {
        wishart::draw_step(prior, case.n, t, &mut drawn, &mut buffer);
        total += buffer[0];
        for stream in &mut noise {
            total += stream.normal();
        }
    }
    total
}
