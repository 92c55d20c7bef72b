//! Times learning on functions of a squared-exponential process on the unit square.
#![expect(clippy::unwrap_used, reason = "a benchmark stops where anything fails")]

use std::time::Instant;

use worker::Cpu;
use worker::compact::dataset::Dataset;
use worker::compact::learn::{Options, learn};
use worker::compact::weights::weights;
use worker::random::{Key, Purpose, Stream};

fn main() {
    let args: Vec<f64> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let get = |i: usize, default: f64| args.get(i).copied().unwrap_or(default);
    let (n, m, k) = (get(0, 100.0) as usize, get(1, 1000.0) as usize, get(2, 100.0) as usize);
    let (lengthscale, noise, ridge) = (get(3, 0.2), get(4, 0.0), get(5, 1e-8));
    let (iterations, tolerance) = (get(6, 400.0) as usize, get(7, 1e-3));
    let d = 2;
    let mut stream = Stream::new(Key::new(1, &[0; 32], 0, Purpose::Design));
    let inputs: Vec<f64> =
        (0..m * d).map(|_| stream.below(1 << 52) as f64 / (1_u64 << 52) as f64).collect();
    let (responses, truth) = draw(&inputs, d, n, lengthscale, noise, &mut stream);
    let data = Dataset::new(&inputs, d, &responses).unwrap();
    for cpu in [Cpu::detect()] {
        let options = Options { ridge, iterations, tolerance, ..Options::new(k) };
        let mut start = Stream::new(Key::new(2, &[0; 32], 0, Purpose::Function));
        let begin = Instant::now();
        let learnt = learn(cpu, &data, &options, &mut start).unwrap();
        let seconds = begin.elapsed().as_secs_f64();
        let l = &learnt.losses;
        println!(
            "{}: N={n} M={m} K={k}: {seconds:.2} s, {} iterations, loss {:.3e} -> {:.3e} (50: {:.2e}, 100: {:.2e}, 200: {:.2e})",
            cpu.name(),
            learnt.iterations(),
            l[0],
            learnt.loss(),
            l.get(50).unwrap_or(&0.0),
            l.get(100).unwrap_or(&0.0),
            l.get(200).unwrap_or(&0.0)
        );
        for ridge in [0.0, ridge] {
            let begin = Instant::now();
            match weights(cpu, &learnt.cosines, &data, ridge) {
                Err(error) => println!("weights, ridge {ridge:e}: {error}"),
                Ok(w) => {
                    let seconds = begin.elapsed().as_secs_f64();
                    let (mut e, mut t, mut size) = (0.0, 0.0, 0.0);
                    let mut phi = vec![0.0; k];
                    for (j, x) in inputs.chunks(d).enumerate() {
                        learnt.cosines.phi(cpu, x, &mut phi);
                        for i in 0..n {
                            let fit: f64 = phi.iter().zip(&w[i * k..]).map(|(a, b)| a * b).sum();
                            let f = truth[i * m + j];
                            e += (fit - f) * (fit - f);
                            t += f * f;
                        }
                    }
                    for v in &w {
                        size += v * v;
                    }
                    println!(
                        "weights, ridge {ridge:e}: {seconds:.3} s, error against f {:.3e}, rms weight {:.3e}",
                        e / t,
                        (size / w.len() as f64).sqrt()
                    );
                }
            }
        }
    }
}

/// Responses and functions, both N x M, by a Cholesky factor with jitter.
fn draw(x: &[f64], d: usize, n: usize, l: f64, noise: f64, s: &mut Stream) -> (Vec<f64>, Vec<f64>) {
    let m = x.len() / d;
    let mut a = vec![0.0; m * m];
    for i in 0..m {
        for j in 0..=i {
            let r: f64 = (0..d).map(|q| (x[i * d + q] - x[j * d + q]) / l).map(|v| v * v).sum();
            a[i * m + j] = libm::exp(-0.5 * r) + if i == j { 1e-10 } else { 0.0 };
        }
    }
    for j in 0..m {
        for i in j..m {
            let sum: f64 = (0..j).map(|q| a[i * m + q] * a[j * m + q]).sum();
            a[i * m + j] = if i == j {
                floored(a[i * m + i] - sum, 1e-12).sqrt()
            } else {
                (a[i * m + j] - sum) / a[j * m + j]
            };
        }
    }
    let mut f = vec![0.0; n * m];
    let mut z = vec![0.0; m];
    for row in f.chunks_mut(m) {
        s.normals(&mut z);
        for i in 0..m {
            row[i] = (0..=i).map(|q| a[i * m + q] * z[q]).sum();
        }
    }
    let y = f.iter().map(|f| f + noise * s.normal()).collect();
    (y, f)
}

fn floored(value: f64, floor: f64) -> f64 {
    if value > floor { value } else { floor }
}
