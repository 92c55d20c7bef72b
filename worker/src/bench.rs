//! What a trial costs, and the floor under it: the same random numbers drawn and the same sweeps over
//! the factor, alone.
//!
//! Trials and floor take turns in one run, so that a noisy machine disturbs both alike; medians of the
//! turns and of their ratios are reported. A turn is long enough for its room to be made once for many groups, as for a
//! worker's shard. The setting is adaptive GP-UCB with printed constants, delta = 0.1, noise
//! variance 0.01, and one record, at T, with all columns.

use std::time::{Duration, Instant};

use study::cell::{Cell, Estimator, Ground, Policy, PolicyConstants, Training};
use theory::Delta;

use crate::estimator::wishart::Floor;
use crate::prior::Prior;
use crate::random::{Key, Purpose, Stream, interleaved_normals};
use crate::simd::Cpu;
use crate::trial::{LANES, Trials};

/// How long a turn of trials takes at least, and how many lockstep groups it has at least.
const TURN: Duration = Duration::from_millis(60);
const GROUPS: usize = 4;

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
    /// The one over the other, turn by turn.
    pub times_floor: f64,
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
    let cell = Cell {
        shape: [0; 32],
        noise_variance: prior.noise_variance,
        ground: Ground::Finite,
        policy,
    };
    let checkpoints = [case.horizon];
    let trials = Trials::new(prior, cell, 1, &checkpoints, cpu).expect("the case can run");
    let (mut whole, mut floor) = (Vec::new(), Vec::new());
    let mut floor_of = Floor::new(prior, case.n, cpu, &|purpose| streams(0, purpose));
    let run = |turn| {
        let start = Instant::now();
        trials.run(turn, &mut |record| {
            std::hint::black_box(record);
        });
        start.elapsed().as_secs_f64()
    };
    let group = run(0..(GROUPS * LANES) as u64) / GROUPS as f64;
    let groups = GROUPS.max((TURN.as_secs_f64() / group).ceil() as usize);
    let begin = Instant::now();
    let mut first = 0;
    while begin.elapsed() < budget || whole.len() < 5 {
        let turn = first..first + (groups * LANES) as u64;
        whole.push(run(turn.clone()));
        let start = Instant::now();
        for first in turn.clone().step_by(LANES) {
            run_floor(&mut floor_of, prior.rank(), case, first);
        }
        floor.push(start.elapsed().as_secs_f64());
        first = turn.end;
    }
    let ratios = whole.iter().zip(&floor).map(|(whole, floor)| whole / floor).collect();
    let per_trial = |times: Vec<f64>| median(times) * 1e3 / (groups * LANES) as f64;
    Timing { trial: per_trial(whole), floor: per_trial(floor), times_floor: median(ratios) }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The streams of the group that begins with a replicate.
fn streams(first: u64, purpose: Purpose) -> [Stream; LANES] {
    std::array::from_fn(|lane| Stream::new(Key::new(1, &[0; 32], first + lane as u64, purpose)))
}

/// Draws every number that a group of trials draws, and sweeps F as often.
fn run_floor(floor: &mut Floor<'_, LANES>, rank: usize, case: Case, first: u64) {
    let mut weights = vec![0.0; rank * LANES];
    interleaved_normals(&mut streams(first, Purpose::Function), &mut weights);
    std::hint::black_box(weights);
    floor.sweep();
    floor.setup(&|purpose| streams(first, purpose));
    let mut noise = streams(first, Purpose::Noise);
    for t in 0..case.horizon as usize {
        std::hint::black_box(floor.step(t));
        for stream in &mut noise {
            std::hint::black_box(stream.normal());
        }
    }
}
