//! One trial of `plain` on a synthetic function: hyper-parameters fitted at every step, then GP-UCB.
//!
//! Prints the trial as JSON: see bench/plain.py.

use std::time::Instant;

use serde_json::{Value, json};
use worker::Cpu;
use worker::gp::{Bounds, Distances, Error, Gp, Noise, Scale, Search};

const WEIGHT: f64 = 3.0;

struct Setting {
    candidates: usize,
    dimension: usize,
    horizon: usize,
    starts: usize,
    repeats: usize,
    seed: usize,
}

/// What happened at one step.
struct Step {
    point: usize,
    response: f64,
    log_likelihood: f64,
    theta: [f64; 3],
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<usize> =
        std::env::args().skip(1).map(|a| a.parse()).collect::<Result<_, _>>()?;
    let [candidates, dimension, horizon, starts, repeats, seed] = arguments[..] else {
        return Err("candidates dimension horizon starts repeats seed".into());
    };
    let setting = Setting { candidates, dimension, horizon, starts, repeats, seed };
    println!("{}", run(&setting)?);
    Ok(())
}

fn run(setting: &Setting) -> Result<Value, Error> {
    let (m, d) = (setting.candidates, setting.dimension);
    let mut uniform = uniforms(setting.seed);
    let x: Vec<f64> = (0..m * d).map(|_| uniform()).collect();
    // Noise of standard deviation 0.05 or so. No candidate is chosen twice: one response is enough.
    let y: Vec<f64> = x.chunks(d).map(|x| f(x) + 0.17 * (uniform() - 0.5)).collect();
    let table = Distances::new(d, &x)?;
    let (nearest, farthest) = table.extent().unwrap_or((1.0, 1.0));
    let search = Search { bounds: Bounds::new(nearest, farthest), starts: setting.starts };
    let mut seconds = vec![];
    let mut steps = vec![];
    for _ in 0..setting.repeats {
        let begin = Instant::now();
        steps = trial(&table, &y, setting.horizon, &search)?;
        seconds.push(begin.elapsed().as_secs_f64());
    }
    let steps: Vec<Value> =
        steps.iter().map(|s| json!([s.point, s.response, s.log_likelihood, s.theta])).collect();
    let Bounds { variance, length, ratio } = search.bounds;
    let bounds = json!({"variance": variance, "length": length, "ratio": ratio});
    Ok(json!({"x": x, "bounds": bounds, "steps": steps, "seconds": seconds}))
}

fn trial(
    table: &Distances,
    y: &[f64],
    horizon: usize,
    search: &Search,
) -> Result<Vec<Step>, Error> {
    let mut gp = Gp::new(table, Cpu::detect());
    let (mut mean, mut variance) = (vec![0.0; y.len()], vec![0.0; y.len()]);
    let (mut point, mut responses, mut steps) = (0, vec![], vec![]);
    let mut chosen = vec![false; y.len()];
    for _ in 0..horizon {
        gp.observe(point)?;
        responses.push(y[point]);
        let scale = Scale::of(&responses);
        let standardised: Vec<f64> = responses.iter().map(|&y| scale.standardise(y)).collect();
        let posterior = gp.fit(&standardised, search, Noise::Fitted)?;
        posterior.predict(&mut mean, &mut variance);
        let p = posterior.parameters();
        let theta = [p.variance, p.length, p.noise].map(libm::log);
        let log_likelihood = posterior.log_likelihood();
        steps.push(Step { point, response: y[point], log_likelihood, theta });
        chosen[point] = true;
        point = best(&scale, &mean, &variance, &chosen);
    }
    Ok(steps)
}

/// The largest upper confidence bound among candidates that were not chosen yet.
fn best(scale: &Scale, mean: &[f64], variance: &[f64], chosen: &[bool]) -> usize {
    let bound = |i: usize| scale.mean(mean[i]) + WEIGHT * scale.variance(variance[i]).sqrt();
    let better = |best: usize, i: usize| if bound(i) > bound(best) { i } else { best };
    (0..mean.len()).filter(|&i| !chosen[i]).reduce(better).unwrap_or(0)
}

/// Smooth, with several maxima.
fn f(x: &[f64]) -> f64 {
    let terms =
        x.iter().enumerate().map(|(k, &x)| libm::sin((3.0 + k as f64) * x) * (1.0 - 0.5 * x));
    terms.fold(0.0, |sum, term| sum + term)
}

/// SplitMix64.
fn uniforms(seed: usize) -> impl FnMut() -> f64 {
    let mut state = seed as u64;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
