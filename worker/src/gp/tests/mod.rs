//! The regression against scikit-learn, dense algebra and finite differences.

use nalgebra::{DMatrix, DVector};
use proptest::prelude::*;
use serde_json::Value;

use super::*;

mod edges;

fn list(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn rows(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(list).collect()
}

fn reference() -> Value {
    serde_json::from_str(include_str!("../../../tests/gp.json")).unwrap()
}

/// exp of (log v, log l, log s).
fn parameters(theta: &[f64]) -> Parameters {
    let [variance, length, noise] = [0, 1, 2].map(|i| libm::exp(theta[i]));
    Parameters { variance, length, noise }
}

fn observed(x: &[Vec<f64>], cpu: Cpu) -> Gp<Space> {
    let mut gp = Gp::new(Space, cpu);
    x.iter().for_each(|x| gp.observe(x.clone()).unwrap());
    gp
}

fn standardised(y: &[f64]) -> Vec<f64> {
    let scale = Scale::of(y);
    y.iter().map(|&y| scale.standardise(y)).collect()
}

#[track_caller]
fn close(found: f64, expected: f64, tolerance: f64) {
    let apart = (found - expected).abs();
    let size = if expected.abs() > 0.01 { expected.abs() } else { 0.01 };
    assert!(apart <= tolerance * size, "{found:e} instead of {expected:e}");
}

#[test]
fn scikit_learn_has_the_same_likelihoods_and_predictions() {
    for case in reference()["cases"].as_array().unwrap() {
        let (x, y, asked) = (rows(&case["x"]), list(&case["y"]), rows(&case["asked"]));
        let mut gp = observed(&x, Cpu::detect());
        for value in case["values"].as_array().unwrap() {
            let p = parameters(&list(&value["theta"]));
            let (found, gradient) = gp.log_likelihood(&y, p).unwrap();
            close(found, value["log_likelihood"].as_f64().unwrap(), 1e-9);
            for (found, expected) in gradient.iter().zip(list(&value["gradient"])) {
                close(*found, expected, 1e-9);
            }
            let mut posterior = gp.posterior(&y, p).unwrap().anywhere();
            let (means, deviations) = (list(&value["mean"]), list(&value["deviation"]));
            for (x, (m, deviation)) in asked.iter().zip(means.iter().zip(deviations)) {
                let (mean, variance) = posterior.at(x);
                close(mean, *m, 1e-9);
                close((variance + p.noise).sqrt(), deviation, 1e-9);
            }
        }
    }
}

fn kept_bounds(reference: &Value) -> Bounds {
    let ends = |name: &str| list(&reference["bounds"][name]).try_into().unwrap();
    Bounds { variance: ends("variance"), length: ends("length"), ratio: [1e-10, 1e4] }
}

#[test]
fn scikit_learn_finds_no_better_optimum() {
    let reference = reference();
    for case in reference["cases"].as_array().unwrap() {
        let (x, y) = (rows(&case["x"]), standardised(&list(&case["y"])));
        let search = Search { bounds: kept_bounds(&reference), starts: 5 };
        let mut gp = observed(&x, Cpu::detect());
        let expected = case["optimum"].as_f64().unwrap();
        // The second fit starts at the first one's optimum.
        for _ in 0..2 {
            let posterior = gp.fit(&y, &search, Noise::Fitted).unwrap();
            let found = posterior.log_likelihood();
            assert!(found >= expected - 1e-6, "{found} instead of {expected}");
        }
    }
}

/// log N(y; 0, K + s I) over all observations, by dense algebra.
fn uncollapsed(x: &[Vec<f64>], y: &[f64], p: Parameters) -> f64 {
    let kernel = |a: usize, b: usize| {
        let squared = Space.squared_distance(&x[a], &x[b]);
        let noise = if a == b { p.noise } else { 0.0 };
        p.variance * libm::exp(-squared / (2.0 * p.length * p.length)) + noise
    };
    let covariance = DMatrix::from_fn(y.len(), y.len(), kernel).cholesky().unwrap();
    let y = DVector::from_column_slice(y);
    let log_determinant: f64 = covariance.l().diagonal().iter().map(|&d| 2.0 * libm::log(d)).sum();
    let tau = libm::log(std::f64::consts::TAU);
    -0.5 * (y.dot(&covariance.solve(&y)) + log_determinant + y.len() as f64 * tau)
}

/// Observations at some of `distinct` inputs, and hyper-parameters.
fn settings() -> impl Strategy<Value = (Vec<Vec<f64>>, Vec<f64>, [f64; 3])> {
    let inputs = prop::collection::vec(prop::collection::vec(0.0_f64..1.0, 2), 1..30);
    let theta = [-2.0_f64..2.0, -2.0..0.5, -5.0..1.0];
    let observed = prop::collection::vec((any::<prop::sample::Index>(), -2.0_f64..2.0), 1..50);
    (inputs, observed, theta).prop_map(|(inputs, observed, theta)| {
        let (x, y) = observed.iter().map(|(at, y)| (at.get(&inputs).clone(), *y)).unzip();
        (x, y, theta)
    })
}

proptest! {
    #[test]
    fn collapsing_is_exact((x, y, theta) in settings()) {
        let p = parameters(&theta);
        let found = observed(&x, Cpu::detect()).log_likelihood(&y, p).unwrap().0;
        close(found, uncollapsed(&x, &y, p), 1e-10);
    }

    #[test]
    fn the_gradient_is_that_of_the_likelihood((x, y, theta) in settings()) {
        let mut gp = observed(&x, Cpu::detect());
        let (_, gradient) = gp.log_likelihood(&y, parameters(&theta)).unwrap();
        for i in 0..3 {
            let mut at = |step: f64| {
                let mut theta = theta;
                theta[i] += step;
                gp.log_likelihood(&y, parameters(&theta)).unwrap().0
            };
            close(gradient[i], derivative(&mut at, 1e-2), 1e-6);
        }
    }

    #[test]
    fn gradients_by_x_are_those_of_the_posterior(
        (x, y, theta) in settings(),
        asked in prop::collection::vec(-0.2_f64..1.2, 2),
    ) {
        let mut gp = observed(&x, Cpu::detect());
        let p = parameters(&theta);
        let mut posterior = gp.posterior(&y, p).unwrap().anywhere();
        let (mut by_mean, mut by_variance) = ([0.0; 2], [0.0; 2]);
        let found = posterior.with_gradients(&asked, &mut by_mean, &mut by_variance);
        prop_assert_eq!(found, posterior.at(&asked));
        for k in 0..2 {
            let mut at = |step: f64| {
                let mut x = asked.clone();
                x[k] += step * p.length;
                posterior.at(&x)
            };
            close(by_mean[k] * p.length, derivative(&mut |h| at(h).0, 1e-2), 1e-6);
            close(by_variance[k] * p.length, derivative(&mut |h| at(h).1, 1e-2), 1e-6);
        }
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits((x, y, _) in settings()) {
        let search = Search { bounds: Bounds::new(0.05, 1.5), starts: 2 };
        let [one, other] = [Cpu::detect(), Cpu::plain()].map(|cpu| {
            let mut gp = observed(&x, cpu);
            let posterior = gp.fit(&y, &search, Noise::Fitted).unwrap();
            let (p, value) = (posterior.parameters(), posterior.log_likelihood());
            let mut by = ([0.0; 2], [0.0; 2]);
            let moments =
                posterior.anywhere().with_gradients(&vec![0.3, 0.6], &mut by.0, &mut by.1);
            (p, value, moments, by)
        });
        prop_assert_eq!(one, other);
    }
}

/// A derivative at 0 by central differences, extrapolated twice: error O(h^6).
fn derivative(f: &mut dyn FnMut(f64) -> f64, h: f64) -> f64 {
    let mut central = |h: f64| (f(h) - f(-h)) / (2.0 * h);
    let [a, b, c] = [central(h), central(h / 2.0), central(h / 4.0)];
    let [ab, bc] = [(4.0 * b - a) / 3.0, (4.0 * c - b) / 3.0];
    (16.0 * bc - ab) / 15.0
}

/// A list of candidates in [0, 1]^2: a Kronecker sequence.
fn candidates(size: usize) -> (Vec<f64>, Distances) {
    let part = |i: usize, step: f64| step * i as f64 - (step * i as f64).floor();
    let coordinates: Vec<f64> = (0..size)
        .flat_map(|i| [part(i, 0.7548776662466927), part(i, 0.5698402909980532)])
        .collect();
    let table = Distances::new(2, &coordinates).unwrap();
    (coordinates, table)
}

#[test]
fn candidates_and_coordinates_agree() {
    for (size, steps) in [(3, 2), (50, 23), (131, 90)] {
        let (coordinates, table) = candidates(size);
        let [found, plain] = [Cpu::detect(), Cpu::plain()].map(|cpu| {
            let mut gp = Gp::new(&table, cpu);
            (0..steps).for_each(|i| gp.observe(i * 7 % size).unwrap());
            let y: Vec<f64> = (0..steps).map(|i| libm::sin(i as f64)).collect();
            let p = Parameters { variance: 1.3, length: 0.4, noise: 0.01 };
            let posterior = gp.posterior(&y, p).unwrap();
            let (mut mean, mut variance) = (vec![0.0; size], vec![0.0; size]);
            posterior.predict(&mut mean, &mut variance);
            (mean, variance, y, p)
        });
        assert_eq!(found, plain);
        let (mean, variance, y, p) = found;
        let x: Vec<Vec<f64>> = coordinates.chunks(2).map(<[f64]>::to_vec).collect();
        let taken: Vec<Vec<f64>> = (0..steps).map(|i| x[i * 7 % size].clone()).collect();
        let mut gp = observed(&taken, Cpu::detect());
        let mut posterior = gp.posterior(&y, p).unwrap().anywhere();
        for i in 0..size {
            let (m, v) = posterior.at(&x[i]);
            close(mean[i], m, 1e-10);
            close(variance[i], v, 1e-10);
        }
    }
}
