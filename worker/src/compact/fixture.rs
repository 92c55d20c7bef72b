//! Random features, functions and beliefs for tests.

use theory::dense::{Matrix, dot};

use super::acquisition::Belief;
use super::features::Cosines;
use super::panels::Panels;
use crate::random::{Key, Purpose, Stream};
use crate::simd::Cpu;

pub(super) fn stream(replicate: u64) -> Stream {
    Stream::new(Key::new(7, &[5; 32], replicate, Purpose::Design))
}

pub(super) fn normals(count: usize, replicate: u64) -> Vec<f64> {
    let mut out = vec![0.0; count];
    stream(replicate).normals(&mut out);
    out
}

pub(super) fn uniform(stream: &mut Stream) -> f64 {
    const STEPS: usize = 1 << 52;
    stream.below(STEPS) as f64 / STEPS as f64
}

/// Points of the unit cube.
pub(super) fn points(count: usize, dimension: usize, stream: &mut Stream) -> Vec<f64> {
    (0..count * dimension).map(|_| uniform(stream)).collect()
}

/// Random Fourier features of a squared-exponential kernel.
pub(super) fn fourier(count: usize, dimension: usize, lengthscale: f64, s: &mut Stream) -> Cosines {
    let frequencies: Vec<f64> = (0..count * dimension).map(|_| s.normal() / lengthscale).collect();
    let phases: Vec<f64> = (0..count).map(|_| std::f64::consts::TAU * uniform(s)).collect();
    Cosines::new(&frequencies, &phases, dimension).unwrap()
}

/// N functions with standard normal weights at M points: N x M.
pub(super) fn functions(cosines: &Cosines, inputs: &[f64], n: usize, s: &mut Stream) -> Vec<f64> {
    let columns = Panels::from_rows(inputs, cosines.dimension()).transpose();
    let phi = cosines.batch(Cpu::detect(), &columns);
    let mut weights = vec![0.0; cosines.count() * n];
    s.normals(&mut weights);
    let mut out = Panels::zeros(n, columns.columns());
    out.add_transposed_product(Cpu::detect(), &Panels::from_rows(&weights, n), &phi);
    out.to_rows()
}

/// Standard normal weights after some observations, by Potter's update of the covariance factor A:
/// v = A^T phi, A <- A - A v v^T/(S + sqrt(noise S)) with S = v . v + noise. Also the best observation.
pub(super) fn posterior(
    cosines: &Cosines,
    observations: usize,
    noise: f64,
    s: &mut Stream,
) -> (Vec<f64>, Matrix, f64) {
    let (k, d) = (cosines.count(), cosines.dimension());
    let mut weights = vec![0.0; k];
    s.normals(&mut weights);
    let mut mean = vec![0.0; k];
    let mut root = Matrix::from_fn(k, k, |i, j| f64::from(u8::from(i == j)));
    let mut best = f64::NEG_INFINITY;
    for _ in 0..observations {
        let mut phi = vec![0.0; k];
        cosines.phi(Cpu::detect(), &points(1, d, s), &mut phi);
        let y = dot(&phi, &weights) + noise.sqrt() * s.normal();
        best = if y > best { y } else { best };
        let v = root.transpose().apply(&phi);
        let gain = root.apply(&v);
        let total = noise + dot(&v, &v);
        let surprise = (y - dot(&mean, &phi)) / total;
        mean.iter_mut().zip(&gain).for_each(|(m, g)| *m += g * surprise);
        let scale = 1.0 / (total + (noise * total).sqrt());
        root = root.plus(-scale, &Matrix::from_fn(k, k, |i, j| gain[i] * v[j]));
    }
    (mean, root, best)
}

/// A posterior as a belief, and the best observation.
pub(super) fn belief(
    cosines: &Cosines,
    observations: usize,
    noise: f64,
    s: &mut Stream,
) -> (Belief, f64) {
    let (mean, root, best) = posterior(cosines, observations, noise, s);
    let k = cosines.count();
    let factor: Vec<f64> = (0..k * k).map(|at| root.at(at / k, at % k)).collect();
    (Belief::new(&mean, &factor), best)
}
